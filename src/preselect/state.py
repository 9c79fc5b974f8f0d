"""State files: a zip archive of plain arrays with a JSON header and a version, written whole, read without pickle."""

import io
import json
import math
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import show
from preselect.errors import InputError, StateFileError
from preselect.files import write_whole

_FORMAT = "preselect-state"
VERSION = 1

# what numpy, zipfile and json raise when bytes are not what they expect
_UNREADABLE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, zipfile.BadZipFile, zlib.error),
)
_KINDS = "biufU"  # the dtypes of arrays that are saved: numbers and text
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


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


def is_state(beginning: bytes) -> bool:
    """Return whether a file that begins like this is a state file."""
    return beginning.startswith(b"PK") and _FORMAT.encode("utf-32-le") in beginning


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
    """Read what `pack` made; errors name the source of the bytes.

    Nothing that is read can be larger than the content, even if the content claims so.
    """
    path = _as_path(source)
    arrays = _load_arrays(content, path)
    try:
        header = json.loads(str(arrays.pop("header")))
        ours = header.pop("format") == _FORMAT
        version, kind = int(header.pop("version")), str(header.pop("kind"))
    except _UNREADABLE:
        ours = False
    if not ours:
        raise StateFileError(f"{path} is not a {_FORMAT} file: it has no header of that format")
    if version > VERSION:
        raise StateFileError(
            f"{path} has version {version}, and this preselect reads up to {VERSION}; update preselect"
        )
    return StateFile(path, kind, header, arrays)


def _as_path(source: str | os.PathLike[str]) -> Path:
    if not isinstance(source, (str, os.PathLike)):
        raise InputError(f"a file is named by a string or a path, not by {show(source)}")
    return Path(source)


def _load_arrays(content: bytes, path: Path) -> dict[str, NDArray[Any]]:
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise InputError(f"the content of a state is bytes, not {show(content)}")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _require_plain(archive, len(content), path)
            return {name.removesuffix(".npy"): _read_array(archive.read(name)) for name in archive.namelist()}
    except _UNREADABLE:
        raise StateFileError(f"{path} is not a {_FORMAT} file, or it is truncated or damaged") from None


def _require_plain(archive: zipfile.ZipFile, size: int, path: Path) -> None:
    """Refuse an archive that is larger than its bytes: compressed, or with members that overlap."""
    members = archive.infolist()
    packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    if packed or sum(member.file_size for member in members) > size:
        raise StateFileError(f"{path} is not a {_FORMAT} file: those are not compressed, and this archive expands")


def _read_array(content: bytes) -> NDArray[Any]:
    """Read an array in numpy's format; raise a ValueError if it holds objects or its length does not fit."""
    file = io.BytesIO(content)
    read_header = _READERS[np.lib.format.read_magic(file)]
    shape, is_fortran, dtype = read_header(file)
    found = content[file.tell() :]
    if dtype.kind not in _KINDS or math.prod(shape) * dtype.itemsize != len(found):
        raise ValueError(f"an array of {dtype} and shape {shape} is not in {len(found)} bytes")
    return np.frombuffer(found, dtype).reshape(shape, order="F" if is_fortran else "C").copy()


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a state file, whole or not at all."""
    write_whole(path, pack(kind, header, arrays))


def read(path: str | os.PathLike[str]) -> StateFile:
    """Read a state file of this version or of an older one."""
    source = _as_path(path)
    try:
        content = source.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise StateFileError(f"cannot read {source}: {getattr(error, 'strerror', None) or error}") from None
    return unpack(content, source)
