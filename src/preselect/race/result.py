"""The result of a race, for the caller and for the journal."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from preselect.race.answers import read_answer
from preselect.race.supervision import Finish, Status, SupervisionResult
from preselect.store import Entry


@dataclass(frozen=True)
class RaceResult:
    """How a race on an instance ended.

    Parameters
    ----------
    instance : Path
        The file that was raced on.
    number : int
        Number of the decision in the journal.
    chosen : tuple of str
        The arms that raced.
    winner : str or None
        The first arm with a right answer; None if there was none.
    answer : str or None
        "SATISFIABLE" or "UNSATISFIABLE", if the winner said so.
    output : bytes
        What the winner printed; empty without a winner.
    seconds : float
        Time of the race.
    feature_seconds : float
        Time for computing features before it.
    tie : bool
        Whether another arm answered at the same moment.
    finishes : tuple of Finish
        How each arm ended.
    level : str
        How processes were contained, "pid namespace" or "subreaper".
    void : str or None
        Why nothing was learnt, if something other than the arms failed.
    warning : str or None
        A problem that did not prevent the race, such as features that could not be computed.
    """

    instance: Path
    number: int
    chosen: tuple[str, ...]
    winner: str | None
    answer: str | None
    output: bytes = field(repr=False)
    seconds: float
    feature_seconds: float
    tie: bool
    finishes: tuple[Finish, ...]
    level: str
    void: str | None
    warning: str | None

    @property
    def exit_code(self) -> int | None:
        """The winner's exit code."""
        return next((finish.exit_code for finish in self.finishes if finish.name == self.winner), None)

    @classmethod
    def of(
        cls, instance: Path, entry: Entry, result: SupervisionResult, *, feature_seconds: float, warning: str | None
    ) -> Self:
        """Make the result of the race that was decided by an entry of the journal."""
        won = next((finish for finish in result.finishes if finish.name == result.winner), None)
        output = won.output.read_bytes() if won else b""
        failed = [f"{finish.name}: {finish.detail}" for finish in result.finishes if finish.status in Status.VOID]
        return cls(
            instance=instance,
            number=entry.number,
            chosen=entry.decision.names,
            winner=result.winner,
            answer=read_answer(output, won.exit_code) if won else None,
            output=output,
            seconds=result.seconds,
            feature_seconds=feature_seconds,
            tie=result.tie,
            finishes=result.finishes,
            level=result.level,
            void=result.infrastructure or "; ".join(failed) or None,
            warning=warning,
        )

    def describe(self, limit: float) -> dict[str, Any]:
        """Give what the journal keeps besides the outcome, where `preselect.race.summary` reads it."""
        racers = {
            finish.name: {
                "status": finish.status,
                "seconds": finish.seconds,
                "cpu_seconds": finish.cpu_seconds,
                "exit_code": finish.exit_code,
                "signal": finish.signal,
                "detail": finish.detail,
            }
            for finish in self.finishes
        }
        return {
            "seconds": self.seconds,
            "feature_seconds": self.feature_seconds,
            "limit": limit,
            "level": self.level,
            "tie": self.tie,
            "answer": self.answer,
            "racers": racers,
            "reason": self.void,
        }
