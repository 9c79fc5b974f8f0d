"""Shared by the commands of studies: options, progress, and printed tables."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from preselect.cli.folders import Folder
from preselect.cli.formats import format_option
from preselect.cli.progress import Bar, show_progress
from preselect.errors import ResultsError
from preselect.policies import registry
from preselect.study import Plan, Results, Study, Summary
from preselect.study.plan import MAX_REPETITIONS
from preselect.study.report import format_mean, lay_out, lay_out_ratios
from preselect.study.results import Task
from preselect.study.tables import make_tables

FORMAT = format_option("table", "json", help="Print a table, or everything as JSON.")
_Command = TypeVar("_Command", bound=Callable[..., Any])


def add_common_options(folder: str, policies: Sequence[str], repetitions: int) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options that all studies have."""
    known = ", ".join(registry.POLICIES)
    options = (
        click.option("--out", type=Folder(), default=Path(folder), show_default=True,
                     help="Folder for results. An unfinished study in the folder is resumed; a finished one is extended."),
        click.option("--policies", multiple=True, metavar="NAMES",
                     help=f"Policies, separated by commas: {known}; also with parameters as in 'cppl(omega=0.5)', and your "
                     f"own as module:Class. The first is compared with the others.  [default: {','.join(policies)}]"),
        click.option("--reps", type=click.IntRange(1, MAX_REPETITIONS), default=repetitions, show_default=True,
                     help="Repetitions; run again with more to add them to the folder."),
        click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random numbers."),
        click.option("--workers", type=int, default=-1,
                     help="Processes; results do not depend on their number.  [default: one per core]"),
        click.option("--cluster", metavar="ADDRESS",
                     help="Run on a Dask cluster instead; the address is that of its scheduler, as in tcp://host:8786."),
        FORMAT,
    )  # fmt: skip

    def add_options(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add_options


def split_policies(given: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the policies that --policies names, or the default."""
    found = tuple(dict.fromkeys(name for text in given for name in registry.split(text)))
    if given and not found:
        raise click.BadParameter(f"--policies names no policy: {', '.join(map(repr, given))}")
    return found or default


def split_integers(text: str, option: str) -> list[int]:
    """Read integers with commas between, as in 2,3,5."""
    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise click.BadParameter(f"cannot read {option} {text!r}; write integers as in 2,3,5") from None


def carry_out(plan: Plan, out: Path, workers: int, cluster: str | None, style: str) -> None:
    """Compute the missing blocks and show the progress; then draw figures, write the report and print tables."""
    if workers < -1 or workers == 0:
        raise click.BadParameter(f"--workers is {workers}; give a number of processes, or -1 for one per core")
    study = Study.create(out, plan)
    with _explain_interrupt(study.results, plan), show_progress("blocks") as bar:
        study.compute(plan, workers=workers, cluster=cluster, report=partial(_show_block, bar))
    print_results(study.results, style, plan)
    click.echo(f"report: {study.folder / 'report.html'}", err=True)


def _show_block(bar: Bar, done: int, total: int, task: Task | None) -> None:
    """Show that a block is finished, or, without a task, how many are finished at the start."""
    if task is not None:
        bar.update(done, total, str(task))
        return
    bar.restart(done, total)
    if 0 < done < total:
        click.echo(f"resuming: {done} of {total} blocks are finished", err=True)


@contextmanager
def _explain_interrupt(results: Results, plan: Plan) -> Iterator[None]:
    """On Ctrl-C, print what is kept and how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        kept, total = results.count_blocks(plan)
        click.echo(f"\ninterrupted: {kept} of {total} blocks are kept; the same command resumes", err=True)
        sys.exit(130)


def print_results(results: Results, style: str, asked: Plan | None = None) -> None:
    """Print results as tables, or everything as JSON; say how many blocks of `asked`, or of all, are missing."""
    if style == "json":
        click.echo(json.dumps(_as_json(results), indent=2, allow_nan=False))
        return
    plan = results.plan
    measure, (_, _, label) = next(iter(plan.measures.items()))
    found = results.summarise(measure)
    if not found:
        raise ResultsError(f"{results.folder} holds no finished block yet")
    unfinished = len(results.find_pending(asked or plan))
    if unfinished:
        click.echo(f"unfinished: {unfinished} blocks are missing", err=True)
    cells = lay_out(plan, {key: _format_summary(summary) for key, summary in found.items()}, "–")
    shown = "mean ± standard error" if any(one.repetitions > 1 for one in found.values()) else "mean"
    _print_table(f"{label} in the end, {shown} (repetitions)", cells)
    for name, values in results.compute_ratios().items():
        _print_table(name, lay_out_ratios(plan, values))


def _print_table(title: str, cells: list[list[str]]) -> None:
    header, *rows = cells
    table = Table()
    for column, name in enumerate(header):
        table.add_column(Text(name), justify="right" if column else "left")
    for row in rows:
        table.add_row(*map(Text, row))  # not markup: names may have brackets
    click.echo(title)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _format_summary(summary: Summary) -> str:
    return f"{format_mean(summary.mean, summary.standard_error)} ({summary.repetitions})"


def _as_json(results: Results) -> dict[str, object]:
    tables = make_tables(results)
    shown = {name: tables[name] for name in ("summary", "ratios", "paired")}
    return {"parameters": results.plan.as_json(), **shown}
