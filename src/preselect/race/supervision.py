"""Run one race of given commands: `Supervision(racers, limits, folder=...).run()` returns the result.

Each race has its own small process, the supervisor, which starts, watches and kills the racers. This module follows its
events and checks answers. However the client ends, the supervisor's standard input closes and the
supervisor ends the race.
"""

import os
import random
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from preselect.arguments import integer, number
from preselect.errors import InputError, StoppedError
from preselect.files import make_private_folder
from preselect.race.event_loop import BLOCKING, EVENT_LOOP, Waiter, run_blocking
from preselect.race.result import Finish, Standing, SupervisionResult
from preselect.race.supervisor.children import MEGABYTE
from preselect.race.supervisor.files import Output
from preselect.race.supervisor.racer import NAMESPACE, SUBREAPER, Limits, Racer, Status
from preselect.race.supervisor_process import SupervisorProcess

__all__ = ["LEVELS", "AnswerCheck", "Judge", "Limits", "Racer", "Status", "Supervision", "Watch"]

LEVELS = (NAMESPACE, SUBREAPER)

_TICK_SECONDS = 0.25

AnswerCheck = Callable[[Racer, bytes, int], str | None]
Watch = Callable[[list[Standing]], object]
Judge = Callable[[SupervisionResult, Sequence[Output], Waiter, Watch], Awaitable[SupervisionResult]]


class _Files(NamedTuple):
    """Files for what programs print: the supervisor's errors, and each racer's output and errors, in order."""

    of_supervisor: Output
    outputs: list[Output]
    errors: list[Output]


class Supervision:
    """One race: starts all racers at once, stops at the first right answer, and leaves no process behind.

    Parameters
    ----------
    racers : sequence of Racer
        The commands to run, with distinct names.
    limits : Limits
        Time, memory and output that they may use.
    folder : Path
        Where files are made: outputs, which have no name, and copies of them for verifiers.
    seed : int, default 0
        Determines the order of starting, and ties between racers that took the same CPU time.
    check : callable, optional
        Called with a racer that has answered and has no verifier, its output and its exit code; returns what is wrong
        with the answer, or None. By default every answer is right.
    judge : callable, optional
        Called when all racers have run to their end, with the result, their open outputs, a Waiter, and a `watch` for
        the races that it starts, which ends them if this race is stopped. Returns the result that counts.
    watch : callable, optional
        Called with the list of standings at every event and four times a second.
    level : str, optional
        One of LEVELS; by default the best one that this machine allows.
    to_end : bool, default False
        Whether all racers run to their end or to the time limit; then nobody wins, and no answer is verified. Always
        true with a judge.
    nice : int, default 0
        The nice value of the racers, from 0 to 19: the higher, the more they yield to other processes.
    keep : int, default 1000
        How many bytes of each racer's output and errors the result keeps, besides the output of the winner.
    """

    def __init__(
        self,
        racers: Sequence[Racer],
        limits: Limits,
        *,
        folder: Path,
        seed: int = 0,
        check: AnswerCheck | None = None,
        judge: Judge | None = None,
        watch: Watch | None = None,
        level: str | None = None,
        to_end: bool = False,
        nice: int = 0,
        keep: int = 1000,
    ) -> None:
        self.racers = _check_racers(racers)
        self.limits = _check_limits(limits)
        if level is not None and level not in LEVELS:
            raise InputError(f"unknown level {level!r:.80}; use {' or '.join(map(repr, LEVELS))}, or leave it out")
        self.seed, self.level, self.nice, self.keep = integer(seed, "seed", 0), level, nice, keep
        self.check, self.judge, self.watch = check, judge, watch
        self.to_end = to_end or judge is not None
        self.folder = Path(folder).absolute()
        self.token = secrets.token_hex(8)
        self._checked: dict[int, bytes] = {}  # by position: the output that was checked, which may have changed since
        self._standings: list[Standing] = []  # at the end
        self._is_stopped = False
        self._process: SupervisorProcess | None = None

    def stop(self) -> None:
        """End the race at once, from any thread: it raises StoppedError as soon as all its processes are dead."""
        self._is_stopped = True
        process = self._process
        if process is not None:
            process.send({"stop": True})

    def run(self) -> SupervisionResult:
        """Run the race and return its result."""
        return run_blocking(self.run_in(BLOCKING))

    async def run_async(self) -> SupervisionResult:
        """Run the race without blocking the event loop; `check` runs in a thread. Cancelling it ends the race."""
        return await self.run_in(EVENT_LOOP)

    async def run_in(self, waiter: Waiter) -> SupervisionResult:
        """Run the race; `waiter` decides whether to block the thread or to use its event loop."""
        with _open_files(self.folder, len(self.racers)) as files:
            ended = await self._race(files, waiter)
            return ended if self.judge is None else await self.judge(ended, files.outputs, waiter, self._watch_judge)

    async def _race(self, files: _Files, waiter: Waiter) -> SupervisionResult:
        process = SupervisorProcess(files.of_supervisor, self.token)
        progress = _Progress(self.racers, files, process)
        try:
            self._start(process, files)
            self._process = process
            if self._is_stopped:  # before there was a process
                self.stop()
            while not progress.is_over:
                for position in progress.receive(await waiter.read(process.events, _TICK_SECONDS)):
                    self._checked = {position: self._read_output(files, position)}
                    error = await waiter.call(self._check_answer, position, progress.exit_codes[position])
                    process.send({"verdict": [position, error is None, str(error)]})
                if self.watch:
                    self.watch(progress.get_standings())
        finally:
            self._process = None
            await waiter.finish(process.close)
        if self._is_stopped and progress.done is None:
            raise StoppedError("the race was stopped")
        self._standings = progress.get_standings()
        return progress.get_result(lambda position: self._read_output(files, position), self.keep)

    def _watch_judge(self, _: list[Standing]) -> None:
        if self._is_stopped:
            raise StoppedError("the race was stopped")
        if self.watch:
            self.watch(self._standings)

    def _start(self, process: SupervisorProcess, files: _Files) -> None:
        """Start the supervisor with the open files; from then on only the racers write to them."""
        pairs = zip(files.outputs, files.errors, strict=True)
        outputs = [(output.writing, output.reading, errors.writing) for output, errors in pairs]
        process.start({**self._specify(), "outputs": outputs}, [one for both in outputs for one in both])
        for output in (files.of_supervisor, *files.outputs, *files.errors):
            output.close_writing()

    def _specify(self) -> dict[str, Any]:
        draw = random.Random(self.seed)
        return {
            "token": self.token,
            "folder": str(self.folder),
            "limits": vars(self.limits),
            "level": self.level,
            "nice": self.nice,
            "order": draw.sample(range(len(self.racers)), len(self.racers)),
            "racers": [vars(racer) for racer in self.racers],
            "lots": [draw.random() for _ in self.racers],
            "client_checks": self.check is not None,
            "to_end": self.to_end,
        }

    def _check_answer(self, position: int, exit_code: int) -> str | None:
        assert self.check is not None  # without a check the supervisor does not ask
        return self.check(self.racers[position], self._checked[position], exit_code)

    def _read_output(self, files: _Files, position: int) -> bytes:
        """Read what a racer has printed, once: what was checked is what counts."""
        if position in self._checked:
            return self._checked[position]
        return files.outputs[position].read(self.limits.output * MEGABYTE)


class _Progress:
    """The state of a race, as the supervisor's events tell it."""

    def __init__(self, racers: Sequence[Racer], files: _Files, process: SupervisorProcess) -> None:
        self.racers, self.files, self.process = racers, files, process
        self.is_over = False
        self.level = "none"
        self.start_time: float | None = None
        self.answered: dict[int, float] = {}
        self.exit_codes: dict[int, int] = {}
        self.reports: dict[int, dict[str, Any]] = {}
        self.done: dict[str, Any] | None = None
        self.failure: str | None = None
        self.unavailable: str | None = None

    def receive(self, data: bytes | None) -> list[int]:
        """Handle what the supervisor has sent, if anything; return the racers whose answers have to be checked."""
        if data == b"":
            self._fail("the supervisor died")
        elif data is None and self.process.is_overdue:
            self.process.give_up()
            self._fail("the supervisor did not end the race in time")
        events = self.process.receive(data or b"")
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

    def get_result(self, read_output: Callable[[int], bytes], keep: int) -> SupervisionResult:
        """Return how the race ended, with at most `keep` bytes of what each racer printed.

        `read_output` reads all that the racer at a position printed.
        """
        if self.unavailable is not None:
            raise InputError(f"this machine does not allow a {NAMESPACE}: {self.unavailable}; leave level out")
        done = self.done or {"winner": None, "tie": False, "seconds": self._get_elapsed(),
                             "infrastructure": self._explain_failure()}  # fmt: skip
        return SupervisionResult(
            winner=None if done["winner"] is None else self.racers[done["winner"]].name,
            tie=done["tie"],
            seconds=done["seconds"],
            finishes=tuple(self._get_finish(position, keep) for position in range(len(self.racers))),
            level=self.level,
            infrastructure=done["infrastructure"],
            output=b"" if done["winner"] is None else read_output(done["winner"]),
        )

    def _explain_failure(self) -> str:
        line = self.process.read_last_error()
        return (self.failure or "the supervisor died") + (f": {line:.300}" if line else "")

    def _get_finish(self, position: int, keep: int) -> Finish:
        report = self.reports.get(position) or self._report_failure(position)
        return Finish(
            name=self.racers[position].name,
            status=report["status"],
            seconds=report["seconds"],
            cpu_seconds=report["cpu_seconds"],
            exit_code=report["exit_code"],
            signal=report["signal"],
            detail=report["detail"],
            output=self.files.outputs[position].read(keep),
            errors=self.files.errors[position].read(keep),
        )

    def _report_failure(self, position: int) -> dict[str, Any]:
        return {"status": Status.INFRASTRUCTURE_ERROR, "seconds": self._get_seconds(position), "cpu_seconds": 0.0,
                "exit_code": None, "signal": None, "detail": self._explain_failure()}  # fmt: skip


# --- files ------------------------------------------------------------------------------------------------------------


@contextmanager
def _open_files(folder: Path, racers: int) -> Iterator[_Files]:
    """Open files for what the supervisor and the racers print; an InputError if the folder has no room for them."""
    with ExitStack() as stack:
        _occupy_standard_descriptors(stack)
        try:
            make_private_folder(folder)
            found = [stack.enter_context(closing(Output.create(str(folder)))) for _ in range(1 + 2 * racers)]
        except OSError as error:
            raise InputError(f"cannot write the race's files to {folder}: {error.strerror}") from None
        yield _Files(found[0], found[1 : 1 + racers], found[1 + racers :])


def _occupy_standard_descriptors(stack: ExitStack) -> None:
    """Open descriptors 0 to 2 if the caller has closed them, so that no file of the race gets one of them."""
    descriptor = -1
    while descriptor <= 2:
        descriptor = os.open(os.devnull, os.O_RDWR)
        stack.callback(os.close, descriptor)


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
