"""Run the unfinished blocks of a study, on processes of this machine or on a Dask cluster."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from preselect.errors import PreselectError, RunError
from preselect.policies import registry
from preselect.study.plan import Plan, Task, space_checkpoints
from preselect.study.play import Repetition, play
from preselect.study.results import Results
from preselect.study.tables import write_tables

_Block: TypeAlias = tuple[Task, list[Repetition]]


def run(
    results: Results,
    plan: Plan,
    *,
    workers: int = -1,
    cluster: str | None = None,
    report: Callable[[Task], None] | None = None,
) -> None:
    """Compute the blocks of a plan that are not finished, write each as soon as it is, and then the tables.

    Parameters
    ----------
    results : Results
        Where to; as `Results.create` returns it.
    plan : Plan
        What to compute: the plan of these results, or a part of it.
    workers : int, default -1
        Processes; -1 for one per core, -2 for one fewer. With 1 everything runs in this process. Results do not
        depend on it.
    cluster : str or None, default None
        Address of a Dask scheduler, on whose workers the blocks are computed instead.
    report : callable, optional
        Called with each task when its block has been written.
    """
    pending = results.find_pending(plan)
    for task, repetitions in _run_on_cluster(pending, cluster) if cluster else _run_on_processes(pending, workers):
        results.write_block(task, repetitions)
        if report:
            report(task)
    write_tables(results)


def _run_task(task: Task) -> _Block:
    """Play the repetitions of a block. It depends on the task alone and is the same wherever it runs."""
    _repeat(task, task.first, 2)  # compile, or load what was compiled, before time is measured
    rounds = task.plan.count_rounds(task.setting)
    return task, [_repeat(task, repetition, rounds) for repetition in range(task.first, task.last)]


def _repeat(task: Task, repetition: int, rounds: int) -> Repetition:
    make, parameters = registry.parse(task.policy)
    environment_seed, policy_seed = task.make_seeds(repetition)
    environment = task.plan.make_environment(task.setting, environment_seed)
    try:
        policy = make(**{"d": environment.d, "seed": policy_seed, **parameters})
        return play(policy, environment, task.setting.k, space_checkpoints(rounds))
    except PreselectError:
        raise
    except Exception as error:
        where = f"{task.policy} failed at {task.setting}, repetition {repetition}"
        raise RunError(f"{where}: {type(error).__name__}: {error}") from error


def _run_on_processes(tasks: list[Task], workers: int) -> Iterator[_Block]:
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    workers = min(joblib.effective_n_jobs(workers), len(tasks))
    if workers <= 1:
        yield from map(_run_task, tasks)
        return
    try:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(
                n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
            )
            yield from parallel(joblib.delayed(_run_in_worker)(os.getpid(), os.getcwd(), task) for task in tasks)
    except TerminatedWorkerError:
        raise RunError("a worker process died; finished blocks are kept, and the same command resumes") from None


def _run_in_worker(parent: int, folder: str, task: Task) -> _Block:
    """Run a task in its parent's working folder, in a process that ends with its parent even if that is killed."""
    os.chdir(folder)
    watched = any(thread.name == "watch parent" for thread in threading.enumerate())
    if os.getpid() != parent and not watched:
        threading.Thread(target=_exit_with, args=(parent,), name="watch parent", daemon=True).start()
    return _run_task(task)


def _exit_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _run_on_cluster(tasks: list[Task], address: str) -> Iterator[_Block]:
    distributed, client = _connect(address)
    with client:
        futures = client.map(_run_task, tasks, pure=False)
        try:
            for future in distributed.as_completed(futures):
                yield future.result()
        except (distributed.CancelledError, distributed.KilledWorker) as error:
            raise RunError(f"the Dask cluster could not finish a block: {error}") from None
        finally:
            client.cancel(futures)


def _connect(address: str) -> tuple[Any, Any]:
    """Return the module `distributed` and a client of the scheduler at an address."""
    try:
        import distributed as dask
    except ImportError:
        raise RunError("a cluster needs Dask; run pip install '.[dask]' in a checkout of preselect") from None
    distributed: Any = dask
    try:
        return distributed, distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise RunError(f"cannot reach a Dask scheduler at {address!r}: {str(error) or type(error).__name__}") from None
