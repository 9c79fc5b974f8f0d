"""The files that a command works on: named, in folders, listed on standard input, or appearing in a watched folder."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from preselect.errors import InputError

_WATCH_SECONDS = 0.5  # between two scans of a watched folder


def make_printable(path: Path) -> str:
    """Return a path as printable text, whatever bytes its name has."""
    return os.fsencode(path).decode(errors="backslashreplace")


def require_apart(output: Path | None, inbox: Path | None, instances: Iterable[Path]) -> None:
    """Require that outputs do not become instances of the next run."""
    folders = [path for path in (*instances, inbox) if path is not None and path.is_dir()]
    if output is not None and any(output.absolute() == folder.absolute() for folder in folders):
        raise InputError(f"{output} is also the folder of instances; name another folder for --output")


def list_files(given: Iterable[Path]) -> list[Path]:
    """List files, those in folders, and those that standard input names."""
    files: list[Path] = []
    for path in given:
        if str(path) == "-":
            files += [Path(os.fsdecode(line)) for line in sys.stdin.buffer.read().splitlines() if line.strip()]
        elif path.is_dir():
            files += _list_folder(path)
        else:
            files.append(path)
    for file in files:
        if not file.is_file():
            raise InputError(f"{str(file)!r} is not a file; nothing was raced")
    return files


def _list_folder(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def iterate_files(files: list[Path], inbox: Path | None) -> Iterator[Path]:
    """Yield the files, and then, endlessly, those that appear in the inbox once they have stopped growing."""
    yield from files
    if inbox is None:
        return
    if not inbox.is_dir():
        raise InputError(f"cannot watch {str(inbox)!r}: it is not a folder; create it first")
    click.echo(f"watching {inbox}; Ctrl-C ends", err=True)
    seen, states = set(files), dict[Path, tuple[int, int] | None]()
    while True:
        now = {path: _state(path) for path in _list_folder(inbox) if path not in seen}
        for path, state in now.items():
            if state is not None and states.get(path) == state:
                seen.add(path)
                yield path
        states = now
        time.sleep(_WATCH_SECONDS)


def _state(path: Path) -> tuple[int, int] | None:
    """Return the size and the time of the last change; None if the file is gone."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns
