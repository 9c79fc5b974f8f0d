"""A race, in the order in which it happens: start, wait, judge exits, verify answers, decide, end.

Answers are verified one at a time, in the order of `_pick_first`, while the other racers keep running.
"""

from __future__ import annotations

import os
import select
import sys
import time

from .children import MEGABYTE, Children, Gate, Launcher, kill_with_groups
from .files import Copy, Output
from .labels import VERIFIER, Labels
from .messages import ClientGoneError, Connection
from .processes import get_signal_name, hold_more_than
from .racer import NAMESPACE, Limits, Racer, Status
from .system import hide

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from typing import Any
else:
    import _signal as signal

_TIE_SECONDS = 0.003

_PATTERN_SECONDS = 2.0
_TICK_SECONDS = 0.25
_SAMPLE_SECONDS = 0.05


class _Run:
    """A racer in a running race: the state of its process, and how it ended."""

    def __init__(self, number: int, racer: Racer, lot: float, output: Output, errors: int) -> None:
        self.number, self.racer, self.lot = number, racer, lot
        self.output, self.errors = output, errors
        self.is_running = self.has_answered = False
        self.status: str | None = None
        self.seconds = self.cpu_seconds = 0.0
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.detail = ""
        if racer.pattern is not None:
            import re  # noqa: F401  # so that the import does not take time from the race

    def is_answer(self, code: int, most: int) -> bool:
        """Whether this exit code and the first `most` bytes of the output are an answer.

        Raises a TimeoutError if matching the pattern takes too long.
        """
        pattern = self.racer.pattern
        return code in self.racer.exit_codes if pattern is None else _matches(pattern, self.output.read(most))

    def report(self) -> dict[str, Any]:
        """Describe how the run stands, for the client."""
        names = ("number", "status", "seconds", "cpu_seconds", "exit_code", "signal", "detail")
        return {name: getattr(self, name) for name in names}


class Race:
    """A race, from the start to the death of its last process."""

    def __init__(self, specification: dict[str, Any], connection: Connection, level: str) -> None:
        self.connection, self.level = connection, level
        self.client: int = specification["client"]
        self.limits = Limits(**specification["limits"])
        self.order: list[int] = specification["order"]
        self.client_checks: bool = specification["client_checks"]
        self.to_end: bool = specification["to_end"]  # whether the race goes on after an answer
        self.folder: str = specification["folder"]
        self.runs = _make_runs(specification)
        self.launcher = Launcher(self.limits.output, Labels(specification["token"]))
        self.launcher.nice = specification["nice"]
        self.poll = select.poll()
        self.poll.register(0, select.POLLIN)
        self.poll.register(self.client, select.POLLIN)
        self.children = Children(self.launcher, self.poll, self._on_exit, len(self.runs))
        self.verifying: _Run | None = None
        self.verifier_error: str | None = None  # why the supervisor killed the verifier
        self.copy: Copy | None = None  # what it reads
        self.verdict: Output | None = None  # what it prints
        self.winner: _Run | None = None
        self.tie = False
        self.infrastructure: str | None = None  # what failed for one racer without being its fault
        self.failure: str | None = None  # what failed for the whole race
        self.start_time = self.deadline = self.next_sample = 0.0

    def run(self) -> None:
        """Race, kill all processes, and report the result."""
        try:
            self._start()
            while self._is_undecided():
                self._wait()
                self.children.reap()  # calls _on_exit for every process that has exited
                self._check_memory()
                self._decide()
            stopped = False
        except ClientGoneError:
            stopped = True
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
            stopped, self.failure = False, f"{type(error).__name__}: {error}"
        self._settle()
        survivors = self.children.kill_all(everything=self.level == NAMESPACE and os.getpid() == 1)
        self.failure = survivors or self.failure
        self._close_verifier_files()
        if not stopped:
            self._report()

    # start

    def _start(self) -> None:
        hide()  # keeps racers from writing to this process's pipes and from reading the key that signs messages
        gate = Gate()
        for number in self.order:
            self._launch(self.runs[number], gate)
        self.start_time = gate.open_for(len(self.runs))
        self.deadline = self.start_time + self.limits.seconds
        self.connection.emit({"event": "started", "level": self.level})

    def _launch(self, run: _Run, gate: Gate) -> None:
        files = run.output.writing, run.errors
        self.children.start(run.number, run.racer.command, run.racer.environment, files, gate)
        run.output.close_writing()
        os.close(run.errors)
        run.is_running = True

    # wait

    def _is_undecided(self) -> bool:
        return self.winner is None and time.monotonic() < self.deadline and any(run.status is None for run in self.runs)

    def _wait(self) -> None:
        """Wait until a process exits, the client sends something, or something is due."""
        now = time.monotonic()
        until = now if self.children.has_backlog else min(self.deadline, now + _TICK_SECONDS, *self._get_due_times())
        ready = [descriptor for descriptor, _ in self.poll.poll(max(0.0, until - now) * 1000)]
        if self.client in ready:
            raise ClientGoneError
        if 0 in ready:
            self._handle_messages()

    def _get_due_times(self) -> list[float]:
        undecided = [] if self.verifying else self._get_undecided_answers()
        due = [self.start_time + run.seconds + _TIE_SECONDS for run in undecided]
        return [*due, self.next_sample] if self.limits.memory is not None else due

    def _handle_messages(self) -> None:
        for message in self.connection.receive():
            if message.get("stop"):
                raise ClientGoneError
            number, is_right, detail = message["verdict"]
            if self.verifying is self.runs[number]:
                self._accept_verdict(is_right, detail)

    # judge exits

    def _on_exit(self, number: int, code: int | None, cpu_seconds: float) -> None:
        """Handle the exit of a racer, of the verifier or, without a code, of an orphan that a racer left behind."""
        if code is None:
            self.runs[number].cpu_seconds += cpu_seconds
        elif number == VERIFIER:
            self._handle_verifier_exit(code)
        else:
            self._handle_racer_exit(self.runs[number], code, cpu_seconds)

    def _handle_racer_exit(self, run: _Run, code: int, cpu_seconds: float) -> None:
        run.is_running = False
        run.cpu_seconds += cpu_seconds
        run.exit_code, run.signal = (code, None) if code >= 0 else (None, -code)
        if run.status is None:
            run.seconds = time.monotonic() - self.start_time
            self._judge(run, code)

    def _judge(self, run: _Run, code: int) -> None:
        start_error = self.launcher.get_start_error(run.number)
        if start_error is not None:
            run.exit_code = None
            self._end(run, Status.NOT_STARTED, start_error)
        elif code == -signal.SIGXFSZ:
            self._end(run, Status.CRASHED, self._describe_full_output())
        elif code < 0:
            self._end(run, Status.CRASHED, f"killed by {get_signal_name(-code)}")
        else:
            self._judge_exit_code(run, code)

    def _judge_exit_code(self, run: _Run, code: int) -> None:
        most = self.launcher.max_bytes
        try:
            is_full, is_answer = run.output.size >= most, run.is_answer(code, most)
        except TimeoutError:
            self._fail(run, f"matching the pattern {run.racer.pattern} took more than {_PATTERN_SECONDS:g} s")
        else:
            if is_answer and is_full:
                self._end(run, Status.CRASHED, f"answered, but {self._describe_full_output()} and may be cut off")
            elif is_answer and self.to_end:
                self._end(run, Status.FINISHED)
            elif is_answer:
                run.has_answered = True
                self.connection.emit({"event": "answered", "number": run.number, "seconds": run.seconds})
            else:
                reason = f"exit code {code}" + (f"; {self._describe_full_output()}" if is_full else "")
                self._end(run, Status.NO_ANSWER, reason)

    def _describe_full_output(self) -> str:
        return f"its output reached the limit of {self.launcher.max_bytes / MEGABYTE:g} MB"

    # memory

    def _check_memory(self) -> None:
        start = time.monotonic()
        if self.limits.memory is None or start < self.next_sample:
            return
        over = [run.number for run in self.runs if run.status == Status.MEMORY]
        for owner, processes in self.children.find_by_owner().items():
            is_over = hold_more_than(processes, self.limits.memory * MEGABYTE)
            if is_over:
                self._note_excess(owner, start)
            if is_over or owner in over:
                kill_with_groups(processes)
        # scanning /proc takes long on a machine with many processes; it may take 5 % of the time
        now = time.monotonic()
        self.next_sample = now + max(_SAMPLE_SECONDS, 20 * (now - start))

    def _note_excess(self, owner: int | None, now: float) -> None:
        """Note that a racer or the verifier holds too much memory; there is nothing to note for unknown processes."""
        excess = f"held more than {self.limits.memory:g} MB"
        if owner == VERIFIER:
            self.verifier_error = excess
        elif owner is not None and self.runs[owner].is_running and self.runs[owner].status is None:
            self.runs[owner].seconds = now - self.start_time
            self._end(self.runs[owner], Status.MEMORY, excess)

    # decide

    def _get_undecided_answers(self) -> list[_Run]:
        return [run for run in self.runs if run.has_answered and run.status is None]

    def _decide(self) -> None:
        """Verify the next answer, unless one is being verified or another racer may still tie."""
        answers = self._get_undecided_answers()
        if self.winner is not None or self.verifying is not None or not answers:
            return
        end_of_tie = self.start_time + min(run.seconds for run in answers) + _TIE_SECONDS
        if time.monotonic() < min(end_of_tie, self.deadline) and any(run.is_running for run in self.runs):
            return
        run, _ = _pick_first(answers)
        if run.racer.verifier is not None:
            self._start_verifier(run, run.racer.verifier)
        elif self.client_checks:
            self.verifying = run
            self.connection.emit({"event": "verify", "number": run.number, "exit_code": run.exit_code})
        else:
            self._win(run)

    def _win(self, run: _Run) -> None:
        self.winner, self.tie = run, _pick_first(self._get_undecided_answers())[1]
        self._end(run, Status.WON)

    def _start_verifier(self, run: _Run, verifier: Sequence[str]) -> None:
        try:
            self.copy = Copy(run.output, self.folder)
            self.verdict = Output.create(self.folder)
        except OSError as error:
            self._fail(run, f"its output could not be copied for the verifier: {error.strerror}")
            return
        command = [argument.replace("{output}", self.copy.path) for argument in verifier]
        self.verifying, self.verifier_error = run, None
        writing = self.verdict.writing
        self.children.start(VERIFIER, command, run.racer.environment, (writing, writing))
        self.verdict.close_writing()

    def _handle_verifier_exit(self, code: int) -> None:
        run, line = self.verifying, "" if self.verdict is None else _read_last_line(self.verdict)
        error = self._close_verifier_files() or self.launcher.get_start_error(VERIFIER) or self.verifier_error
        if run is None:
            return
        if error is not None or code < 0:
            self.verifying = None
            self._fail(run, f"the verifier failed: {error or get_signal_name(-code)}")
            return
        self._accept_verdict(code == 0, f"the verifier exited with {code}{line and ': '}{line}")

    def _close_verifier_files(self) -> str | None:
        """Close what a verifier reads and prints, if there is one; say so if another process has taken its copy."""
        lost = None if self.copy is None or self.copy.is_there else "the output that it reads was removed or replaced"
        for file in (self.copy, self.verdict):
            if file is not None:
                file.close()
        self.copy = self.verdict = None
        return lost

    def _accept_verdict(self, is_right: bool, detail: str) -> None:
        run, self.verifying = self.verifying, None
        if run is not None and is_right:
            self._win(run)
        elif run is not None:
            self._end(run, Status.WRONG_ANSWER, detail)

    # end

    def _end(self, run: _Run, status: str, detail: str = "") -> None:
        run.status, run.detail = status, detail
        self.connection.emit({"event": "finished", **run.report()})

    def _fail(self, run: _Run, reason: str) -> None:
        self.infrastructure = reason
        self._end(run, Status.INFRASTRUCTURE_ERROR, reason)

    def _settle(self) -> None:
        """Set the status of every run that has none; the client gets it with the event `done`."""
        self.verifying = None
        for run in self.runs:
            if run.status is None:
                run.status, run.detail = self._get_last_status(run)
                if run.status == Status.INFRASTRUCTURE_ERROR:
                    self.infrastructure = run.detail
                if not run.has_answered and self.start_time:
                    run.seconds = time.monotonic() - self.start_time

    def _get_last_status(self, run: _Run) -> tuple[str, str]:
        if self.winner is not None:
            return (Status.FINISHED_LATE if run.has_answered else Status.KILLED), ""
        if self.failure is not None:
            return Status.INFRASTRUCTURE_ERROR, self.failure
        if run.has_answered:
            return Status.INFRASTRUCTURE_ERROR, "answered, but its answer was not verified in time"
        return Status.TIMEOUT, ""

    def _report(self) -> None:
        seconds = time.monotonic() - self.start_time if self.start_time else 0.0
        self.connection.emit({
            "event": "done",
            "winner": None if self.winner is None else self.winner.number,
            "tie": self.tie,
            "seconds": seconds if self.winner is None else self.winner.seconds,
            "infrastructure": self.failure or self.infrastructure,
            "runs": [run.report() for run in self.runs],
        })  # fmt: skip


def _make_runs(specification: dict[str, Any]) -> list[_Run]:
    """Make the runs of a race, with the open files that the client has handed down, which no racer inherits."""
    runs = []
    for number, racer in enumerate(specification["racers"]):
        writing, reading, errors = specification["outputs"][number]
        for descriptor in (writing, reading, errors):
            os.set_inheritable(descriptor, False)
        runs.append(_Run(number, Racer(**racer), specification["lots"][number], Output(writing, reading), errors))
    return runs


def _pick_first(answered: Sequence[_Run]) -> tuple[_Run, bool]:
    """Return the run that answered first, and whether others tied with it.

    Runs that answered within _TIE_SECONDS of the earliest compete: less CPU time wins, then the lower lot.
    """
    earliest = min(run.seconds for run in answered)
    together = [run for run in answered if run.seconds <= earliest + _TIE_SECONDS]
    return min(together, key=lambda run: (run.cpu_seconds, run.lot)), len(together) > 1


def _matches(pattern: str, output: bytes) -> bool:
    import re

    text = output.decode(errors="replace")
    signal.signal(signal.SIGALRM, _raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, _PATTERN_SECONDS)
    try:
        return re.search(pattern, text, re.MULTILINE) is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_timeout(*_: object) -> None:
    raise TimeoutError


def _read_last_line(output: Output) -> str:
    """Return the last line that is not blank; an empty string without any."""
    lines = output.read(1000, max(0, output.size - 1000)).decode(errors="replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
