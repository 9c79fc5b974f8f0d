"""The supervisor's process as its client holds it: started, spoken to, ended with all that it has started."""

import math
import os
import select
import signal
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
from preselect.race.supervisor.processes import all_pids, environment_of

PATIENCE_SECONDS = 20.0  # with a supervisor that should have ended the race; more than it allows itself for killing

# imported rather than run as a script, so that it is compiled only once
_START = "import os, sys; sys.path.append(sys.argv[1]); from supervisor.main import main; main(); os._exit(0)"
_PLACE = str(Path(supervisor.__file__).parents[1])


class SupervisorProcess:
    """A supervisor for one race, whose files are in a folder and whose processes carry a token."""

    def __init__(self, folder: Path, token: str) -> None:
        self.token = token
        self.errors = folder / "supervisor.err"
        self.process: subprocess.Popen[bytes] | None = None
        self.limit = math.inf
        self.given_up = False

    def start(self, specification: dict[str, Any]) -> None:
        """Start it and tell it what to do."""
        with self._open_errors() as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-E", "-c", _START, _PLACE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self.limit = time.monotonic() + specification["seconds"] + PATIENCE_SECONDS
        self.send(specification)

    def _open_errors(self) -> BinaryIO:
        folder = self.errors.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return self.errors.open("wb")
        except OSError as error:
            raise InputError(f"folder must be one that can be made and written to, got {folder}: {error}") from None

    @property
    def events(self) -> int:
        """The descriptor on which its events come."""
        assert self.process is not None and self.process.stdout is not None  # noqa: PT018
        return self.process.stdout.fileno()

    @property
    def overdue(self) -> bool:
        """Whether it should have ended the race long ago."""
        return time.monotonic() > self.limit

    def give_up(self) -> None:
        """Expect nothing from it any more: it will be killed."""
        self.given_up = True

    def send(self, message: dict[str, Any]) -> None:
        """Tell it something."""
        assert self.process is not None and self.process.stdin is not None  # noqa: PT018
        try:
            self.process.stdin.write(encode(message))
            self.process.stdin.flush()
        except BrokenPipeError:
            return  # it has died, which the end of its events will tell

    def last_words(self) -> str:
        """The last line of its standard error; nothing if there is none."""
        lines = self.errors.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the race if it goes on; return when every process is dead."""
        if self.process is None:
            return
        with self.process:
            assert self.process.stdin is not None
            with suppress(BrokenPipeError):  # then nobody is there to be told
                self.process.stdin.close()
            self._await_end()
        if self.process.returncode != 0:
            _kill_marked(self.token)

    def _await_end(self) -> None:
        assert self.process is not None
        limit = time.monotonic() + (0.0 if self.given_up else PATIENCE_SECONDS)
        with suppress(OSError):  # then it is waited for below, at intervals that cost milliseconds
            _await_exit(self.process.pid, limit)
        try:
            self.process.wait(max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()


def _await_exit(pid: int, limit: float) -> None:
    process, poll = os.pidfd_open(pid), select.poll()
    try:
        poll.register(process, select.POLLIN)
        poll.poll(max(0.0, limit - time.monotonic()) * 1000)
    finally:
        os.close(process)


def _kill_marked(token: str) -> None:
    """Kill what a supervisor that was killed itself may have left; who has dropped his environment is not found."""
    limit = time.monotonic() + KILLING_SECONDS
    while (left := _marked(token)) and time.monotonic() < limit:
        for pid in left:
            _kill_if_marked(pid, token)
        time.sleep(0.001)


def _marked(token: str) -> list[int]:
    return [pid for pid in all_pids() if _is_marked(pid, token)]


def _is_marked(pid: int, token: str) -> bool:
    start = f"{MARK}={token}.".encode()
    return any(text.startswith(start) for text in environment_of(pid))


def _kill_if_marked(pid: int, token: str) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if _is_marked(pid, token):  # still: now its number cannot have passed to another
            signal.pidfd_send_signal(process, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(process)
