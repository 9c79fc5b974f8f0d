"""State files: a zip of plain arrays with a JSON header, versioned, no pickle; written whole or not at all."""

import io
import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect.errors import StateFileError
from preselect.files import write_whole

FORMAT = "preselect-state"
VERSION = 1

# what numpy and zipfile raise on bytes that are not what they expect
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)


@dataclass(frozen=True)
class StateFile:
    """What was read from a file."""

    path: Path
    kind: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def expect(self, kind: str) -> Self:
        """This file, or an error if it holds something else."""
        if self.kind != kind:
            raise StateFileError(f"{self.path} holds a {self.kind}, expected a {kind}")
        return self


def pack(kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """The content of a state file; equal states give equal bytes."""
    text = json.dumps({"format": FORMAT, "version": VERSION, "kind": kind, **header})
    pickled = [name for name, array in arrays.items() if array.dtype.hasobject]
    if pickled:
        raise TypeError(f"arrays of objects cannot be saved: {', '.join(pickled)}")
    content = io.BytesIO()
    np.savez(content, header=np.array(text), **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a state file, whole or not at all."""
    write_whole(path, pack(kind, header, arrays))


def read(path: str | os.PathLike[str]) -> StateFile:
    """Read a state file of this version or an older one."""
    source = Path(path)
    try:
        content = source.read_bytes()
    except FileNotFoundError:
        raise StateFileError(f"there is no file {source}") from None
    except OSError:
        raise _unreadable(source) from None
    return unpack(content, source)


def unpack(content: bytes, source: str | os.PathLike[str]) -> StateFile:
    """What `pack` put into these bytes; errors name the source that they are from."""
    path = Path(source)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (*_UNREADABLE, OSError):
        raise _unreadable(path) from None
    try:
        header = json.loads(str(arrays.pop("header")))
        ours = header.pop("format") == FORMAT
        version, kind = int(header.pop("version")), str(header.pop("kind"))
    except (KeyError, TypeError, AttributeError, ValueError):
        ours = False
    if not ours:
        raise StateFileError(f"{path} is not a {FORMAT} file: it has no header of that format")
    if version > VERSION:
        raise StateFileError(f"{path} has version {version}, this preselect reads up to {VERSION}; update preselect")
    return StateFile(path, kind, header, arrays)


def _unreadable(path: Path) -> StateFileError:
    return StateFileError(f"{path} cannot be read as a {FORMAT} file, it is truncated or foreign")
