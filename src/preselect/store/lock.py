"""The lock of a journal: one process writes, and others get an error that names it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from preselect.errors import JournalError


@contextmanager
def lock(journal: Path) -> Iterator[None]:
    """Hold the write lock, a file beside the journal, removed on exit."""
    path = journal.with_name(journal.name + ".lock")
    descriptor = _acquire(path, journal)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # explicitly: a child between fork and exec has the descriptor too
        os.close(descriptor)


def _acquire(path: Path, journal: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(path, descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                return descriptor
            os.close(descriptor)  # the previous holder removed the file meanwhile: try with a new one
        except BaseException as error:
            holder = os.read(descriptor, 20).decode(errors="replace")
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise _explain(journal, holder) from None
            raise


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _explain(journal: Path, holder: str) -> JournalError:
    user = f"process {holder}" if holder else "another process"
    return JournalError(f"{journal} is in use by {user}; end that first, or name another journal")
