"""One race of commands that are ready to run: `Supervision(racers, limits, folder=...).run()` returns its result.

Each race has its own small process, the supervisor, which starts, watches and kills the racers. This module follows its
events and checks answers. When the client ends in whatever way, the supervisor's standard input closes and the
supervisor ends the race.
"""

import math
import os
import random
import re
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from preselect.arguments import integer, number
from preselect.errors import InputError
from preselect.race import supervisor
from preselect.race.event_loop import BLOCKING, EVENT_LOOP, Waiter, run_blocking
from preselect.race.result import Finish, Standing, SupervisionResult
from preselect.race.supervisor.children import KILLING_SECONDS, MARK
from preselect.race.supervisor.messages import from_line, to_line
from preselect.race.supervisor.processes import kill_marked
from preselect.race.supervisor.racer import NAMESPACE, SUBREAPER, Limits, Racer, Status

__all__ = ["LEVELS", "AnswerCheck", "Limits", "Racer", "Status", "Supervision", "Watch"]

LEVELS = (NAMESPACE, SUBREAPER)

_TICK_SECONDS = 0.25
_PATIENCE_SECONDS = 20.0  # beyond the end of the race; more than the supervisor allows itself for killing

# imported rather than run as a script, so that Python caches its bytecode
_START = "import os, sys; sys.path.append(sys.argv[1]); from supervisor.main import main; main(); os._exit(0)"
_PARENT_FOLDER = str(Path(supervisor.__file__).parents[1])

AnswerCheck = Callable[[Racer, Path, int], str | None]
Watch = Callable[[list[Standing]], object]


class Supervision:
    """One race: starts all racers at once, stops at the first right answer, and leaves no process behind.

    Parameters
    ----------
    racers : sequence of Racer
        The commands to run, with distinct names.
    limits : Limits
        Time, memory and output that they may use.
    folder : Path
        Where outputs are written: 0.out, 0.err, 1.out, ... in the order of the racers.
    seed : int, default 0
        Determines the order of starting, and ties between racers that took the same CPU time.
    check : callable, optional
        Called with a racer that has answered and has no verifier, its output file and its exit code; returns what is
        wrong with the answer, or None. By default every answer is right.
    watch : callable, optional
        Called with the list of standings at every event and four times a second.
    level : str, optional
        One of LEVELS; by default the best one that this machine allows.
    """

    def __init__(
        self,
        racers: Sequence[Racer],
        limits: Limits,
        *,
        folder: Path,
        seed: int = 0,
        check: AnswerCheck | None = None,
        watch: Watch | None = None,
        level: str | None = None,
    ) -> None:
        self.racers = _check_racers(racers)
        self.limits = _check_limits(limits)
        if level is not None and level not in LEVELS:
            raise InputError(f"unknown level {level!r:.80}; use {' or '.join(map(repr, LEVELS))}, or leave it out")
        self.seed, self.level = integer(seed, "seed", 0), level
        self.check, self.watch = check, watch
        self.folder = Path(folder).absolute()
        self.token = secrets.token_hex(8)

    def run(self) -> SupervisionResult:
        """Run the race and return its result."""
        return run_blocking(self.run_in(BLOCKING))

    async def run_async(self) -> SupervisionResult:
        """Run the race without blocking the event loop; `check` runs in a thread. Cancelling it ends the race."""
        return await self.run_in(EVENT_LOOP)

    async def run_in(self, waiter: Waiter) -> SupervisionResult:
        """Run the race; `waiter` decides whether to block the thread or to use its event loop."""
        process = _SupervisorProcess(self.folder, self.token)
        progress = _Progress(self.racers, self.folder, process)
        try:
            process.start(self._specify())
            while not progress.is_over:
                for position in progress.receive(await waiter.read(process.events, _TICK_SECONDS)):
                    error = await waiter.call(self._check_answer, position, progress.exit_codes[position])
                    process.send({"verdict": [position, error is None, str(error)]})
                if self.watch:
                    self.watch(progress.get_standings())
        finally:
            await waiter.finish(process.close)
        return progress.get_result()

    def _specify(self) -> dict[str, Any]:
        draw = random.Random(self.seed)
        return {
            "token": self.token,
            "folder": str(self.folder),
            "limits": vars(self.limits),
            "level": self.level,
            "order": draw.sample(range(len(self.racers)), len(self.racers)),
            "racers": [vars(racer) for racer in self.racers],
            "lots": [draw.random() for _ in self.racers],
            "client_checks": self.check is not None,
        }

    def _check_answer(self, position: int, exit_code: int) -> str | None:
        assert self.check is not None  # otherwise the supervisor does not ask
        return self.check(self.racers[position], self.folder / f"{position}.out", exit_code)


class _Progress:
    """What is known about a race from the supervisor's events."""

    def __init__(self, racers: Sequence[Racer], folder: Path, process: "_SupervisorProcess") -> None:
        self.racers, self.folder, self.process = racers, folder, process
        self.is_over = False
        self.received = b""
        self.level = "none"
        self.start_time: float | None = None
        self.answered: dict[int, float] = {}
        self.exit_codes: dict[int, int] = {}
        self.reports: dict[int, dict[str, Any]] = {}
        self.done: dict[str, Any] | None = None
        self.failure: str | None = None
        self.unavailable: str | None = None

    def receive(self, data: bytes | None) -> list[int]:
        """Handle what the supervisor has sent, None if nothing arrived; return the racers whose answers to check."""
        if data == b"":
            self._fail("the supervisor died")
        elif data is None and self.process.is_overdue:
            self.process.give_up()
            self._fail("the supervisor did not end the race in time")
        *lines, self.received = (self.received + (data or b"")).split(b"\n")
        events = [from_line(line) for line in lines]
        for event in events:
            self._handle(event)
        return [event["number"] for event in events if event["event"] == "verify"]

    def _fail(self, reason: str) -> None:
        self.is_over = True
        self.failure = self.failure or reason

    def _handle(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self.start_time, self.level = time.monotonic(), event["level"]
            case "answered":
                self.answered[event["number"]] = event["seconds"]
            case "verify":
                self.exit_codes[event["number"]] = event["exit_code"]
            case "finished":
                self.reports[event["number"]] = event
            case "unavailable":
                self.is_over, self.unavailable = True, event["reason"]
            case "failed":
                self._fail(event["reason"])
            case "done":
                self.is_over, self.done = True, event
                self.reports = {report["number"]: report for report in event["runs"]}

    def get_standings(self) -> list[Standing]:
        """Return how all racers stand now."""
        return [self._get_standing(position, racer) for position, racer in enumerate(self.racers)]

    def _get_standing(self, position: int, racer: Racer) -> Standing:
        report = self.reports.get(position)
        seconds = report["seconds"] if report else self._get_seconds(position)
        return Standing(racer.name, report["status"] if report else None, seconds, position in self.answered)

    def _get_seconds(self, position: int) -> float:
        return self.answered.get(position, self._get_elapsed())

    def _get_elapsed(self) -> float:
        return 0.0 if self.start_time is None else time.monotonic() - self.start_time

    def get_result(self) -> SupervisionResult:
        """Return how the race ended."""
        if self.unavailable is not None:
            raise InputError(f"this machine does not allow a {NAMESPACE}: {self.unavailable}; leave level out")
        done = self.done or {"winner": None, "tie": False, "seconds": self._get_elapsed(),
                             "infrastructure": self._explain_failure()}  # fmt: skip
        return SupervisionResult(
            winner=None if done["winner"] is None else self.racers[done["winner"]].name,
            tie=done["tie"],
            seconds=done["seconds"],
            finishes=tuple(self._get_finish(position) for position in range(len(self.racers))),
            level=self.level,
            infrastructure=done["infrastructure"],
        )

    def _explain_failure(self) -> str:
        line = self.process.read_last_error()
        return (self.failure or "the supervisor died") + (f": {line:.300}" if line else "")

    def _get_finish(self, position: int) -> Finish:
        report = self.reports.get(position) or self._report_failure(position)
        return Finish(
            name=self.racers[position].name,
            status=report["status"],
            seconds=report["seconds"],
            cpu_seconds=report["cpu_seconds"],
            exit_code=report["exit_code"],
            signal=report["signal"],
            detail=report["detail"],
            output=self.folder / f"{position}.out",
            errors=self.folder / f"{position}.err",
        )

    def _report_failure(self, position: int) -> dict[str, Any]:
        return {"status": Status.INFRASTRUCTURE_ERROR, "seconds": self._get_seconds(position), "cpu_seconds": 0.0,
                "exit_code": None, "signal": None, "detail": self._explain_failure()}  # fmt: skip


class _SupervisorProcess:
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
            self.process.stdin.write(to_line(message))
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


# --- arguments --------------------------------------------------------------------------------------------------------


def _check_limits(limits: Limits) -> Limits:
    seconds, output = number(limits.seconds, "seconds", above=0.0), number(limits.output, "output", above=0.0)
    return Limits(seconds, None if limits.memory is None else number(limits.memory, "memory", above=0.0), output)


def _check_racers(racers: Sequence[Racer]) -> tuple[Racer, ...]:
    found = tuple(racers)
    if not found:
        raise InputError("there are no racers; give at least one")
    for racer in found:
        _check_racer(racer)
    names = [racer.name for racer in found]
    if len(set(names)) < len(names):
        raise InputError(f"two racers have the same name: {', '.join(names):.80}")
    return found


def _check_racer(racer: Racer) -> None:
    if not _is_text(racer.name):
        raise InputError(f"the name of a racer is {racer.name!r:.80}; use a string")
    for what in ("command", "verifier"):
        command = getattr(racer, what)
        if command is not None and not _is_command(command):
            raise InputError(f"the {what} of {racer.name} is {command!r:.80}; give the program and its arguments as a "
                             "sequence of strings")  # fmt: skip
    for key, value in racer.environment.items():
        if not (_is_text(key) and _is_text(value) and key and "=" not in key):
            raise InputError(f"the environment of {racer.name} has {key!r:.80}: {value!r:.80}, which cannot be set")
    if not all(type(code) is int and 0 <= code <= 255 for code in racer.exit_codes):
        raise InputError(f"the exit codes of {racer.name} are {racer.exit_codes!r:.80}; use integers from 0 to 255")
    try:
        re.compile(racer.pattern or "")
    except re.error as error:
        raise InputError(
            f"the pattern of {racer.name} is not a regular expression: {racer.pattern!r:.80}, {error}"
        ) from None


def _is_command(command: object) -> bool:
    return isinstance(command, tuple | list) and bool(command) and all(map(_is_text, command)) and bool(command[0])


def _is_text(value: object) -> bool:
    return type(value) is str and "\0" not in value
