"""A preselector that records every step in a journal, from which it can be restored bit for bit."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from preselect.arguments import integer
from preselect.decision import NamedDecision
from preselect.errors import InputError, JournalError, StateFileError
from preselect.feedback import Names, make_outcome
from preselect.outcomes import Outcome
from preselect.preselector import AnyPath, Features, Preselector, Values
from preselect.store import apply
from preselect.store.journal import Event, Journal

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """A decision in the journal. Its number is enough to report the outcome, at any time and from any process.

    Parameters
    ----------
    number : int
        The number of the decision in the journal.
    decision : NamedDecision
        The decision.
    label : str, default ""
        What the round is about, such as the path of an instance.
    """

    number: int
    decision: NamedDecision
    label: str = ""

    @classmethod
    def of(cls, event: Event) -> Self:
        """Make an entry from an event of the journal.

        Parameters
        ----------
        event : Event
            A decision.
        """
        return cls(event.number, apply.restore_decision(event), str(event.body["label"]))


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
        The first decision that could not be reproduced, and how it differs: on another machine or with another numpy
        the last bits may. The recorded decision counts.
    """

    events: int
    unfinished: int
    difference: str | None = None


class Learner:
    """Chooses and learns as a Preselector does, with everything on disk before it counts.

    A decision is in the journal when `select` returns, an outcome before anything is learnt from it. However a process
    ends, the next one that opens the journal resumes as if nothing had happened. For one thread at a time.

    Use `Learner.open`; the constructor takes a journal that is open already.

    Parameters
    ----------
    journal : Journal
        The journal, open for writing.
    snapshot_every : int, default 256
        After how many events to keep a snapshot of the state. Fewer events make opening faster, and writing slower.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> make = lambda: Preselector(["a", "b", "c"], seed=0)
    >>> with TemporaryDirectory() as folder:
    ...     with Learner.open(f"{folder}/race.journal", make=make) as learner:
    ...         entry = learner.select(k=2, label="first.cnf")
    ...     with Learner.open(f"{folder}/race.journal", make=make) as learner:
    ...         learner.learn(entry.number, winner=entry.decision.names[0], details={"seconds": 0.5})
    ...         learner.preselector.policy
    Newton(d=3, rounds=1, observations=1)
    """

    def __init__(self, journal: Journal, *, snapshot_every: int = 256) -> None:
        self.journal = journal
        self._every = integer(snapshot_every, "snapshot_every", 1)
        self._broken, self._closed = "", False
        self._preselector, self._kept = _restore_newest(journal)
        differences = [
            apply.apply_event(self._preselector, journal, event) for event in journal.events(after=self._kept)
        ]
        first = next((difference for difference in differences if difference), None)
        self.recovery = Recovery(len(differences), len(journal.unfinished()), first)
        if first:
            _log.warning("%s: %s; the recorded decision counts", journal.path, first)

    @classmethod
    def open(
        cls,
        path: AnyPath,
        *,
        make: Callable[[], Preselector],
        about: Mapping[str, Any] | None = None,
        snapshot_every: int = 256,
    ) -> Self:
        """Resume a journal, or begin a new one.

        Parameters
        ----------
        path : str or path
            The journal. It is created if it does not exist.
        make : callable
            Returns the preselector with which a new journal begins. Not called for one that exists.
        about : mapping, optional
            What a new journal is about; anything that JSON can hold.
        snapshot_every : int, default 256
            After how many events to keep a snapshot of the state.
        """
        journal = Journal.write(path, genesis=lambda: make().to_bytes(), description=about)
        try:
            return cls(journal, snapshot_every=snapshot_every)
        except BaseException:
            journal.close()
            raise

    @property
    def preselector(self) -> Preselector:
        """The preselector, for reading only: changes made to it directly are not in the journal."""
        return self._preselector

    @property
    def arms(self) -> list[str]:
        """The names of the arms, in the order in which they were added."""
        return self._preselector.arms

    @property
    def about(self) -> dict[str, Any]:
        """What the journal is about, as given when it was begun."""
        return self.journal.about.description

    def add(self, name: str, features: Features | None = None) -> None:
        """Add an arm, as Preselector.add does.

        Parameters
        ----------
        name : str
            A name that no arm has yet.
        features : mapping of str to float, optional
            The arm's features. Those left out are unknown.
        """
        if not (features is None or isinstance(features, Mapping)):
            raise InputError(f"the features of {name} are {features!r:.80}; give a mapping of names to numbers")
        with self._in_step():
            self._preselector.add(name, features)
            values = _name_values(self._preselector.features, self._preselector._joint.values[-1])
            self.journal.append("arm", {"name": name, "features": values})
        self._snapshot_when_due()

    def select(
        self, context: Values | None = None, k: int | None = None, *, eligible: Names | None = None, label: str = ""
    ) -> Entry:
        """Choose k arms for a round, as Preselector.select does.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round: numbers by name, or in order; None or NaN for unknown values.
        k : int
            How many arms to choose.
        eligible : iterable of str, optional
            The arms to choose from; all of them by default.
        label : str, default ""
            What the round is about, for reports.
        """
        if not isinstance(label, str):
            raise InputError(f"label is {label!r:.80}; use a string")
        if isinstance(eligible, Iterable) and not isinstance(eligible, str):
            eligible = list(eligible)  # an iterator could be read only once
        values = _name_values(self._preselector.context, self._preselector._as_row(context))
        with self._in_step():
            decision = self._preselector.select(values, k=k, eligible=eligible)
            body = {"label": label, "context": values, "k": len(decision.names), "eligible": eligible}
            record, numbers = decision.to_record()
            number = self.journal.append("decision", body | record, numbers=numbers)
        self._snapshot_when_due()
        return Entry(number, decision, label)

    def learn(
        self,
        entry: Entry | int,
        *,
        winner: str | None = None,
        ranking: Names | None = None,
        outcome: Outcome | None = None,
        after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Learn from the outcome of a decision: give a winner, a ranking or another outcome.

        Parameters
        ----------
        entry : Entry or int
            What `select` returned, or its number: in this process or in an earlier one.
        winner : str, optional
            The chosen arm that won.
        ranking : iterable of str, optional
            The chosen arms, or the best of them, best first.
        outcome : Outcome, optional
            Any other outcome, such as NoWinner() or Void().
        after : float, optional
            With a winner: how long the race took, as a share of its time limit, from 0 to 1.
        details : mapping, optional
            What else to record, such as seconds; anything that JSON can hold. Nothing is learnt from it.
        """
        if not (details is None or isinstance(details, Mapping)):
            raise InputError(f"details is {details!r:.80}; give values by name")
        self._check_in_step()
        decided = self._find_unfinished(entry)
        learnt = make_outcome(decided.decision, winner, ranking, outcome, after)
        body = {**apply.name_outcome(decided.decision, learnt), "details": {} if details is None else details}
        refused: InputError | None = None
        with self._in_step():
            self.journal.append("outcome", body, decision=decided.number)
            try:
                self._preselector.learn(decided.decision, outcome=learnt)
            except InputError as error:  # every replay refuses it too
                refused = error
        self._snapshot_when_due()
        if refused is not None:
            raise JournalError(f"the outcome of decision {decided.number} is recorded, but not learnt from: {refused}")

    def unfinished(self) -> list[Entry]:
        """The decisions that have no outcome yet, of this process and of earlier ones."""
        self._check_in_step()
        return [Entry.of(event) for event in self.journal.unfinished()]

    def scores(self, context: Values | None = None) -> dict[str, float]:
        """The score by which the policy would rank each arm in a context now, by name.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        self._check_in_step()
        return self._preselector.scores(context)

    def snapshot(self) -> None:
        """Keep a snapshot of the state, so that opening the journal is fast; `close` does so too."""
        self._check_in_step()
        self.journal.keep_snapshot(self._preselector.to_bytes())
        self._kept = self.journal.last

    def close(self) -> None:
        """Keep a snapshot and close the journal; another process may resume it."""
        if not (self._closed or self._broken) and self.journal.last > self._kept:
            self._snapshot_if_possible()
        self._closed = True
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Learner({str(self.journal.path)!r}, events={self.journal.last}, {self._preselector!r})"

    @contextmanager
    def _in_step(self) -> Iterator[None]:
        """Keep memory and disk in step: after a step that fails halfway, the learner cannot be used any longer."""
        self._check_in_step()
        try:
            yield
        except InputError:  # nothing has changed
            raise
        except BaseException as error:
            self._broken = str(error) or type(error).__name__
            raise

    def _check_in_step(self) -> None:
        if self._closed:
            raise JournalError(f"the learner of {self.journal.path} is closed; open the journal again")
        if self._broken:
            raise JournalError(
                f"a step was not finished ({self._broken}); "
                f"open {self.journal.path} again to resume from what is on disk"
            )

    def _find_unfinished(self, entry: Entry | int) -> Entry:
        """Return the entry as the journal has it; one that has an outcome already is an error."""
        number = entry.number if isinstance(entry, Entry) else integer(entry, "entry", 1)
        event = self.journal.event(number)
        if event is None or event.kind != "decision":
            raise InputError(f"event {number} of {self.journal.path} is not a decision")
        found = Entry.of(event)
        if isinstance(entry, Entry) and not _is_same(entry, found):
            raise InputError(f"the entry is decision {number} of another journal, not of {self.journal.path}")
        if self.journal.outcome_of(number) is not None:
            raise InputError(f"decision {number} of {self.journal.path} has an outcome already")
        return found

    def _snapshot_when_due(self) -> None:
        if self.journal.last - self._kept >= self._every:
            self._snapshot_if_possible()

    def _snapshot_if_possible(self) -> None:
        """Keep a snapshot; as it only saves time, a failure is worth a warning, not an error."""
        try:
            self.snapshot()
        except JournalError as error:
            self._kept = self.journal.last  # the next attempt is due when the next snapshot is
            _log.warning("no snapshot could be kept: %s", error)


def _restore_newest(journal: Journal) -> tuple[Preselector, int]:
    """Restore the newest readable snapshot; return it with the number of the event after which it was kept."""
    for snapshot in journal.snapshots():
        try:
            if snapshot.after > journal.last:
                raise StateFileError(f"it was kept after event {snapshot.after}, but the last event is {journal.last}")
            return Preselector.from_bytes(snapshot.state, journal.path), snapshot.after
        except StateFileError as error:
            _log.warning("a snapshot is ignored: %s", error)
    return Preselector.from_bytes(journal.about.genesis, journal.path), 0


def _is_same(one: Entry, other: Entry) -> bool:
    same = (one.number, one.label, one.decision.names) == (other.number, other.label, other.decision.names)
    return same and one.decision.to_record()[1] == other.decision.to_record()[1]


def _name_values(names: list[str], values: Iterable[float]) -> dict[str, float | None]:
    """Return values by name; None for unknown ones."""
    return {name: None if math.isnan(value) else float(value) for name, value in zip(names, values, strict=True)}
