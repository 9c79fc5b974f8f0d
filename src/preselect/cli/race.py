"""`preselect race`: run k solvers of a pool on each instance, stop at the first right answer, learn which to race."""

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from preselect.cli.instances import iterate_files, list_files, make_printable, require_apart
from preselect.errors import InputError
from preselect.race import RaceResult, RaceSession, Standing, check_arms, find_solvers, read_pool, write_pool
from preselect.race.answers import EXIT_CODES
from preselect.race.outputs import OutputFolder
from preselect.race.summary import RaceSummary, summarise_races
from preselect.race.supervision import Status, Watch
from preselect.store import Journal, read_rounds

_POOL = click.argument("pool_file", metavar="POOL", type=click.Path(path_type=Path))


class _Race(click.Group):
    """Treats a first word that is not a subcommand as a pool: `race pool.toml FILE` means `race run pool.toml FILE`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(context, args)


@click.group(cls=_Race)
def race() -> None:
    """Race k solvers of a pool on each instance, stop at the first right answer, and learn which ones to race.

    \b
    preselect race init                        write pool.toml from the solvers that are installed
    preselect race check pool.toml             try each solver on a tiny formula
    preselect race pool.toml cnf/*.cnf         race, learn, print the winners' answers
    preselect race pool.toml --watch inbox     race on every file that appears in a folder
    preselect race report pool.toml            write a page about what has been learnt

    Everything learnt is in the pool's journal: race on more instances tomorrow, and learning continues from there.
    `preselect race run --help` lists the options of a race.
    """


@race.command()
@click.argument("pool", default="pool.toml", type=click.Path(path_type=Path))
@click.option("--k", type=click.IntRange(1), help="Solvers per race.  [default: 2]")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time limit of a race.")
def init(pool: Path, k: int | None, seconds: float) -> None:
    """Write a commented POOL file with the solvers that are installed here and SAPS, which comes with preselect."""
    found = find_solvers()
    write_pool(pool, found, k=k, seconds=seconds)
    click.echo(f"{pool}: {', '.join(solver.name for solver in found)}")
    click.echo(f"next: preselect race check {shlex.quote(str(pool))}", err=True)


@race.command()
@_POOL
@click.option("--instance", type=click.Path(path_type=Path), help="Try them on this file instead of tiny formulas.")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
def check(pool_file: Path, instance: Path | None, style: str) -> None:
    """Try each arm of POOL and say what is wrong. The exit code is 1 if anything is."""
    with tempfile.TemporaryDirectory(prefix="preselect-") as folder:
        checks = check_arms(read_pool(pool_file), Path(folder), instance=instance)
    if style == "json":
        click.echo(json.dumps([each._asdict() for each in checks], indent=2))
    else:
        for each in checks:
            click.echo(f"{'ok   ' if each.ok else 'wrong'}  {each.arm}: {each.message}")
    if not all(each.ok for each in checks):
        sys.exit(1)


@race.command()
@_POOL
@click.argument("instances", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--watch",
    "inbox",
    type=click.Path(path_type=Path),
    help="Race on every file that appears in this folder, until Ctrl-C.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), help="Write each winner's output to NAME.out in this folder."
)
@click.option("--k", type=click.IntRange(1), help="Solvers per race, instead of the pool's number.")
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="Time limit of a race, instead of the pool's."
)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def run(
    pool_file: Path,
    instances: tuple[Path, ...],
    inbox: Path | None,
    output: Path | None,
    k: int | None,
    seconds: float | None,
    style: str,
) -> None:
    """Race solvers of POOL on INSTANCES: files, folders of files, or - for a list of files on standard input.

    The winner's output goes to standard output, or to a folder with --output. Progress and a summary go to standard
    error. With --format json, standard output has a line of JSON for each instance instead.

    With --output, the answer to a.cnf is in a.cnf.out; there is no such file if there was no winner. An output that an
    earlier run wrote is replaced or removed. Any other file stays as it is: if one is in the way, nothing is raced.
    (The folder's file .preselect-outputs lists what was written there, with checksums.)

    For a single file the exit code is that of a SAT solver: 10 satisfiable, 20 unsatisfiable, 0 unknown. For several
    files it is 0 if all of them have been raced, and 1 otherwise.
    """
    if not instances and inbox is None:
        raise click.UsageError("name instances to race on, or a folder with --watch")
    pool = read_pool(pool_file).override(k=k, seconds=seconds)
    files = list_files(instances)
    require_apart(output, inbox, instances)
    batch = _Batch(files, inbox, None if output is None else OutputFolder(output, files), style)
    log = _Log()
    with RaceSession(pool) as session, _explain_interrupt(pool.journal, log, inbox):
        for position, file in enumerate(iterate_files(files, inbox), start=1):
            _race_one(session, file, batch, log, f"[{position}/{len(files)}]" if position <= len(files) else "[new]")
    _print_summary(pool.journal, log)
    if log.failed:
        raise InputError(f"{_count(log.failed, 'instance')} could not be raced; see above")
    if batch.is_single and log.last is not None and log.last.winner is not None:
        sys.exit(EXIT_CODES.get(log.last.answer or "", log.last.exit_code))


@race.command()
@click.argument("pool", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="race.html",
    show_default=True,
    help="The page. An earlier page is replaced; any other file that exists is an error and stays as it is.",
)
def report(pool: Path, out: Path) -> None:
    """Write an HTML page about what has been learnt with POOL, a pool file (.toml) or a journal."""
    from preselect.race.report import write_report

    journal = read_pool(pool).journal if pool.suffix == ".toml" else pool
    if journal != pool and os.path.realpath(out) == os.path.realpath(pool):
        raise InputError(f"cannot write the page to {str(out)!r}: it is the pool; name another file")
    click.echo(f"report: {write_report(journal, out)}")


# --- the races of a run -----------------------------------------------------------------------------------------------


class _Batch(NamedTuple):
    """What is raced on, and where answers go."""

    files: list[Path]
    inbox: Path | None
    output: OutputFolder | None
    style: str

    @property
    def is_single(self) -> bool:
        return len(self.files) == 1 and self.inbox is None


@dataclass
class _Log:
    """What has happened so far: the first and the last race, and how many instances could not be raced."""

    first: RaceResult | None = None
    last: RaceResult | None = None
    failed: int = 0

    def add(self, result: RaceResult) -> None:
        self.first, self.last = self.first or result, result
        self.failed += result.void is not None and result.winner is None


def _race_one(session: RaceSession, file: Path, batch: _Batch, log: _Log, progress: str) -> None:
    """Race on a file and print the result; an error ends the command only if it is the only file."""
    try:
        if batch.output is not None:
            batch.output.require_free(file)
        with _show_standings(file) as watch:
            result = session.run(file, watch=watch)
        log.add(result)
        _print_result(result, progress)
        _write_answer(result, batch)
    except InputError as error:
        if batch.is_single:
            raise
        log.failed += 1
        click.echo(f"{progress} {make_printable(file)}: {error}", err=True)


@contextmanager
def _explain_interrupt(journal: Path, log: _Log, inbox: Path | None) -> Iterator[None]:
    """On Ctrl-C, say that nothing is lost and how to continue, and summarise the races so far."""
    try:
        yield
    except KeyboardInterrupt:
        if inbox is None:
            advice = "to continue, run the command again with the remaining instances"
        else:
            advice = f"to continue, run the same command again: it races on every file that is then in {_quote(inbox)}"
        click.echo(f"\ninterrupted; what was learnt is in {_quote(journal)}; {advice}", err=True)
        _print_summary(journal, log)
        sys.exit(130)


# --- what is printed --------------------------------------------------------------------------------------------------


@contextmanager
def _show_standings(file: Path) -> Iterator[Watch | None]:
    """Show a live table of the racers, on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        yield lambda standings: live.update(_tabulate_standings(file, standings))


def _tabulate_standings(file: Path, standings: list[Standing]) -> Table:
    table = Table(title=Text(make_printable(file)), title_justify="left")
    for column in ("racer", "", "s"):
        table.add_column(column, justify="right" if column == "s" else "left")
    for racer in standings:
        state = racer.status or ("being verified" if racer.answered else "running")
        table.add_row(Text(racer.name), str(state), f"{racer.seconds:.1f}")
    return table


def _print_result(result: RaceResult, progress: str) -> None:
    click.echo(f"{progress} {make_printable(result.instance)}: {_describe(result)}", err=True)
    for finish in result.finishes:
        if finish.status in (Status.WRONG_ANSWER, Status.CRASHED, Status.MEMORY):
            click.echo(f"    {finish.name}: {finish.status}, {finish.detail}", err=True)
    for problem in (result.void and f"nothing was learnt: {result.void}", result.warning):
        if problem:
            click.echo(f"    {problem}", err=True)


def _describe(result: RaceResult) -> str:
    if result.winner is None:
        ends = ", ".join(f"{finish.name} {finish.status}" for finish in result.finishes)
        return f"no winner after {result.seconds:.2f} s ({ends})"
    others = ", ".join(name for name in result.chosen if name != result.winner)
    against = f" (against {others})" if others else " (alone)"
    tie = ", a tie" if result.tie else ""
    return f"{result.answer or 'answered'} by {result.winner} in {result.seconds:.2f} s{tie}{against}"


def _write_answer(result: RaceResult, batch: _Batch) -> None:
    """Write the winner's output, or a line of JSON, where it was asked for."""
    if batch.output is not None and result.winner is not None:
        batch.output.write(result.instance, result.output)
    elif batch.output is not None:
        batch.output.remove(result.instance)
    if batch.style == "json":
        click.echo(json.dumps(_to_json(result, batch.output)))
    elif batch.output is None:
        if not batch.is_single:
            click.echo(f"c instance {make_printable(result.instance)}")
        sys.stdout.flush()
        sys.stdout.buffer.write(_answer(result))
        sys.stdout.buffer.flush()


def _answer(result: RaceResult) -> bytes:
    """What the winner printed, or what its exit code means, or that the answer is unknown."""
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


def _print_summary(journal: Path, log: _Log) -> None:
    """Summarise the races of this run as the journal has them."""
    if log.first is None:
        return
    with Journal.read(journal) as source:
        summary = summarise_races(read_rounds(source, after=log.first.number - 1))
    click.echo(_summarise(summary), err=True)
    Console(stderr=True).print(_tabulate_arms(summary))
    click.echo("saved: against the arm alone, on solved instances, not counting features; –: unknown", err=True)


def _summarise(summary: RaceSummary) -> str:
    others = {"without a winner": summary.unsolved, "void": summary.void, "unfinished": summary.counts.unfinished}
    return (
        f"{summary.solved} of {_count(summary.counts.rounds, 'race')} solved"
        + "".join(f", {count} {what}" for what, count in others.items() if count)
        + f"; {summary.seconds or 0.0:.2f} s of racing, {summary.feature_seconds or 0.0:.2f} s for features"
    )


def _tabulate_arms(summary: RaceSummary) -> Table:
    table = Table()
    for column in ("arm", "played", "won", "saved at least, s"):
        table.add_column(column, justify="left" if column == "arm" else "right")
    plays, wins = summary.counts.plays, summary.counts.wins
    for arm in sorted(plays, key=lambda arm: (-wins[arm], -plays[arm], arm)):
        single = summary.single_arms.get(arm)
        saved = f"{single.saved_seconds:.2f}" if single and single.saved_seconds > 0 else "–"
        table.add_row(Text(arm), str(plays[arm]), str(wins[arm]), saved)
    return table


def _quote(path: Path) -> str:
    """Return a path as it can be pasted into a shell."""
    return shlex.quote(make_printable(path))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
