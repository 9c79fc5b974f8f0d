"""Verify a journal by replaying it from the start: every decision and every snapshot must be reproduced."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from preselect.errors import JournalError, StateFileError
from preselect.preselector import Preselector
from preselect.store import apply, database
from preselect.store.journal import Event, Journal, Snapshot


@dataclass(frozen=True)
class Verification:
    """What verifying a journal found.

    Parameters
    ----------
    path : Path
        The journal.
    events : int
        How many events were replayed: all of them, or those up to the first difference.
    decisions : int
        How many of them were decisions.
    outcomes : int
        How many of them were outcomes.
    snapshots : int
        How many snapshots were compared.
    difference : str or None
        The first difference, None if there is none.
    """

    path: Path
    events: int
    decisions: int
    outcomes: int
    snapshots: int
    difference: str | None

    @property
    def equal(self) -> bool:
        """Whether everything could be reproduced, bit for bit."""
        return self.difference is None


def verify(path: str | os.PathLike[str], *, report: Callable[[int, int], object] | None = None) -> Verification:
    """Replay a journal from its beginning and compare; it may be in use at the same time.

    Parameters
    ----------
    path : str or path
        The journal.
    report : callable, optional
        Called after each event with how many events are done and how many there are.
    """
    with Journal.read(path) as journal:
        verifier = _Verifier(journal)
        for event in journal.events():
            verifier.check(event)
            if verifier.difference:
                break
            if report is not None:
                report(event.number, journal.last)
        return verifier.conclude()


class _Verifier:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.preselector = Preselector.from_bytes(journal.about.genesis, journal.path)
        self.snapshots = {snapshot.after: snapshot for snapshot in journal.snapshots()}
        self.digest, self.last, self.compared = journal.about.digest, 0, 0
        self.counts = {"arm": 0, "decision": 0, "outcome": 0}
        damage = journal.find_damage()
        self.difference = f"the file is damaged: {damage}" if damage else self._compare_snapshot()

    def check(self, event: Event) -> None:
        self.difference = self.difference or self._check_chain(event) or self._replay(event)
        self.last, self.digest = event.number, event.digest
        self.difference = self.difference or self._compare_snapshot()
        self.counts[event.kind] += 1

    def conclude(self) -> Verification:
        beyond = [after for after in self.snapshots if after > self.journal.last]
        if self.difference is None and beyond:
            self.difference = f"there is a snapshot after event {beyond[0]}, but the last event is {self.journal.last}"
        counts = self.counts
        return Verification(
            self.journal.path,
            sum(counts.values()),
            counts["decision"],
            counts["outcome"],
            self.compared,
            self.difference and self.difference + _compare_versions(self.journal.about.software),
        )

    def _check_chain(self, event: Event) -> str | None:
        if event.number != self.last + 1:
            return f"event {self.last + 1} is missing: {event.number} follows {self.last}"
        if not event.follows(self.digest):
            return f"event {event.number} ({event.kind}) is not as it was written: its digest does not match"
        return None

    def _replay(self, event: Event) -> str | None:
        try:
            return apply.apply_event(self.preselector, self.journal, event)
        except JournalError as error:
            return str(error)

    def _compare_snapshot(self) -> str | None:
        snapshot = self.snapshots.get(self.last)
        if snapshot is None:
            return None
        self.compared += 1
        return _compare_state(snapshot, self.preselector)


def _compare_state(snapshot: Snapshot, preselector: Preselector) -> str | None:
    try:
        same = snapshot.state == preselector.to_bytes()
    except StateFileError as error:
        return str(error)
    return None if same else f"the state after event {snapshot.after} differs from the snapshot kept then"


def _compare_versions(then: dict[str, str]) -> str:
    """Say which software or machine is different, because that may change the last bits of numbers."""
    now = database.list_versions()
    changed = [
        f"{name} was {then.get(name)} and is {version}" for name, version in now.items() if version != then.get(name)
    ]
    return f" (that may change last bits: {'; '.join(changed)})" if changed else ""
