"""How races end: as supervised, as the caller gets it, and as the journal keeps it.

`RaceResult.to_details` writes what the journal keeps of a race besides its outcome; `PastRace.from_details` reads it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Self

from preselect.race.supervisor.racer import Status
from preselect.store.apply import NO_WINNER, RANKING, WINNER
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
    output, errors : Path
        Where its standard output and standard error are, until the next race overwrites them.
    """

    name: str
    status: str
    seconds: float
    cpu_seconds: float
    exit_code: int | None
    signal: int | None
    detail: str
    output: Path
    errors: Path


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
    of a racer, if anything did.
    """

    winner: str | None
    tie: bool
    seconds: float
    finishes: tuple[Finish, ...]
    level: str
    infrastructure: str | None

    @property
    def exit_code(self) -> int | None:
        """The winner's exit code."""
        return next((finish.exit_code for finish in self.finishes if finish.name == self.winner), None)

    @property
    def void(self) -> str | None:
        """Why nothing can be learnt, if something other than the racers failed."""
        failed = [f"{finish.name}: {finish.detail}" for finish in self.finishes if finish.status in Status.NOT_RACED]
        return self.infrastructure or "; ".join(failed) or None

    def read_output(self) -> bytes:
        """Read what the winner printed; empty without a winner."""
        return next((finish.output.read_bytes() for finish in self.finishes if finish.name == self.winner), b"")


@dataclass(frozen=True)
class RaceResult(SupervisionResult):
    """How a race on an instance ended.

    Parameters
    ----------
    winner : str or None
        The first arm with a right answer; None if there was none.
    tie : bool
        Whether another arm answered at the same moment.
    seconds : float
        Time of the race.
    finishes : tuple of Finish
        How each arm ended.
    level : str
        How processes were contained, "pid namespace" or "subreaper".
    infrastructure : str or None
        What failed that was not the fault of an arm, if anything did; part of `void`.
    instance : Path
        The file that was raced on.
    number : int
        Number of the decision in the journal.
    chosen : tuple of str
        The arms that raced.
    answer : str or None
        "SATISFIABLE" or "UNSATISFIABLE", if the winner said so.
    output : bytes
        What the winner printed; empty without a winner.
    feature_seconds : float
        Time for computing features before it.
    warning : str or None
        A problem that did not prevent the race, such as features that could not be computed.
    """

    instance: Path
    number: int
    chosen: tuple[str, ...]
    answer: str | None
    output: bytes = field(repr=False)
    feature_seconds: float
    warning: str | None

    def to_details(self, limit: float) -> dict[str, Any]:
        """Return what the journal keeps of the race besides its outcome.

        Parameters
        ----------
        limit : float
            The time limit of the race, in seconds.
        """
        kept = ("status", "seconds", "cpu_seconds", "exit_code", "signal", "detail")
        return {
            "seconds": self.seconds,
            "feature_seconds": self.feature_seconds,
            "limit": limit,
            "level": self.level,
            "tie": self.tie,
            "answer": self.answer,
            "racers": {finish.name: {key: getattr(finish, key) for key in kept} for finish in self.finishes},
            "reason": self.void,
        }


class Knowledge(StrEnum):
    """How much a race tells about the time that an arm needs: all of it, a lower bound, or that it failed."""

    EXACT = "exact"
    AT_LEAST = "at least"
    LIMIT = "limit"


class KnownTime(NamedTuple):
    """What a race tells about the time that one arm needs."""

    seconds: float
    how: Knowledge


@dataclass(frozen=True)
class PastRace:
    """A round with what its details say about a race; what they do not say is None, or empty.

    `statuses` and `times` are those of the racers, by name.
    """

    round: Round
    seconds: float | None
    feature_seconds: float | None
    limit: float | None
    statuses: Mapping[str, str]
    times: Mapping[str, float | None]

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
        )

    @property
    def is_solved(self) -> bool:
        """Whether there was a right answer."""
        return self.round.kind in (WINNER, RANKING)

    @property
    def is_timed(self) -> bool:
        """Whether its time counts: it has ended, and is not void."""
        return self.is_solved or self.round.kind == NO_WINNER

    def known_time(self, arm: str) -> KnownTime | None:
        """Return what the race tells about the time that an arm needs; None if that is nothing."""
        status = self.statuses.get(arm)
        if self.seconds is None or not self.is_timed:
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
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0.0 <= value < math.inf else None
