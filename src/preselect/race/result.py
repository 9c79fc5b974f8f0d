"""Results of races: from the supervisor, for the caller, and from the journal.

`RaceResult.to_details` writes what the journal keeps of a race besides its outcome; `PastRace.from_details` reads it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Self

from preselect.outcomes import NoWinner, Void
from preselect.race.supervisor.racer import Status
from preselect.store.events import NO_WINNER, RANKING, WINNER
from preselect.store.rounds import Round


class Finish(NamedTuple):
    """How one racer ended.

    Parameters
    ----------
    name : str
        The racer's name.
    status : str
        One of the statuses of `Status`.
    seconds : float
        Wall-clock time from the start of the race to the racer's end.
    cpu_seconds : float
        CPU time of all its processes.
    exit_code : int or None
        None if a signal ended it, or if it was not started.
    signal : int or None
        The signal that ended it.
    detail : str
        More about the status; may be empty.
    output, errors : bytes
        The beginning of what it printed to standard output and standard error, at least 1000 bytes.
    value : float or None, default None
        How good its answer is, in a race that the best value wins.
    """

    name: str
    status: str
    seconds: float
    cpu_seconds: float
    exit_code: int | None
    signal: int | None
    detail: str
    output: bytes
    errors: bytes
    value: float | None = None


class Standing(NamedTuple):
    """How a racer stands during the race.

    Parameters
    ----------
    name : str
        The racer's name.
    status : str or None
        One of the statuses of `Status`; None while it runs or its answer is being verified.
    seconds : float
        Time since the start of the race, or from there to the racer's end.
    answered : bool
        Whether it has answered.
    """

    name: str
    status: str | None
    seconds: float
    answered: bool


@dataclass(frozen=True)
class SupervisionResult:
    """How a race of commands ended.

    `seconds` is the time from the start of the racers to the winner's exit, or to the end of the race. `tie` says
    whether others answered within milliseconds of the winner. `infrastructure` says what failed that was not the fault
    of a racer, if anything did. `output` is what the winner printed.
    """

    winner: str | None
    tie: bool
    seconds: float
    finishes: tuple[Finish, ...]
    level: str
    infrastructure: str | None
    output: bytes = field(repr=False)

    @property
    def exit_code(self) -> int | None:
        """The winner's exit code."""
        return next((finish.exit_code for finish in self.finishes if finish.name == self.winner), None)

    @property
    def void(self) -> str | None:
        """Why nothing can be learnt, if something other than the racers failed; else None."""
        failed = [f"{finish.name}: {finish.detail}" for finish in self.finishes if finish.status in Status.NOT_RACED]
        return self.infrastructure or "; ".join(failed) or None


@dataclass(frozen=True)
class RaceResult(SupervisionResult):
    """How a race on an instance ended.

    Parameters
    ----------
    winner : str or None
        The first arm with a right answer, or the one with the best value; None if there was none.
    tie : bool
        Whether another arm answered at the same moment, or has the same value.
    seconds : float
        Time of the race.
    finishes : tuple of Finish
        How each arm ended.
    level : str
        How processes were contained, "pid namespace" or "subreaper".
    infrastructure : str or None
        What failed that was not the fault of an arm, if anything did; part of `void`.
    output : bytes
        What the winner printed; empty without a winner.
    instance : Path
        The file that was raced on.
    number : int
        Number of the decision in the journal.
    chosen : tuple of str
        The arms that raced.
    answer : str or None
        "SATISFIABLE" or "UNSATISFIABLE", if the winner said so.
    feature_seconds : float
        Time for computing features before it.
    warning : str or None
        A problem that did not prevent the race, such as features that could not be computed.
    better : str or None, default None
        Which values are better, "smaller" or "larger"; None if the first right answer wins.
    """

    instance: Path
    number: int
    chosen: tuple[str, ...]
    answer: str | None
    feature_seconds: float
    warning: str | None
    better: str | None = None

    @property
    def value(self) -> float | None:
        """The winner's value, in a race that the best value wins."""
        return next((finish.value for finish in self.finishes if finish.name == self.winner), None)

    @property
    def ranking(self) -> list[list[str]]:
        """The arms that have a value, best first; those with the same value are together."""
        return rank({finish.name: finish.value for finish in self.finishes if finish.value is not None}, self.better)

    def to_details(self, limit: float) -> dict[str, Any]:
        """Return what the journal keeps of the race besides its outcome.

        Parameters
        ----------
        limit : float
            The time limit of the race, in seconds.
        """
        kept = ("status", "seconds", "cpu_seconds", "exit_code", "signal", "detail")
        more, better = (("value",), {"better": self.better}) if self.better else ((), {})
        racers = {one.name: {key: getattr(one, key) for key in (*kept, *more)} for one in self.finishes}
        return {
            **better,
            "seconds": self.seconds,
            "feature_seconds": self.feature_seconds,
            "limit": limit,
            "level": self.level,
            "tie": self.tie,
            "answer": self.answer,
            "racers": racers,
            "reason": self.void,
        }


def describe_outcome(result: RaceResult, limit: float) -> dict[str, Any]:
    """Return the arguments with which `Learner.learn` learns from a race with this time limit."""
    details, after = result.to_details(limit), result.seconds / limit
    if result.void is not None:
        return {"details": details, "outcome": Void()}
    if result.better is not None:
        return {"details": details, **({"ranking": result.ranking} if result.winner else {"outcome": NoWinner()})}
    if result.winner is None:
        return {"details": details, "outcome": NoWinner(after)}
    return {"details": details, "winner": result.winner, "after": after}


def rank(values: Mapping[str, float], better: str | None) -> list[list[str]]:
    """Rank arms by their values, best first; equal values are together, in their order.

    >>> rank({"a": 3.0, "b": 1.0, "c": 3.0}, "smaller"), rank({"a": 3.0, "b": 1.0, "c": 3.0}, "larger")
    ([['b'], ['a', 'c']], [['a', 'c'], ['b']])
    """
    levels = sorted(set(values.values()), reverse=better == "larger")
    return [[arm for arm, value in values.items() if value == level] for level in levels]


class _PastAfterRace(NamedTuple):
    """What a journal says about an after-race: the best arm's time, how many arms ran, and for how long."""

    seconds: float
    arms: int
    used: float

    @classmethod
    def from_details(cls, details: Any) -> Self:
        """Read what `to_details` of an after-race wrote; 0 for what is missing there."""
        found = _as_mapping(details)
        seconds, used = (_as_seconds(found.get(name)) or 0.0 for name in ("seconds", "used"))
        return cls(seconds, len(_as_mapping(found.get("arms"))), used)


class Knowledge(StrEnum):
    """How much a race tells about the time that an arm needs: the exact time, a lower bound, or that it failed."""

    EXACT = "exact"
    AT_LEAST = "at least"
    LIMIT = "limit"


class KnownTime(NamedTuple):
    """What a race tells about the time that one arm needs."""

    seconds: float
    how: Knowledge


@dataclass(frozen=True)
class PastRace:
    """A round with the details of a race; what the journal does not say is None, or empty.

    `statuses`, `times` and `values` belong to the racers, by name. `better` is None unless it was a race by value.
    """

    round: Round
    seconds: float | None
    feature_seconds: float | None
    limit: float | None
    statuses: Mapping[str, str]
    times: Mapping[str, float | None]
    values: Mapping[str, float] = field(default_factory=dict)
    better: str | None = None
    after_race: _PastAfterRace | None = None

    @classmethod
    def from_details(cls, past: Round) -> Self:
        """Read what `RaceResult.to_details` wrote into a round; details that are not about races are ignored."""
        details = past.details
        racers = {name: _as_mapping(racer) for name, racer in _as_mapping(details.get("racers")).items()}
        return cls(
            round=past,
            seconds=_as_seconds(details.get("seconds")),
            feature_seconds=_as_seconds(details.get("feature_seconds")),
            limit=_as_seconds(details.get("limit")),
            statuses={name: str(racer["status"]) for name, racer in racers.items() if "status" in racer},
            times={name: _as_seconds(racer.get("seconds")) for name, racer in racers.items()},
            values={name: float(racer["value"]) for name, racer in racers.items() if _is_number(racer.get("value"))},
            better=str(details["better"]) if "better" in details else None,
            after_race=_PastAfterRace.from_details(details["after_race"]) if "after_race" in details else None,
        )

    @property
    def is_solved(self) -> bool:
        """Whether there was a right answer in time; an answer in an after-race comes too late."""
        was_late = self.after_race is not None and Status.WON not in self.statuses.values()
        return self.round.kind in (WINNER, RANKING) and not was_late

    @property
    def is_timed(self) -> bool:
        """Whether its time counts: it has ended and is not void."""
        return self.round.kind in (WINNER, RANKING, NO_WINNER)

    @property
    def best_value(self) -> float | None:
        """The best value in a race by value; None in other races, without an answer, or if the race is void."""
        ranking = rank(self.values, self.better) if self.is_solved and self.better else []
        return self.values[ranking[0][0]] if ranking else None

    def known_time(self, arm: str) -> KnownTime | None:
        """Return what the race tells about the time that an arm needs; None if it tells nothing."""
        status = self.statuses.get(arm)
        if self.seconds is None or not self.is_timed or self.better is not None:
            return None
        if status == Status.WON:
            own = self.times[arm]
            return KnownTime(self.seconds if own is None else own, Knowledge.EXACT)
        if status in Status.BEATEN:
            return KnownTime(self.seconds, Knowledge.AT_LEAST)
        if status in Status.FAILED:
            return KnownTime(max(self.seconds, self.limit or 0.0), Knowledge.LIMIT)
        return None


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_seconds(value: Any) -> float | None:
    return float(value) if _is_number(value) and value >= 0.0 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
