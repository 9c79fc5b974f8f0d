"""Races that learn: compute features, choose k arms, race them, take the first right answer, learn from it.

`RaceSession._run` does all of this, step by step. Every step is in the pool's journal.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from preselect.errors import InputError, JournalError, PreselectError
from preselect.outcomes import NoWinner, Void
from preselect.preselector import Preselector
from preselect.race.answers import make_answer_check, read_answer
from preselect.race.event_loop import BLOCKING, EVENT_LOOP, Waiter, run_blocking
from preselect.race.instance_features import (
    FeatureValues,
    Instance,
    InstanceFeatures,
    list_feature_names,
    measure_features,
)
from preselect.race.pool import Arm, Pool, read_pool
from preselect.race.result import RaceResult, SupervisionResult
from preselect.race.supervision import Status, Supervision, Watch
from preselect.store import Entry, Learner


class RaceSession:
    """Races on one instance after the other, each learning from those before.

    The pool's journal is opened with the first race and locked until `close`. Races that an earlier process left
    unfinished become void. Arms that are new in the pool are added; arms that are no longer in it, or that could not be
    started, are not chosen.

    Parameters
    ----------
    pool : Pool, str or path
        The pool, or its file.
    level : str, optional
        How processes are contained, "pid namespace" or "subreaper"; by default the best one that this machine allows.

    Examples
    --------
    >>> with RaceSession("pool.toml") as session:                           # doctest: +SKIP
    ...     session.run("uf250.cnf").winner
    'cadical'
    """

    def __init__(self, pool: Pool | str | PathLike[str], *, level: str | None = None) -> None:
        self.pool = pool if isinstance(pool, Pool) else read_pool(pool)
        self.level = level
        self._learner: Learner | None = None
        self._is_racing = False
        self._start_errors: dict[str, str] = {}
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
            The file to race on; a session runs one race at a time.
        watch : callable, optional
            Called with the list of standings at every event and four times a second.
        """
        return await self._run(Path(instance), watch, EVENT_LOOP)

    @property
    def learner(self) -> Learner | None:
        """The learner with its journal; None before the first race."""
        return self._learner

    def close(self) -> None:
        """Close the journal."""
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
        with self._one_at_a_time():
            instance = Instance(path)
            features = await waiter.call(measure_features, self.pool.features, instance)
            entry = self._choose(instance, features)
            with self._void_on_error(entry):
                ended = await self._prepare(instance, entry, watch).run_in(waiter)
                result = _describe_result(instance, features, entry, ended)
            self._learn(entry, result)
            return result

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        if self._is_racing:
            raise InputError("this session is racing already; wait for that race, or use another pool and journal")
        self._is_racing = True
        try:
            yield
        finally:
            self._is_racing = False

    def _choose(self, instance: Instance, features: InstanceFeatures) -> Entry:
        """Choose k arms and write the decision to the journal."""
        values = features.values
        if values is None:
            assert features.error is not None
            values = dict.fromkeys(self._list_feature_names(features.error))
        learner = self._open_learner(lambda: _make_preselector(self.pool, values))
        if set(learner.preselector.context) != set(values):
            raise InputError(
                f"the features are {list(values)}, but {self.pool.journal} was started with "
                f"{learner.preselector.context}; restore them, or write another journal into {self.pool.path}"
            )
        return learner.select(values, k=self.pool.k, eligible=self._list_eligible(), label=str(instance.path))

    def _list_eligible(self) -> list[str]:
        """List the arms whose commands have not failed to start."""
        eligible = [name for name in self.pool.arms if name not in self._start_errors]
        if len(eligible) < self.pool.k:
            errors = "; ".join(self._start_errors.values())
            raise PreselectError(
                f"k={self.pool.k}, but only {len(eligible)} arms of {self.pool.path} can be started: {errors}; "
                f"see `preselect race check {self.pool.path}`"
            )
        return eligible

    def _prepare(self, instance: Instance, entry: Entry, watch: Watch | None) -> Supervision:
        """Make the chosen arms ready to race."""
        pool = self.pool
        seed, *seeds = np.random.SeedSequence((pool.seed, entry.number)).generate_state(1 + pool.k) >> 1
        names = zip(entry.decision.names, seeds, strict=True)
        return Supervision(
            [pool.make_racer(name, instance.path, int(own)) for name, own in names],
            pool.limits,
            folder=self._folder,
            seed=int(seed),
            check=make_answer_check(pool, instance),
            watch=watch,
            level=self.level,
        )

    @contextmanager
    def _void_on_error(self, entry: Entry) -> Iterator[None]:
        """Make the race void in the journal if it is interrupted, cancelled or fails."""
        try:
            yield
        except BaseException as error:
            assert self._learner is not None
            reason = f"the race was interrupted: {str(error) or type(error).__name__}"
            self._learner.learn(entry, outcome=Void(), details={"reason": reason})
            raise

    def _learn(self, entry: Entry, result: RaceResult) -> None:
        limit = self.pool.limits.seconds
        details, after = result.to_details(limit), result.seconds / limit
        assert self._learner is not None
        if result.void is not None:
            self._learner.learn(entry, outcome=Void(), details=details)
        elif result.winner is None:
            self._learner.learn(entry, outcome=NoWinner(after), details=details)
        else:
            self._learner.learn(entry, winner=result.winner, after=after, details=details)
        for finish in result.finishes:
            if finish.status == Status.NOT_STARTED:
                self._start_errors[finish.name] = f"{finish.name}: {finish.detail}"
        shutil.rmtree(self._folder, ignore_errors=True)  # the next race overwrites what is left

    # the journal

    def _list_feature_names(self, error: InputError) -> Iterable[str]:
        """List the names of features that are unavailable; raise the error if neither pool nor journal knows them."""
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
            learner = Learner.open(self.pool.journal, make=make, about=_describe(self.pool))
            try:
                _update_journal(learner, self.pool)
            except BaseException:
                learner.close()
                raise
            self._learner = learner
        return self._learner


def race(
    pool: Pool | str | PathLike[str],
    instance: str | PathLike[str],
    *,
    watch: Watch | None = None,
    level: str | None = None,
) -> RaceResult:
    """Race k arms of a pool on one instance, stop at the first right answer, and learn from it.

    This blocks its thread; in an event loop use `race_async`. On Ctrl-C the race ends and is void.

    Parameters
    ----------
    pool : Pool, str or path
        The pool, or its file.
    instance : str or path
        The file to race on.
    watch : callable, optional
        Called with the list of standings at every event and four times a second.
    level : str, optional
        How processes are contained, "pid namespace" or "subreaper"; by default the best one that this machine allows.
    """
    with RaceSession(pool, level=level) as session:
        return session.run(instance, watch=watch)


async def race_async(
    pool: Pool | str | PathLike[str],
    instance: str | PathLike[str],
    *,
    watch: Watch | None = None,
    level: str | None = None,
) -> RaceResult:
    """Race as `race` does, without blocking the event loop. Cancelling it ends the race, which is then void.

    Parameters
    ----------
    pool : Pool, str or path
        The pool, or its file.
    instance : str or path
        The file to race on.
    watch : callable, optional
        Called with the list of standings at every event and four times a second.
    level : str, optional
        How processes are contained, "pid namespace" or "subreaper"; by default the best one that this machine allows.
    """
    with RaceSession(pool, level=level) as session:
        return await session.run_async(instance, watch=watch)


def _describe_result(
    instance: Instance, features: InstanceFeatures, entry: Entry, ended: SupervisionResult
) -> RaceResult:
    output = ended.read_output()
    return RaceResult(
        **vars(ended),
        instance=instance.path,
        number=entry.number,
        chosen=entry.decision.names,
        answer=read_answer(output, ended.exit_code),
        output=output,
        feature_seconds=features.seconds,
        warning=None if features.error is None else f"raced without features: {features.error}",
    )


def _make_preselector(pool: Pool, values: FeatureValues) -> Preselector:
    arms = {name: arm.features for name, arm in pool.arms.items()}
    return Preselector(arms, context=values, policy=pool.policy, seed=pool.seed)


def _describe(pool: Pool) -> dict[str, Any]:
    """What a journal must have been started with to be continued with this pool."""
    return {"kind": "race", "policy": pool.policy, "seed": pool.seed}


def _update_journal(learner: Learner, pool: Pool) -> None:
    """Check that the journal fits the pool, add new arms, and make unfinished races void."""
    for key, value in _describe(pool).items():
        if learner.about.get(key) != value:
            raise JournalError(
                f"{key} is {value!r}, but {pool.journal} was started with {learner.about.get(key)!r}; "
                f"restore it, or write another journal into {pool.path}"
            )
    for name, arm in pool.arms.items():
        if name in learner.arms:
            _check_features(learner, arm, pool)
        else:
            learner.add(name, arm.features)
    for entry in learner.unfinished():
        learner.learn(entry, outcome=Void(), details={"reason": "the process ended before the race did"})


def _check_features(learner: Learner, arm: Arm, pool: Pool) -> None:
    known = {name: value for name, value in learner.preselector.arm(arm.name).items() if value is not None}
    if arm.features != known:
        raise JournalError(
            f"the features of arm {arm.name} are {dict(arm.features)}, but {pool.journal} has {known}; "
            "restore them, or give the arm another name"
        )
