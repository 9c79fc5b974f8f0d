"""Copy journals from any storage to any other."""

from __future__ import annotations

from itertools import islice
from os import PathLike

from preselect.errors import ConflictError, JournalError
from preselect.store.record import Beginning, Record
from preselect.store.storage import Storage, open_storage

_MOST = 1000  # events in one commit


def copy_journals(
    source: str | PathLike[str], target: str | PathLike[str], names: list[str] | None = None
) -> dict[str, int]:
    """Copy journals, with their numbers and digests, and return how many events each of them has.

    An interrupted copy is resumed. An event that has been altered is an error. Snapshots are copied too.

    Parameters
    ----------
    source : str or path
        The storage to read; another process may be writing it.
    target : str or path
        The storage to write; it is created if it does not exist. A journal of the same name there has to be a copy.
    names : list of str, optional
        The journals; all of them by default.
    """
    with open_storage(source) as read, open_storage(target, write=True) as write:
        return {name: _copy_journal(read, write, name) for name in (read.journals() if names is None else names)}


def _copy_journal(read: Storage, write: Storage, name: str) -> int:
    about = read.about(name)
    if about is None:
        raise JournalError(f"{read.source} has no journal {name!r:.80}; it has {read.journals()}")
    write.begin(about)
    last = write.last(name)
    number, digest = (last.number or 0, last.digest) if last else (0, Beginning.of(about, read.source).digest)
    if write.about(name) != about or not _has(read, name, number, digest):
        raise ConflictError(f"{write.source} has another journal {name!r:.80}; name another target")
    rows = read.read(name, after=number)
    while part := list(islice(rows, _MOST)):
        for row in part:
            if row.number != number + 1 or not Record(row).follows(digest or b""):
                raise JournalError(f"event {number + 1} of {read.source} is missing or not as it was written")
            number, digest = number + 1, row.digest
        write.append(part)
    for snapshot in sorted(read.snapshots(name), key=lambda one: one.after):
        write.keep_snapshot(snapshot)
    return number


def _has(read: Storage, name: str, number: int, digest: bytes | None) -> bool:
    found = read.find_number(name, number) if number else None
    return not number or (found is not None and found.digest == digest)
