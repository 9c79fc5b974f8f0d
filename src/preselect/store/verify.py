"""Verify a journal by replaying it from the start: every decision and every snapshot must be reproduced."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from preselect import state
from preselect.errors import JournalError, StateFileError
from preselect.preselector import Preselector
from preselect.store import journal
from preselect.store.apply import Fold
from preselect.store.events import Decided, Expired, Told
from preselect.store.journal import Journal
from preselect.store.record import Record
from preselect.store.rounds import collection_paused
from preselect.store.storage import MAIN


@dataclass(frozen=True)
class Verification:
    """What verifying a journal found.

    Parameters
    ----------
    source : str
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
    expired : int, default 0
        How many events said that a decision expired.
    earlier : int, default 0
        How many decisions were made with an older state, by a process that was behind; they are not repeated.
    """

    source: str
    events: int
    decisions: int
    outcomes: int
    snapshots: int
    difference: str | None
    expired: int = 0
    earlier: int = 0

    @property
    def equal(self) -> bool:
        """Whether everything could be reproduced, bit for bit."""
        return self.difference is None


def verify(
    url: str | os.PathLike[str], name: str = MAIN, *, report: Callable[[int, int], object] | None = None
) -> Verification:
    """Replay a journal from its beginning and compare decisions and snapshots; another process may be writing it.

    Parameters
    ----------
    url : str or path
        The storage.
    name : str, default "main"
        The name of the journal.
    report : callable, optional
        Called after each event with how many events are done and how many there are.
    """
    with Journal.read(url, name) as source, collection_paused():
        verifier = _Verifier(source)
        for record in source.records():
            verifier.check(record)
            if verifier.difference:
                break
            if report is not None:
                report(record.number, source.last)
        return verifier.conclude()


class _Verifier:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        begun = Preselector.from_bytes(journal.about.genesis, journal.source)
        self.fold = Fold(journal, begun, 0, journal.about.digest)
        self.snapshots = {snapshot.after: snapshot for snapshot in journal.snapshots()}
        self.compared, self.counts = 0, Counter[str]()
        damage = journal.storage.find_damage()
        self.difference = f"the file is damaged: {damage}" if damage else self._compare_snapshot()

    def check(self, record: Record) -> None:
        self.difference = self.difference or self._replay(record) or self._compare_snapshot()
        self.counts[record.kind] += 1

    def conclude(self) -> Verification:
        beyond = [after for after in self.snapshots if after > self.journal.last]
        if self.difference is None and beyond:
            self.difference = f"there is a snapshot after event {beyond[0]}, but the last event is {self.journal.last}"
        return Verification(
            self.journal.source,
            self.counts.total(),
            self.counts[Decided.kind],
            self.counts[Told.kind],
            self.compared,
            self.difference and self.difference + _compare_versions(self.journal.about.software),
            self.counts[Expired.kind],
            self.fold.skipped,
        )

    def _replay(self, record: Record) -> str | None:
        try:
            return self.fold.take(record, repeat=True)
        except JournalError as error:
            return str(error)

    def _compare_snapshot(self) -> str | None:
        snapshot = self.snapshots.get(self.fold.number)
        if snapshot is None:
            return None
        self.compared += 1
        try:
            kept = self.journal.read_snapshot(snapshot)
            same = _is_same(kept, self.fold.preselector.to_bytes(), self.journal.source)
        except StateFileError as error:
            return str(error)
        return None if same else f"the state after event {snapshot.after} differs from the snapshot kept then"


def _is_same(kept: bytes, now: bytes, source: str) -> bool:
    """Whether two states have the same content, even if their bytes differ.

    Other releases of Python write other headers of archives; later releases of this package add values.
    """
    if kept == now:
        return True
    then, found = (state.unpack(content, source) for content in (kept, now))
    headers = all(found.header.get(name) == value for name, value in then.header.items())
    arrays = (_is_equal(array, found.arrays.get(name)) for name, array in then.arrays.items())
    return then.kind == found.kind and headers and all(arrays)


def _is_equal(then: NDArray[Any], now: NDArray[Any] | None) -> bool:
    return now is not None and (then.shape, then.dtype, then.tobytes()) == (now.shape, now.dtype, now.tobytes())


def _compare_versions(then: dict[str, str]) -> str:
    """Describe differences of software and machine, because those may change the last bits of numbers."""
    now = journal.list_versions()
    changed = [
        f"{name} was {then.get(name)} and is {version}" for name, version in now.items() if version != then.get(name)
    ]
    return f" (that may change last bits: {'; '.join(changed)})" if changed else ""
