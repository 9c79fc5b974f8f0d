"""The learning race: features, a choice of k arms, the race, the first right answer, learning; all in the journal."""

import asyncio
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from preselect.errors import InputError, JournalError, PreselectError
from preselect.outcomes import NoWinner, Void
from preselect.preselector import Preselector
from preselect.race.answers import checker
from preselect.race.instance_features import Instance, Measured, Values, feature_names, features_of
from preselect.race.pool import Arm, FeatureSource, Pool, read_pool
from preselect.race.result import RaceResult
from preselect.race.supervision import Racer, Result, Status, Watch, supervise, supervise_async
from preselect.store import Entry, Learner


class _NotMeasured(NamedTuple):
    """Features that could not be had, why, and how long it took to find out."""

    error: InputError
    seconds: float


class _Start(NamedTuple):
    """A race that is in the journal and about to begin."""

    instance: Instance
    entry: Entry
    racers: list[Racer]
    feature_seconds: float
    warning: str | None
    seed: int

    def raced(self, result: Result) -> RaceResult:
        """What came of it."""
        seconds, warning = self.feature_seconds, self.warning
        return RaceResult.of(self.instance.path, self.entry, result, feature_seconds=seconds, warning=warning)


class Races:
    """Races on one instance after the other, each chosen by what the ones before have taught.

    A pool's journal is opened with the first instance and held until `close`: one process at a time. Races that a
    former process left unfinished are void. A new arm of the pool joins; one that is gone from it, or that could not be
    started, is not chosen.

    >>> with Races("pool.toml") as races:                                   # doctest: +SKIP
    ...     races.run("uf250.cnf").winner
    'cadical'
    """

    def __init__(self, pool: Pool | str | PathLike[str], *, level: str | None = None) -> None:
        self.pool = pool if isinstance(pool, Pool) else read_pool(pool)
        self.level = level
        self._learner: Learner | None = None
        self._racing = False
        self._unable: dict[str, str] = {}
        self._folder = self.pool.journal.with_name(f"{self.pool.journal.name}.running")

    def run(self, instance: str | PathLike[str], *, watch: Watch | None = None) -> RaceResult:
        """Race on an instance and learn from it; `watch` is shown how the racers stand, as in `supervise`."""
        with self._one_at_a_time():
            entrant = _existing(instance)
            start = self._prepared(entrant, _measured(self.pool.features, entrant))
            with self._void_if_interrupted(start.entry):
                raced = start.raced(supervise(start.racers, watch=watch, **self._terms(start)))
            return self._learnt(start.entry, raced)

    async def run_async(self, instance: str | PathLike[str], *, watch: Watch | None = None) -> RaceResult:
        """Do the same without blocking the event loop for long; one race at a time."""
        with self._one_at_a_time():
            entrant = _existing(instance)
            start = self._prepared(entrant, await asyncio.to_thread(_measured, self.pool.features, entrant))
            with self._void_if_interrupted(start.entry):
                raced = start.raced(await supervise_async(start.racers, watch=watch, **self._terms(start)))
            return self._learnt(start.entry, raced)

    @property
    def learner(self) -> Learner | None:
        """What has been learnt, and its journal; None before the first race."""
        return self._learner

    def close(self) -> None:
        """Let the journal go."""
        if self._learner is not None:
            self._learner.close()
            self._learner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        if self._racing:
            raise InputError("a race must have ended before the next begins, got another one at the same time")
        self._racing = True
        try:
            yield
        finally:
            self._racing = False

    def _prepared(self, instance: Instance, measured: Measured | _NotMeasured) -> _Start:
        if isinstance(measured, _NotMeasured):
            values: Values = dict.fromkeys(self._feature_names(measured.error))
            warning = f"raced without features: {measured.error}"
        else:
            values, warning = measured.values, ""
        learner = self._opened(values)
        entry = learner.select(values, self.pool.k, eligible=self._able(), label=str(instance.path))
        with self._void_if_interrupted(entry):
            seeds = np.random.SeedSequence((self.pool.seed, entry.number)).generate_state(1 + self.pool.k) >> 1
            racers = [
                self.pool.racer(name, instance.path, int(seed))
                for name, seed in zip(entry.decision.names, seeds[1:], strict=True)
            ]
        return _Start(instance, entry, racers, measured.seconds, warning or None, int(seeds[0]))

    def _able(self) -> list[str]:
        """The arms that may be chosen: those whose commands have not turned out to be impossible to start."""
        able = [name for name in self.pool.arms if name not in self._unable]
        if len(able) < self.pool.k:
            raise PreselectError(
                f"k={self.pool.k} arms of {self.pool.path} must be such that they can be started, got {len(able)}: "
                f"{'; '.join(self._unable.values())}; see preselect race check {self.pool.path}"
            )
        return able

    def _feature_names(self, error: InputError) -> Iterable[str]:
        """The names of features that cannot be had for an instance, if the pool or the journal knows them."""
        known = feature_names(self.pool.features)
        if known is not None:
            return known
        if self._learner is None and not self.pool.journal.exists():
            raise error

        def unknown() -> NoReturn:
            raise error

        return self._begun(unknown).preselector.context

    def _opened(self, values: Values) -> Learner:
        learner = self._begun(lambda: _chooser(self.pool, values))
        if set(learner.preselector.context) != set(values):
            raise InputError(
                f"features must be {learner.preselector.context}, with which {self.pool.journal} was begun, "
                f"got {list(values)}; name another journal in {self.pool.path}"
            )
        return learner

    def _begun(self, make: Callable[[], Preselector]) -> Learner:
        """The learner, from the journal if there is one, else from what is made."""
        if self._learner is None:
            learner = Learner.open(self.pool.journal, make=make, about=_about(self.pool))
            try:
                _bring_up_to_date(learner, self.pool)
            except BaseException:
                learner.close()
                raise
            self._learner = learner
        return self._learner

    def _terms(self, start: _Start) -> dict[str, Any]:
        limits = self.pool.limits
        return {
            "folder": self._folder,
            "seconds": limits.seconds,
            "memory": limits.memory,
            "output": limits.output,
            "seed": start.seed,
            "check": checker(self.pool, start.instance),
            "level": self.level,
        }

    @contextmanager
    def _void_if_interrupted(self, entry: Entry) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            assert self._learner is not None
            reason = str(error) or type(error).__name__
            self._learner.learn(entry, outcome=Void(), details={"reason": f"the race was cut short: {reason}"})
            raise

    def _learnt(self, entry: Entry, raced: RaceResult) -> RaceResult:
        limit = self.pool.limits.seconds
        details, after = raced.describe(limit), raced.seconds / limit
        assert self._learner is not None
        if raced.void is not None:
            self._learner.learn(entry, outcome=Void(), details=details)
        elif raced.winner is None:
            self._learner.learn(entry, outcome=NoWinner(after), details=details)
        else:
            self._learner.learn(entry, winner=raced.winner, after=after, details=details)
        for finish in raced.finishes:
            if finish.status == Status.NOT_STARTED:
                self._unable[finish.name] = f"{finish.name}: {finish.detail}"
        shutil.rmtree(self._folder, ignore_errors=True)  # what is left of it is overwritten by the next race
        return raced


def race(
    pool: Pool | str | PathLike[str],
    instance: str | PathLike[str],
    *,
    watch: Watch | None = None,
    level: str | None = None,
) -> RaceResult:
    """One race: choose k arms of a pool for an instance, run them, stop at the first right answer, and learn."""
    with Races(pool, level=level) as races:
        return races.run(instance, watch=watch)


async def race_async(
    pool: Pool | str | PathLike[str],
    instance: str | PathLike[str],
    *,
    watch: Watch | None = None,
    level: str | None = None,
) -> RaceResult:
    """The same without blocking the event loop. Cancelling it ends the race, which is then void."""
    with Races(pool, level=level) as races:
        return await races.run_async(instance, watch=watch)


def _existing(path: str | PathLike[str]) -> Instance:
    instance = Instance(Path(path))
    if not instance.path.is_file():
        raise InputError(f"instance must be a file, got {str(instance.path)!r}")
    return instance


def _measured(source: FeatureSource, instance: Instance) -> Measured | _NotMeasured:
    """The features of an instance; a formula that cannot be read is an error at once, and nothing to race on."""
    start = monotonic()
    try:
        return features_of(source, instance)
    except InputError as error:
        if source.kind == "sat":
            _ = instance.formula
        return _NotMeasured(error, monotonic() - start)


def _chooser(pool: Pool, values: Values) -> Preselector:
    arms = {name: arm.features for name, arm in pool.arms.items()}
    return Preselector(arms, context=values, policy=pool.policy, seed=pool.seed)


def _about(pool: Pool) -> dict[str, Any]:
    return {"kind": "race", "policy": pool.policy, "seed": pool.seed}


def _bring_up_to_date(learner: Learner, pool: Pool) -> None:
    """Make the journal fit the pool: arms that are new join, what was interrupted is void."""
    for key, value in _about(pool).items():
        if learner.about.get(key) != value:
            raise JournalError(
                f"{key} must be {learner.about.get(key)!r}, with which {pool.journal} was begun, got {value!r}; "
                f"put it back, or name another journal in {pool.path}"
            )
    for name, arm in pool.arms.items():
        if name in learner.arms:
            _require_same_features(learner, arm, pool)
        else:
            learner.add(name, arm.features)
    for entry in learner.unfinished():
        learner.learn(entry, outcome=Void(), details={"reason": "the process that raced ended before the race did"})


def _require_same_features(learner: Learner, arm: Arm, pool: Pool) -> None:
    kept = learner.preselector.arm(arm.name)
    if arm.features != {name: value for name, value in kept.items() if value is not None}:
        raise JournalError(
            f"features of {arm.name} must be {kept}, as {pool.journal} has them, got {dict(arm.features)}; "
            f"put them back, or give the arm another name"
        )
