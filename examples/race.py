"""A small learning race that needs no solver but our own: SAPS in four parametrizations, two of them per instance.

Makes colouring instances, writes a pool file, and races: the first model found stops the other search. Run it again and
it goes on with what it has learnt; `preselect race report demo/pool.toml` tells about it.
"""

import argparse
import sys
from pathlib import Path

from preselect import PreselectError
from preselect.race import RaceSession
from preselect.race.solvers import find_solvers, write_pool
from preselect.sat import dimacs
from preselect.sat.colouring import Colouring


def instances(folder, count):
    """Small colouring instances, some hardly changed rings and some nearly random."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(count):
        colouring = Colouring(vertices=60 + 5 * seed, ratio=2.0 ** -(1 + seed % 4), seed=seed)
        path = folder / colouring.name
        dimacs.write_formula(colouring.formula(), path)
        yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=6, help="instances (default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for all files (default %(default)s)")
    options = parser.parse_args()
    pool = options.out / "pool.toml"
    try:
        files = list(instances(options.out / "cnf", options.count))
        if not pool.exists():
            write_pool(pool, find_solvers(path=""), seconds=20)
        with RaceSession(pool) as session:
            for file in files:
                raced = session.run(file)
                print(f"{file.name}: {raced.winner or 'nobody'} in {raced.seconds:.1f} s, of {', '.join(raced.chosen)}")
    except (PreselectError, OSError) as error:
        sys.exit(f"race: {error}")
    print(f"\npool and journal: {pool}, {session.pool.journal}; more: preselect race report {pool}")


if __name__ == "__main__":
    main()
