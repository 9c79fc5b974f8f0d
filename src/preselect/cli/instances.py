"""Find the files to work on: given by name, in folders, on standard input, or new in a watched folder."""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from preselect.errors import InputError

_WATCH_SECONDS = 0.5  # seconds between two scans of a watched folder
_STABLE_SCANS = 5  # how many scans in a row, over two seconds, must find a file unchanged


def make_printable(path: Path) -> str:
    """Return a path as printable text, whatever bytes its name has."""
    return make_visible(os.fsencode(path).decode(errors="backslashreplace"))


def make_visible(text: str) -> str:
    r"""Return text with visible control characters, so that it cannot control the terminal or begin a new line.

    >>> make_visible("a\x1b[2J\ns SATISFIABLE")
    'a\\x1b[2J\\ns SATISFIABLE'
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def require_apart(output: Path | None, inbox: Path | None, instances: Iterable[Path]) -> None:
    """Raise an InputError if outputs would become instances of the next run."""
    folders = [path for path in (*instances, inbox) if path is not None and path.is_dir()]
    if output is not None and any(os.path.realpath(output) == os.path.realpath(folder) for folder in folders):
        raise InputError(f"{output} is also the folder of instances; name another folder for --output")


def list_files(given: Iterable[Path], is_own: Callable[[Path], bool]) -> list[Path]:
    """List files, those in folders except our own, and those that standard input names."""
    files: list[Path] = []
    for path in given:
        if str(path) == "-":
            files += [Path(os.fsdecode(line)) for line in sys.stdin.buffer.read().splitlines() if line.strip()]
        elif path.is_dir():
            files += _list_folder(path, is_own)
        else:
            files.append(path)
    for file in files:
        if not file.is_file():
            raise InputError(f"{str(file)!r} is not a file; nothing was raced")
    return files


def require_some(files: list[Path], given: Iterable[Path]) -> None:
    """Raise an InputError if there is no file to work on; hidden files do not count."""
    if not files:
        raise InputError(f"there is no file in {', '.join(map(_describe, given))}; nothing was raced")


def _describe(given: Path) -> str:
    return "the list on standard input" if str(given) == "-" else repr(str(given))


def _list_folder(folder: Path, is_own: Callable[[Path], bool]) -> list[Path]:
    found = (path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return sorted(path for path in found if not is_own(path))


class _State(NamedTuple):
    """What changes when a file is written or replaced."""

    inode: int
    size: int
    modified: int


def iterate_files(files: list[Path], inbox: Path | None, is_own: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the files, and then, endlessly, those that appear in the inbox or are overwritten there.

    A file is yielded once it is complete: its size and time have not changed for a while, and no process is known to
    write it.
    """
    yield from files
    if inbox is None:
        return
    if not inbox.is_dir():
        raise InputError(f"cannot watch {str(inbox)!r}: it is not a folder; create it first")
    click.echo(f"watching {make_printable(inbox)}; Ctrl-C ends", err=True)
    taken, scans = {file: _read_state(file) for file in files}, dict[Path, tuple[_State | None, int]]()
    while True:
        scans = {path: _count_scan(path, scans) for path in _list_folder(inbox, is_own)}
        for path, (state, count) in scans.items():
            if state not in (None, taken.get(path)) and count >= _STABLE_SCANS and not _is_being_written(path):
                taken[path] = state
                yield path
        time.sleep(_WATCH_SECONDS)


def _count_scan(path: Path, before: dict[Path, tuple[_State | None, int]]) -> tuple[_State | None, int]:
    """Return the state of a file, and how many scans in a row have found it in this state."""
    state, (old, count) = _read_state(path), before.get(path, (None, 0))
    return state, count + 1 if state == old else 1


def _read_state(path: Path) -> _State | None:
    """Return the state of a file; None if it no longer exists."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return _State(found.st_ino, found.st_size, found.st_mtime_ns)


def _is_being_written(path: Path) -> bool:
    """Whether a process has the file open for writing; False if the kernel does not say so.

    The kernel grants a read lease only on a file that nobody writes, and only to the file's owner or to root.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # ignored; SIGIO would end this process
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)  # which ends the lease
    return False
