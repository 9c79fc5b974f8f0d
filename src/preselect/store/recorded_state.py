"""A state and its journal: every change of the state is made durable, or undone."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from preselect.arguments import integer
from preselect.errors import InputError, JournalError, NotFoundError
from preselect.named.estimates import Estimates
from preselect.named.explanations import Explanation
from preselect.named.feedback import Names
from preselect.named.readable_state import Propensity
from preselect.named.values import Values
from preselect.preselector import Preselector
from preselect.store.apply import Entry, Fold
from preselect.store.events import Decided, Event, Noted, Told
from preselect.store.journal import Journal, commit
from preselect.store.record import Record
from preselect.store.restore import restore

_log = logging.getLogger(__name__)

_FEWEST = 256  # events between two snapshots
_BYTES = 256  # the most bytes of a snapshot per event since the last one: large ones are rare


@dataclass(frozen=True)
class Recovery:
    """What opening a journal found.

    Parameters
    ----------
    events : int
        How many events were replayed since the last snapshot.
    unfinished : int
        How many decisions have no outcome yet.
    difference : str, optional
        The first decision that could not be reproduced, and how it differs; on another machine, or with another version
        of numpy, the last bits may differ. The recorded decision counts.
    """

    events: int
    unfinished: int
    difference: str | None = None


class RecordedState:
    """The base of Learner: a state, its journal, and steps that change both.

    Parameters
    ----------
    journal : Journal
        The journal, open for writing.
    snapshot_every : int, optional
        After how many events to keep a snapshot of the state.
    """

    def __init__(self, journal: Journal, *, snapshot_every: int | None = None) -> None:
        self.journal = journal
        self._every = None if snapshot_every is None else integer(snapshot_every, "snapshot_every", 1)
        self._stale, self._is_closed, self._is_batch, self._is_owner = "", False, False, False
        self._fold: Fold
        self._kept = self._size = 0
        self.recovery = self._rebuild(repeat=True)
        if self.recovery.difference:
            _log.warning("%s: %s; the recorded decision counts", journal.source, self.recovery.difference)

    @property
    def preselector(self) -> Preselector:
        """The preselector, for reading only: direct changes would not be in the journal."""
        if not self._is_closed:
            self._require_fresh()
        return self._fold.preselector

    @property
    def arms(self) -> list[str]:
        """The names of the arms, in the order in which they joined."""
        return self.preselector.arms

    @property
    def about(self) -> dict[str, Any]:
        """What the journal is about, as given when it was begun."""
        return self.journal.about.description

    def scores(self, context: Values | None = None) -> dict[str, float]:
        """The score by which the policy would rank each arm in a context now, by name.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        return self.preselector.scores(context)

    def estimates(self, context: Values | None = None, *, among: Names | None = None) -> Estimates:
        """Estimate every arm in a context: see Preselector.estimates.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        among : iterable of str, optional
            The arms that chances and standard errors compare with; all of them by default.
        """
        return self.preselector.estimates(context, among=among)

    def explain(self, entry: Entry | int | str) -> Explanation:
        """Say why the arms of a decision were chosen, by what is known now, as Preselector.explain does.

        Parameters
        ----------
        entry : Entry, int or str
            What `select` returned, its number, or its key.
        """
        return self.preselector.explain(self.find(entry).decision)

    def propensities(
        self, context: Values | None = None, k: int = 1, *, eligible: Names | None = None, draws: int = 1000
    ) -> dict[str, Propensity] | None:
        """The probability that each arm is in the set that would be chosen now: see Preselector.propensities.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        k : int
            How many arms to choose.
        eligible : iterable of str, optional
            The arms to choose from; all of them by default.
        draws : int, default 1000
            How many sets to draw if the probabilities cannot be computed.
        """
        return self.preselector.propensities(context, k, eligible=eligible, draws=draws)

    def find(self, entry: Entry | int | str) -> Entry:
        """Return a decision of the journal; raise an error if there is none, or if it belongs to another journal.

        Parameters
        ----------
        entry : Entry, int or str
            What `select` returned, its number, or its key.
        """
        self._require_fresh()
        given: Any = entry.number if isinstance(entry, Entry) else entry
        name = given if isinstance(given, str) else integer(given, "entry", 1)
        found = self._fold.find(name) or self._read_decision(name)
        if isinstance(entry, Entry) and not _is_same(entry, found):
            raise InputError(f"the entry is decision {given} of another journal, not of {self.journal.source}")
        return found

    def find_ending(self, entry: Entry) -> Record | None:
        """Return the event that ended a decision: Told or Expired; None if it waits.

        Parameters
        ----------
        entry : Entry
            What `select` or `find` returned.
        """
        if self._fold.find(entry.number) is not None:
            return None
        record = self.journal.record(entry.number)
        return None if record is None else self.journal.find_ending(record)

    def find_note(self, entry: Entry) -> Told | None:
        """Return what `note` recorded last about how a decision ended; None if nothing was.

        Parameters
        ----------
        entry : Entry
            What `select` or `find` returned.
        """
        events = (one.event for one in self.journal.records(after=entry.number) if one.kind == Noted.kind)
        notes = [event.told for event in events if isinstance(event, Noted) and event.told.decision == entry.number]
        return notes[-1] if notes else None

    def unfinished(self) -> list[Entry]:
        """The decisions that have no outcome yet, of this process and of earlier ones."""
        self._require_fresh()
        return self._list_waiting()

    def snapshot(self) -> None:
        """Keep a snapshot of the state, so that opening the journal is fast; `close` does so too."""
        state = self.preselector.to_bytes()
        self.journal.keep_snapshot(state)
        self._kept, self._size = self.journal.last, len(state)

    def close(self) -> None:
        """Keep a snapshot and close the journal; another process may resume it."""
        if not (self._is_closed or self._stale) and self.journal.last > self._kept:
            self._snapshot_if_possible()
        self._is_closed = True
        if self._is_owner:
            self.journal.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Learner({self.journal.source!r}, events={self.journal.last}, {self._fold.preselector!r})"

    def _list_waiting(self) -> list[Entry]:
        waiting = self.journal.unfinished()
        return [self._fold.find(record.number) or Entry.of(record.event, record.number) for record in waiting]

    def _read_decision(self, name: int | str) -> Entry:
        number = name
        if isinstance(name, str):
            record = self.journal.find_key(name)
            if record is None:
                raise NotFoundError(f"{self.journal.source} has no decision {name!r:.80}")
            number = record.number
        found = self.journal.find_decision(int(number))
        if found is None:
            raise NotFoundError(f"event {number} of {self.journal.source} is not a decision")
        return Entry.of(found.event, found.number)

    # --- steps --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _step(self) -> Iterator[None]:
        """Run one step.

        It is durable when it ends, or when its batch ends; if it fails, the state is restored later.
        """
        self._require_fresh()
        before = self._fold.preselector.version
        try:
            yield
        except BaseException as error:
            if not isinstance(error, InputError) or self._fold.preselector.version != before:
                self._stale = str(error) or type(error).__name__
            raise
        if not self._is_batch:
            _commit_all((self,))

    def _draft(self, event: Event) -> Record:
        """Record an event that has been applied already."""
        return self.journal.draft(self.journal.encode(event), event)

    def _take(self, event: Event, entry: Entry | None = None) -> tuple[Record, InputError | None]:
        """Record an event and apply it; also return why an outcome cannot be learnt from, if that is so."""
        row = self.journal.encode(event)  # before it is applied, because JSON may not be able to hold it
        return self._take_row(Record(row, event), entry)

    def _take_row(self, record: Record, entry: Entry | None = None) -> tuple[Record, InputError | None]:
        event, number = record.event, self.journal.last + 1
        refusal = self._fold.apply(event, number, entry)
        if self._due is not None and isinstance(event, Decided) and event.expires is not None:
            heapq.heappush(self._due, (event.expires, number))
        return self.journal.draft(record.row, event), refusal

    def _require_fresh(self) -> None:
        """Restore the state from the journal if an earlier step was not finished."""
        if self._is_closed:
            raise JournalError(f"the learner of {self.journal.source} is closed; open the journal again")
        if self._stale:
            _log.warning("a step was not finished (%s); %s is restored", self._stale, self.journal.source)
            self.journal.reload()
            self._rebuild()
            self._stale = ""

    def _rebuild(self, *, repeat: bool = False) -> Recovery:
        found = restore(self.journal, repeat=repeat)
        self._fold, self._kept, self._size = found.fold, found.kept, found.size
        self._due: list[tuple[float, int]] | None = None  # when each decision expires; computed when first needed
        return Recovery(found.events, self.journal.count_unfinished(), found.difference)

    def _snapshot_when_due(self) -> None:
        due = self._every or max(_FEWEST, self._size // _BYTES)
        if self.journal.last - self._kept >= due:
            self._snapshot_if_possible()

    def _snapshot_if_possible(self) -> None:
        """Keep a snapshot. It only saves time, so a failure is logged and not raised."""
        try:
            self.snapshot()
        except JournalError as error:
            self._kept = self.journal.last  # the next attempt is made when the next snapshot is due
            _log.warning("no snapshot could be kept: %s", error)


@contextmanager
def batch(*learners: RecordedState) -> Iterator[None]:
    """Make all steps of learners in the block durable together, when it ends; with an error, none of them.

    What `select` and `learn` return inside is valid only once the block has ended without an error.

    Parameters
    ----------
    *learners : Learner
        Learners of one storage, each once.
    """
    for learner in learners:
        learner._require_fresh()
        learner._is_batch = True
    try:
        yield
    except BaseException as error:
        _mark_stale(learners, error)
        raise
    finally:
        for learner in learners:
            learner._is_batch = False
    _commit_all(learners)


def _commit_all(learners: tuple[RecordedState, ...]) -> None:
    try:
        commit([learner.journal for learner in learners])
    except BaseException as error:
        _mark_stale(learners, error)
        raise
    for learner in learners:
        learner._snapshot_when_due()


def _is_same(one: Entry, other: Entry) -> bool:
    same = (one.number, one.label, one.decision.names) == (other.number, other.label, other.decision.names)
    return same and one.decision._bounds.tobytes() == other.decision._bounds.tobytes()


def _mark_stale(learners: tuple[RecordedState, ...], error: BaseException) -> None:
    """Mark learners that have done something not durable, so that they restore their state before they continue."""
    for learner in learners:
        if learner.journal.drafts:
            learner._stale = learner._stale or str(error) or type(error).__name__
