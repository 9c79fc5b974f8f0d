"""Apply events to a state one by one, and repeat choices to compare them with recorded ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from preselect.errors import InputError, JournalError
from preselect.named.decision import NamedDecision
from preselect.preselector import Preselector
from preselect.store.events import ArmChanged, ArmJoined, ArmRetired, ContextAdded, Decided, Event, Expired, Noted, Told
from preselect.store.journal import Journal
from preselect.store.record import Record

_MOST = 10_000  # the most waiting decisions in memory; others are read again when their outcome arrives

_CHOICE = ("chosen", "scores", "widths", "round", "seed", "version", "labels", "included", "propensities", "departures")


@dataclass(frozen=True)
class Entry:
    """A decision in a journal. Its number or its key is enough to report the outcome, from any process.

    Parameters
    ----------
    number : int
        The number of the decision in the journal.
    decision : NamedDecision
        The decision.
    label : str, default ""
        What the round is about, such as the path of an instance.
    key : str, optional
        Its public id.
    expires : float, optional
        When it expires, in seconds since 1970.
    is_new : bool, default True
        Whether it was made now, not by an earlier request of the same name.
    """

    number: int
    decision: NamedDecision
    label: str = ""
    key: str | None = None
    expires: float | None = None
    is_new: bool = True

    @classmethod
    def of(cls, event: Event, number: int) -> Self:
        """Make an entry from a decision in the journal; raise a JournalError if it is damaged.

        Parameters
        ----------
        event : Event
            A decision.
        number : int
            Its number.
        """
        assert isinstance(event, Decided)
        try:
            return cls(number, event.decision, event.label, event.key, event.expires, is_new=False)
        except (TypeError, ValueError) as error:
            raise JournalError(f"event {number} is damaged: it is not a complete decision ({error})") from None


class Fold:
    """A state to which all events up to a number have been applied.

    Parameters
    ----------
    journal : Journal
        Where to look up decisions when their outcomes come.
    preselector : Preselector
        The state.
    number : int
        The number of the last event that was applied.
    digest : bytes
        The digest of that event.
    """

    def __init__(self, journal: Journal, preselector: Preselector, number: int, digest: bytes) -> None:
        self.journal, self.preselector, self.number, self.digest = journal, preselector, number, digest
        self.skipped = 0  # how many choices were not repeated, because they were made with an earlier state
        self._waiting: dict[int, Entry] = {}
        self._numbers: dict[str, int] = {}

    def take(self, record: Record, *, repeat: bool = False) -> str | None:
        """Apply the next event of the journal; raise an error if it does not follow the last one.

        Parameters
        ----------
        record : Record
            The event.
        repeat : bool, default False
            Whether to make decisions again; if one turns out differently, the difference is returned.
        """
        self._check_chain(record)
        try:
            event = record.event
            difference = self._repeat(record.number, event) if repeat and isinstance(event, Decided) else None
            self.apply(event, record.number)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise JournalError(f"event {record.number} cannot be replayed: {error}") from None
        self.number, self.digest = record.number, record.row.digest or b""
        return difference

    def apply(self, event: Event, number: int, entry: Entry | None = None) -> InputError | None:
        """Apply an event to the state; if it is refused, raise an InputError and change nothing.

        An outcome that cannot be learnt from is counted all the same, and the reason is returned. Every replay does the
        same.

        Parameters
        ----------
        event : Event
            What happened.
        number : int
            Its number in the journal.
        entry : Entry, optional
            If the event is a decision: its entry, if that is known.
        """
        if isinstance(event, Decided):
            entry = entry or Entry.of(event, number)
            self.preselector.record(entry.decision)
            self._remember(entry)
        elif isinstance(event, Told):
            entry = self._end(event)
            outcome = event.make_outcome(entry.decision)
            try:
                self.preselector.learn(entry.decision, outcome=outcome, also=event.also or None)
            except InputError as error:
                return error
        elif isinstance(event, Expired):
            self._end(event)
        elif not isinstance(event, Noted):  # of which nothing is learnt
            _apply_to_arms(self.preselector, event)
        return None

    def find(self, entry: int | str) -> Entry | None:
        """Return a decision without an outcome, by number or key, if it is in memory.

        Parameters
        ----------
        entry : int or str
            Its number, or its key.
        """
        number = self._numbers.get(entry, 0) if isinstance(entry, str) else entry
        return self._waiting.get(number)

    def _remember(self, entry: Entry) -> None:
        if len(self._waiting) >= _MOST:
            self._forget(next(iter(self._waiting)))
        self._waiting[entry.number] = entry
        if entry.key is not None:
            self._numbers[entry.key] = entry.number

    def _forget(self, number: int) -> Entry | None:
        entry = self._waiting.pop(number, None)
        if entry is not None and entry.key is not None:
            self._numbers.pop(entry.key, None)
        return entry

    def _end(self, event: Told | Expired) -> Entry:
        """Return the decision that an event ends."""
        number = event.decision or 0
        found = self._forget(number)
        if found is None:
            record = self.journal.find_decision(number)
            if record is None:
                raise JournalError(f"it is the outcome of event {number}, which is not a decision")
            found = Entry.of(record.event, number)
        return found

    def _check_chain(self, record: Record) -> None:
        if record.number != self.number + 1:
            raise JournalError(f"event {self.number + 1} is missing: {record.number} follows {self.number}")
        if not record.follows(self.digest):
            raise JournalError(
                f"event {record.number} ({record.kind}) is not as it was written: its digest does not match"
            )

    def _repeat(self, number: int, event: Decided) -> str | None:
        where = f"decision {number} ({event.label})"
        if event.seed is None:
            return f"{where} was written by an earlier version, without its seed, so its choice cannot be repeated"
        if event.version != self.preselector.version:
            self.skipped += 1
            return None
        again = self.preselector.choose(
            event.decision.context,
            event.k,
            seed=event.seed,
            eligible=event.eligible,
            propensities=event.propensities is not None,
            **event.rules,
        )
        return _compare(where, event, Decided.of(again, k=event.k))


def _apply_to_arms(preselector: Preselector, event: Event) -> None:
    if isinstance(event, ArmJoined):
        preselector.add(event.name, event.features, group=event.group, price=event.price)
    elif isinstance(event, ArmChanged):
        preselector.change(event.name, event.features, group=event.group, price=event.price)
    elif isinstance(event, ArmRetired):
        preselector.remove(event.name)
    elif isinstance(event, ContextAdded):
        preselector.add_context(event.feature)


def _compare(where: str, then: Decided, now: Decided) -> str | None:
    """Describe how a repeated choice differs from the recorded one; None if it does not."""
    if then.departures is None:  # once they were not counted
        now = replace(now, departures=None)
    if then.numbers == now.numbers and all(getattr(then, name) == getattr(now, name) for name in _CHOICE[3:]):
        return None if then.chosen == now.chosen else _say(where, "chosen", then.chosen, now.chosen)
    for name in _CHOICE:
        if repr(getattr(then, name)) != repr(getattr(now, name)):  # as texts, because NaN differs from itself
            return _say(where, name, getattr(then, name), getattr(now, name))
    return f"{where}: what was known about the chosen arms differs when replayed"


def _say(where: str, name: str, then: Any, now: Any) -> str:
    was, now_is = (list(value) if isinstance(value, tuple) else value for value in (then, now))
    return f"{where}: {name} was {was} and is {now_is} when replayed"
