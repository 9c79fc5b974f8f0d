"""Restore the state of a journal from the newest readable snapshot and the events after it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from os import PathLike

from preselect.errors import JournalError, StateFileError
from preselect.preselector import Preselector
from preselect.store.apply import Fold
from preselect.store.journal import Journal
from preselect.store.storage import MAIN

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Restoration:
    """The state of a journal, and how it was restored.

    Parameters
    ----------
    fold : Fold
        The state after all events.
    kept : int
        The number of the event after which the snapshot was kept; 0 if there is none.
    size : int
        The size of the snapshot, in bytes.
    events : int
        How many events were replayed after it.
    difference : str, optional
        The first decision that could not be reproduced, and how it differs.
    """

    fold: Fold
    kept: int
    size: int
    events: int
    difference: str | None


def restore(journal: Journal, *, repeat: bool = False) -> Restoration:
    """Return the state after the last event; raise a JournalError if a replayed event does not follow the one before.

    Parameters
    ----------
    journal : Journal
        A journal, open for reading or writing.
    repeat : bool, default False
        Whether to make the replayed decisions again, and compare.
    """
    fold, size = _find_newest(journal)
    kept = fold.number
    try:
        differences = [fold.take(record, repeat=repeat) for record in journal.records(kept, journal.last - kept)]
    except JournalError as error:
        raise JournalError(f"{journal.source} cannot be restored: {error}; use a copy of it") from None
    if fold.number != journal.last:
        raise JournalError(f"event {fold.number + 1} of {journal.source} is missing; the last one is {journal.last}")
    first = next((difference for difference in differences if difference), None)
    return Restoration(fold, kept, size, len(differences), first)


def read_preselector(url: str | PathLike[str], name: str = MAIN) -> Preselector:
    """Return the present state of a journal without becoming its writer.

    Parameters
    ----------
    url : str or path
        The storage; another process may be writing it.
    name : str, default "main"
        The name of the journal.
    """
    with Journal.read(url, name) as journal:
        return restore(journal).fold.preselector


def _find_newest(journal: Journal) -> tuple[Fold, int]:
    """Return the newest state that can be read, and its size."""
    for snapshot in journal.snapshots():
        try:
            state = journal.read_snapshot(snapshot)
            preselector = Preselector.from_bytes(state, journal.source)
        except StateFileError as error:
            _log.warning("a snapshot is ignored: %s", error)
        else:
            return Fold(journal, preselector, snapshot.after, journal.digest_of(snapshot.after)), len(state)
    state = journal.about.genesis
    return Fold(journal, Preselector.from_bytes(state, journal.source), 0, journal.about.digest), len(state)
