"""The race itself: starting, waiting, verifying, deciding, ending.

Answers are verified one after the other in the order of `first_of`; later answers wait for their turn. Racers go on
running meanwhile.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time

from .children import VERIFIER, Children
from .containment import NAMESPACE
from .launching import MEGABYTE, Gate, Launcher
from .messages import LifeLineError, decode, emit, hear
from .processes import kill_with_groups, signal_name
from .racer import PATTERN_SECONDS, TIE_SECONDS, Racer, first_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal

TICK_SECONDS = 0.25
SAMPLE_SECONDS = 0.05


class Race:
    """A race, from the start to the last process."""

    def __init__(self, specification: dict[str, Any], level: str) -> None:
        self.level = level
        self.client: int = specification["client"]
        self.seconds: float = specification["seconds"]
        self.memory: float | None = specification["memory"]
        self.order: list[int] = specification["order"]
        self.racers = [Racer(number, given) for number, given in enumerate(specification["racers"])]
        self.launcher = Launcher(specification["folder"], specification["output"])
        self.poll = select.poll()
        self.poll.register(0, select.POLLIN)
        self.poll.register(self.client, select.POLLIN)
        self.children = Children(self.poll, len(self.racers), specification["token"], self._exited)
        self.checking: Racer | None = None
        self.winner: Racer | None = None
        self.tie = False
        self.infrastructure: str | None = None  # what failed of ours, for one racer
        self.failure: str | None = None  # and for all
        self.released = self.deadline = self.next_sample = 0.0
        self.received = b""

    def run(self) -> None:
        """Race, kill everybody, and say how it was."""
        try:
            self._start()
            while self._undecided():
                self._wait()
                self.children.reap()
                self._sample_memory()
                self._decide()
            stopped = False
        except LifeLineError:
            stopped = True
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
            stopped, self.failure = False, f"{type(error).__name__}: {error}"
        self._settle()
        left = self.children.kill_all(everybody=self.level == NAMESPACE and os.getpid() == 1)
        self.failure = left or self.failure
        if not stopped:
            self._say_done()

    # starting

    def _start(self) -> None:
        gate = Gate()
        for number in self.order:
            self._launch(self.racers[number], gate)
        self.released = gate.open_for(len(self.racers))
        self.deadline = self.released + self.seconds
        emit({"event": "started", "level": self.level})

    def _launch(self, racer: Racer, gate: Gate) -> None:
        files = self.launcher.open(f"{racer.number}.out"), self.launcher.open(f"{racer.number}.err")
        environment = {**os.environ, **racer.environment, **self.children.mark(racer.number)}
        self.children.add(self.launcher.launch(racer.number, racer.command, environment, files, gate), racer.number)
        racer.running = True

    # while it runs

    def _undecided(self) -> bool:
        return (
            self.winner is None
            and time.monotonic() < self.deadline
            and any(racer.status is None for racer in self.racers)
        )

    def _wait(self) -> None:
        """Until somebody exits, the client says something, or something is due."""
        now = time.monotonic()
        until = now if self.children.behind else min(self.deadline, now + TICK_SECONDS, *self._due())
        ready = [descriptor for descriptor, _ in self.poll.poll(max(0.0, until - now) * 1000)]
        if self.client in ready:
            raise LifeLineError
        if 0 in ready:
            self._listen()

    def _due(self) -> list[float]:
        pending = [] if self.checking else self._pending()
        due = [self.released + racer.seconds + TIE_SECONDS for racer in pending]
        return [*due, self.next_sample] if self.memory is not None else due

    def _listen(self) -> None:
        *lines, self.received = (self.received + hear()).split(b"\n")
        for line in lines:
            message = decode(line)
            if message.get("stop"):
                raise LifeLineError
            number, right, detail = message["verdict"]
            if self.checking is self.racers[number]:
                self._verdict(right, detail)

    def _sample_memory(self) -> None:
        start = time.monotonic()
        if self.memory is None or start < self.next_sample:
            return
        for racer, held in zip(self.racers, self.children.by_racer(), strict=True):
            pages = sum(process[3] for process in held.values())
            over = pages * resource.getpagesize() > self.memory * MEGABYTE
            if over and racer.running and racer.status is None:
                racer.seconds = start - self.released
                self._end(racer, "memory", f"held more than {self.memory:g} MB")
            if over or racer.status == "memory":
                kill_with_groups(held)
        # a machine with many processes is not kept busy by looking at them
        now = time.monotonic()
        self.next_sample = now + max(SAMPLE_SECONDS, 20 * (now - start))

    # who exits

    def _exited(self, number: int, code: int | None, cpu: float) -> None:
        """Take in that a racer or the verifier has exited or, without a code, what a racer has left behind."""
        if code is None:
            self.racers[number].cpu += cpu
        elif number == VERIFIER:
            self._verified(code)
        else:
            self._racer_exited(self.racers[number], code, cpu)

    def _racer_exited(self, racer: Racer, code: int, cpu: float) -> None:
        racer.running = False
        racer.cpu += cpu
        racer.exit_code, racer.signal = (code, None) if code >= 0 else (None, -code)
        if racer.status is None:
            racer.seconds = time.monotonic() - self.released
            self._judge(racer, code)

    def _judge(self, racer: Racer, code: int) -> None:
        complaint = self.launcher.complaint(racer.number)
        if complaint is not None:
            racer.exit_code = None
            self._end(racer, "not started", complaint)
        elif code == -signal.SIGXFSZ:
            self._end(racer, "crashed", self._over())
        elif code < 0:
            self._end(racer, "crashed", f"died of {signal_name(-code)}")
        else:
            self._judge_exit(racer, code)

    def _judge_exit(self, racer: Racer, code: int) -> None:
        output = self._output(racer)
        try:
            full = os.path.getsize(output) >= self.launcher.cap
            answered = racer.has_answered(code, output)
        except TimeoutError:
            self._fail(racer, f"the pattern took more than {PATTERN_SECONDS:g} s: {racer.pattern}")
        except OSError as error:
            self._fail(racer, f"the output cannot be read: {error}")
        else:
            if answered and full:
                self._end(racer, "crashed", f"answered, but {self._over()}: its answer may be cut off")
            elif answered:
                racer.answered = True
                emit({"event": "answered", "number": racer.number, "seconds": racer.seconds})
            else:
                self._end(racer, "no answer", f"exit code {code}" + (f"; {self._over()}" if full else ""))

    def _output(self, racer: Racer) -> str:
        return self.launcher.path(f"{racer.number}.out")

    def _over(self) -> str:
        return f"its output reached the cap of {self.launcher.cap / MEGABYTE:g} MB"

    # who wins

    def _pending(self) -> list[Racer]:
        """Who has answered and waits for the decision."""
        return [racer for racer in self.racers if racer.answered and racer.status is None]

    def _decide(self) -> None:
        """Take the next answer up, unless one is being verified or another may still tie."""
        pending = self._pending()
        if self.winner is not None or self.checking is not None or not pending:
            return
        closed = self.released + min(racer.seconds for racer in pending) + TIE_SECONDS
        if time.monotonic() < min(closed, self.deadline) and any(racer.running for racer in self.racers):
            return
        racer = self.racers[self._first()[0]]
        if racer.verifier is not None:
            self._verify(racer, racer.verifier)
        elif racer.ask:
            self.checking = racer
            emit({"event": "verify", "number": racer.number, "exit_code": racer.exit_code})
        else:
            self._win(racer)

    def _first(self) -> tuple[int, bool]:
        return first_of([(racer.number, racer.seconds, racer.cpu, racer.lot) for racer in self._pending()])

    def _win(self, racer: Racer) -> None:
        self.winner, self.tie = racer, self._first()[1]
        self._end(racer, "won")

    def _verify(self, racer: Racer, verifier: list[str]) -> None:
        command = [argument.replace("{output}", self._output(racer)) for argument in verifier]
        said = self.launcher.open(f"{racer.number}.verifier")
        environment = {**os.environ, **racer.environment, **self.children.mark("verifier")}
        self.checking = racer
        self.children.add(self.launcher.launch(VERIFIER, command, environment, (said, os.dup(said))), VERIFIER)

    def _verified(self, code: int) -> None:
        racer = self.checking
        if racer is None:
            return
        complaint = self.launcher.complaint(VERIFIER)
        if complaint is not None or code < 0:
            self.checking = None
            self._fail(racer, f"the verifier failed: {complaint or signal_name(-code)}")
            return
        said = _last_line(self.launcher.path(f"{racer.number}.verifier"))
        self._verdict(code == 0, f"the verifier exited with {code}{said and ': '}{said}")

    def _verdict(self, right: bool, detail: str) -> None:
        racer, self.checking = self.checking, None
        if racer is not None and right:
            self._win(racer)
        elif racer is not None:
            self._end(racer, "wrong answer", detail)

    # ending

    def _end(self, racer: Racer, status: str, detail: str = "") -> None:
        racer.status, racer.detail = status, detail
        emit({"event": "finished", **racer.report()})

    def _fail(self, racer: Racer, reason: str) -> None:
        self.infrastructure = reason
        self._end(racer, "infrastructure error", reason)

    def _settle(self) -> None:
        """Give everybody a status who has none; the client hears of it with `done`."""
        self.checking = None
        for racer in self.racers:
            if racer.status is None:
                racer.status, racer.detail = self._last_status(racer)
                if racer.status == "infrastructure error":
                    self.infrastructure = racer.detail
                if not racer.answered and self.released:
                    racer.seconds = time.monotonic() - self.released

    def _last_status(self, racer: Racer) -> tuple[str, str]:
        if self.winner is not None:
            return ("finished late" if racer.answered else "killed"), ""
        if self.failure is not None:
            return "infrastructure error", self.failure
        if racer.answered:
            return "infrastructure error", "answered, but its answer was not verified in time"
        return "timeout", ""

    def _say_done(self) -> None:
        end = time.monotonic() - self.released if self.released else 0.0
        emit({
            "event": "done",
            "winner": None if self.winner is None else self.winner.number,
            "tie": self.tie,
            "seconds": end if self.winner is None else self.winner.seconds,
            "level": self.level,
            "infrastructure": self.failure or self.infrastructure,
            "racers": [racer.report() for racer in self.racers],
        })  # fmt: skip


def _last_line(path: str) -> str:
    """What a file says last; nothing if somebody has removed it."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 1000))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
