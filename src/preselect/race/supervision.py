"""A race as the client sees it: racers in, one result out, nobody left behind.

Each race has a small process of its own, the supervisor, which starts, watches and kills the racers. This module hears
its events and checks answers if asked to. Whatever happens to the client, the supervisor notices that its standard
input has ended, and ends the race.
"""

import asyncio
import os
import random
import secrets
import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from preselect.arguments import integer, number
from preselect.errors import InputError
from preselect.race.racers import Finish, Racer, Result, Standing, Status, checked, plain
from preselect.race.supervisor.containment import NAMESPACE, SUBREAPER
from preselect.race.supervisor.messages import decode
from preselect.race.supervisor_process import SupervisorProcess

__all__ = [
    "LEVELS",
    "Check",
    "Finish",
    "Racer",
    "Result",
    "Standing",
    "Status",
    "Watch",
    "supervise",
    "supervise_async",
]

LEVELS = (NAMESPACE, SUBREAPER)
Check = Callable[[Racer, Path, int], str | None]
Watch = Callable[[list[Standing]], object]

_TICK_SECONDS = 0.25


def supervise(
    racers: Sequence[Racer],
    *,
    folder: Path,
    seconds: float,
    memory: float | None = None,
    output: float = 64,
    seed: int = 0,
    check: Check | None = None,
    watch: Watch | None = None,
    level: str | None = None,
) -> Result:
    """Run all racers at once, stop at the first right answer or after so many seconds, and leave no process behind.

    Outputs go to `folder`: 0.out, 0.err, ... in the order of the racers. `output` limits every file that a racer or a
    verifier writes, `memory` all processes of a racer together, both in MB (2**20 bytes). `check` is given a racer that
    has answered and has no verifier, the file with its output and its exit code, and says why the answer is wrong, or
    None. `watch` is shown the standings at every event and four times a second. `seed` decides the order of starting,
    and ties of racers that took the same CPU time. `level` is one of LEVELS; by default the best that this machine
    allows.
    """
    race = _Supervision(racers, folder, seconds, memory, output, seed, check is not None, level)
    try:
        race.start()
        while not race.over:
            for racer in race.receive(_read(race.supervisor.events, _TICK_SECONDS)):
                race.tell_verdict(racer, check(*race.answer(racer)) if check else None)
            if watch:
                watch(race.standings())
    finally:
        race.supervisor.close()
    return race.result()


async def supervise_async(
    racers: Sequence[Racer],
    *,
    folder: Path,
    seconds: float,
    memory: float | None = None,
    output: float = 64,
    seed: int = 0,
    check: Check | None = None,
    watch: Watch | None = None,
    level: str | None = None,
) -> Result:
    """Do as `supervise` does without blocking the event loop; `check` runs in a thread. Cancelling it ends the race."""
    race = _Supervision(racers, folder, seconds, memory, output, seed, check is not None, level)
    try:
        race.start()
        while not race.over:
            for racer in race.receive(await _read_async(race.supervisor.events, _TICK_SECONDS)):
                race.tell_verdict(racer, await asyncio.to_thread(check, *race.answer(racer)) if check else None)
            if watch:
                watch(race.standings())
    finally:
        await asyncio.shield(asyncio.to_thread(race.supervisor.close))
    return race.result()


class _Supervision:
    """One race: the supervisor's process, and what its events have told."""

    def __init__(
        self,
        racers: Sequence[Racer],
        folder: Path,
        seconds: float,
        memory: float | None,
        output: float,
        seed: int,
        ask: bool,
        level: str | None,
    ) -> None:
        self.racers = checked(racers)
        self.folder = Path(folder).absolute()
        self.seconds = number(seconds, "seconds", above=0.0)
        self.memory = None if memory is None else number(memory, "memory", above=0.0)
        self.output = number(output, "output", above=0.0)
        if level is not None and level not in LEVELS:
            raise InputError(f"level must be one of {', '.join(LEVELS)}, or left out, got {level!r:.80}")
        self.level, self.seed, self.ask = level, integer(seed, "seed", 0), ask
        self.token = secrets.token_hex(8)
        self.supervisor = SupervisorProcess(self.folder, self.token)
        self.over = False
        self.received = b""
        self.started: float | None = None
        self.reports: dict[int, dict[str, Any]] = {}
        self.answered: dict[int, float] = {}
        self.exit_codes: dict[int, int] = {}
        self.done: dict[str, Any] | None = None
        self.failure: str | None = None
        self.unavailable: str | None = None

    def start(self) -> None:
        """Start the supervisor and tell it what to do."""
        self.supervisor.start(self._specification())

    def _specification(self) -> dict[str, Any]:
        draw = random.Random(self.seed)
        order = draw.sample(range(len(self.racers)), len(self.racers))
        return {
            "token": self.token,
            "folder": str(self.folder),
            "seconds": self.seconds,
            "memory": self.memory,
            "output": self.output,
            "level": self.level,
            "order": order,
            "racers": [{**plain(racer), "ask": self.ask, "lot": draw.random()} for racer in self.racers],
        }

    # the events

    def receive(self, data: bytes | None) -> list[int]:
        """Take in what the supervisor has said, None for nothing; whose answers it wants to have checked."""
        if data == b"":
            self._fail("the supervisor died")
        elif data is None and self.supervisor.overdue:
            self.supervisor.give_up()
            self._fail("the supervisor did not end the race in time")
        *lines, self.received = (self.received + (data or b"")).split(b"\n")
        wanted = [self._take(decode(line)) for line in lines]
        return [racer for racer in wanted if racer is not None]

    def _fail(self, reason: str) -> None:
        self.over = True
        self.failure = self.failure or reason

    def _take(self, event: dict[str, Any]) -> int | None:
        kind = event["event"]
        if kind == "started":
            self.started, self.level = time.monotonic(), event["level"]
        elif kind == "answered":
            self.answered[event["number"]] = event["seconds"]
        elif kind == "verify":
            self.exit_codes[event["number"]] = event["exit_code"]
            return int(event["number"])
        elif kind == "finished":
            self.reports[event["number"]] = event
        elif kind == "unavailable":
            self.over, self.unavailable = True, event["reason"]
        elif kind == "failed":
            self._fail(event["reason"])
        else:
            self.over, self.done = True, event
            self.reports = {report["number"]: report for report in event["racers"]}
        return None

    def answer(self, racer: int) -> tuple[Racer, Path, int]:
        """A racer that has answered, the file with its output, and its exit code."""
        return self.racers[racer], self.folder / f"{racer}.out", self.exit_codes[racer]

    def tell_verdict(self, racer: int, wrong: str | None) -> None:
        """Say whether an answer is right, or why not."""
        self.supervisor.send({"verdict": [racer, wrong is None, str(wrong)]})

    def standings(self) -> list[Standing]:
        """Where all racers are now."""
        return [self._standing(place) for place in range(len(self.racers))]

    def _standing(self, place: int) -> Standing:
        report = self.reports.get(place)
        seconds = report["seconds"] if report else self.answered.get(place, self._elapsed())
        status = Status(report["status"]) if report else None
        return Standing(self.racers[place].name, status, seconds, place in self.answered)

    def _elapsed(self) -> float:
        return 0.0 if self.started is None else time.monotonic() - self.started

    # the result

    def result(self) -> Result:
        """How the race ended."""
        if self.unavailable is not None:
            raise InputError(
                f"level must be one that this machine allows, got {self.level!r}: {self.unavailable}; leave it out"
            )
        done = self.done or {"winner": None, "tie": False, "seconds": self._elapsed(), "infrastructure": self._why()}
        return Result(
            winner=None if done["winner"] is None else self.racers[done["winner"]].name,
            tie=done["tie"],
            seconds=done["seconds"],
            finishes=tuple(self._finish(place) for place in range(len(self.racers))),
            level=self.level or "none",
            infrastructure=done["infrastructure"],
        )

    def _why(self) -> str:
        said = self.supervisor.last_words()
        return (self.failure or "the supervisor died") + (f": {said:.300}" if said else "")

    def _finish(self, place: int) -> Finish:
        report = self.reports.get(place) or self._unfinished(place)
        return Finish(
            name=self.racers[place].name,
            status=Status(report["status"]),
            seconds=report["seconds"],
            cpu_seconds=report["cpu"],
            exit_code=report["exit_code"],
            signal=report["signal"],
            detail=report["detail"],
            output=self.folder / f"{place}.out",
            errors=self.folder / f"{place}.err",
        )

    def _unfinished(self, place: int) -> dict[str, Any]:
        seconds = self.answered.get(place, self._elapsed())
        status = Status.INFRASTRUCTURE_ERROR
        return {"status": status, "seconds": seconds, "cpu": 0.0, "exit_code": None, "signal": None,
                "detail": self._why()}  # fmt: skip


def _read(descriptor: int, seconds: float) -> bytes | None:
    """What comes within so many seconds; None if nothing does."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return os.read(descriptor, 65536) if poll.poll(seconds * 1000) else None


async def _read_async(descriptor: int, seconds: float) -> bytes | None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        async with asyncio.timeout(seconds):  # wait_for would swallow a cancellation that comes together with an event
            await ready.wait()
    except TimeoutError:
        return None
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 65536)
