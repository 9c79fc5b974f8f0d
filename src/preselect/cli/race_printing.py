"""What `preselect race` prints about each race, and where it writes the winner's output."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click

from preselect.cli.instances import make_printable, make_visible
from preselect.race import RaceResult
from preselect.race.outputs import OutputFolder
from preselect.race.supervision import Status


class Batch(NamedTuple):
    """What is raced on, and where answers go."""

    files: list[Path]
    inbox: Path | None
    output: OutputFolder | None
    style: str
    is_for_sat: bool

    @property
    def is_single(self) -> bool:
        return len(self.files) == 1 and self.inbox is None


def print_result(result: RaceResult, progress: str) -> None:
    """Print how a race ended, and what was wrong with its racers."""
    click.echo(f"{progress} {make_printable(result.instance)}: {_describe(result)}", err=True)
    for finish in result.finishes:
        if finish.status in (Status.WRONG_ANSWER, Status.CRASHED, Status.MEMORY):
            click.echo(f"    {finish.name}: {finish.status}, {make_visible(finish.detail)}", err=True)
    for problem in (result.void and f"nothing was learnt: {result.void}", result.warning):
        if problem:
            click.echo(f"    {make_visible(problem)}", err=True)


def _describe(result: RaceResult) -> str:
    if result.winner is None:
        ends = ", ".join(f"{finish.name} {finish.status}" for finish in result.finishes)
        return f"no winner after {result.seconds:.2f} s ({ends})"
    if result.better is not None:
        return _describe_values(result)
    others = ", ".join(name for name in result.chosen if name != result.winner)
    against = f" (against {others})" if others else " (alone)"
    tie = ", a tie" if result.tie else ""
    return f"{result.answer or 'answered'} by {result.winner} in {result.seconds:.2f} s{tie}{against}"


def _describe_values(result: RaceResult) -> str:
    others = [
        f"{finish.name} {finish.status if finish.value is None else format(finish.value, '.10g')}"
        for finish in result.finishes
        if finish.name != result.winner
    ]
    tie = ", a tie" if result.tie else ""
    return f"{result.value:.10g} by {result.winner} in {result.seconds:.2f} s{tie} ({', '.join(others) or 'alone'})"


def write_answer(result: RaceResult, batch: Batch) -> None:
    """Write the winner's output, or a line of JSON, where it was asked for."""
    if batch.output is not None and result.winner is not None:
        batch.output.write(result.instance, result.output)
    elif batch.output is not None:
        batch.output.remove(result.instance)
    if batch.style == "json":
        click.echo(json.dumps(_to_json(result, batch.output)))
    elif batch.output is None:
        _print_answer(result, batch)


def _print_answer(result: RaceResult, batch: Batch) -> None:
    """Print the answer as it is; if there are several instances, under a heading and with a line break at its end."""
    answer = _answer(result) if batch.is_for_sat else result.output
    if not batch.is_single:
        name = make_printable(result.instance)
        click.echo(f"c instance {name}" if batch.is_for_sat else f"==> {name} <==")
        answer += b"\n" if answer and not answer.endswith(b"\n") else b""
    sys.stdout.flush()
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()


def _answer(result: RaceResult) -> bytes:
    """Return what the winning SAT solver printed, or what its exit code means, or that the answer is unknown."""
    if result.winner is not None and (result.output or result.answer is None):
        return result.output
    return f"s {result.answer or 'UNKNOWN'}\n".encode()


def _to_json(result: RaceResult, output: OutputFolder | None) -> dict[str, Any]:
    if output is None:
        written: str | None = result.output.decode(errors="replace")
    else:
        written = str(output.locate(result.instance)) if result.winner else None
    return {
        "instance": str(result.instance),
        "decision": result.number,
        "chosen": result.chosen,
        "winner": result.winner,
        "answer": result.answer,
        **({"value": result.value, "better": result.better} if result.better else {}),
        "exit_code": result.exit_code,
        "seconds": result.seconds,
        "feature_seconds": result.feature_seconds,
        "tie": result.tie,
        "level": result.level,
        "void": result.void,
        "warning": result.warning,
        "racers": [{**finish._asdict(), "output": None, "errors": None} for finish in result.finishes],
        "output": written,
    }
