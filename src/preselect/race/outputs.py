"""Write the winners' outputs to a folder, one file per instance; files that are not ours are never touched."""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from preselect.errors import InputError
from preselect.files import explain_writing, open_plain, open_regular, replace_plain

_REGISTER = ".preselect-outputs"


class OutputFolder:
    """A folder with the output of each instance's winner, NAME.out for an instance NAME.

    The file `.preselect-outputs` in the folder lists what was written: one line of JSON per file, with name and
    SHA-256. A file is ours, and may be replaced or removed by a later run, if it is listed and has not been changed
    since.

    Parameters
    ----------
    path : Path
        The folder; it is created if it does not exist.
    instances : iterable of Path
        Instances whose outputs are going to be written. Two with the same name are an error, and so is an output that
        would overwrite a file that is not ours.
    """

    def __init__(self, path: Path, instances: Iterable[Path]) -> None:
        self.path = path
        self._digests = _read_register(path / _REGISTER)
        named: dict[str, Path] = {}
        for instance in instances:
            _require_same(named.setdefault(instance.name, instance), instance)
            self.require_free(instance)
        path.mkdir(parents=True, exist_ok=True)

    def locate(self, instance: Path) -> Path:
        """Return the path of an instance's output."""
        return self.path / f"{instance.name}.out"

    def require_free(self, instance: Path) -> None:
        """Raise an InputError if the output would overwrite a file that this command did not write."""
        path = self.locate(instance)
        if path.is_symlink() or (path.exists() and not self.is_ours(path)):
            raise InputError(f"{path} exists and is not overwritten; move it, or name another folder for --output")

    def write(self, instance: Path, output: bytes) -> None:
        """Write the output of an instance's winner; an output of an earlier run is replaced."""
        self.require_free(instance)
        path = self.locate(instance)
        self._register(path.name, output)  # first, because a file that is not listed would not count as ours
        replace_plain(path, output)

    def remove(self, instance: Path) -> None:
        """Remove the output of an earlier run, which is no answer in this one; files that are not ours stay."""
        path = self.locate(instance)
        if not path.is_symlink() and self.is_ours(path):
            path.unlink()

    def is_ours(self, path: Path) -> bool:
        """Whether a file was written here and has not been changed since."""
        try:
            with open_regular(path) as file:
                return _digest(file.read()) in self._digests[path.name]
        except OSError:
            return False

    def _register(self, name: str, output: bytes) -> None:
        digest = _digest(output)
        if digest not in self._digests[name]:
            register = self.path / _REGISTER
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            with explain_writing(register), open(open_plain(register, flags), "a") as file:
                file.write(json.dumps([name, digest]) + "\n")
            self._digests[name].add(digest)


def _require_same(other: Path, instance: Path) -> None:
    if other.absolute() != instance.absolute():
        raise InputError(
            f"{str(other)!r} and {str(instance)!r} have the same name, and so would their outputs; "
            "rename one, or race them in separate runs"
        )


def _read_register(path: Path) -> dict[str, set[str]]:
    """Read digests by name; a line that was cut off by a crash is ignored."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"{path} is not a regular file; remove it, or name another folder for --output")
    digests: dict[str, set[str]] = defaultdict(set)
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        try:
            name, digest = json.loads(line)
            digests[str(name)].add(str(digest))
        except (TypeError, ValueError):
            continue
    return digests


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
