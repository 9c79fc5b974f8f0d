"""What came of a race: for who asked for it, and for the journal."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from preselect.race.answers import answer_of
from preselect.race.supervision import Finish, Result, Status
from preselect.store import Entry

_OURS = (Status.NOT_STARTED, Status.INFRASTRUCTURE_ERROR)  # how racers end that were not given their chance


@dataclass(frozen=True)
class RaceResult:
    """What came of an instance.

    `winner` is who gave the first right answer, `answer` what it says about a formula, `output` what it printed.
    `seconds` is the time of the race, `feature_seconds` what came before it. `void` is why nothing could be learnt, if
    something of ours failed; `warning` is what else should be known.
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
        """The winner's."""
        return next((finish.exit_code for finish in self.finishes if finish.name == self.winner), None)

    @classmethod
    def of(cls, instance: Path, entry: Entry, result: Result, *, feature_seconds: float, warning: str | None) -> Self:
        """What the supervisor tells of the race that an entry of the journal announced."""
        won = next((finish for finish in result.finishes if finish.name == result.winner), None)
        output = won.output.read_bytes() if won else b""
        failed = [f"{finish.name}: {finish.detail}" for finish in result.finishes if finish.status in _OURS]
        return cls(
            instance=instance,
            number=entry.number,
            chosen=entry.decision.names,
            winner=result.winner,
            answer=answer_of(output, won.exit_code) if won else None,
            output=output,
            seconds=result.seconds,
            feature_seconds=feature_seconds,
            tie=result.tie,
            finishes=result.finishes,
            level=result.level,
            void=result.infrastructure or "; ".join(failed) or None,
            warning=warning,
        )

    def details(self, limit: float) -> dict[str, Any]:
        """What the journal keeps of the race besides its outcome."""
        racers = {
            finish.name: {
                "status": str(finish.status),
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
