"""Start the supervisor of a race as a process, exchange messages with it, and wait for its end."""

import math
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from preselect.race import supervisor
from preselect.race.supervisor.children import KILLING_SECONDS
from preselect.race.supervisor.files import Output
from preselect.race.supervisor.labels import Labels
from preselect.race.supervisor.messages import EVENTS, ORDERS, Receiver, Sender, to_line
from preselect.race.supervisor.processes import kill_labelled

_PATIENCE_SECONDS = 20.0  # seconds to wait after the race should have ended: more than killing may take
_LAST_EVENTS = ("done", "unavailable", "failed")  # the supervisor ends by itself after one of these
_MOST_ERRORS = 100_000  # bytes of its standard error

# imported rather than run as a script, so that Python caches its bytecode
_START = "import os, sys; sys.path.append(sys.argv[1]); from supervisor.main import main; main(); os._exit(0)"
_PARENT_FOLDER = str(Path(supervisor.__file__).parents[1])


class SupervisorProcess:
    """The supervisor of one race, whose processes are marked with a token; its standard error goes to `errors`."""

    def __init__(self, errors: Output, token: str) -> None:
        self.labels, self.key = Labels(token), secrets.token_bytes(32)
        self.sender, self.receiver = Sender(self.key, ORDERS), Receiver(self.key, EVENTS)
        self.lock = threading.Lock()
        self.errors = errors
        self.process: subprocess.Popen[bytes] | None = None
        self.deadline = math.inf
        self.is_hopeless = self.has_ended = False

    def start(self, specification: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Start the process, which inherits the descriptors, and send it the specification of the race."""
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-E", "-c", _START, _PARENT_FOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors.writing,
            pass_fds=descriptors,
            start_new_session=True,
        )
        self.deadline = time.monotonic() + specification["limits"]["seconds"] + _PATIENCE_SECONDS
        self._write(to_line({**specification, "key": self.key}))

    @property
    def events(self) -> int:
        """The descriptor from which to read its events."""
        assert self.process is not None and self.process.stdout is not None  # noqa: PT018
        return self.process.stdout.fileno()

    @property
    def is_overdue(self) -> bool:
        """Whether it should have ended the race long ago."""
        return time.monotonic() > self.deadline

    def give_up(self) -> None:
        """Let `close` kill it without waiting."""
        self.is_hopeless = True

    def send(self, message: dict[str, Any]) -> None:
        """Send it a message. Nothing happens if it has died, as the end of its events will show, or is being closed."""
        with self.lock:  # messages are numbered, and `stop` comes from another thread
            self._write(self.sender.to_line(message))

    def _write(self, line: bytes) -> None:
        assert self.process is not None and self.process.stdin is not None  # noqa: PT018
        with suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def receive(self, data: bytes) -> list[dict[str, Any]]:
        """Return the events that are complete with these bytes."""
        events = self.receiver.receive(data)
        self.has_ended |= any(event["event"] in _LAST_EVENTS for event in events)
        return events

    def read_last_error(self) -> str:
        """Read the last line of its standard error; an empty string if there is none."""
        lines = self.errors.read(_MOST_ERRORS).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the race if it is still running; return when every process is dead."""
        if self.process is None:
            return
        with self.process:
            assert self.process.stdin is not None
            with suppress(BrokenPipeError):
                self.process.stdin.close()
            self._wait_for_exit(self.process)
        # it may have been killed before it could kill the racers; its exit code is unknown if SIGCHLD is ignored
        if self.process.returncode != 0 or not self.has_ended:
            kill_labelled(self.labels, KILLING_SECONDS)

    def _wait_for_exit(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + (0.0 if self.is_hopeless else _PATIENCE_SECONDS)
        with suppress(OSError):
            _wait_on_pidfd(process.pid, deadline)  # Popen.wait polls, which would cost milliseconds
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_on_pidfd(pid: int, deadline: float) -> None:
    process, poll = os.pidfd_open(pid), select.poll()
    try:
        poll.register(process, select.POLLIN)
        poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    finally:
        os.close(process)
