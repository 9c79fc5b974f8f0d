"""Labels that show which race a process belongs to: a mark in its environment, and a resource limit nobody uses.

A process can replace its environment. It cannot get rid of its limits: children inherit them, and without privileges
the hard ones can only be lowered. Linux no longer enforces the limit on file locks, so its value serves as a label.
"""

from __future__ import annotations

import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERIFIER = -1  # the number of the verifier among those of racers

_MARK = "PRESELECT_RACE"  # environment variable of racers: the race's token, a dot, the racer's number
_FILE_LOCKS = 10  # RLIMIT_LOCKS of Linux, for which Python has no name
_NUMBERS = 2**20  # more than there are racers; the verifier's is the largest, to which no racer can raise its own


class Labels:
    """The labels of one race, whose token has at least ten hexadecimal digits."""

    def __init__(self, token: str) -> None:
        self.token, self.start = token, f"{_MARK}={token}.".encode()
        self.base = int(token[:10], 16) * _NUMBERS

    def make_mark(self, number: int) -> Mapping[str, str]:
        """Make the environment variable that marks a racer, by its number, and its descendants."""
        return {_MARK: f"{self.token}.{number}"}

    def limit_this_process(self, number: int) -> None:
        """Label this process and its future descendants; in a race within a race they keep the outer race's label."""
        if resource.getrlimit(_FILE_LOCKS)[1] == resource.RLIM_INFINITY:
            label = self.base + number % _NUMBERS
            resource.setrlimit(_FILE_LOCKS, (label, label))

    def read_number(self, pid: int) -> int | None:
        """Return the number of the racer to which a process belongs; None if it is gone or has no label."""
        limit = self._read_limit(pid)
        if limit is not None:
            return VERIFIER if limit == _NUMBERS - 1 else limit
        mark = self._read_mark(pid)
        return int(mark) if mark is not None and mark.isdigit() and len(mark) < 8 else None

    def is_on(self, pid: int) -> bool:
        """Whether a process belongs to the race."""
        return self._read_limit(pid) is not None or self._read_mark(pid) is not None

    def _read_limit(self, pid: int) -> int | None:
        _, _, line = _read(pid, "limits").partition(b"Max file locks")
        hard = line.split(maxsplit=2)[1:2]
        label = int(hard[0]) - self.base if hard and hard[0].isdigit() else -1
        return label if 0 <= label < _NUMBERS else None

    def _read_mark(self, pid: int) -> bytes | None:
        variables = _read(pid, "environ").split(b"\0")
        return next((text[len(self.start) :] for text in variables if text.startswith(self.start)), None)


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
