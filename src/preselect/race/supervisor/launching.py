"""How a new process becomes a racer or a verifier, and where racers wait for each other."""

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
    from typing import NoReturn
else:
    import _signal as signal

MEGABYTE = 2**20
STARTING_SECONDS = 5.0
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # by the supervisor, not by what it starts


class Gate:
    """Where racers wait for each other."""

    def __init__(self) -> None:
        self.waiting, self.opening = os.pipe()
        self.seen, self.saying = os.pipe()

    def passed(self) -> bool:
        """Wait for the opening, in a racer's process; False if the supervisor has died."""
        os.close(self.opening)  # or its death would not be noticed
        os.write(self.saying, b".")
        return bool(os.read(self.waiting, 1))

    def open_for(self, count: int) -> float:
        """Open as soon as so many wait; when that was. Who died on the way is not waited for very long."""
        limit, missing, poll = time.monotonic() + STARTING_SECONDS, count, select.poll()
        poll.register(self.seen, select.POLLIN)
        while missing > 0 and poll.poll(max(0.0, limit - time.monotonic()) * 1000):
            missing -= len(os.read(self.seen, missing))
        opened = time.monotonic()
        os.write(self.opening, b"." * count)
        for descriptor in (self.waiting, self.opening, self.seen, self.saying):
            os.close(descriptor)
        return opened


class Launcher:
    """Starts commands, each in a session of its own, with its outputs in files of limited size."""

    def __init__(self, folder: str, output: float) -> None:
        self.pid = os.getpid()
        self.folder = folder
        self.cap = _allowed_size(int(output * MEGABYTE))
        self.null = os.open(os.devnull, os.O_RDONLY)
        self.complaints_in, self.complaints_out = os.pipe()
        os.set_blocking(self.complaints_in, False)
        self.complaints: dict[int, str] = {}

    def path(self, name: str) -> str:
        """Where a file of the race is."""
        return os.path.join(self.folder, name)

    def open(self, name: str) -> int:
        """Begin a file of the race."""
        return os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)

    def launch(
        self,
        number: int,
        command: list[str],
        environment: dict[str, str],
        files: tuple[int, int],
        gate: Gate | None = None,
    ) -> int:
        """Fork a process that becomes the command, with these files, which are closed here, as its outputs."""
        pid = os.fork()
        if pid == 0:
            try:
                self._leave(files)
                if gate is None or gate.passed():
                    _execute(command, environment)
            except (OSError, ValueError) as error:
                os.write(self.complaints_out, encode([number, _reason(error, command[0])]))
            finally:
                os._exit(127)
        for descriptor in files:
            os.close(descriptor)
        return pid

    def _leave(self, files: tuple[int, int]) -> None:
        """In a new process: leave the supervisor's session, signals and files, but not its life."""
        os.setsid()
        die_with_parent(self.pid)
        for number in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for place, descriptor in enumerate((self.null, *files)):
            os.dup2(descriptor, place)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.cap, self.cap))

    def complaint(self, number: int) -> str | None:
        """Why a process that has exited could not execute its command, if so; it complains before it exits."""
        try:
            for line in os.read(self.complaints_in, 65536).splitlines():
                complaining, reason = decode(line)
                self.complaints[complaining] = reason
        except BlockingIOError:
            pass
        return self.complaints.pop(number, None)


def _execute(command: list[str], environment: dict[str, str]) -> NoReturn:
    name = command[0]
    denied: OSError | None = None
    for place in [""] if "/" in name else environment.get("PATH", os.defpath).split(":"):
        try:
            os.execve(os.path.join(place, name), command, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            denied = error
    raise denied or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _reason(error: Exception, name: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"no such command: {name:.300}"
    if isinstance(error, PermissionError):
        return f"not executable: {name:.300}"
    return f"{getattr(error, 'strerror', None) or error}: {name:.300}"


def _allowed_size(cap: int) -> int:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    return cap if hard == resource.RLIM_INFINITY else min(cap, hard)
