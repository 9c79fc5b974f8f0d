"""Races by value: when all racers have ended, each answer is verified and gets a value, and the best value wins.

Verifiers and value commands run like racers: supervised, limited, and side by side, one for each racer. A small
separate program matches a regular expression, so that a match which takes forever can be stopped.
"""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from os import fspath
from pathlib import Path

from preselect.race.event_loop import Waiter
from preselect.race.pool import Pool
from preselect.race.pool_values import fill
from preselect.race.result import Finish, SupervisionResult, rank
from preselect.race.supervision import Judge, Limits, Racer, Status, Supervision, Watch
from preselect.race.supervisor.children import MEGABYTE
from preselect.race.supervisor.files import Copy, Output

_MIN_SECONDS = 10.0  # verifiers and value commands have at least this long, even if races are shorter
_MAX_CHARACTERS = 400  # of a number
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

# the last line of a racer that was stopped may be cut off, in the middle of a number
_SCRIPT = """
import re, sys
pattern, path, status = sys.argv[1:]
with open(path, "rb") as file:
    text = file.read().decode(errors="replace")
if status == "timeout":
    text = text[: max(text.rfind("\\n"), text.rfind("\\r")) + 1]
found = None
for found in re.finditer(pattern, text, re.MULTILINE):
    pass
if found is not None and found[1] is not None:
    sys.stdout.buffer.write(found[1].encode(errors="replace"))
"""


def make_judge(pool: Pool, instance: Path, folder: Path, *, level: str | None = None) -> Judge | None:
    """Return the judge that ranks racers by their values; None if the pool has no values."""
    return None if pool.better is None else partial(_rank_by_value, _Judge(pool, instance, folder, level))


async def _rank_by_value(
    judge: "_Judge", ended: SupervisionResult, outputs: Sequence[Output], waiter: Waiter, watch: Watch
) -> SupervisionResult:
    """Return the result of a race in which all racers ran to the end, by the values of their answers."""
    with ExitStack() as stack:
        finishes = judge.copy(ended.finishes, outputs, stack)
        finishes = await judge.find_values(await judge.verify(finishes, waiter, watch), waiter, watch)
    return _rank(replace(ended, finishes=tuple(finishes)), outputs, judge.pool)


class _Judge:
    """Asks the verifiers and the value commands of a pool about answers on one instance."""

    def __init__(self, pool: Pool, instance: Path, folder: Path, level: str | None) -> None:
        self.pool, self.instance, self.folder, self.level = pool, instance, folder, level
        self.copies: dict[str, Copy] = {}

    def copy(self, finishes: Sequence[Finish], outputs: Sequence[Output], stack: ExitStack) -> list[Finish]:
        """Copy the answers until the stack closes; return the finishes, with those void that could not be copied."""
        return [self._copy(finish, output, stack) for finish, output in zip(finishes, outputs, strict=True)]

    def _copy(self, finish: Finish, output: Output, stack: ExitStack) -> Finish:
        if not self._has_answer(finish):
            return finish
        try:
            self.copies[finish.name] = stack.enter_context(closing(Copy(output, str(self.folder))))
        except OSError as error:
            return _void(finish, f"its output could not be copied: {error.strerror}")
        return finish

    async def verify(self, finishes: list[Finish], waiter: Waiter, watch: Watch) -> list[Finish]:
        """Return the finishes, those with a wrong answer marked."""
        commands = {}
        for finish in filter(self._has_answer, finishes):
            verifier = self.pool.arms[finish.name].success.verifier
            if isinstance(verifier, tuple):
                commands[finish.name] = self._fill(verifier, self.copies[finish.name].path)
        asked = await self._ask(commands, waiter, watch)
        return [self._require_copy(finish) or _accept_verdict(finish, asked.get(finish.name)) for finish in finishes]

    async def find_values(self, finishes: list[Finish], waiter: Waiter, watch: Watch) -> list[Finish]:
        """Return the finishes with their values; an answer without a value does not count."""
        commands = {}
        for finish in filter(self._has_answer, finishes):
            value = self.pool.arms[finish.name].success.value
            assert value is not None
            path, end = self.copies[finish.name].path, finish.status
            commands[finish.name] = _match(value, path, end) if isinstance(value, str) else self._fill(value, path)
        asked = await self._ask(commands, waiter, watch)
        return [self._require_copy(finish) or _accept_value(finish, asked.get(finish.name)) for finish in finishes]

    def _require_copy(self, finish: Finish) -> Finish | None:
        """Return a void finish if another process has removed or replaced the copy of an answer; None otherwise."""
        if not self._has_answer(finish) or self.copies[finish.name].is_there:
            return None
        return _void(finish, "the copy of its output was removed or replaced")

    def _has_answer(self, finish: Finish) -> bool:
        is_stopped = finish.status == Status.TIMEOUT and self.pool.arms[finish.name].success.unfinished
        return finish.status == Status.FINISHED or is_stopped

    def _fill(self, command: Sequence[str], output: str) -> tuple[str, ...]:
        timeout = str(math.ceil(self.pool.limits.seconds))
        values = {"seed": str(self.pool.seed), "timeout": timeout, "output": output}
        return fill(command, {**values, "instance": fspath(self.instance.absolute())})

    async def _ask(self, commands: Mapping[str, Sequence[str]], waiter: Waiter, watch: Watch) -> dict[str, Finish]:
        """Run commands about the answers of arms; return by arm how they ended."""
        if not commands:
            return {}
        racers = [Racer(name, command, self.pool.arms[name].environment, (0,)) for name, command in commands.items()]
        limits = self.pool.limits
        limits = Limits(max(limits.seconds, _MIN_SECONDS), limits.memory, limits.output)
        asked = Supervision(racers, limits, folder=self.folder, level=self.level, to_end=True, watch=watch)
        return {finish.name: finish for finish in (await asked.run_in(waiter)).finishes}


def _match(pattern: str, output: str, status: str) -> tuple[str, ...]:
    """Return the command that prints the last match of a pattern in a racer's output, given how the racer ended."""
    return (sys.executable, "-I", "-S", "-c", _SCRIPT, pattern, output, status)


def _accept_verdict(finish: Finish, verdict: Finish | None) -> Finish:
    if verdict is None or verdict.status == Status.FINISHED:
        return finish
    if verdict.status == Status.NO_ANSWER:
        reason = _read_line(verdict.output) or _read_line(verdict.errors)
        detail = f"the verifier exited with {verdict.exit_code}{reason and ': '}{reason}"
        return finish._replace(status=Status.WRONG_ANSWER, detail=detail)
    return _blame(finish, "verifier", verdict)


def _accept_value(finish: Finish, said: Finish | None) -> Finish:
    if said is None:
        return finish
    if said.status == Status.NO_ANSWER:
        reason = _read_line(said.errors)
        return _refuse(finish, f"the value command exited with {said.exit_code}{reason and ': '}{reason}")
    if said.status != Status.FINISHED:
        return _blame(finish, "value command", said)
    try:
        value = _parse(_decode(said.output).strip())
    except ValueError as error:
        return _refuse(finish, str(error))
    detail = "stopped at the time limit" if finish.status == Status.TIMEOUT else ""
    return finish._replace(status=Status.FINISHED, value=value, detail=detail)


def _parse(text: str) -> float:
    """Read a finite number; a ValueError says why there is none.

    >>> _parse("-1.5e3")
    -1500.0
    """
    if not text:
        raise ValueError("it has no value")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"its value is {text!r:.60}, which is not a number")
    if not math.isfinite(value := float(text)):
        raise ValueError(f"its value is {text:.60}, which is too large")
    return value


def _refuse(finish: Finish, reason: str) -> Finish:
    """Return the finish of an answer without a value: the racer's fault, unless it was stopped at the time limit."""
    is_stopped = finish.status == Status.TIMEOUT
    return finish._replace(status=Status.TIMEOUT if is_stopped else Status.NO_ANSWER, detail=reason)


def _blame(finish: Finish, what: str, asked: Finish) -> Finish:
    """Return the finish of an answer whose verifier or value command failed, which is not the racer's fault."""
    return _void(finish, f"the {what} failed: {asked.status}{asked.detail and ', '}{asked.detail}")


def _void(finish: Finish, reason: str) -> Finish:
    return finish._replace(status=Status.INFRASTRUCTURE_ERROR, detail=reason)


def _decode(printed: bytes) -> str:
    return printed[:_MAX_CHARACTERS].decode(errors="replace")


def _read_line(printed: bytes) -> str:
    lines = [line for line in _decode(printed).splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


def _rank(ended: SupervisionResult, outputs: Sequence[Output], pool: Pool) -> SupervisionResult:
    """Return the race with its winner: of those with the best value, the one that took the least CPU time."""
    ranking = rank({one.name: one.value for one in ended.finishes if one.value is not None}, pool.better)
    best = [one for one in ended.finishes if ranking and one.name in ranking[0]]
    first = min(best, key=lambda one: one.cpu_seconds, default=None)
    finishes = tuple(
        one if one.value is None else one._replace(status=Status.WON if one in best else Status.BEHIND)
        for one in ended.finishes
    )
    failed = [one.detail for one in finishes if one.status == Status.INFRASTRUCTURE_ERROR]
    return replace(
        ended,
        winner=first and first.name,
        output=b"" if first is None else outputs[ended.finishes.index(first)].read(pool.limits.output * MEGABYTE),
        tie=len(best) > 1,
        finishes=finishes,
        infrastructure=ended.infrastructure or "; ".join(failed) or None,
    )
