"""Read past rounds from a journal: the source of all numbers in summaries, reports and pages.

A round is a decision with its outcome, if there is one yet. An arm is *played* in a round if it was chosen, whatever
the outcome, or if it competed without being chosen; it *wins* if it is the winner or the first of a ranking, alone or
tied. What applies to races only is in `preselect.race.summary`.
"""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import sub
from typing import Any, Self

from preselect.errors import JournalError
from preselect.store.codec import peek_names
from preselect.store.events import ArmJoined, Decided, Expired, Noted, Place, Told
from preselect.store.journal import Journal
from preselect.store.record import Record


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
        Their estimated log-utilities at that moment, without the bonus for exploration.
    kind : str or None, default None
        Kind of the outcome: "winner", "ranking", "no-winner" or "void"; "expired" if none came in time; None if none
        has come yet.
    names : tuple of str, or of tuples of str, default ()
        The winner, or the ranking, best first; arms that are tied in a tuple.
    after : float or None, default None
        How long it took, as a share of the time limit, if that was reported.
    ended : float or None, default None
        When the outcome was reported, or when it expired, in seconds since 1970.
    details : mapping, default {}
        What was reported besides the outcome.
    key : str or None, default None
        The public id of the decision.
    also : tuple of str, default ()
        Arms that competed alongside the chosen ones.
    """

    number: int
    decided: float
    label: str
    chosen: tuple[str, ...]
    utilities: tuple[float, ...]
    kind: str | None = None
    names: tuple[Place, ...] = ()
    after: float | None = None
    ended: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    also: tuple[str, ...] = ()

    @classmethod
    def of(cls, decision: Record, ending: Record | None = None) -> Self:
        """Make a round from a decision and the event that ended it, if any.

        Parameters
        ----------
        decision : Record
            The decision.
        ending : Record, optional
            Its outcome, or that it expired.
        """
        made = decision.event
        if not isinstance(made, Decided):
            raise JournalError(f"event {decision.number} is not a decision")
        utilities = tuple(map(sub, made.scores, made.widths))
        begun = decision.number, decision.at, made.label, made.chosen, utilities
        if ending is None:
            return cls(*begun, key=made.key)
        told = ending.event
        if not isinstance(told, Told):
            return cls(*begun, kind=Expired.kind, ended=ending.at, key=made.key)
        return cls(*begun, told.outcome, told.names, told.after, ending.at, told.details, made.key, told.also)

    @property
    def leaders(self) -> tuple[str, ...]:
        """The winner, or the first of the ranking, or those that are tied for it."""
        return list_leaders(self.names)

    @property
    def winner(self) -> str | None:
        """The winner, or the first of the ranking; None if several are tied for it."""
        leaders = self.leaders
        return leaders[0] if len(leaders) == 1 else None


@dataclass(frozen=True)
class RoundCounts:
    """How often each arm was played and won, and how many rounds had each kind of outcome.

    Parameters
    ----------
    plays : Counter of str
        By arm: the rounds in which it was chosen, or competed without being chosen.
    wins : Counter of str
        By arm: the rounds that it won, or whose ranking it leads, alone or tied.
    outcomes : Counter of str
        By kind of outcome: rounds.
    unfinished : int
        Rounds without an outcome.
    joined : tuple of str, default ()
        Arms that joined later, in order.
    """

    plays: Counter[str]
    wins: Counter[str]
    outcomes: Counter[str]
    unfinished: int
    joined: tuple[str, ...] = ()

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
    with collection_paused():
        return [one for one, _, _ in pair_rounds(journal, after)]


def pair_rounds(journal: Journal, after: int = 0) -> Iterator[tuple[Round, Decided, Record | None]]:
    """Yield the rounds of a journal, in the order of their decisions, each with the two events that it is made of.

    Parameters
    ----------
    journal : Journal
        An open journal.
    after : int, default 0
        Number of an event: only rounds that were decided after it are read.
    """
    decisions: dict[int, Record] = {}
    endings: dict[int, Record] = {}
    for record in journal.records(after=after):
        if record.kind == Decided.kind:
            decisions[record.number] = record
        elif record.row.decision is not None:
            endings[record.row.decision] = record
    for number, decision in decisions.items():
        made, ending = decision.event, endings.pop(number, None)
        assert isinstance(made, Decided)
        yield Round.of(decision, ending), made, ending


def read_counts(journal: Journal) -> RoundCounts:
    """Count the rounds of a journal, which is faster than reading them.

    Parameters
    ----------
    journal : Journal
        An open journal.
    """
    sets, endings, also = Counter[tuple[Place, ...]](), Counter[tuple[str, tuple[Place, ...]]](), Counter[str]()
    joined: list[Place] = []
    with collection_paused():
        for record in journal.records():
            if record.kind == Noted.kind:
                continue
            found = read_names(record)
            if record.kind == Decided.kind:
                sets[found[1]] += 1
            elif record.row.decision is not None:
                endings[found[:2]] += 1
                also.update(found[2])
            elif record.kind == ArmJoined.kind:
                joined += found[1]
    plays, wins, outcomes = also, Counter[str](), Counter[str]()
    for chosen, count in sets.items():
        plays.update(dict.fromkeys(_flatten(chosen), count))
    for (kind, names), count in endings.items():
        outcomes[kind] += count
        wins.update(dict.fromkeys(list_leaders(names), count))
    return RoundCounts(plays, wins, outcomes, sets.total() - outcomes.total(), tuple(_flatten(joined)))


def read_names(record: Record) -> tuple[str, tuple[Place, ...], tuple[str, ...]]:
    """Return what `peek_names` returns, and read the whole event only if that is necessary.

    Parameters
    ----------
    record : Record
        The event.
    """
    if (found := peek_names(record.row)) is not None:
        return found
    event = record.event
    if isinstance(event, Decided):
        return event.kind, event.chosen, ()
    if isinstance(event, Told):
        return event.outcome, event.names, event.also
    return event.kind, (event.name,) if isinstance(event, ArmJoined) else (), ()


def _flatten(names: Iterable[Place]) -> list[str]:
    return [one for name in names for one in (name if isinstance(name, tuple) else (name,))]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the garbage collector, which would go through very many new objects again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def list_leaders(names: tuple[Place, ...]) -> tuple[str, ...]:
    """Return the winner, or the first of a ranking, or those that are tied for it.

    Parameters
    ----------
    names : tuple of str, or of tuples of str
        The winner, or the ranking, best first.
    """
    first = names[0] if names else ()
    return first if isinstance(first, tuple) else (first,)


def count_rounds(rounds: Iterable[Round]) -> RoundCounts:
    """Count plays, wins and outcomes.

    Parameters
    ----------
    rounds : iterable of Round
        The rounds, in any order.
    """
    every = list(rounds)
    return RoundCounts(
        plays=Counter(arm for one in every for arm in one.chosen + one.also),
        wins=Counter(arm for one in every for arm in one.leaders),
        outcomes=Counter(one.kind for one in every if one.kind is not None),
        unfinished=sum(one.kind is None for one in every),
    )
