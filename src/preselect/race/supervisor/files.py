"""The files of a race, in a folder in which others may have prepared something.

A name that is a link leads elsewhere, a pipe blocks whoever opens it, and a device has no end. So files are made anew,
and only regular ones are read.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


def open_folder(path: str) -> int:
    """Open a folder, but not through a link."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def create(folder: int, name: str) -> int:
    """Create an empty file in an open folder, instead of whatever has that name, and open it for writing."""
    if name in os.listdir(folder):
        os.unlink(name, dir_fd=folder)
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading; an OSError, at once, if it is not a regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a regular file, which a link to one is not."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def read_beginning(path: str | os.PathLike[str], size: float) -> bytes:
    """Read at most so many bytes of a file; none if it is not a regular one, or gone."""
    try:
        with open_regular(path) as file:
            return read_at_most(file, size)
    except OSError:
        return b""


def read_at_most(file: BinaryIO, size: float) -> bytes:
    """Read at most so many bytes of a regular file from where it stands."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    return file.read(max(0, int(min(size, left))))
