"""`preselect race`: run k solvers of a pool on each instance, stop at the first right answer, learn which to race."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from preselect.errors import InputError
from preselect.race import RaceResult, Races, read_pool
from preselect.race.check import try_arms
from preselect.race.solvers import find_solvers, write_pool
from preselect.race.summary import Tally
from preselect.race.supervision import Standing, Watch

_WATCH_SECONDS = 0.5
_EXIT_CODES = {"SATISFIABLE": 10, "UNSATISFIABLE": 20}  # as the SAT competitions agreed
_POOL = click.argument("pool", type=click.Path(path_type=Path))


class _Race(click.Group):
    """What is not a subcommand is a pool: `preselect race pool.toml FILE...` means `preselect race run ...`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(context, args)


@click.group(cls=_Race)
def race() -> None:
    """Race k solvers of a pool on each instance, stop at the first right answer, and learn which to race.

    \b
    preselect race init                        write pool.toml from the solvers that are installed
    preselect race check pool.toml             try every one of them on a tiny formula
    preselect race pool.toml cnf/*.cnf         race, learn, print the winners' answers
    preselect race pool.toml --watch inbox     race on whatever comes into a folder
    preselect race report pool.toml            a page about what has been learnt

    Everything is kept in the pool's journal: give the next instances tomorrow, and it goes on from there.
    """


@race.command()
@click.argument("pool", default="pool.toml", type=click.Path(path_type=Path))
@click.option("--k", type=click.IntRange(1), help="Racers per instance.  [default: 2]")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time for a race.")
def init(pool: Path, k: int | None, seconds: float) -> None:
    """Write a commented POOL file from the solvers that are found here, and SAPS, our own."""
    found = find_solvers()
    write_pool(pool, found, k=k, seconds=seconds)
    click.echo(f"{pool}: {', '.join(solver.name for solver in found)}")
    click.echo(f"next: preselect race check {pool}", err=True)


@race.command()
@_POOL
@click.option("--instance", type=click.Path(path_type=Path), help="Try on this one instead of tiny formulas.")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
def check(pool: Path, instance: Path | None, style: str) -> None:
    """Try every arm of POOL, and say what is wrong; the exit code is 1 if something is."""
    with tempfile.TemporaryDirectory(prefix="preselect-") as folder:
        trials = try_arms(read_pool(pool), Path(folder), instance=instance)
    if style == "json":
        click.echo(json.dumps([trial._asdict() for trial in trials], indent=2))
    else:
        for trial in trials:
            click.echo(f"{'ok   ' if trial.ok else 'wrong'}  {trial.arm}: {trial.said}")
    if not all(trial.ok for trial in trials):
        sys.exit(1)


@race.command()
@_POOL
@click.argument("instances", nargs=-1, type=click.Path(path_type=Path))
@click.option("--watch", "inbox", type=click.Path(path_type=Path), help="Race on every file that comes into a folder.")
@click.option("--output", type=click.Path(path_type=Path), help="Write winners' outputs into this folder.")
@click.option("--k", type=click.IntRange(1), help="Racers per instance, instead of the pool's.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Time for a race, instead of the pool's.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def run(
    pool: Path,
    instances: tuple[Path, ...],
    inbox: Path | None,
    output: Path | None,
    k: int | None,
    seconds: float | None,
    style: str,
) -> None:
    """Race solvers of POOL on INSTANCES: files, folders of files, or - for a list of files from standard input.

    The winner's output goes to standard output, or into a folder with --output; what happens, and a summary, to
    standard error. With --format json standard output has one line of JSON for each instance instead.

    For a single file the exit code is that of a SAT solver: 10 satisfiable, 20 unsatisfiable, 0 unknown. For several it
    is 0 when all have been raced on, 1 if some could not be.
    """
    if not instances and inbox is None:
        raise click.UsageError("name instances to race on, or a folder with --watch")
    setting = read_pool(pool).changed(k=k, seconds=seconds)
    files = _listed(instances)
    if output is not None:
        _require_distinct(files, output, inbox)
        output.mkdir(parents=True, exist_ok=True)
    tally, single = Tally(setting.limits.seconds), len(files) == 1 and inbox is None
    raced, failed = None, 0
    with Races(setting) as races, _interruptible(tally):
        for place, file in enumerate(_all(files, inbox), start=1):
            try:
                with _table(file) as watch:
                    raced = races.run(file, watch=watch)
            except InputError as error:
                if single:
                    raise
                failed += 1
                click.echo(f"{_place(place, files)} {_printable(file)}: {error}", err=True)
                continue
            tally.add(raced)
            failed += raced.void is not None and raced.winner is None
            _tell(raced, _place(place, files))
            _write(raced, output, style, single)
    _summarise(tally)
    if failed:
        raise InputError(f"instances must be such that they can be raced on, got {failed} that could not, see above")
    if single and raced is not None and raced.winner is not None:
        sys.exit(_EXIT_CODES.get(raced.answer or "", raced.exit_code))


@race.command()
@click.argument("pool", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default="race.html", show_default=True, help="Where to.")
def report(pool: Path, out: Path) -> None:
    """Write one HTML page about what has been learnt with POOL: a pool file, or a journal."""
    from preselect.race.report import write_report

    journal = read_pool(pool).journal if pool.suffix == ".toml" else pool
    click.echo(f"report: {write_report(journal, out)}")


def _place(place: int, files: list[Path]) -> str:
    return f"[{place}/{len(files)}]" if place <= len(files) else "[new]"


def _printable(path: Path) -> str:
    """A path as text, whatever bytes its name is made of."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _require_distinct(files: list[Path], output: Path, inbox: Path | None) -> None:
    """Outputs are called after instances: no two may have the same name, and none may become an instance."""
    if inbox is not None and output.absolute() == inbox.absolute():
        raise InputError(f"output must be another folder than the one that is watched, got {str(output)!r} for both")
    named: dict[str, Path] = {}
    for file in files:
        other = named.setdefault(file.name, file)
        if other.absolute() != file.absolute():
            raise InputError(
                f"instances must have different names for --output, got {str(other)!r} and {str(file)!r}; "
                "race on them one by one, or rename one"
            )


def _listed(given: Iterable[Path]) -> list[Path]:
    """Files, those in folders, and those that standard input lists."""
    files: list[Path] = []
    for path in given:
        if str(path) == "-":
            files += [Path(os.fsdecode(line)) for line in sys.stdin.buffer.read().splitlines() if line.strip()]
        elif path.is_dir():
            files += _inside(path)
        else:
            files.append(path)
    for file in files:
        if not file.is_file():
            raise InputError(f"instance must be a file, got {str(file)!r}; nothing was raced")
    return files


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _all(files: list[Path], inbox: Path | None) -> Iterator[Path]:
    """The files, and then for ever those that come into the inbox and have stopped growing."""
    yield from files
    if inbox is None:
        return
    if not inbox.is_dir():
        raise InputError(f"watch must be a folder, got {str(inbox)!r}; make it first")
    click.echo(f"watching {inbox}; Ctrl-C ends", err=True)
    seen, states = set(files), dict[Path, tuple[int, int] | None]()
    while True:
        now = {path: _state(path) for path in _inside(inbox) if path not in seen}
        for path, state in now.items():
            if state is not None and states.get(path) == state:
                seen.add(path)
                yield path
        states = now
        time.sleep(_WATCH_SECONDS)


def _state(path: Path) -> tuple[int, int] | None:
    """Size and time of the last change; None if it is gone."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


@contextmanager
def _interruptible(tally: Tally) -> Iterator[None]:
    """On Ctrl-C end the race, say what came of the others, and that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(
            "\ninterrupted; what was learnt is in the journal, give the other instances again to go on", err=True
        )
        _summarise(tally)
        sys.exit(130)


@contextmanager
def _table(file: Path) -> Iterator[Watch | None]:
    """A live table of the racers, on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        yield lambda standings: live.update(_standings(file, standings))


def _standings(file: Path, standings: list[Standing]) -> Table:
    table = Table(title=Text(_printable(file)), title_justify="left")
    for column in ("racer", "", "s"):
        table.add_column(column, justify="right" if column == "s" else "left")
    for racer in standings:
        state = racer.status or ("being verified" if racer.answered else "running")
        table.add_row(Text(racer.name), str(state), f"{racer.seconds:.1f}")
    return table


def _tell(raced: RaceResult, place: str) -> None:
    if raced.winner is None:
        ends = ", ".join(f"{finish.name} {finish.status}" for finish in raced.finishes)
        said = f"nobody, {raced.seconds:.2f} s ({ends})"
    else:
        others = ", ".join(name for name in raced.chosen if name != raced.winner) or "nobody else"
        tie = ", a tie" if raced.tie else ""
        said = f"{raced.answer or 'answered'} by {raced.winner} in {raced.seconds:.2f} s{tie} (raced: {others})"
    click.echo(f"{place} {_printable(raced.instance)}: {said}", err=True)
    for finish in raced.finishes:
        if finish.status in ("wrong answer", "crashed", "memory"):
            click.echo(f"    {finish.name}: {finish.status}, {finish.detail}", err=True)
    for problem in (raced.void and f"nothing was learnt: {raced.void}", raced.warning):
        if problem:
            click.echo(f"    {problem}", err=True)


def _write(raced: RaceResult, output: Path | None, style: str, single: bool) -> None:
    """The winner's output, or a line of JSON, where it was asked for."""
    place = None if output is None else output / f"{raced.instance.name}.out"
    if place is not None and raced.winner is not None:
        place.write_bytes(raced.output)
    elif place is not None:
        place.unlink(missing_ok=True)  # of an earlier run: it is no answer to this one
    if style == "json":
        click.echo(json.dumps(_as_json(raced, place)))
    elif place is None:
        if not single:
            click.echo(f"c instance {_printable(raced.instance)}")
        sys.stdout.flush()
        sys.stdout.buffer.write(_answer(raced))
        sys.stdout.buffer.flush()


def _answer(raced: RaceResult) -> bytes:
    """What the winner printed, or what its exit code says, or that nobody knows."""
    if raced.winner is not None and (raced.output or raced.answer is None):
        return raced.output
    return f"s {raced.answer or 'UNKNOWN'}\n".encode()


def _as_json(raced: RaceResult, place: Path | None) -> dict[str, Any]:
    return {
        "instance": str(raced.instance),
        "decision": raced.number,
        "chosen": raced.chosen,
        "winner": raced.winner,
        "answer": raced.answer,
        "exit_code": raced.exit_code,
        "seconds": raced.seconds,
        "feature_seconds": raced.feature_seconds,
        "tie": raced.tie,
        "level": raced.level,
        "void": raced.void,
        "warning": raced.warning,
        "racers": [
            {**finish._asdict(), "output": None, "errors": None, "status": str(finish.status)}
            for finish in raced.finishes
        ],
        "output": raced.output.decode(errors="replace") if place is None else str(place) if raced.winner else None,
    }


def _summarise(tally: Tally) -> None:
    if not tally.races:
        return
    click.echo(
        f"{tally.solved} of {tally.races} solved in {tally.seconds:.2f} s of racing, {tally.feature_seconds:.2f} s of "
        f"features{f', {tally.void} void' if tally.void else ''}",
        err=True,
    )
    table = Table()
    for column in ("arm", "raced", "won", "saved at least, s"):
        table.add_column(column, justify="left" if column == "arm" else "right")
    for name, share in sorted(tally.shares.items(), key=lambda item: (-item[1].wins, -item[1].plays, item[0])):
        saved = f"{share.saved:.2f}" if share.saved > 0 else "unknown"
        table.add_row(Text(name), str(share.plays), str(share.wins), saved)
    Console(stderr=True).print(table)
    click.echo("saved: against the arm alone, as far as races tell; a failure of its own counts as the limit", err=True)
