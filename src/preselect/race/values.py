"""Races by value: when all racers have ended, each answer is verified and gets a value, and the best value wins.

Verifiers and value commands run as racers do, supervised and limited, one for each racer, side by side. A regular
expression is matched by a small program of its own, so that one that takes forever can be stopped.
"""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import fspath
from pathlib import Path

from preselect.race.event_loop import Waiter
from preselect.race.pool import Pool
from preselect.race.pool_values import fill
from preselect.race.result import Finish, SupervisionResult, rank
from preselect.race.supervision import Limits, Racer, Status, Supervision
from preselect.race.supervisor.children import MEGABYTE
from preselect.race.supervisor.files import is_regular, read_beginning

_MIN_SECONDS = 10.0  # for verifiers and value commands, even if the time limit of the race is shorter
_MAX_CHARACTERS = 400  # of a number
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

_SCRIPT = """
import re, sys
with open(sys.argv[2], "rb") as file:
    text = file.read().decode(errors="replace")
found = None
for found in re.finditer(sys.argv[1], text, re.MULTILINE):
    pass
if found is not None and found[1] is not None:
    sys.stdout.buffer.write(found[1].encode(errors="replace"))
"""


async def rank_by_value(
    ended: SupervisionResult, pool: Pool, instance: Path, waiter: Waiter, *, level: str | None = None
) -> SupervisionResult:
    """Return how a race that all racers ran to their end has ended, by the values of their answers."""
    judge = _Judge(pool, instance, waiter, level)
    finishes = await judge.find_values(await judge.verify(list(map(_require_output, ended.finishes))))
    return _rank(replace(ended, finishes=tuple(finishes)), pool)


class _Judge:
    """Asks the verifiers and the value commands of a pool about answers on one instance."""

    def __init__(self, pool: Pool, instance: Path, waiter: Waiter, level: str | None) -> None:
        self.pool, self.instance, self.waiter, self.level = pool, instance, waiter, level

    async def verify(self, finishes: list[Finish]) -> list[Finish]:
        """Return the finishes, those with a wrong answer marked."""
        commands = {}
        for finish in filter(self._has_answer, finishes):
            verifier = self.pool.arms[finish.name].success.verifier
            if isinstance(verifier, tuple):
                commands[finish.name] = self._fill(verifier, finish.output)
        asked = await self._ask("verifier", commands, finishes)
        return [_accept_verdict(finish, asked.get(finish.name)) for finish in finishes]

    async def find_values(self, finishes: list[Finish]) -> list[Finish]:
        """Return the finishes with their values; an answer without a value is none."""
        commands = {}
        for finish in filter(self._has_answer, finishes):
            value = self.pool.arms[finish.name].success.value
            assert value is not None
            filled = _match(value, finish.output) if isinstance(value, str) else self._fill(value, finish.output)
            commands[finish.name] = filled
        asked = await self._ask("value", commands, finishes)
        return [_accept_value(finish, asked.get(finish.name)) for finish in finishes]

    def _has_answer(self, finish: Finish) -> bool:
        is_stopped = finish.status == Status.TIMEOUT and self.pool.arms[finish.name].success.unfinished
        return finish.status == Status.FINISHED or is_stopped

    def _fill(self, command: Sequence[str], output: Path) -> tuple[str, ...]:
        timeout = str(math.ceil(self.pool.limits.seconds))
        values = {"seed": str(self.pool.seed), "timeout": timeout, "output": str(output)}
        return fill(command, {**values, "instance": fspath(self.instance.absolute())})

    async def _ask(
        self, what: str, commands: Mapping[str, Sequence[str]], finishes: Sequence[Finish]
    ) -> dict[str, Finish]:
        """Run commands about the answers of arms; return by arm how they ended."""
        if not commands:
            return {}
        racers = [Racer(name, command, self.pool.arms[name].environment, (0,)) for name, command in commands.items()]
        limits = self.pool.limits
        limits = Limits(max(limits.seconds, _MIN_SECONDS), limits.memory, limits.output)
        folder = finishes[0].output.parent / what
        asked = await Supervision(racers, limits, folder=folder, level=self.level, to_end=True).run_in(self.waiter)
        return {finish.name: finish for finish in asked.finishes}


def _require_output(finish: Finish) -> Finish:
    """Return that there is no answer if the racer has removed its output file, or replaced it by a pipe or a link."""
    if is_regular(finish.output) or finish.status not in (Status.FINISHED, Status.TIMEOUT):
        return finish
    return finish._replace(status=Status.NO_ANSWER, detail="its output file was removed or replaced")


def _match(pattern: str, output: Path) -> tuple[str, ...]:
    """Return the command that prints the last match of a pattern."""
    return (sys.executable, "-I", "-S", "-c", _SCRIPT, pattern, str(output))


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
        value = _parse(_read(said.output).strip())
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
    """Return that an answer has no value: the racer's fault, or what was to be expected of one that was stopped."""
    is_stopped = finish.status == Status.TIMEOUT
    return finish._replace(status=Status.TIMEOUT if is_stopped else Status.NO_ANSWER, detail=reason)


def _blame(finish: Finish, what: str, asked: Finish) -> Finish:
    """Return that what was asked about an answer failed, which is not the racer's fault."""
    why = f"the {what} failed: {asked.status}{asked.detail and ', '}{asked.detail}"
    return finish._replace(status=Status.INFRASTRUCTURE_ERROR, detail=why)


def _read(path: Path) -> str:
    return read_beginning(path, _MAX_CHARACTERS).decode(errors="replace")


def _read_line(path: Path) -> str:
    lines = [line for line in _read(path).splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


def _rank(ended: SupervisionResult, pool: Pool) -> SupervisionResult:
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
        output=b"" if first is None else read_beginning(first.output, pool.limits.output * MEGABYTE),
        tie=len(best) > 1,
        finishes=finishes,
        infrastructure=ended.infrastructure or "; ".join(failed) or None,
    )
