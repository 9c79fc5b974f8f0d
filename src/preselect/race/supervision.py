"""One race of commands that are ready to run: `Supervision(racers, limits, folder=...).run()` returns its result.

Each race has its own small process, the supervisor, which starts, watches and kills the racers. This module follows its
events and checks answers. When the client ends in whatever way, the supervisor's standard input closes and the
supervisor ends the race.
"""

import random
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from preselect.arguments import integer, number
from preselect.errors import InputError
from preselect.race.supervisor.containment import NAMESPACE, SUBREAPER
from preselect.race.supervisor.messages import decode
from preselect.race.supervisor.racer import Limits, Racer, Status
from preselect.race.supervisor_process import SupervisorProcess
from preselect.race.waiting import BLOCKING, EVENT_LOOP, Waiting, run_blocking

__all__ = [
    "LEVELS",
    "Check",
    "Finish",
    "Limits",
    "Racer",
    "Standing",
    "Status",
    "Supervision",
    "SupervisionResult",
    "Watch",
]

LEVELS = (NAMESPACE, SUBREAPER)

_TICK_SECONDS = 0.25


class Finish(NamedTuple):
    """How one racer ended.

    Parameters
    ----------
    name : str
        The racer's name.
    status : str
        One of the statuses of `Status`.
    seconds : float
        Wall-clock time from the start of the race to the racer's end.
    cpu_seconds : float
        CPU time of all its processes.
    exit_code : int or None
        None if a signal ended it, or if it was not started.
    signal : int or None
        The signal that ended it.
    detail : str
        More about the status; may be empty.
    output, errors : Path
        Where its standard output and standard error are, until the next race overwrites them.
    """

    name: str
    status: str
    seconds: float
    cpu_seconds: float
    exit_code: int | None
    signal: int | None
    detail: str
    output: Path
    errors: Path


class Standing(NamedTuple):
    """How a racer stands during the race.

    Parameters
    ----------
    name : str
        The racer's name.
    status : str or None
        One of the statuses of `Status`; None while it runs or its answer is being verified.
    seconds : float
        Time since the start of the race, or from there to the racer's end.
    answered : bool
        Whether it has answered.
    """

    name: str
    status: str | None
    seconds: float
    answered: bool


Check = Callable[[Racer, Path, int], str | None]
Watch = Callable[[list[Standing]], object]


@dataclass(frozen=True)
class SupervisionResult:
    """How a race of commands ended.

    `seconds` is the time from the start of the racers to the winner's exit, or to the end of the race. `tie` says
    whether others answered within milliseconds of the winner. `infrastructure` says what failed that was not the fault
    of a racer, if anything did.
    """

    winner: str | None
    tie: bool
    seconds: float
    finishes: tuple[Finish, ...]
    level: str
    infrastructure: str | None


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
        check: Check | None = None,
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

    async def run_in(self, waiting: Waiting) -> SupervisionResult:
        """Run the race, waiting as asked to."""
        process = SupervisorProcess(self.folder, self.token)
        progress = _Progress(self.racers, self.folder, process)
        try:
            process.start(self._specify())
            while not progress.is_over:
                for place in progress.receive(await waiting.read(process.events, _TICK_SECONDS)):
                    error = await waiting.call(self._check_answer, place, progress.exit_codes[place])
                    process.send({"verdict": [place, error is None, str(error)]})
                if self.watch:
                    self.watch(progress.get_standings())
        finally:
            await waiting.finish(process.close)
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

    def _check_answer(self, place: int, exit_code: int) -> str | None:
        assert self.check is not None  # otherwise the supervisor does not ask
        return self.check(self.racers[place], self.folder / f"{place}.out", exit_code)


class _Progress:
    """What is known of a race from the supervisor's events."""

    def __init__(self, racers: Sequence[Racer], folder: Path, process: SupervisorProcess) -> None:
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
        """Handle what the supervisor has sent, None for nothing; return the racers whose answers are to be checked."""
        if data == b"":
            self._fail("the supervisor died")
        elif data is None and self.process.is_overdue:
            self.process.give_up()
            self._fail("the supervisor did not end the race in time")
        *lines, self.received = (self.received + (data or b"")).split(b"\n")
        events = [decode(line) for line in lines]
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
        return [self._get_standing(place, racer) for place, racer in enumerate(self.racers)]

    def _get_standing(self, place: int, racer: Racer) -> Standing:
        report = self.reports.get(place)
        seconds = report["seconds"] if report else self._get_seconds(place)
        return Standing(racer.name, report["status"] if report else None, seconds, place in self.answered)

    def _get_seconds(self, place: int) -> float:
        return self.answered.get(place, self._get_elapsed())

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
            finishes=tuple(self._get_finish(place) for place in range(len(self.racers))),
            level=self.level,
            infrastructure=done["infrastructure"],
        )

    def _explain_failure(self) -> str:
        line = self.process.read_last_error()
        return (self.failure or "the supervisor died") + (f": {line:.300}" if line else "")

    def _get_finish(self, place: int) -> Finish:
        report = self.reports.get(place) or self._report_failure(place)
        return Finish(
            name=self.racers[place].name,
            status=report["status"],
            seconds=report["seconds"],
            cpu_seconds=report["cpu_seconds"],
            exit_code=report["exit_code"],
            signal=report["signal"],
            detail=report["detail"],
            output=self.folder / f"{place}.out",
            errors=self.folder / f"{place}.err",
        )

    def _report_failure(self, place: int) -> dict[str, Any]:
        return {"status": Status.INFRASTRUCTURE_ERROR, "seconds": self._get_seconds(place), "cpu_seconds": 0.0,
                "exit_code": None, "signal": None, "detail": self._explain_failure()}  # fmt: skip


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
