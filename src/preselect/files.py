"""Read files whole and decompressed; write them whole or not at all.

A file that begins like gzip or xz is decompressed when it is read, whatever its name. Writing never harms what is
already there: output to a device, a pipe or an open file such as /dev/stdout is appended, a symbolic link keeps
pointing where it did, an existing file keeps its mode and owner, and a crash leaves either the old content or the new.
"""

import errno
import gzip
import io
import lzma
import os
import re
import secrets
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, NamedTuple

from preselect.errors import InputError

_MAX_BYTES = 1 << 30  # the largest size of a decompressed file

_CHUNK = 1 << 20  # bytes that are decompressed at a time

_BEGINNING = 1 << 12  # how many bytes are read to recognise a file

_MAX_LINKS = 40  # as in Linux


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


def is_compressed(path: str | PathLike[str]) -> bool:
    """Whether a file begins like gzip or xz."""
    with open(path, "rb") as file:
        return file.read(6).startswith(tuple(kind.beginning for kind in _COMPRESSIONS.values()))


@contextmanager
def explain_writing(path: str | PathLike[str]) -> Iterator[None]:
    """Turn the error of a write that fails into an InputError that names the file."""
    if not isinstance(path, (str, PathLike)):
        raise InputError(f"a file is named by a string or a path, not by a {type(path).__name__}")
    if not fspath(path):
        raise InputError("the name of the file to write is empty")
    try:
        yield
    except InputError:
        raise  # it names the file
    except (OSError, ValueError) as error:  # ValueError: a name with characters that no file can have
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot write {fspath(path)}: {reason}") from None


def require_ours(
    path: str | PathLike[str], is_ours: Callable[[bytes], bool], problem: str = "was not written by preselect"
) -> None:
    """Raise an InputError if a file cannot be written, or would replace one that is not empty and not ours.

    Ours is what begins as `is_ours` says. To be called before a long computation, so that its result is not lost.
    """
    with explain_writing(path):
        status = _stat(path)
        if status is None or stat.S_ISDIR(status.st_mode) or _is_replaceable(path, status):
            _require_place(os.path.realpath(path))
        if status is None or not _is_replaceable(path, status):
            return
        with open(path, "rb") as file:
            beginning = file.read(_BEGINNING)
    if beginning and not is_ours(beginning):
        raise InputError(f"{fspath(path)} exists and {problem}; name another file, or remove it")


def _require_place(target: str) -> None:
    """Raise an OSError if there can be no file of this name."""
    folder = os.path.dirname(target)
    wrong = (
        errno.EISDIR if os.path.isdir(target)
        else errno.ENOENT if not os.path.isdir(folder)
        else 0 if os.access(folder, os.W_OK | os.X_OK)
        else errno.EACCES
    )  # fmt: skip
    if wrong:
        raise OSError(wrong, os.strerror(wrong))


def write_whole(path: str | PathLike[str], content: bytes | str) -> None:
    r"""Write a file so that a crash leaves the old content or the new one, and nothing else about it changes.

    Text becomes UTF-8. Bytes in a file name that are not text are written as escapes such as \udc80.
    """
    with explain_writing(path):
        target, status = Path(os.path.realpath(path)), _stat(path)
        if status is not None and not _is_replaceable(path, status):
            with _open_stream(path) as file:
                file.write(_encode(content))
        else:
            _replace(target, _encode(content), status)


def write_new(path: str | PathLike[str], content: bytes | str) -> None:
    """Write a new file, whole or not at all; raise an InputError if there is anything of that name already."""
    with explain_writing(path):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            raise InputError(f"{fspath(path)} exists and is not overwritten; move it, or name another file") from None
        try:
            with open(descriptor, "wb") as file:
                file.write(_encode(content))
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise


def open_plain(path: str | PathLike[str], flags: int) -> int:
    """Open a file for writing; raise an InputError if it is not a regular file, or has hard links."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise InputError(f"{fspath(path)} is a link or a pipe, not a regular file; remove it") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise InputError(f"{fspath(path)} is a link or a device, not a regular file; remove it")
    return descriptor


def open_regular(path: str | PathLike[str]) -> IO[bytes]:
    """Open a file for reading; raise an OSError, without waiting, if it is not a regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{fspath(path)} is not a regular file")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def replace_plain(path: Path, content: bytes) -> None:
    """Write a file as `write_whole` does, but replace a link instead of following it."""
    with explain_writing(path):
        found = path.lstat() if os.path.lexists(path) else None
        _replace(path, content, found if found is not None and stat.S_ISREG(found.st_mode) else None)


def make_private_folder(path: Path) -> None:
    """Make a folder that only this user can enter; one that exists must belong to this user and not be a link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(0o700)
    except FileExistsError:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise InputError(f"{path} is a symbolic link, which may lead anywhere; remove it") from None
        if found.st_uid != os.geteuid():
            raise InputError(f"{path} belongs to another user, who may have prepared it; remove it") from None
        if not stat.S_ISDIR(found.st_mode):
            raise


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


def _is_replaceable(path: str | PathLike[str], status: os.stat_result) -> bool:
    """Whether the path names a regular file, rather than a device, a pipe or a file that someone has open."""
    return stat.S_ISREG(status.st_mode) and _find_descriptor(path) is None


def _find_descriptor(path: str | PathLike[str]) -> tuple[str, int] | None:
    """Return process and descriptor number if the path names an open file, as /dev/stdout and /dev/fd/3 do."""
    place = fspath(path)
    for _ in range(_MAX_LINKS):
        folder, name = os.path.realpath(os.path.dirname(place)), os.path.basename(place)
        found = re.fullmatch(r"/dev/fd|/proc/(\d+)(?:/task/\d+)?/fd", folder)
        if found and name.isdecimal():
            return found[1] or str(os.getpid()), int(name)
        try:
            place = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:  # not a link
            return None
    return None


def _open_stream(path: str | PathLike[str]) -> IO[bytes]:
    """Open a device, a pipe or an open file for appending."""
    process, number = _find_descriptor(path) or ("", 0)
    if process == str(os.getpid()):
        return open(os.dup(number), "wb")  # shares the position, so that what others write there comes before or after
    return open(os.open(path, os.O_WRONLY | os.O_APPEND), "wb")


def _replace(target: Path, data: bytes, status: os.stat_result | None) -> None:
    """Write a new file beside the target and rename it; `status` is that of the file to be replaced, if any."""
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
