"""Run the blocks of a study that are missing, on processes of this machine or on a Dask cluster."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from preselect.errors import PreselectError, RunError
from preselect.policies import registry
from preselect.study.plan import Plan, Task, checkpoints
from preselect.study.play import Repetition, play
from preselect.study.results import Results

Block: TypeAlias = tuple[Task, list[Repetition]]


def run_task(task: Task) -> Block:
    """Play the repetitions of a block. Depends on the task alone, so it gives the same wherever it runs."""
    make, parameters = registry.parse(task.policy)
    plan, setting = task.plan, task.setting

    def repeat(repetition: int, horizon: int) -> Repetition:
        environment_seed, policy_seed = task.seeds(repetition)
        environment = plan.environment(setting, environment_seed)
        try:
            policy = make(**{"d": environment.d, "seed": policy_seed, **parameters})
            return play(policy, environment, setting.k, checkpoints(horizon))
        except PreselectError:
            raise
        except Exception as error:
            place = f"{task.policy} failed at {setting}, repetition {repetition}"
            raise RunError(f"{place}: {type(error).__name__}: {error}") from error

    repeat(task.first, 2)  # compile, or load what was compiled, before the clock runs
    return task, [repeat(repetition, plan.horizon_of(setting)) for repetition in range(task.first, task.last)]


def run(
    results: Results,
    plan: Plan,
    *,
    workers: int = -1,
    cluster: str | None = None,
    report: Callable[[Task], None] | None = None,
) -> None:
    """Compute what is missing, write each block when it is finished, then the tables; `report` hears of each block."""
    pending = results.pending(plan)
    for task, repetitions in _on_cluster(pending, cluster) if cluster else _on_processes(pending, workers):
        results.write_block(task, repetitions)
        if report:
            report(task)
    results.write_tables()


def _run_task_of(parent: int, folder: str, task: Task) -> Block:
    """Run a task in a worker that works in the folder of its parent and does not outlive it, even if it is killed."""
    os.chdir(folder)
    watched = any(thread.name == "watch parent" for thread in threading.enumerate())
    if os.getpid() != parent and not watched:
        threading.Thread(target=_end_with, args=(parent,), name="watch parent", daemon=True).start()
    return run_task(task)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _on_processes(tasks: list[Task], workers: int) -> Iterator[Block]:
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    workers = min(joblib.effective_n_jobs(workers), len(tasks))
    if workers <= 1:
        yield from map(run_task, tasks)
        return
    try:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(
                n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
            )
            yield from parallel(joblib.delayed(_run_task_of)(os.getpid(), os.getcwd(), task) for task in tasks)
    except TerminatedWorkerError:
        raise RunError(
            "a worker process died; what was finished is kept, the same command goes on from there"
        ) from None


def _on_cluster(tasks: list[Task], address: str) -> Iterator[Block]:
    try:
        import distributed as dask
    except ImportError:
        raise RunError("a cluster needs Dask; run pip install '.[dask]' in a checkout of preselect") from None
    distributed: Any = dask
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise RunError(f"cannot reach a Dask scheduler at {address!r}: {str(error) or type(error).__name__}") from None
    with client:
        futures = client.map(run_task, tasks, pure=False)
        try:
            for future in distributed.as_completed(futures):
                yield future.result()
        except (distributed.CancelledError, distributed.KilledWorker) as error:
            raise RunError(f"the cluster gave up on a block: {error}") from None
        finally:
            client.cancel(futures)
