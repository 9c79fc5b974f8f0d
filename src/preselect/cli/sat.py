"""`preselect sat`: formulas, their features, SAPS on them, and tables of its run times."""

import csv
import json
import sys
from pathlib import Path

import click
import numpy as np

from preselect.cli.progress import show_progress, track
from preselect.errors import InputError
from preselect.sat import dimacs, runtimes
from preselect.sat import features as satzilla
from preselect.sat.colouring import Colouring
from preselect.sat.parametrizations import EFFECTIVE, PARAMETER_NAMES, convert_printed
from preselect.sat.preprocessing import eliminate_variables
from preselect.sat.saps import DEFAULT, Parameters, solve

_FILES = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))


@click.group()
def sat() -> None:
    """Formulas in DIMACS CNF (plain, .gz or .xz): features, the SAPS solver, instances, run times.

    \b
    preselect sat generate --count 5 --out cnf            small-world colouring instances
    preselect sat features cnf/*.cnf                      their SATzilla base features, as CSV
    preselect sat solve cnf/*-s0.cnf --seconds 10         search for a model
    preselect sat runtimes cnf/*.cnf --out runs.csv       the paper's 20 parametrizations on all
    """


@sat.command()
@_FILES
@click.option("--clause-graph/--no-clause-graph", default=True, show_default=True, help="The costly group of features.")
@click.option("--eliminate", is_flag=True, help="Eliminate variables first, as before the paper's features.")
@click.option("--times", is_flag=True, help="Add the seconds that each group of features took.")
@click.option("--format", "style", type=click.Choice(["csv", "json"]), default="csv", show_default=True)
def features(files: tuple[Path, ...], clause_graph: bool, eliminate: bool, times: bool, style: str) -> None:
    """SATzilla base features of FILES, one row each."""
    rows = []
    for path in track(files, "files"):
        formula = dimacs.read_formula(path)
        found = satzilla.compute_features(
            eliminate_variables(formula) if eliminate else formula, clause_graph=clause_graph
        )
        seconds = {f"seconds {group}": value for group, value in found.seconds.items()} if times else {}
        rows.append({"instance": path.name, **found.values, **seconds})
    if style == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: f"{value:.9g}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
    )


@sat.command(name="solve")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--alpha", type=float, default=DEFAULT.alpha, show_default=True, help="Growth of penalties.")
@click.option("--rho", type=float, default=DEFAULT.rho, show_default=True, help="How little smoothing smooths.")
@click.option("--ps", type=float, default=DEFAULT.ps, show_default=True, help="Probability of smoothing.")
@click.option("--wp", type=float, default=DEFAULT.wp, show_default=True, help="Probability of a random flip.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--steps", type=int, help="Give up after so many steps.")
@click.option("--seconds", type=float, help="Give up after so many seconds of processor time.")
def solve_(
    file: Path, alpha: float, rho: float, ps: float, wp: float, seed: int, steps: int | None, seconds: float | None
) -> None:
    """Search for a model of FILE with SAPS; answers as SAT solvers do.

    Exit code 10 and the model in `v` lines if there is one; exit code 0 and UNKNOWN if none was found. SAPS never finds
    out that there is none.
    """
    formula = dimacs.read_formula(file)
    solve(formula, steps=1)  # compile, or load what was compiled, before the clock runs
    found = solve(formula, Parameters(alpha, rho, ps, wp), seed=seed, steps=steps, seconds=seconds)
    click.echo(f"c SAPS: {found.steps} steps, {found.seconds:.3f} s")
    if found.model is None:
        click.echo("s UNKNOWN")
        return
    click.echo("s SATISFIABLE")
    values = np.where(found.model, 1, -1) * np.arange(1, formula.variables + 1)
    texts = [*map(str, values.tolist()), "0"]
    for first in range(0, len(texts), 15):
        click.echo("v " + " ".join(texts[first : first + 15]))
    sys.exit(10)


@sat.command()
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, help="Instances.")
@click.option("--vertices", default="100:499", show_default=True, metavar="FROM:TO", help="Drawn uniformly from here.")
@click.option(
    "--ratio",
    default="-7",
    show_default=True,
    metavar="FROM:TO",
    help="Powers of two, of which the ratio is drawn; or one.",
)
@click.option("--neighbours", type=int, default=10, show_default=True, help="Of each vertex, on average.")
@click.option("--colours", type=int, default=6, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("cnf"), show_default=True, help="Folder for the files."
)
def generate(count: int, vertices: str, ratio: str, neighbours: int, colours: int, seed: int, out: Path) -> None:
    """Small-world graph colouring instances, drawn as in the paper by default; nothing is planted in them."""
    generator = np.random.default_rng(seed)
    sizes, powers = _range(vertices, "vertices"), _range(ratio, "ratio")
    out.mkdir(parents=True, exist_ok=True)
    for place in track(range(count), "instances"):
        n = int(generator.integers(sizes[0], sizes[1] + 1))
        power = int(generator.integers(powers[0], powers[1] + 1))
        instance = Colouring(n, 2.0**power, seed * 1_000_000 + place, neighbours, colours)
        dimacs.write_formula(instance.formula(), out / instance.name, [repr(instance)])
    click.echo(f"{count} files in {out}", err=True)


@sat.command(name="runtimes")
@_FILES
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="The table; runs that it holds are not repeated."
)
@click.option("--cutoff", type=float, default=1.0, show_default=True, help="Seconds of processor time per run.")
@click.option(
    "--parameters",
    type=click.Path(path_type=Path),
    help="JSON with rows [alpha, rho, ps, wp].  [default: the paper's 20]",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--workers", type=int, default=-1, help="Processes.  [default: one per core]")
def runtimes_(
    files: tuple[Path, ...], out: Path, cutoff: float, parameters: Path | None, seed: int, workers: int
) -> None:
    """Run every parametrization of SAPS on FILES; one line per run: seconds, steps, solved.

    Lines are written as they come: interrupt it and give the same command again to go on.
    """
    parametrizations = EFFECTIVE if parameters is None else _parametrizations(parameters)
    try:
        with show_progress("instances", len(files)) as bar:
            lines = runtimes.measure_runtimes(
                files, parametrizations, out, cutoff=cutoff, seed=seed, workers=workers, report=bar.advance
            )
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted: what was finished is in {out}; give the same command again to go on", err=True)
        sys.exit(130)
    click.echo(f"{len(lines)} runs, {sum(line.solved for line in lines)} solved: {out}", err=True)


def _parametrizations(path: Path) -> tuple[Parameters, ...]:
    try:
        return tuple(convert_printed(tuple(row)) for row in json.loads(path.read_text()))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{path} must be a JSON list of rows [{', '.join(PARAMETER_NAMES)}], got something else: {error}"
        ) from None


def _range(text: str, argument: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    try:
        found = int(low), int(high or low)
    except ValueError:
        raise InputError(f"{argument} must be an integer or two as in FROM:TO, got {text!r}") from None
    if found[0] > found[1]:
        raise InputError(f"{argument} must go from the smaller to the larger, got {text!r}")
    return found
