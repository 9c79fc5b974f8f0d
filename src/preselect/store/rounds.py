"""Past rounds as a journal has them: the read model from which summaries, reports and pages take their numbers.

A round is a decision with its outcome, if there is one yet. An arm is *played* in a round if it was chosen, whatever
the outcome; it *wins* if it is the winner or the first of a ranking. What is special about races is in
`preselect.race.summary`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from preselect.store.journal import Event, Journal


@dataclass(frozen=True)
class Round:
    """A decision and its outcome.

    Parameters
    ----------
    number : int
        The decision's number in the journal.
    decided : float
        When it was made, in seconds since 1970.
    label : str
        What it was about, such as the path of an instance.
    chosen : tuple of str
        The arms that were chosen.
    utilities : tuple of float
        Their estimated log-utilities at that moment, without what the policy added to explore.
    kind : str or None, default None
        Kind of the outcome: "winner", "ranking", "no-winner" or "void"; None as long as there is no outcome.
    names : tuple of str, default ()
        The winner, or the ranking, best first.
    after : float or None, default None
        How long it took, as a share of the time limit, if that was reported.
    ended : float or None, default None
        When the outcome was reported, in seconds since 1970.
    details : mapping, default {}
        What was reported besides the outcome.
    """

    number: int
    decided: float
    label: str
    chosen: tuple[str, ...]
    utilities: tuple[float, ...]
    kind: str | None = None
    names: tuple[str, ...] = ()
    after: float | None = None
    ended: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, decision: Event, outcome: Event | None = None) -> Self:
        """Make a round from the two events of a journal."""
        made = decision.body
        try:
            utilities = tuple(score - width for score, width in zip(made["scores"], made["widths"], strict=True))
            begun = cls(decision.number, decision.at, str(made["label"]), tuple(made["chosen"]), utilities)
        except (TypeError, ValueError) as error:
            raise decision.report_damage(f"it is not a complete decision ({error})") from None
        return begun if outcome is None else begun.end(outcome)

    def end(self, outcome: Event) -> Self:
        """Return the same round with its outcome."""
        body = outcome.body
        return replace(
            self,
            kind=str(body["kind"]),
            names=tuple(body["names"]),
            after=body.get("after"),
            ended=outcome.at,
            details=body["details"] if isinstance(body["details"], Mapping) else {},
        )

    @property
    def winner(self) -> str | None:
        """The winner, or the first of the ranking."""
        return self.names[0] if self.names else None


@dataclass(frozen=True)
class RoundCounts:
    """How often each arm was played and won, and how many rounds had each kind of outcome.

    Parameters
    ----------
    plays : Counter of str
        By arm: the rounds in which it was chosen.
    wins : Counter of str
        By arm: the rounds that it won, or whose ranking it leads.
    outcomes : Counter of str
        By kind of outcome: rounds.
    unfinished : int
        Rounds without an outcome.
    """

    plays: Counter[str]
    wins: Counter[str]
    outcomes: Counter[str]
    unfinished: int

    @property
    def rounds(self) -> int:
        """All rounds, whatever their outcome."""
        return self.outcomes.total() + self.unfinished


def read_rounds(journal: Journal, after: int = 0) -> list[Round]:
    """Read the rounds of a journal, in the order of their decisions.

    Parameters
    ----------
    journal : Journal
        An open journal.
    after : int, default 0
        Number of an event: only rounds that were decided after it are read.
    """
    rounds: dict[int, Round] = {}
    for event in journal.events(after=after):
        if event.kind == "decision":
            rounds[event.number] = Round.of(event)
        elif event.decision in rounds:
            rounds[event.decision] = rounds[event.decision].end(event)
    return list(rounds.values())


def count_rounds(rounds: Iterable[Round]) -> RoundCounts:
    """Count plays, wins and outcomes.

    Parameters
    ----------
    rounds : iterable of Round
        The rounds, in any order.
    """
    every = list(rounds)
    return RoundCounts(
        plays=Counter(arm for one in every for arm in one.chosen),
        wins=Counter(one.winner for one in every if one.winner is not None),
        outcomes=Counter(one.kind for one in every if one.kind is not None),
        unfinished=sum(one.kind is None for one in every),
    )
