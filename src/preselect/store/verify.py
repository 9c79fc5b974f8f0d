"""The proof of a journal: from its beginning through all events, every decision must come out again as it was."""

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
    """What a replay found: how far it came, and the first difference if there is one."""

    path: Path
    events: int
    decisions: int
    outcomes: int
    snapshots: int
    difference: str | None

    @property
    def equal(self) -> bool:
        """Whether everything came out again, bit for bit."""
        return self.difference is None


def verify(path: str | os.PathLike[str], *, report: Callable[[int, int], object] | None = None) -> Verification:
    """Verify a journal, which may be in use; `report` hears how many events of how many are done."""
    with Journal.read(path) as journal:
        verifier = _Verifier(journal)
        for event in journal.events():
            verifier.take(event)
            if verifier.difference:
                break
            if report is not None:
                report(event.number, journal.last)
        return verifier.result()


class _Verifier:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.preselector = Preselector.from_bytes(journal.about.genesis, journal.path)
        self.snapshots = {snapshot.after: snapshot for snapshot in journal.snapshots()}
        self.digest, self.place, self.compared = journal.about.digest, 0, 0
        self.counts = {"arm": 0, "decision": 0, "outcome": 0}
        damage = journal.find_damage()
        self.difference = f"the file is damaged: {damage}" if damage else self._against_snapshot()

    def take(self, event: Event) -> None:
        self.difference = self.difference or self._broken_chain(event) or self._again(event)
        self.place, self.digest = event.number, event.digest
        self.difference = self.difference or self._against_snapshot()
        self.counts[event.kind] += 1

    def result(self) -> Verification:
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
            self.difference and self.difference + _other_software(self.journal.about.software),
        )

    def _broken_chain(self, event: Event) -> str | None:
        if event.number != self.place + 1:
            return f"event {self.place + 1} is missing, {event.number} comes after {self.place}"
        if not event.follows(self.digest):
            return f"event {event.number} ({event.kind}) is not as it was written: its digest does not fit"
        return None

    def _again(self, event: Event) -> str | None:
        try:
            return apply.apply_event(self.preselector, self.journal, event)
        except JournalError as error:
            return str(error)

    def _against_snapshot(self) -> str | None:
        snapshot = self.snapshots.get(self.place)
        if snapshot is None:
            return None
        self.compared += 1
        return _state_difference(snapshot, self.preselector)


def _state_difference(snapshot: Snapshot, preselector: Preselector) -> str | None:
    try:
        same = snapshot.state == preselector.to_bytes()
    except StateFileError as error:
        return str(error)
    return None if same else f"the state after event {snapshot.after} is not that of the snapshot kept then"


def _other_software(then: dict[str, str]) -> str:
    """Why numbers may differ in their last bits, if that may be why."""
    now = database.list_versions()
    changed = [
        f"{name} {then.get(name)} then, {version} now" for name, version in now.items() if version != then.get(name)
    ]
    return f" (last bits may differ by software: {'; '.join(changed)})" if changed else ""
