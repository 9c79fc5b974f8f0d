"""The supervisor's process, as its client sees it: start it, send to it, end it with everything that it has started."""

import math
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from preselect.errors import InputError
from preselect.race import supervisor
from preselect.race.supervisor.children import KILLING_SECONDS, MARK
from preselect.race.supervisor.messages import encode
from preselect.race.supervisor.processes import kill_marked

_PATIENCE_SECONDS = 20.0  # beyond the end of the race; more than the supervisor allows itself for killing

# imported rather than run as a script, so that Python caches its bytecode
_START = "import os, sys; sys.path.append(sys.argv[1]); from supervisor.race import main; main(); os._exit(0)"
_PARENT_FOLDER = str(Path(supervisor.__file__).parents[1])


class SupervisorProcess:
    """The supervisor of one race, whose processes are marked with a token."""

    def __init__(self, folder: Path, token: str) -> None:
        self.token = token
        self.errors = folder / "supervisor.err"
        self.process: subprocess.Popen[bytes] | None = None
        self.deadline = math.inf
        self.is_hopeless = False

    def start(self, specification: dict[str, Any]) -> None:
        """Start the process and send it the specification of the race."""
        with self._open_errors() as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-E", "-c", _START, _PARENT_FOLDER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self.deadline = time.monotonic() + specification["limits"]["seconds"] + _PATIENCE_SECONDS
        self.send(specification)

    def _open_errors(self) -> BinaryIO:
        folder = self.errors.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return self.errors.open("wb")
        except OSError as error:
            raise InputError(f"cannot write the race's files to {folder}: {error.strerror}") from None

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
        """Send it a message; does nothing if it has died, as the end of its events will show."""
        assert self.process is not None and self.process.stdin is not None  # noqa: PT018
        with suppress(BrokenPipeError):
            self.process.stdin.write(encode(message))
            self.process.stdin.flush()

    def read_last_error(self) -> str:
        """Read the last line of its standard error; an empty string if there is none."""
        lines = self.errors.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the race if it is still going on; return when every process is dead."""
        if self.process is None:
            return
        with self.process:
            assert self.process.stdin is not None
            with suppress(BrokenPipeError):
                self.process.stdin.close()
            self._wait_for_exit(self.process)
        if self.process.returncode != 0:  # it may have been killed before it could kill the racers
            kill_marked(f"{MARK}={self.token}.", KILLING_SECONDS)

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
