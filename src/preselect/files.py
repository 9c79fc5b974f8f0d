"""Files: read whole and decompressed, written whole or not at all.

A file that begins like gzip or xz is decompressed when it is read, whatever its name. Writing never harms what is
already there: a device or a pipe is written to, a symbolic link keeps pointing where it did, an existing file keeps its
mode and owner, and a crash leaves either the old content or the new.
"""

import gzip
import io
import lzma
import os
import secrets
import stat
import zlib
from collections.abc import Callable
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, NamedTuple

from preselect.errors import InputError

_MAX_BYTES = 1 << 30  # of a decompressed file

_CHUNK = 1 << 20  # bytes that are decompressed at a time


class _Compression(NamedTuple):
    name: str
    beginning: bytes
    reader: Callable[..., Any]
    compress: Callable[[bytes], bytes]


_COMPRESSIONS = {  # by suffix
    ".gz": _Compression(
        "gzip", b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file), lambda data: gzip.compress(data, mtime=0)
    ),
    ".xz": _Compression("xz", b"\xfd7zXZ\x00", lzma.LZMAFile, lzma.compress),
}


def read_bytes(path: str | PathLike[str], *, most: int = _MAX_BYTES) -> bytes:
    """Return a file's content, decompressed; raise an InputError if that exceeds `most` bytes."""
    name = fspath(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None
    for kind in _COMPRESSIONS.values():
        if content.startswith(kind.beginning):
            try:
                return _read_at_most(kind.reader(io.BytesIO(content)), most, name)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise InputError(f"cannot read {name}: incomplete or damaged {kind.name} file ({error})") from None
    _require_no_suffix(name, content)
    return content


def _read_at_most(file: IO[bytes], most: int, name: str) -> bytes:
    whole = io.BytesIO()
    while part := file.read(_CHUNK):
        whole.write(part)
        if whole.tell() > most:
            size = f"{most / (1 << 20):.4g} MiB"
            raise InputError(f"{name} has more than {size} when decompressed; if that is right, decompress it yourself")
    return whole.getvalue()


def _require_no_suffix(name: str, content: bytes) -> None:
    for suffix, kind in _COMPRESSIONS.items():
        if name.endswith(suffix):
            wrong = f"{name} is not a {kind.name} file, it begins with {content[:6]!r}"
            raise InputError(f"{wrong}; compress it, or rename it without {suffix}")


def read_text(path: str | PathLike[str], *, most: int = _MAX_BYTES) -> str:
    """Return the content of a UTF-8 text file, read as `read_bytes` does."""
    try:
        return read_bytes(path, most=most).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{fspath(path)} is not UTF-8 text: {error}") from None


def write_whole(path: str | PathLike[str], content: bytes | str) -> None:
    r"""Write a file so that a crash leaves the old content or the new one, and nothing else about it changes.

    Text becomes UTF-8. Names of files may hold bytes that are not text; those become \udc80 and the like.
    """
    try:
        target, status = Path(os.path.realpath(path)), _stat(path)
        if status is not None and not _is_replaceable(target, status):
            Path(path).write_bytes(_encode(content))
        else:
            _replace(target, _encode(content), status)
    except OSError as error:
        raise InputError(f"cannot write {fspath(path)}: {error.strerror or error}") from None


def write_new(path: str | PathLike[str], content: bytes | str) -> None:
    """Write a new file; if anything is there already, it stays as it is and an error says so."""
    try:
        with Path(path).open("xb") as file:
            file.write(_encode(content))
    except FileExistsError:
        raise InputError(f"{fspath(path)} exists and is not overwritten; move it, or name another file") from None
    except OSError as error:
        raise InputError(f"cannot write {fspath(path)}: {error.strerror or error}") from None


def write_bytes(path: str | PathLike[str], content: bytes) -> None:
    """Write a file as `write_whole` does, compressed if its name ends in .gz or .xz."""
    kind = _COMPRESSIONS.get(Path(path).suffix)
    write_whole(path, kind.compress(content) if kind else content)


def _encode(content: bytes | str) -> bytes:
    return content.encode(errors="backslashreplace") if isinstance(content, str) else content


def _stat(path: str | PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_replaceable(target: Path, status: os.stat_result) -> bool:
    """Whether the path still names this regular file; /dev/stdout may lead to one that has no name any more."""
    found = _stat(target)
    return stat.S_ISREG(status.st_mode) and found is not None and os.path.samestat(found, status)


def _replace(target: Path, data: bytes, status: os.stat_result | None) -> None:
    """Write beside the target and rename; `status` is that of the file to be replaced, None if there is none."""
    temporary = target.with_name(f".{secrets.token_hex(8)}")  # short: the target's own name may be as long as allowed
    # unreadable for others until the old mode is set; a new file gets the mode that the umask allows
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if status is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if status is not None:
                _keep_owner_and_mode(descriptor, status)
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _keep_owner_and_mode(descriptor: int, status: os.stat_result) -> None:
    with suppress(PermissionError):  # only root may give files away
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))  # after the owner, because changing that clears setuid
