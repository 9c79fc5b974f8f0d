"""Run the unfinished blocks of a study, in processes on this machine or on a Dask cluster.

Each repetition is one loop: context → select → outcome → learn.
"""

import hashlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.clusters import connect
from preselect.context import Floats
from preselect.environments import Environment, RaceReplay
from preselect.errors import InputError, PreselectError, RunError
from preselect.policies import Policy, registry
from preselect.study.plan import Plan
from preselect.study.results import Results, Task, space_checkpoints
from preselect.study.tables import write_tables

_ROUNDS_AT_A_TIME = 256

_Arrays: TypeAlias = dict[str, NDArray[Any]]
_Job: TypeAlias = tuple[Task, int, dict[str, Any], dict[str, str]]
# a task, the rounds of a repetition, classes of a notebook, digests of the user's own files
_Block: TypeAlias = tuple[Task, _Arrays]


def compute(
    results: Results,
    plan: Plan,
    *,
    workers: int = -1,
    cluster: str | None = None,
    report: Callable[[int, int, Task | None], None] | None = None,
) -> None:
    """Compute the unfinished blocks of a plan, write each as soon as it is finished, and then write the tables.

    Parameters
    ----------
    results : Results
        Where to write them: what `Results.create` returned.
    plan : Plan
        What to compute: the plan of these results, or a part of it.
    workers : int, default -1
        Processes; -1 for one per core, -2 for one fewer. With 1 everything runs in this process. Results do not
        depend on it.
    cluster : str or None, default None
        Address of a Dask scheduler, on whose workers the blocks are computed instead.
    report : callable, optional
        Called as `report(done, total, task)` with the numbers of finished blocks and of all blocks: with None before
        anything is computed, and then with each task when its block has been written.
    """
    report = report or _ignore
    finished, total = results.count_blocks(plan)
    report(finished, total, None)
    pending = results.find_pending(plan)
    sources = results.manifest.sources
    jobs = [(task, results.find_data(task.setting).rounds, _find_classes(task), sources) for task in pending]
    blocks = _run_on_cluster(jobs, cluster) if cluster else _run_on_processes(jobs, workers)
    for done, (task, arrays) in enumerate(blocks, finished + 1):
        results.write_block(task, arrays)
        report(done, total, task)
    write_tables(results)


def _ignore(done: int, total: int, task: Task | None) -> None:
    """Report nothing."""


def _find_classes(task: Task) -> dict[str, Any]:
    """Return the classes that other processes cannot import, because a notebook or a script defines them."""
    texts = [task.policy, *(value for value in task.setting if isinstance(value, str))]
    names = [text.partition("(")[0].partition(":")[2] for text in texts if text.startswith("__main__:")]
    return {name: getattr(sys.modules["__main__"], name) for name in names}


def _define(classes: dict[str, Any]) -> None:
    """Define the classes of another process's notebook or script in this process."""
    vars(sys.modules["__main__"]).update(classes)


def _run_block(job: _Job) -> _Block:
    """Play the repetitions of a block. The result depends on the task alone and is the same wherever it runs."""
    task, rounds, classes, _ = job
    _define(classes)
    _repeat(task, task.first, min(2, rounds))  # compile, or load compiled code, before time is measured
    repetitions = [_repeat(task, repetition, rounds) for repetition in range(task.first, task.last)]
    return task, {name: np.array([one[name] for one in repetitions]) for name in repetitions[0]}


def _repeat(task: Task, repetition: int, rounds: int) -> _Arrays:
    try:
        return _play(*_start(task, repetition), task.setting.k, space_checkpoints(rounds))
    except PreselectError:
        raise
    except Exception as error:
        where = f"{task.policy} failed at {task.setting}, repetition {repetition}"
        raise RunError(f"{where}: {type(error).__name__}: {error}") from error


def _start(task: Task, repetition: int) -> tuple[Policy, Environment]:
    """Make policy and environment.

    Seeds do not depend on the policy, so that all policies meet the same random numbers.
    """
    values = task.plan.list_seeds(task.setting)
    numbers = [value if isinstance(value, int) else _digest(value) for value in values]
    of_environment, of_policy = np.random.SeedSequence((task.plan.seed, *numbers, repetition)).spawn(2)
    environment = task.plan.make_environment(task.setting, of_environment)
    make, parameters = registry.parse(task.policy)
    given: dict[str, Any] = {"d": environment.d, "seed": int(of_policy.generate_state(1)[0])}
    if make.prefers_blocks and isinstance(environment, RaceReplay):
        given["blocks"] = environment.show_blocks()
    return make(**{**given, **parameters}), environment


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def _play(policy: Policy, environment: Environment, k: int, checkpoints: NDArray[np.int64]) -> _Arrays:
    """Play up to the last checkpoint.

    Returns the environment's measures, summed up to each checkpoint, and the seconds spent in the policy and in total.
    """
    horizon = int(checkpoints[-1])
    added: dict[str, list[Floats]] = {}
    began, policy_seconds = perf_counter(), 0.0
    for first in range(0, horizon, _ROUNDS_AT_A_TIME):
        rounds = min(_ROUNDS_AT_A_TIME, horizon - first)
        arms, truths, seconds = _play_rounds(policy, environment, k, rounds)
        policy_seconds += seconds
        for measure, values in environment.measure(truths, arms).items():
            added.setdefault(measure, []).append(values)
    sums = {measure: np.concatenate(values).cumsum()[checkpoints - 1] for measure, values in added.items()}
    spent = {"policy_seconds": policy_seconds, "seconds": perf_counter() - began}
    return sums | {name: np.array(seconds) for name, seconds in spent.items()}


def _play_rounds(
    policy: Policy, environment: Environment, k: int, rounds: int
) -> tuple[NDArray[np.int64], Floats, float]:
    """Play some rounds; return the arms chosen in each, each round's truth, and the seconds spent in the policy."""
    arms, truths, seconds = np.empty((rounds, k), dtype=np.int64), [], 0.0
    rescale, run_on = (getattr(environment, name, None) for name in ("rescale", "run_on"))
    for t in range(rounds):
        if rescale is not None:
            rescale(policy)
        context = environment.context()
        start = perf_counter()
        decision = policy.select(context, k)
        chosen = perf_counter()
        told = decision, environment.outcome(decision)
        if run_on is not None:
            told = run_on(policy, context, decision) or told
        ended = perf_counter()
        policy.learn(*told)
        seconds += perf_counter() - ended + chosen - start
        arms[t] = decision.arms
        truths.append(environment.truth())
    return arms, np.array(truths), seconds


def _run_on_processes(jobs: list[_Job], workers: int) -> Iterator[_Block]:
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    workers = min(joblib.effective_n_jobs(workers), len(jobs))
    if workers <= 1:
        yield from map(_run_block, jobs)
        return
    try:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(
                n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
            )
            yield from parallel(joblib.delayed(_run_in_worker)(os.getpid(), os.getcwd(), job) for job in jobs)
    except TerminatedWorkerError:
        raise RunError("a worker process died; finished blocks are kept, and the same command resumes") from None


def _run_in_worker(parent: int, folder: str, job: _Job) -> _Block:
    """Run a block in the parent's working folder; this process ends with its parent, even if that is killed."""
    os.chdir(folder)
    watched = any(thread.name == "watch parent" for thread in threading.enumerate())
    if os.getpid() != parent and not watched:
        threading.Thread(target=_exit_with, args=(parent,), name="watch parent", daemon=True).start()
    return _run_block(job)


def _exit_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _run_on_cluster(jobs: list[_Job], address: str) -> Iterator[_Block]:
    distributed, client = connect(address)
    with client:
        futures = client.map(_run_on_worker, jobs, pure=False)
        try:
            for future in distributed.as_completed(futures):
                yield future.result()
        except (distributed.CancelledError, distributed.KilledWorker) as error:
            raise RunError(f"the Dask cluster could not finish a block: {error}") from None
        finally:
            client.cancel(futures)


def _run_on_worker(job: _Job) -> _Block:
    """Run a block on a Dask worker; an error says where, because the worker may lack what this machine has."""
    task, _, classes, sources = job
    _define(classes)
    try:
        _start(task, task.first)
        _require_same(task, sources)
    except (InputError, OSError) as error:
        where = f"a Dask worker on {socket.gethostname()}, in the folder {os.getcwd()}"
        raise RunError(f"{where}: {error}; modules and data have to be there on every worker") from None
    return _run_block(job)


def _require_same(task: Task, sources: dict[str, str]) -> None:
    """Raise an InputError if the user's own files are not what they are where the study was started."""
    part = replace(task.plan, settings=(task.setting,), policies=(task.policy,))
    for name, digest in part.digest_sources().items():
        if not name.startswith("__main__:") and sources.get(name, digest) != digest:
            raise InputError(f"{name} is not the same there as where the study was started")
