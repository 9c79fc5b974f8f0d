"""The lock of an SQLite file: one process writes, and others get an error that names it.

The lock is a file beside it. It says which process writes and how many events that process has acknowledged, so that
the next one notices if some of them are missing.
"""

import fcntl
import os
from pathlib import Path
from typing import Self

from preselect.errors import InputError, JournalError
from preselect.files import open_plain


class Lock:
    """The write lock, held until `release`.

    Parameters
    ----------
    journal : Path
        The file to lock.
    """

    def __init__(self, journal: Path) -> None:
        self.path = journal.with_name(journal.name + ".lock")
        self._descriptor = _acquire(self.path, journal)
        self.acknowledged = _read_count(self._descriptor)  # by a holder that did not release the lock
        self.note(self.acknowledged)

    def note(self, acknowledged: int) -> None:
        """Write down how many events are acknowledged, so that the number survives the process."""
        said = f"{os.getpid()}\n{acknowledged}\n".encode()
        os.pwrite(self._descriptor, said, 0)
        os.ftruncate(self._descriptor, len(said))

    def release(self, *, keep: bool = False) -> None:
        """Let other processes write; with `keep`, the file stays as it is."""
        if not keep:
            self.path.unlink(missing_ok=True)
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # not only closed: a child before its exec has it, too
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _acquire(path: Path, journal: Path) -> int:
    while True:
        try:
            descriptor = open_plain(path, os.O_RDWR | os.O_CREAT)
        except InputError as error:  # a link, for instance, by which someone wants another file to be overwritten
            raise JournalError(str(error)) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(path, descriptor):
                return descriptor
            os.close(descriptor)  # the previous holder has just removed the file: try with a new one
        except BaseException as error:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").partition("\n")[0]
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise _explain(journal, holder) from None
            raise


def _read_count(descriptor: int) -> int:
    found = os.pread(descriptor, 60, 0).split()
    return int(found[1]) if len(found) == 2 and found[1].isdigit() else 0


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _explain(journal: Path, holder: str) -> JournalError:
    if holder == str(os.getpid()):
        return JournalError(f"{journal} is already open in this process; close it there first, or name another journal")
    user = f"process {holder}" if holder else "another process"
    return JournalError(f"{journal} is in use by {user}; end that first, or name another journal")
