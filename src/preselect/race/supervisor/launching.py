"""How a forked process becomes a racer or a verifier, and the gate where racers wait for each other."""

from __future__ import annotations

import errno
import os
import resource
import select
import time

from .containment import die_with_parent
from .messages import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from typing import NoReturn
else:
    import _signal as signal

MEGABYTE = 2**20
IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # by the supervisor, not by racers
_GATE_SECONDS = 5.0


class Gate:
    """Where racers wait, so that all of them start together."""

    def __init__(self) -> None:
        self.gate_in, self.gate_out = os.pipe()
        self.arrivals_in, self.arrivals_out = os.pipe()

    def wait(self) -> bool:
        """Wait in a racer's process until the gate opens; return False if the supervisor has died."""
        os.close(self.gate_out)  # otherwise the pipe would not end when the supervisor dies
        os.write(self.arrivals_out, b".")
        return bool(os.read(self.gate_in, 1))

    def open_for(self, count: int) -> float:
        """Open the gate once `count` racers wait, or after a few seconds if some have died; return the time of it."""
        limit, missing, poll = time.monotonic() + _GATE_SECONDS, count, select.poll()
        poll.register(self.arrivals_in, select.POLLIN)
        while missing > 0 and poll.poll(max(0.0, limit - time.monotonic()) * 1000):
            missing -= len(os.read(self.arrivals_in, missing))
        opening_time = time.monotonic()
        os.write(self.gate_out, b"." * count)
        for descriptor in (self.gate_in, self.gate_out, self.arrivals_in, self.arrivals_out):
            os.close(descriptor)
        return opening_time


class Launcher:
    """Starts commands, each in its own session, with its output in files of limited size."""

    def __init__(self, folder: str, max_megabytes: float) -> None:
        self.pid = os.getpid()
        self.folder = folder
        self.max_bytes = _cap_at_hard_limit(int(max_megabytes * MEGABYTE))
        self.null = os.open(os.devnull, os.O_RDONLY)
        self.errors_in, self.errors_out = os.pipe()
        os.set_blocking(self.errors_in, False)
        self.start_errors: dict[int, str] = {}

    def get_path(self, name: str) -> str:
        """Return the path of a file of the race."""
        return os.path.join(self.folder, name)

    def create(self, name: str) -> int:
        """Create an empty file of the race and return its descriptor."""
        return os.open(self.get_path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)

    def launch(
        self,
        number: int,
        command: Sequence[str],
        environment: dict[str, str],
        files: tuple[int, int],
        gate: Gate | None = None,
    ) -> int:
        """Fork a process that executes the command with `files`, which are closed here, as its output and errors."""
        pid = os.fork()
        if pid == 0:
            try:
                self._set_up(files)
                if gate is None or gate.wait():
                    _execute(command, environment)
            except (OSError, ValueError) as error:
                os.write(self.errors_out, encode([number, _explain(error, command[0])]))
            finally:
                os._exit(127)
        for descriptor in files:
            os.close(descriptor)
        return pid

    def _set_up(self, files: tuple[int, int]) -> None:
        """Give a forked process its own session, signals and files, and let it die with the supervisor."""
        os.setsid()
        die_with_parent(self.pid)
        for number in (*IGNORED_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for place, descriptor in enumerate((self.null, *files)):
            os.dup2(descriptor, place)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.max_bytes, self.max_bytes))

    def get_start_error(self, number: int) -> str | None:
        """Return why a process that has exited could not execute its command; None if it could."""
        try:
            for line in os.read(self.errors_in, 65536).splitlines():
                sender, reason = decode(line)
                self.start_errors[sender] = reason
        except BlockingIOError:
            pass
        return self.start_errors.pop(number, None)


def _execute(command: Sequence[str], environment: dict[str, str]) -> NoReturn:
    name = command[0]
    denied: OSError | None = None
    for folder in [""] if "/" in name else environment.get("PATH", os.defpath).split(":"):
        try:
            os.execve(os.path.join(folder, name), list(command), environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            denied = error
    raise denied or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _explain(error: Exception, name: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"no such command: {name:.300}"
    if isinstance(error, PermissionError):
        return f"not executable: {name:.300}"
    return f"{getattr(error, 'strerror', None) or error}: {name:.300}"


def _cap_at_hard_limit(size: int) -> int:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    return size if hard == resource.RLIM_INFINITY else min(size, hard)
