"""`preselect sat`: generate formulas, compute their features, solve them with SAPS, and measure its run times."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from preselect.cli.folders import Folder
from preselect.cli.formats import format_option
from preselect.cli.progress import show_progress, track
from preselect.errors import InputError
from preselect.files import read_text, write_new
from preselect.sat import (
    DEFAULT,
    EFFECTIVE,
    PARAMETER_NAMES,
    Colouring,
    Parameters,
    SearchResult,
    compute_features,
    convert_printed,
    eliminate_variables,
    measure_runtimes,
    read_formula,
    solve,
)
from preselect.sat.dimacs import format_formula

_MAX_INSTANCES = 1_000_000  # the most instances per seed, so that instances of different seeds differ

_FILES = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
_SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random numbers.")


def _parse_range(least: int, most: int) -> Callable[[click.Context, click.Parameter, str], tuple[int, int]]:
    """Return a callback for an option with an integer, or two as in FROM:TO, all between `least` and `most`."""

    def parse(_context: click.Context, _option: click.Parameter, text: str) -> tuple[int, int]:
        first, _, last = text.partition(":")
        try:
            low, high = int(first), int(last or first)
        except ValueError:
            raise click.BadParameter(f"{text!r:.80} is neither an integer nor two integers as in FROM:TO.") from None
        if low > high:
            raise click.BadParameter(f"{text:.80} has the larger number first.")
        if low < least or high > most:
            raise click.BadParameter(f"{text:.80} is not within {least}:{most}.")
        return low, high

    return parse


@click.group(short_help="Generate formulas, compute their features, and run SAPS on them.")
def sat() -> None:
    """Formulas in DIMACS CNF (plain, .gz or .xz): features, the SAPS solver, instances, run times.

    \b
    Write five small-world colouring instances:
        preselect sat generate --count 5 --out cnf
    Print their SATzilla base features as CSV:
        preselect sat features cnf/*.cnf
    Search for a model of the first one:
        preselect sat solve cnf/*-s0.cnf --seconds 10
    Measure run times of the paper's 20 parametrizations of SAPS:
        preselect sat runtimes cnf/*.cnf --out runs.csv
    """


@sat.command()
@_FILES
@click.option(
    "--clause-graph/--no-clause-graph",
    default=True,
    show_default=True,
    help="Include the features of the clause graph, which can take longest.",
)
@click.option("--eliminate", is_flag=True, help="Eliminate variables first, as for the paper's features.")
@click.option("--times", is_flag=True, help="Add the seconds that each group of features took.")
@format_option("csv", "json", help="Print CSV, or everything as JSON.")
def features(files: tuple[Path, ...], clause_graph: bool, eliminate: bool, times: bool, style: str) -> None:
    """Print the SATzilla base features of FILES, one row each.

    A file that cannot be used is reported on standard error and left out; the exit code is then 1.
    """
    bad: list[Path] = []
    rows = _compute_rows(files, bad, clause_graph=clause_graph, eliminate=eliminate, times=times)
    (_print_json if style == "json" else _print_csv)(rows)
    if bad:
        raise click.ClickException(f"{len(bad)} of {len(files)} files left out; see above")


def _compute_rows(
    files: tuple[Path, ...], bad: list[Path], *, clause_graph: bool, eliminate: bool, times: bool
) -> Iterator[dict[str, Any]]:
    """Yield the features of each file; files that cannot be used are reported and added to `bad`."""
    for path in track(files, "files"):
        try:
            formula = read_formula(path)
            found = compute_features(eliminate_variables(formula) if eliminate else formula, clause_graph=clause_graph)
        except InputError as error:
            bad.append(path)
            about = "" if str(path) in str(error) else f"{path}: "
            click.echo(f"{about}{error}", err=True)
            continue
        seconds = {f"seconds {group}": value for group, value in found.seconds.items()} if times else {}
        yield {"instance": click.format_filename(path, shorten=True), **found.values, **seconds}


def _print_csv(rows: Iterable[dict[str, Any]]) -> None:
    """Print rows as they come, so that they are not lost if a later one fails."""
    for position, row in enumerate(rows):
        values = [f"{value:.9g}" if isinstance(value, float) else value for value in row.values()]
        click.echo(_format_csv([row, values] if position == 0 else [values]), nl=False)


def _format_csv(lines: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def _print_json(rows: Iterable[dict[str, Any]]) -> None:
    """Print rows as they come, so that they are not lost if a later one fails."""
    before = "["
    for row in rows:
        click.echo(before + json.dumps([row], indent=2)[1:-2], nl=False)
        before = ","
    click.echo("[]" if before == "[" else "\n]")


@sat.command(name="solve", short_help="Search for a model of FILE with SAPS.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--alpha", type=float, default=DEFAULT.alpha, show_default=True, help="Growth of penalties, above 0.")
@click.option(
    "--rho", type=float, default=DEFAULT.rho, show_default=True, help="Smoothing from -1 to 1; 1 disables it."
)
@click.option("--ps", type=float, default=DEFAULT.ps, show_default=True, help="Probability of smoothing.")
@click.option("--wp", type=float, default=DEFAULT.wp, show_default=True, help="Probability of a random flip.")
@_SEED
@click.option("--steps", type=click.IntRange(0), help="Give up after this number of steps.")
@click.option("--seconds", type=float, help="Give up after this many seconds of processor time.")
def solve_(
    file: Path, alpha: float, rho: float, ps: float, wp: float, seed: int, steps: int | None, seconds: float | None
) -> None:
    """Search for a model of FILE with SAPS, and print it as SAT solvers do.

    The exit code is 10 if a model is found, which is printed in `v` lines, and 0 if not (UNKNOWN). SAPS cannot
    prove that a formula has no model: without a limit it searches forever.
    """
    parameters = Parameters(alpha, rho, ps, wp)
    formula = read_formula(file)
    solve(formula, steps=1)  # compile, or load compiled code, before time is measured
    found = solve(formula, parameters, seed=seed, steps=steps, seconds=seconds)
    _print_answer(found)
    sys.exit(10 if found.solved else 0)


def _print_answer(found: SearchResult) -> None:
    click.echo(f"c SAPS: {found.steps} steps, {found.seconds:.3f} s")
    if found.model is None:
        click.echo("s UNKNOWN")
        return
    click.echo("s SATISFIABLE")
    literals = np.where(found.model, 1, -1) * np.arange(1, len(found.model) + 1)
    words = [*map(str, literals.tolist()), "0"]
    for first in range(0, len(words), 15):
        click.echo("v " + " ".join(words[first : first + 15]))


@sat.command(short_help="Write small-world graph colouring instances.")
@click.option(
    "--count", type=click.IntRange(1, _MAX_INSTANCES), default=1, show_default=True, help="Number of instances."
)
@click.option(
    "--vertices",
    callback=_parse_range(3, 1_000_000),
    default="100:499",
    show_default=True,
    metavar="FROM:TO",
    help="Range from which the number of vertices is drawn, or one number.",
)
@click.option(
    "--ratio",
    callback=_parse_range(-1000, 0),
    default="-7",
    show_default=True,
    metavar="FROM:TO",
    help="Range from which x in the ratio 2^x is drawn, or one number: 0 gives random graphs, -7 almost rings.",
)
@click.option(
    "--neighbours", type=int, default=10, show_default=True, help="Neighbours of a vertex on average, an even number."
)
@click.option("--colours", type=int, default=6, show_default=True, help="Colours to choose from.")
@_SEED
@click.option(
    "--out",
    type=Folder(),
    default=Path("cnf"),
    show_default=True,
    help="Folder for the formulas; made if it is missing.",
)
def generate(
    count: int, vertices: tuple[int, int], ratio: tuple[int, int], neighbours: int, colours: int, seed: int, out: Path
) -> None:
    """Write small-world graph colouring instances, by default as in the paper, without planted solutions.

    No file is overwritten: one that exists with other content is an error.
    """
    for n in vertices:
        Colouring(n, 2.0 ** ratio[0], seed, neighbours, colours)  # raises an error before anything is written
    generator = np.random.default_rng(seed)
    out.mkdir(parents=True, exist_ok=True)
    for position in track(range(count), "instances"):
        n = int(generator.integers(vertices[0], vertices[1] + 1))
        power = int(generator.integers(ratio[0], ratio[1] + 1))
        _write_instance(Colouring(n, 2.0**power, seed * _MAX_INSTANCES + position, neighbours, colours), out)
    click.echo(f"{count} file{'s' if count > 1 else ''} in {out}", err=True)


def _write_instance(instance: Colouring, folder: Path) -> None:
    path, content = folder / instance.name, format_formula(instance.formula(), [repr(instance)])
    if not (path.is_file() and path.read_bytes() == content):
        write_new(path, content)


@sat.command(name="runtimes", short_help="Measure run times of SAPS on FILES.")
@_FILES
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="File for the table, new or to be completed: runs that it holds are not repeated.",
)
@click.option("--cutoff", type=float, default=1.0, show_default=True, help="Seconds of processor time per run.")
@click.option(
    "--parameters",
    type=click.Path(path_type=Path),
    help="JSON file with rows [alpha, rho, ps, wp].  [default: the paper's 20]",
)
@_SEED
@click.option(
    "--workers",
    type=click.IntRange(-1),
    default=-1,
    help="Processes; results other than times do not depend on their number.  [default: one per core]",
)
def runtimes_(
    files: tuple[Path, ...], out: Path, cutoff: float, parameters: Path | None, seed: int, workers: int
) -> None:
    """Run every parametrization of SAPS on FILES and write a line per run: seconds, steps, solved.

    Lines are written as runs finish. After an interruption, the same command continues.
    """
    parametrizations = EFFECTIVE if parameters is None else _read_parametrizations(parameters)
    try:
        with show_progress("instances", len(files)) as bar:
            lines = measure_runtimes(
                files, parametrizations, out, cutoff=cutoff, seed=seed, workers=workers, report=bar.advance
            )
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted: finished runs are in {out}; run the same command again to continue", err=True)
        sys.exit(130)
    click.echo(f"{len(lines)} runs, {sum(line.solved for line in lines)} solved: {out}", err=True)


def _read_parametrizations(path: Path) -> tuple[Parameters, ...]:
    text = read_text(path)
    try:
        return tuple(convert_printed(tuple(row)) for row in json.loads(text))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        wanted = f"a JSON list of rows [{', '.join(PARAMETER_NAMES)}]"
        raise InputError(f"{path} is not {wanted}: {error}") from None
