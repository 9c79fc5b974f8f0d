"""State files: a zip archive of plain arrays with a JSON header and a version, written whole, read without pickle."""

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

_FORMAT = "preselect-state"
VERSION = 1

# what numpy and zipfile raise when bytes are not what they expect
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)


@dataclass(frozen=True)
class StateFile:
    """The content of a state file: what kind of object it holds, plain values in a header, and arrays."""

    path: Path
    kind: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def expect(self, kind: str) -> Self:
        """Return this file, or raise an error if it holds another kind of object."""
        if self.kind != kind:
            raise StateFileError(f"{self.path} holds a {self.kind}, not a {kind}")
        return self


def pack(kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Make the content of a state file; equal states give equal bytes."""
    text = json.dumps({"format": _FORMAT, "version": VERSION, "kind": kind, **header})
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise TypeError(f"arrays of objects cannot be saved: {', '.join(objects)}")
    content = io.BytesIO()
    np.savez(content, header=np.array(text), **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def unpack(content: bytes, source: str | os.PathLike[str]) -> StateFile:
    """Read what `pack` made; errors name the source of the bytes."""
    path = Path(source)
    arrays = _load_arrays(content, path)
    try:
        header = json.loads(str(arrays.pop("header")))
        ours = header.pop("format") == _FORMAT
        version, kind = int(header.pop("version")), str(header.pop("kind"))
    except (KeyError, TypeError, AttributeError, ValueError):
        ours = False
    if not ours:
        raise StateFileError(f"{path} is not a {_FORMAT} file: it has no header of that format")
    if version > VERSION:
        raise StateFileError(
            f"{path} has version {version}, and this preselect reads up to {VERSION}; update preselect"
        )
    return StateFile(path, kind, header, arrays)


def _load_arrays(content: bytes, path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (*_UNREADABLE, OSError):
        raise StateFileError(f"{path} is not a {_FORMAT} file, or it is truncated or damaged") from None


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a state file, whole or not at all."""
    write_whole(path, pack(kind, header, arrays))


def read(path: str | os.PathLike[str]) -> StateFile:
    """Read a state file of this version or of an older one."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StateFileError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from None
    return unpack(content, path)
