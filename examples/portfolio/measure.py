"""Measure what racing learnt pairs of solvers is worth, against each solver alone and against pairs drawn at random.

On each instance, every arm of the pool runs alone (singles.csv), then two arms drawn at random race, then two that were
chosen by what earlier races have taught, and then two that were chosen by earlier races and after-races. All of this
happens close together in time, so that other load on the machine affects all alike. Races are repeated in several
shuffled orders, each with its own journals. The results are tables (portfolio.md) and a figure (portfolio.png).
After an interruption the same command resumes.
"""

import argparse
import csv
import math
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import preselect
from preselect.errors import InputError
from preselect.policies import registry
from preselect.race import Learning, Pool, RaceSession, read_pool
from preselect.race.answers import make_answer_check
from preselect.race.instance_features import Instance, measure_features
from preselect.race.pool import FeatureSource
from preselect.race.solvers import find_solvers, write_pool
from preselect.race.summary import summarise_races
from preselect.race.supervision import Status, Supervision
from preselect.reports.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, label_axes, new_figure, to_png
from preselect.store import Journal, read_rounds

BUDGET = 1.0  # of after-races: as much core time as the races take
HEADER = ("instance", "arm", "seconds", "status", "limit")
COLOURS = (BLACK, VERMILION, BLUE, GREEN, PURPLE, ORANGE)
DASHES = ("-", (0, (5, 1)), "-.", "--", ":", (0, (1, 1)))


class Outcome(NamedTuple):
    """How an instance ended."""

    seconds: float
    solved: bool
    feature_seconds: float = 0.0


Run = Mapping[str, Outcome]  # by instance, in the order of the races


class Way(NamedTuple):
    """A way to solve instances: one run, or one for each order."""

    name: str
    runs: Sequence[Run]


# --- every arm alone --------------------------------------------------------------------------------------------------


def measure_alone(pool: Pool, path: Path, out: Path) -> None:
    """Run the arms that the table does not have yet on an instance, and add a line for each."""
    measured = read_singles(out, pool.limits.seconds)
    for arm in pool.arms:
        if path.name not in measured.get(arm, {}):
            line = run_alone(pool, path, arm, out.with_suffix(".running"))
            with out.open("a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(line)


def run_alone(pool: Pool, path: Path, arm: str, folder: Path) -> tuple[str, str, float, str, float]:
    """Run an arm alone and return its line of the table. All arms get the same seed on an instance."""
    racer = pool.make_racer(arm, path, seed=zlib.crc32(path.name.encode()) >> 1)
    result = Supervision([racer], pool.limits, folder=folder, check=make_answer_check(pool, Instance(path))).run()
    if result.infrastructure:
        raise InputError(f"{arm} could not run: {result.infrastructure}; try `preselect race check`")
    return path.name, arm, round(result.seconds, 5), result.finishes[0].status, pool.limits.seconds


def read_singles(path: Path, limit: float) -> dict[str, dict[str, Outcome]]:
    """Read outcomes by arm and instance; a missing header is added, and an unfinished last line removed."""
    text = path.read_text() if path.exists() else ""
    whole = text[: text.rfind("\n") + 1] or ",".join(HEADER) + "\n"
    if whole != text:
        path.write_text(whole)
    rows = csv.reader(whole.splitlines())
    if tuple(next(rows)) != HEADER:
        raise InputError(f"{path}, line 1: this is not the header {','.join(HEADER)}; move the file away")
    found: dict[str, dict[str, Outcome]] = {}
    for line, row in enumerate(rows, start=2):
        instance, arm, outcome = _single(row, limit, f"{path}, line {line}")
        found.setdefault(arm, {})[instance] = outcome
    return found


def _single(row: list[str], limit: float, where: str) -> tuple[str, str, Outcome]:
    try:
        instance, arm, seconds, status, own_limit = row
        outcome, measured_with = Outcome(float(seconds), status == Status.WON), float(own_limit)
    except ValueError:
        raise InputError(f"{where}: {','.join(row)!r:.80} is not a line of {','.join(HEADER)}") from None
    if measured_with != limit:
        raise InputError(
            f"{where}: measured with a limit of {measured_with:g} s, not {limit:g} s; name another folder with --out"
        )
    return instance, arm, outcome


# --- races ------------------------------------------------------------------------------------------------------------


def measure_order(pool: Pool, paths: Sequence[Path], out: Path, order: int, *, alone: bool) -> None:
    """Race what is missing in one order; the kinds of races take turns in being first."""
    pools = [setup(pool, out, order) for setup in SETUPS.values()]
    done = [read_races(one.journal) for one in pools]
    with ExitStack() as stack:
        turns = [(stack.enter_context(RaceSession(one)), already) for one, already in zip(pools, done, strict=True)]
        for position, path in enumerate(paths):
            show(f"order {order + 1}, {position + 1}/{len(paths)}: {path.name}")
            if alone:
                measure_alone(pool, path, out / "singles.csv")
            for session, already in turns:
                if path.name not in already:
                    session.run(path)
                    session.settle()
            turns.append(turns.pop(0))


def collect_run(pool: Pool, paths: Sequence[Path]) -> Run:
    """Read from the pool's journal how each instance ended."""
    done = read_races(pool.journal)
    void = [path.name for path in paths if path.name not in done]
    if void:
        raise InputError(f"{len(void)} races in {pool.journal} are void; the same command repeats them")
    return {path.name: done[path.name] for path in paths}


def read_races(journal: Path) -> dict[str, Outcome]:
    """Read by instance how the races in a journal ended, except void and unfinished ones."""
    if not journal.exists():
        return {}
    with Journal.read(journal) as source:
        races = summarise_races(read_rounds(source)).races
    return {
        Path(race.round.label).name: Outcome(race.seconds, race.is_solved, race.feature_seconds)
        for race in races
        if race.is_timed
    }


def shuffle(instances: Sequence[Path], seed: int, order: int) -> list[Path]:
    """Put the instances into one of several orders."""
    return [instances[position] for position in np.random.default_rng((seed, order)).permutation(len(instances))]


def choose_by_learning(pool: Pool, out: Path, order: int) -> Pool:
    """Return the pool with the policy that learns."""
    return replace(pool, policy=registry.RACING, seed=order, journal=out / f"learnt-{order}.journal")


def choose_by_more(pool: Pool, out: Path, order: int) -> Pool:
    """Return the pool with the policy that learns, and with after-races to learn from as well."""
    learning = Learning(BUDGET, wait=True)
    return replace(pool, policy=registry.RACING, learning=learning, seed=order, journal=out / f"after-{order}.journal")


def choose_at_random(pool: Pool, out: Path, order: int) -> Pool:
    """Return the pool with the policy that chooses at random, without features, which it would not use."""
    journal = out / f"random-{order}.journal"
    return replace(pool, policy="random", seed=order, journal=journal, features=FeatureSource())


SETUPS: dict[str, Callable[[Pool, Path, int], Pool]] = {
    "random pair": choose_at_random,
    "learnt pair": choose_by_learning,
    "learnt pair, after-races": choose_by_more,
}


# --- what it adds up to -----------------------------------------------------------------------------------------------


def compare(singles: Mapping[str, Run], races: Sequence[Way], limit: float) -> list[Way]:
    """List the arms, best first, then the races, then the best that pairs and single arms could have done.

    Without singles, only the races.
    """
    if not singles:
        return [*races]
    alone = sorted((Way(arm, [run]) for arm, run in singles.items()), key=lambda way: par10(way.runs[0], limit))
    pairs = [Way(f"best pair in hindsight ({a}, {b})", [best((singles[a], singles[b]))])
             for a, b in combinations(singles, 2)]  # fmt: skip
    pair = min(pairs, key=lambda way: par10(way.runs[0], limit), default=None)
    virtual_best = Way("virtual best", [best(tuple(singles.values()))])
    return [*alone, *races, *([pair] if pair else []), virtual_best]


def best(runs: Sequence[Run]) -> Run:
    """Take the best of several outcomes on each instance."""
    return {
        instance: min((run[instance] for run in runs), key=lambda outcome: (not outcome.solved, outcome.seconds))
        for instance in runs[0]
    }


def total(run: Run) -> float:
    """Add up the seconds of a run, features included."""
    return math.fsum(outcome.seconds + outcome.feature_seconds for outcome in run.values())


def par10(run: Run, limit: float) -> float:
    """Return the mean seconds per instance, features included; an unsolved one counts as ten times the limit."""
    costs = (outcome.seconds + outcome.feature_seconds if outcome.solved else 10.0 * limit for outcome in run.values())
    return math.fsum(costs) / len(run)


def table(ways: Iterable[Way], limit: float) -> str:
    """Make a Markdown table, with standard errors if there are several orders."""
    lines = ["| | solved | total, s | of these features, s | PAR10, s |", "|---|---|---|---|---|"]
    for way in ways:
        solved = _mean([sum(outcome.solved for outcome in run.values()) for run in way.runs], 1)
        features = _mean([math.fsum(outcome.feature_seconds for outcome in run.values()) for run in way.runs], 1)
        cost = _mean([par10(run, limit) for run in way.runs], 2)
        lines.append(f"| {way.name} | {solved} | {_mean([total(run) for run in way.runs], 1)} | {features} | {cost} |")
    return "\n".join(lines)


def table_by_family(ways: Iterable[Way], limit: float) -> str:
    """Make a Markdown table of PAR10 by family, the part of an instance's name before the first hyphen."""
    ways = list(ways)
    families = sorted({_family(instance) for instance in ways[0].runs[0]})
    lines = [f"| PAR10, s | {' | '.join(families)} |", "|---" * (len(families) + 1) + "|"]
    for way in ways:
        cells = [_mean([par10(_only(run, family), limit) for run in way.runs], 2) for family in families]
        lines.append(f"| {way.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _family(instance: str) -> str:
    return instance.partition("-")[0]


def _only(run: Run, family: str) -> Run:
    return {instance: outcome for instance, outcome in run.items() if _family(instance) == family}


def _mean(values: Sequence[float], digits: int) -> str:
    """Format the mean, with its standard error if there are several values; a single count stays an integer."""
    if len(values) == 1:
        return str(values[0]) if isinstance(values[0], int) else f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.{digits}f}"


def draw_figure(ways: Sequence[Way], orders: Sequence[Sequence[str]], path: Path) -> None:
    """Draw the seconds used so far over the instances in the order of racing, as a mean over the orders."""
    with new_figure(7.2, 4.2) as figure:
        _draw_ways(figure.subplots(), ways, orders)
    path.write_bytes(to_png(figure))


def _draw_ways(axes: Any, ways: Sequence[Way], orders: Sequence[Sequence[str]]) -> None:
    for way, colour, dashes in zip(ways, COLOURS, DASHES, strict=False):
        runs = way.runs if len(way.runs) == len(orders) else [way.runs[0]] * len(orders)
        curves = np.array([np.cumsum(_costs(run, order)) for run, order in zip(runs, orders, strict=True)])
        rounds = np.arange(1, curves.shape[1] + 1)
        axes.plot(rounds, curves.mean(axis=0), color=colour, linestyle=dashes, linewidth=1.8, label=way.name)
        axes.fill_between(rounds, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    label_axes(axes, "instances so far", "seconds used so far, features included")
    axes.set_ylim(0, None)
    axes.set_title(f"Mean of {len(orders)} orders; bands show the smallest and the largest", fontsize=10)
    axes.margins(x=0.0)
    axes.legend(frameon=False)


def _costs(run: Run, order: Sequence[str]) -> list[float]:
    return [run[instance].seconds + run[instance].feature_seconds for instance in order]


# --- the command ------------------------------------------------------------------------------------------------------


def measure(pool: Pool, instances: Sequence[Path], out: Path, *, orders: int, seed: int, alone: bool) -> str:
    """Measure what is missing, write tables and figure, and return the tables; arms run alone only if asked to."""
    limit, names = pool.limits.seconds, sorted(path.name for path in instances)
    sequences = [shuffle(instances, seed, order) for order in range(orders)]
    measure_features(pool.features, Instance(instances[0]))  # compiled loops are loaded before the first race
    for order, paths in enumerate(sequences):
        measure_order(pool, paths, out, order, alone=alone)
    shutil.rmtree(out / "singles.running", ignore_errors=True)  # outputs of the last run, no longer needed
    measured = read_singles(out / "singles.csv", limit) if alone else {}
    singles = {arm: {name: measured[arm][name] for name in names} for arm in (pool.arms if alone else ())}
    races = [
        Way(name, [collect_run(setup(pool, out, order), paths) for order, paths in enumerate(sequences)])
        for name, setup in SETUPS.items()
    ]
    ways = compare(singles, races, limit)
    text = f"{table(ways, limit)}\n\n{table_by_family(ways, limit)}\n"
    (out / "portfolio.md").write_text(text)
    shown = [*reversed(races), *ways[: min(1, len(singles))], *ways[len(singles) + len(races) :]]
    draw_figure(shown, [[path.name for path in paths] for paths in sequences], out / "portfolio.png")
    return text


def show(text: str) -> None:
    """Show what is happening in one line of a terminal; elsewhere, print nothing."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def prepare_pool(path: Path, seconds: float, saps: int) -> Pool:
    """Read the pool, first writing one with the solvers found here if there is none; two arms race."""
    if not path.exists():
        found = find_solvers()
        ours = [solver for solver in found if solver.name.startswith("saps")]
        write_pool(path, [solver for solver in found if solver not in ours] + ours[:saps], k=2, seconds=seconds)
    return read_pool(path).override(k=2, seconds=seconds)


def find_instances(folder: Path) -> list[Path]:
    """List the formulas in a folder."""
    found = sorted(folder.glob("*.cnf"))
    if not found:
        raise InputError(f"there are no .cnf files in {folder}; make some with instances.py")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "--pool",
        type=Path,
        default=Path("pool.toml"),
        help="pool file, written if it does not exist (default %(default)s)",
    )
    add("--saps", type=int, default=0, help="parametrizations of SAPS in a new pool, 0 to 4 (default %(default)s)")
    add("--instances", type=Path, default=Path("cnf"), help="folder of formulas (default %(default)s)")
    add("--seconds", type=float, default=5.0, help="time limit of a run and of a race (default %(default)s)")
    add("--orders", type=int, default=3, help="orders to race in, 1 or more (default %(default)s)")
    add("--seed", type=int, default=0, help="seed of the orders (default %(default)s)")
    add("--races-only", action="store_true", help="do not run each solver alone on each formula")
    add("--out", type=Path, default=Path("portfolio"), help="folder for all results (default %(default)s)")
    options = parser.parse_args()
    if options.orders < 1 or options.seed < 0 or not 0 <= options.saps <= 4:
        parser.error("use at least 1 for --orders, at least 0 for --seed, and 0 to 4 for --saps")
    try:
        instances = find_instances(options.instances)
        options.out.mkdir(parents=True, exist_ok=True)
        pool = prepare_pool(options.pool, options.seconds, options.saps)
        how = {"orders": options.orders, "seed": options.seed, "alone": not options.races_only}
        print("\r" + measure(pool, instances, options.out, **how))
    except (preselect.PreselectError, OSError) as error:
        sys.exit(f"measure: {error}")
    except KeyboardInterrupt:
        print("\ninterrupted; the same command resumes from here", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
