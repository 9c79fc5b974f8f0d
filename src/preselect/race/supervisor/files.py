"""The files of a race, safe from racers, which can remove or replace anything in their folder.

What programs print goes into files without a name, through descriptors that are open before any racer starts. A
verifier needs a name and gets a copy, and its verdict counts only if the copy is still there.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Output:
    """What a program prints: a file without a name, open for the program to write and for others to read.

    Both descriptors share only the file, because a program can change the mode of its own descriptor.
    """

    def __init__(self, writing: int, reading: int) -> None:
        self.writing, self.reading = writing, reading

    @classmethod
    def create(cls, folder: str) -> Self:
        """Create an empty output file on the disk that holds a folder."""
        writing, path = _create(folder)
        try:
            reading = os.open(f"/proc/self/fd/{writing}", os.O_RDONLY)
            _remove(path)
        except BaseException:
            os.close(writing)
            raise
        return cls(writing, reading)

    @property
    def size(self) -> int:
        """Bytes that were printed."""
        return os.fstat(self.reading).st_size

    def read(self, size: float, start: int = 0) -> bytes:
        """Read at most `size` bytes; the file may still be written to, or be cut off by another process."""
        end = start + max(0, int(min(size, self.size - start)))
        parts = []
        while start < end and (part := os.pread(self.reading, end - start, start)):
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def close_writing(self) -> None:
        """Close the descriptor for writing; the program has its own."""
        os.close(self.writing)
        self.writing = -1

    def close(self) -> None:
        """Close the file; it is gone once the program has ended, too."""
        if self.writing >= 0:
            self.close_writing()
        os.close(self.reading)


class Copy:
    """A copy of what a program has printed, with a name under which other programs can read it."""

    def __init__(self, output: Output, folder: str) -> None:
        os.makedirs(folder, 0o700, exist_ok=True)  # a racer may have removed the folder
        self.file, self.path = _create(folder, ".out")
        try:
            place, end = 0, output.size
            while place < end and (sent := os.sendfile(self.file, output.reading, place, end - place)):
                place += sent
        except BaseException:
            self.close()
            raise

    @property
    def is_there(self) -> bool:
        """Whether its path still leads to this file."""
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(self.file))
        except OSError:
            return False

    def close(self) -> None:
        """Remove the copy."""
        if self.is_there:
            _remove(self.path)
        os.close(self.file)


def _create(folder: str, ending: str = "") -> tuple[int, str]:
    """Create an empty file with a new name in a folder that is not a link, and open it for writing."""
    place, name = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW), os.urandom(8).hex() + ending
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=place)
    finally:
        os.close(place)
    return descriptor, os.path.join(folder, name)


def _remove(path: str) -> None:
    """Remove a file, if it is still there."""
    try:
        os.unlink(path)
    except OSError:
        return
