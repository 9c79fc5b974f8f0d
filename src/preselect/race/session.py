"""`RaceSession`: compute features, choose k arms, race them, take the first right answer, and learn from it.

`RaceSession._run` does all of this, step by step. Every step is in the pool's journal.
"""

import shutil
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, Self

from preselect.errors import InputError, StoppedError
from preselect.outcomes import Void
from preselect.preselector import Preselector
from preselect.race.after_races import AfterRace, find_time
from preselect.race.answers import read_answer
from preselect.race.budget import Budget
from preselect.race.cluster import Cluster
from preselect.race.event_loop import BLOCKING, EVENT_LOOP, Waiter, run_blocking
from preselect.race.instance_features import (
    Instance,
    InstanceFeatures,
    list_feature_names,
    measure_features,
)
from preselect.race.job import Job, own_folder
from preselect.race.pool import Pool, read_pool
from preselect.race.pool_journal import describe, make_preselector, update_journal
from preselect.race.result import RaceResult, SupervisionResult, describe_outcome
from preselect.race.starts import ROUNDS, Starts
from preselect.race.supervision import Supervision, Watch
from preselect.store import Entry, Learner, read_rounds

_Run = Callable[[Job], Awaitable[SupervisionResult]]


class RaceSession:
    """Races on instances, and learns from each race for the next ones.

    The pool's journal is opened with the first race and locked until `close`. Races that an earlier process left
    unfinished become void. Arms that are new in the pool are added; arms that are no longer in it, or that cannot be
    started, are not chosen (see `preselect.race.starts`).

    Several races may run at once, k cores each: `run` in several threads, or several `run_async` in one event loop. All
    of them are in one journal, and each has files of its own while it runs.

    If the pool has a budget for learning, an after-race follows in the background when `run` has returned the answer
    (see `preselect.race.after_races`). The next race ends it, and what it has found is learnt.

    Parameters
    ----------
    pool : Pool, str or path
        The pool, or its file.
    level : str, optional
        How processes are contained, "pid namespace" or "subreaper"; by default the best one that this machine allows.
    cluster : Cluster, optional
        Where races run: on the workers of a Dask cluster, as many at once as they have places for. By default, here.

    Examples
    --------
    >>> with RaceSession("pool.toml") as session:                           # doctest: +SKIP
    ...     session.run("uf250.cnf").winner
    'cadical'
    """

    def __init__(
        self, pool: Pool | str | PathLike[str], *, level: str | None = None, cluster: Cluster | None = None
    ) -> None:
        self.pool = pool if isinstance(pool, Pool) else read_pool(pool)
        self.level, self.cluster = level, cluster
        self._learner: Learner | None = None
        self._lock = threading.RLock()  # protects the learner, and the attributes below
        self._running: set[Supervision] = set()
        self._is_stopped = False
        self._budget = Budget(self.pool.learning.budget)
        self._after_races: dict[AfterRace, Entry] = {}  # after-races whose outcome has not been learnt
        self._ending: list[AfterRace] = []  # those that were stopped
        self._starts = Starts(self.pool, elsewhere=cluster is not None)
        self._folder = self.pool.journal.with_name(f"{self.pool.journal.name}.running")

    def run(self, instance: str | PathLike[str], *, watch: Watch | None = None) -> RaceResult:
        """Race on an instance and learn from the result; in an event loop, which this would block, use `run_async`.

        Parameters
        ----------
        instance : str or path
            The file to race on.
        watch : callable, optional
            Called with the list of standings at every event and four times a second.
        """
        # BLOCKING never suspends, so the coroutine runs to its end in this thread, without an event loop
        return run_blocking(self._run(Path(instance), watch, BLOCKING))

    async def run_async(self, instance: str | PathLike[str], *, watch: Watch | None = None) -> RaceResult:
        """Race as `run` does, without blocking the event loop. Cancelling it ends the race, which is then void.

        Parameters
        ----------
        instance : str or path
            The file to race on.
        watch : callable, optional
            Called with the list of standings at every event and four times a second.
        """
        return await self._run(Path(instance), watch, EVENT_LOOP)

    @property
    def learner(self) -> Learner | None:
        """The learner with its journal; None before the first race."""
        return self._learner

    def stop(self) -> None:
        """End all races, from another thread: each is void, and its `run` raises StoppedError. Later ones do so too."""
        with self._lock:
            self._is_stopped = True
            for supervision in self._running:
                supervision.stop()
            for after_race in self._after_races:
                after_race.stop()

    def settle(self, number: int | None = None) -> None:
        """Wait until after-races have ended, and learn what they have found.

        Parameters
        ----------
        number : int, optional
            Wait only for the after-race of the race with this `RaceResult.number`.
        """
        with self._lock:
            awaited = [one for one, entry in self._after_races.items() if number in (None, entry.number)]
        for after_race in awaited:
            after_race.wait()

    def find_start_errors(self) -> dict[str, str]:
        """Find the arms that cannot be started, and why; they are not chosen."""
        return self._starts.find_errors()

    def close(self) -> None:
        """End after-races and close the journal."""
        with self._lock:
            self._ending += self._after_races
        for after_race in self._ending:
            after_race.stop()
            after_race.wait()
        self._ending.clear()
        if self._learner is not None:
            self._learner.close()
            self._learner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # one race

    async def _run(self, path: Path, watch: Watch | None, waiter: Waiter) -> RaceResult:
        if not path.is_file():
            raise InputError(f"cannot race on {str(path)!r}: there is no such file")
        instance = Instance(path)
        self._end_after_race()
        if self.cluster is None:
            features = await waiter.call(measure_features, self.pool.features, instance)
            return await self._race(instance, features, self._race_here(watch, waiter))
        worker = await waiter.call(self.cluster.take_place, self.pool.k, self._require_going)
        try:
            ask = self.cluster.measure, worker, self.pool.features, path.absolute(), self._require_going
            return await self._race(instance, await waiter.call(*ask), self._race_there(worker, watch, waiter))
        finally:
            self.cluster.release_place(worker)

    async def _race(self, instance: Instance, features: InstanceFeatures, run: _Run) -> RaceResult:
        """Choose arms, race them and learn from the result."""
        with self._lock:
            self._require_going()
            entry = self._choose(instance, features)
        job = Job(self.pool, instance, entry.decision.names, entry.number, self.level)
        with self._void_on_error(entry):
            result = _describe_result(self.pool, instance, features, entry, await run(job))
        self._end(entry, job, result)
        return result

    def _race_here(self, watch: Watch | None, waiter: Waiter) -> _Run:
        async def run(job: Job) -> SupervisionResult:
            with (
                own_folder(self._folder, str(job.number)) as folder,
                self._register(job.prepare(folder, watch)) as supervision,
            ):
                return await supervision.run_in(waiter)

        return run

    def _race_there(self, worker: str, watch: Watch | None, waiter: Waiter) -> _Run:
        async def run(job: Job) -> SupervisionResult:
            assert self.cluster is not None
            there = replace(job, instance=Instance(job.instance.path.absolute()))
            return await waiter.call(self.cluster.race, worker, there, watch, self._require_going)

        return run

    def _require_going(self) -> None:
        if self._is_stopped:
            raise StoppedError("the race was stopped")

    @contextmanager
    def _register(self, supervision: Supervision) -> Iterator[Supervision]:
        """Let `stop` find a race while it runs."""
        with self._lock:
            self._require_going()
            self._running.add(supervision)
        try:
            yield supervision
        finally:
            with self._lock:
                self._running.discard(supervision)

    def _choose(self, instance: Instance, features: InstanceFeatures) -> Entry:
        """Choose k arms and write the decision to the journal."""
        values = features.values
        if values is None:
            assert features.error is not None
            values = dict.fromkeys(self._list_feature_names(features.error))
        learner = self._open_learner(lambda: make_preselector(self.pool, values))
        if set(learner.preselector.context) != set(values):
            raise InputError(
                f"the features are {list(values)}, but {self.pool.journal} was started with "
                f"{learner.preselector.context}; restore them, or write another journal into {self.pool.path}"
            )
        return learner.select(
            values, k=self.pool.k, eligible=self._starts.list_eligible(self.pool.k), label=str(instance.path)
        )

    @contextmanager
    def _void_on_error(self, entry: Entry) -> Iterator[None]:
        """Make the race void in the journal if it is interrupted, cancelled or fails."""
        try:
            yield
        except BaseException as error:
            reason = f"the race was interrupted: {str(error) or type(error).__name__}"
            self._tell(entry, details={"reason": reason}, outcome=Void())
            raise

    def _end(self, entry: Entry, job: Job, result: RaceResult) -> None:
        """Learn from a race, or note how it ended and begin its after-race."""
        with self._lock:
            seconds = self.pool.limits.seconds if result.winner is None else result.seconds
            self._starts.note_race(result.finishes, None if result.void else seconds)
            arms = self._choose_for_after_race(entry, job, result)
            if not arms:
                self._tell(entry, **describe_outcome(result, self.pool.limits.seconds))
                return
            assert self._learner is not None
            self._learner.note(entry, **describe_outcome(result, self.pool.limits.seconds))
            after_race = AfterRace(job, result, arms, self._folder, self._conclude)
            self._budget.left -= after_race.reserved
            self._after_races[after_race] = entry
            after_race.start()

    # after-races

    def _choose_for_after_race(self, entry: Entry, job: Job, result: RaceResult) -> tuple[str, ...]:
        """Return the arms from which most would be learnt, as many as the budget allows."""
        if result.void is not None or result.better is not None or self.cluster is not None or self._is_stopped:
            return ()
        seconds = find_time(job, result)
        self._budget.earn(sum(finish.seconds for finish in result.finishes), seconds)
        count = self._budget.count_arms(seconds)
        if not count:
            return ()
        assert self._learner is not None
        errors = self._starts.find_errors()
        eligible = [name for name in self.pool.arms if name not in errors]
        return self._learner.preselector.suggest(entry.decision, count, seed=entry.number, eligible=eligible)

    def _end_after_race(self) -> None:
        """End the oldest after-race, because a race that begins needs its cores."""
        with self._lock:
            self._ending = [one for one in self._ending if one.is_running]
            oldest = next(iter(self._after_races), None)
            if oldest is not None:
                oldest.stop()
                self._ending.append(oldest)
                self._conclude(oldest)

    def _conclude(self, after_race: AfterRace) -> None:
        """Learn from a race and its after-race, once; also called in the after-race's thread."""
        with self._lock:
            entry = self._after_races.pop(after_race, None)
            if entry is None:
                return
            found = after_race.read_findings()
            self._budget.left += after_race.reserved - found.used
            limit = self.pool.limits.seconds
            self._tell(entry, **found.add_to(describe_outcome(after_race.result, limit), limit))

    def _tell(self, entry: Entry, **outcome: Any) -> None:
        with self._lock:
            assert self._learner is not None
            self._learner.learn(entry, **outcome)

    # the journal

    def _list_feature_names(self, error: InputError) -> Iterable[str]:
        """List the names of unavailable features; raise `error` if neither pool nor journal knows them."""
        known = list_feature_names(self.pool.features)
        if known is not None:
            return known
        if self._learner is None and not self.pool.journal.exists():
            raise error

        def fail() -> NoReturn:
            raise error

        return self._open_learner(fail).preselector.context

    def _open_learner(self, make: Callable[[], Preselector]) -> Learner:
        """Open the journal if it is not open yet; `make` makes the preselector of a new one."""
        if self._learner is None:
            learner = Learner.open(self.pool.journal, make=make, about=describe(self.pool), compare=False)
            try:
                update_journal(learner, self.pool)
                self._starts.recall(read_rounds(learner.journal, after=max(0, learner.journal.last - ROUNDS)))
            except BaseException:
                learner.close()
                raise
            shutil.rmtree(self._folder, ignore_errors=True)  # what a killed process left behind
            self._learner = learner
        return self._learner


def _describe_result(
    pool: Pool, instance: Instance, features: InstanceFeatures, entry: Entry, ended: SupervisionResult
) -> RaceResult:
    return RaceResult(
        **vars(ended),
        instance=instance.path,
        number=entry.number,
        chosen=entry.decision.names,
        answer=read_answer(ended.output, ended.exit_code) if pool.is_for_sat else None,
        feature_seconds=features.seconds,
        warning=None if features.error is None else f"raced without features: {features.error}",
        better=pool.better,
    )
