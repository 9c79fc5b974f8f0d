"""Files that may be compressed (gzip, xz): read by what their bytes begin with, written by their suffix."""

import gzip
import lzma
import os
import secrets
import zlib
from os import PathLike, fspath
from pathlib import Path

from preselect.errors import InputError

_COMPRESSED = {  # by suffix: the format's name, how its files begin, and how to read and write them
    ".gz": ("gzip", b"\x1f\x8b", gzip.decompress, lambda content: gzip.compress(content, mtime=0)),
    ".xz": ("xz", b"\xfd7zXZ\x00", lzma.decompress, lzma.compress),
}


def read_bytes(path: str | PathLike[str]) -> bytes:
    """The content of a file, decompressed if it is compressed."""
    name = fspath(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"path must be a file that can be read, got {name!r}: {error.strerror}") from None
    for kind, magic, decompress, _ in _COMPRESSED.values():
        if content.startswith(magic):
            try:
                return decompress(content)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise InputError(f"{name} must be a complete {kind} file, got a damaged one: {error}") from None
    for suffix, (kind, *_) in _COMPRESSED.items():
        if name.endswith(suffix):
            began = f"one that begins with {content[:6]!r}"
            raise InputError(f"{name} must be a {kind} file, got {began}; compress it, or name it without {suffix}")
    return content


def read_text(path: str | PathLike[str]) -> str:
    """The same as text."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{fspath(path)} must be text in UTF-8, got something else: {error}") from None


def replace_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write beside the target and move into place, so that a crash leaves the old file or the new one."""
    target = Path(path)
    temporary = target.with_name(f".{secrets.token_hex(8)}")  # not the name and more: it may be as long as names can be
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: str | PathLike[str], content: bytes) -> None:
    """Write a file, compressed if its name ends in .gz or .xz."""
    compression = _COMPRESSED.get(Path(path).suffix)
    Path(path).write_bytes(compression[3](content) if compression else content)
