"""A preselector whose every step is in a journal: what it knows follows from the journal, bit for bit."""

import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from preselect.arguments import integer
from preselect.decision import NamedDecision
from preselect.errors import InputError, JournalError, StateFileError
from preselect.outcomes import Outcome
from preselect.preselector import Preselector, Values
from preselect.store import apply
from preselect.store.journal import Event, Journal

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """A decision that is in the journal, under the number by which its outcome can be told at any time."""

    number: int
    decision: NamedDecision
    label: str = ""

    @classmethod
    def of(cls, event: Event) -> Self:
        """The entry that an event is."""
        return cls(event.number, apply.rebuild_decision(event), str(event.body["label"]))


@dataclass(frozen=True)
class Recovery:
    """What opening a journal found.

    How many events were taken in since the last snapshot, how many decisions wait for their outcome, and in what the
    first decision differs that does not come out again as it was recorded: after a change of machine or of numpy, whose
    last bits may differ. The recorded one counts.
    """

    events: int
    unfinished: int
    difference: str | None = None


class Learner:
    """Chooses and learns as a Preselector does, with everything on disk before it counts.

    A decision is in the journal when `select` returns, an outcome before anything is learnt from it. Opened again,
    after whatever end, the learner goes on as if it had never stopped. Not for several threads at a time.

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
        self._preselector, self._kept = _restore(journal)
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
        path: str | os.PathLike[str],
        *,
        make: Callable[[], Preselector],
        about: Mapping[str, Any] | None = None,
        snapshot_every: int = 256,
    ) -> Self:
        """Go on with a journal, or begin one with the preselector that `make` gives and what it is `about`."""
        journal = Journal.write(path, genesis=lambda: make().to_bytes(), description=about)
        try:
            return cls(journal, snapshot_every=snapshot_every)
        except BaseException:
            journal.close()
            raise

    @property
    def preselector(self) -> Preselector:
        """The preselector, to look at: what is done to it directly is not in the journal."""
        return self._preselector

    @property
    def arms(self) -> list[str]:
        """Names of the arms, in the order in which they joined."""
        return self._preselector.arms

    @property
    def about(self) -> dict[str, Any]:
        """What was said of the journal when it was begun."""
        return self.journal.about.description

    def add(self, name: str, features: Mapping[str, float | None] | None = None) -> None:
        """Let another arm join."""
        if not (features is None or isinstance(features, Mapping)):
            raise InputError(f"features of {name} must be values by name, got {features!r:.80}")
        with self._in_step():
            self._preselector.add(name, features)
            values = _named(self._preselector.features, self._preselector._values[-1])
            self.journal.append("arm", {"name": name, "features": values})
        self._snapshot_now_and_then()

    def select(
        self, context: Values | None = None, k: int = 1, *, eligible: Iterable[str] | None = None, label: str = ""
    ) -> Entry:
        """Choose k arms for a context, as Preselector.select does; the label says what the round is about."""
        if not isinstance(label, str):
            raise InputError(f"label must be a text, got {label!r:.80}")
        if isinstance(eligible, Iterable) and not isinstance(eligible, str):
            eligible = list(eligible)
        values = _named(self._preselector.context, self._preselector._as_row(context))
        with self._in_step():
            decision = self._preselector.select(values, k, eligible=eligible)
            body = {"label": label, "context": values, "k": len(decision.names), "eligible": eligible}
            body |= apply.describe(decision)
            number = self.journal.append("decision", body, numbers=apply.pack_numbers(decision))
        self._snapshot_now_and_then()
        return Entry(number, decision, label)

    def learn(
        self,
        entry: Entry | int,
        *,
        winner: str | None = None,
        ranking: Iterable[str] | None = None,
        outcome: Outcome | None = None,
        after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Take in the outcome of a decision, now or later: an entry, or its number.

        `after` goes with a winner: how long the race took, as a share of its time limit. Details are kept, not learnt.
        """
        if not (details is None or isinstance(details, Mapping)):
            raise InputError(f"details must be values by name, got {details!r:.80}")
        self._require_in_step()
        decided = self._waiting(entry)
        kind, names, after = apply.name_outcome(decided.decision, winner, ranking, outcome, after)
        learnt = apply.make_outcome(decided.decision, kind, names, after)
        with self._in_step():
            body = {"kind": kind, "names": names, "after": after, "details": {} if details is None else details}
            self.journal.append("outcome", body, decision=decided.number)
            refused = apply.teach(self._preselector, decided.decision, learnt)
        self._snapshot_now_and_then()
        if refused:
            raise JournalError(f"the outcome of decision {decided.number} is kept, but taught nothing: {refused}")

    def unfinished(self) -> list[Entry]:
        """The decisions whose outcome has not been told, of this process and of those before."""
        self._require_in_step()
        return [Entry.of(event) for event in self.journal.unfinished()]

    def scores(self, context: Values | None = None) -> dict[str, float]:
        """What each arm would be ranked by in this context now."""
        self._require_in_step()
        return self._preselector.scores(context)

    def snapshot(self) -> None:
        """Keep the state as it is, so that opening the journal is quick. Made now and then, and by `close`, anyway."""
        self._require_in_step()
        self.journal.keep_snapshot(self._preselector.to_bytes())
        self._kept = self.journal.last

    def close(self) -> None:
        """Let the journal go; another process may go on with it."""
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
        """What is done inside is both in memory and on disk, or the learner is not used any more."""
        self._require_in_step()
        try:
            yield
        except InputError:  # nothing has changed
            raise
        except BaseException as error:
            self._broken = str(error) or type(error).__name__
            raise

    def _require_in_step(self) -> None:
        if self._closed:
            raise JournalError(
                f"{self.journal.path} must be open to be used, got a learner that was closed; open it again"
            )
        if self._broken:
            raise JournalError(
                f"{self.journal.path} must be opened again to go on from what is on disk, because a step was not "
                f"finished: {self._broken}"
            )

    def _waiting(self, entry: Entry | int) -> Entry:
        """The entry as the journal has it, if its outcome has not been told."""
        number = entry.number if isinstance(entry, Entry) else integer(entry, "entry", 1)
        event = self.journal.event(number)
        if event is None or event.kind != "decision":
            raise InputError(f"entry must be a decision of {self.journal.path}, got number {number}")
        found = Entry.of(event)
        if isinstance(entry, Entry) and not _is_same(entry, found):
            raise InputError(f"entry must be a decision of {self.journal.path}, got another journal's number {number}")
        if self.journal.outcome_of(number) is not None:
            raise InputError(
                f"entry must be a decision without an outcome, got {number}, whose outcome is in the journal"
            )
        return found

    def _snapshot_now_and_then(self) -> None:
        if self.journal.last - self._kept >= self._every:
            self._snapshot_if_possible()

    def _snapshot_if_possible(self) -> None:
        """A snapshot saves time only: that there is none is worth a warning, not an error in a step that was done."""
        try:
            self.snapshot()
        except JournalError as error:
            self._kept = self.journal.last  # the next attempt is due when the next snapshot is
            _log.warning("no snapshot was kept: %s", error)


def _restore(journal: Journal) -> tuple[Preselector, int]:
    """The newest state that is kept and can be read, and after which event it is."""
    for snapshot in journal.snapshots():
        try:
            if snapshot.after > journal.last:
                raise StateFileError(f"it is of event {snapshot.after}, but the last one is {journal.last}")
            return Preselector.from_bytes(snapshot.state, journal.path), snapshot.after
        except StateFileError as error:
            _log.warning("a snapshot was passed over: %s", error)
    return Preselector.from_bytes(journal.about.genesis, journal.path), 0


def _is_same(one: Entry, other: Entry) -> bool:
    same = (one.number, one.label, one.decision.names) == (other.number, other.label, other.decision.names)
    return same and apply.pack_numbers(one.decision) == apply.pack_numbers(other.decision)


def _named(names: list[str], values: Iterable[float]) -> dict[str, float | None]:
    """Values by name; None for missing ones."""
    return {name: None if math.isnan(value) else float(value) for name, value in zip(names, values, strict=True)}
