"""A small race that learns and needs no other solver: the built-in SAPS in four parametrizations, two per instance.

Writes graph-colouring instances and a pool file, and races: the first search that finds a model stops the other one.
Run it again to continue with what it has learnt; `preselect race report demo/pool.toml` writes a report.
"""

import argparse
import sys
from pathlib import Path

from preselect import PreselectError
from preselect.race import RaceSession, find_solvers, write_pool
from preselect.sat import dimacs
from preselect.sat.colouring import Colouring


def write_instances(folder, count):
    """Write small graph-colouring instances, from nearly regular to nearly random graphs, and yield their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(count):
        colouring = Colouring(vertices=60 + 5 * seed, ratio=2.0 ** -(1 + seed % 4), seed=seed)
        path = folder / colouring.name
        dimacs.write_formula(colouring.formula(), path)
        yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=6, help="number of instances (default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for all files (default %(default)s)")
    options = parser.parse_args()
    pool = options.out / "pool.toml"
    try:
        files = list(write_instances(options.out / "cnf", options.count))
        if not pool.exists():
            write_pool(pool, find_solvers(path=""), seconds=20)
        with RaceSession(pool) as session:
            for file in files:
                result = session.run(file)
                winner = result.winner or "no winner"
                print(f"{file.name}: {winner} in {result.seconds:.1f} s, raced {' and '.join(result.chosen)}")
    except (PreselectError, OSError) as error:
        sys.exit(f"race: {error}")
    print(f"\nThe pool is {pool}, its journal {session.pool.journal}. For a report: preselect race report {pool}")


if __name__ == "__main__":
    main()
