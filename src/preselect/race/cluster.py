"""Run races on the workers of a Dask cluster, each under a supervisor on its worker.

When a worker dies, its supervisors and their racers die too, and Dask gives the race to another worker. Dask does not
stop a running task when it is cancelled or its client ends, so each task checks several times a second whether its
result is still wanted, and ends its race if it is not. The time limit holds in any case.
"""

import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from preselect.clusters import connect
from preselect.errors import InputError, PreselectError, RunError, StoppedError
from preselect.race.instance_features import Instance, InstanceFeatures, measure_features
from preselect.race.job import Job
from preselect.race.pool import FeatureSource
from preselect.race.result import Finish, Standing, SupervisionResult
from preselect.race.supervision import Status, Watch

_TICK_SECONDS = 0.25


class Cluster:
    """The workers of a Dask cluster, on which a RaceSession runs its races.

    Instances, and files that the pool names, must have the same paths on all workers. A worker with t threads runs t //
    k races at a time, but at least one.

    Parameters
    ----------
    address : str
        Where the scheduler is, as in tcp://host:8786.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._dask, self._client = connect(address)
        self._busy: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count_places(self, k: int) -> int:
        """Count how many races of k arms can run at a time; raise an InputError if there is no worker."""
        places = sum(self._list_places(k).values())
        if not places:
            raise InputError(f"the Dask cluster at {self.address!r} has no worker; start one with `dask worker`")
        return places

    def take_place(self, k: int, require_going: Callable[[], None]) -> str:
        """Reserve a place for a race of k arms on the worker with most free places; return the worker's address.

        While there is none, it calls `require_going` several times a second, which may end the wait with an error.
        """
        while (worker := self._find_place(k)) is None:  # if workers died, they may come back
            require_going()
            time.sleep(_TICK_SECONDS)
        return worker

    def release_place(self, worker: str) -> None:
        """Give a place back."""
        with self._lock:
            self._busy[worker] -= 1

    def measure(
        self, worker: str, source: FeatureSource, path: Path, require_going: Callable[[], None]
    ) -> InstanceFeatures:
        """Compute features of an instance on a worker; `require_going` as in `take_place`."""
        found: InstanceFeatures = self._wait(self._submit(worker, _measure, source, path), require_going)
        return found

    def race(self, worker: str, job: Job, watch: Watch | None, require_going: Callable[[], None]) -> SupervisionResult:
        """Run a race on a worker; return its result. `require_going` as in `take_place`."""
        start, future = time.monotonic(), self._submit(worker, _race, job)

        def tick() -> None:
            require_going()
            if watch is not None:
                passed = time.monotonic() - start
                watch([Standing(arm, None, passed, answered=False) for arm in job.arms])

        try:
            ended: SupervisionResult = self._wait(future, tick)
            return ended
        except self._dask.KilledWorker:
            return _give_up(job, time.monotonic() - start)

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _list_places(self, k: int) -> dict[str, int]:
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except OSError as error:
            raise self._explain(error) from None
        return {address: max(1, worker["nthreads"] // k) for address, worker in workers.items()}

    def _find_place(self, k: int) -> str | None:
        with self._lock:
            free = {worker: places - self._busy[worker] for worker, places in self._list_places(k).items()}
            worker = max(free, key=lambda worker: free[worker], default=None)
            if worker is None or free[worker] < 1:
                return None
            self._busy[worker] += 1
            return worker

    def _submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        # another worker is allowed, in case this one has died
        return self._client.submit(function, *arguments, workers=[worker], allow_other_workers=True, pure=False)

    def _wait(self, future: Any, tick: Callable[[], None]) -> Any:
        """Wait for a result; it is cancelled if anything goes wrong."""
        try:
            while not self._is_done(future):
                tick()
            # without a timeout: one that ran out would cancel fetching the results of other races too
            return future.result()
        except (PreselectError, self._dask.KilledWorker):
            raise
        except (Exception, self._dask.CancelledError) as error:
            raise self._explain(error) from error
        finally:
            future.cancel()

    def _is_done(self, future: Any) -> bool:
        """Wait a moment for a task to end; return whether it has."""
        try:
            self._dask.wait(future, timeout=_TICK_SECONDS)
        except TimeoutError:
            return False
        return True

    def _explain(self, error: BaseException) -> RunError:
        return RunError(f"a race on the Dask cluster at {self.address!r} failed: {str(error) or type(error).__name__}")


def _give_up(job: Job, seconds: float) -> SupervisionResult:
    """Return the result of a race whose workers have died, one after the other."""
    reason, status = "the workers that ran it died", Status.INFRASTRUCTURE_ERROR
    ends = tuple(Finish(arm, status, seconds, 0.0, None, None, reason, b"", b"") for arm in job.arms)
    return SupervisionResult(None, False, seconds, ends, "none", reason, b"")


# --- on a worker ------------------------------------------------------------------------------------------------------


def _measure(source: FeatureSource, path: Path) -> InstanceFeatures:
    _require_file(path)
    return measure_features(source, Instance(path))


def _race(job: Job) -> SupervisionResult:
    _require_file(job.instance.path)
    is_wanted = _find_interest()

    def stop_unless_wanted(_: list[Standing]) -> None:
        if not is_wanted():
            raise StoppedError("the result of this race is no longer wanted")

    with tempfile.TemporaryDirectory(prefix="preselect-race-") as folder:
        return job.prepare(Path(folder), stop_unless_wanted).run()


def _find_interest() -> Callable[[], bool]:
    """Return a function that says whether the task of this thread is still wanted."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state in ("executing", "long-running")

    return is_wanted


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(
            f"{str(path)!r} is not a file on {socket.gethostname()}, where a worker of the cluster runs; "
            "put instances, and what the pool names, where all workers have them at the same path"
        )
