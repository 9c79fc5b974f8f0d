"""CPU time of choosing and learning in a race with the policy for races, when thousands of races are remembered."""

import statistics
import sys
import time

import numpy as np

from preselect import NoWinner, Preselector

ARMS, FEATURES, K, PAST = 30, 100, 3, 5000
MOST_MILLISECONDS = 2.0
BLOCKS, RACES = 9, 50


def race(preselector, generator):
    decision = preselector.select(generator.normal(size=FEATURES), k=K)
    after = generator.random()
    if after > 0.9:
        preselector.learn(decision, outcome=NoWinner(1.0))
    else:
        preselector.learn(decision, winner=decision.names[generator.integers(K)], after=after)


def measure(preselector, generator):
    """Return milliseconds of CPU per race, one number for each block of races."""
    found = []
    for _ in range(BLOCKS):
        start = time.process_time()
        for _ in range(RACES):
            race(preselector, generator)
        found.append(1000 * (time.process_time() - start) / RACES)
    return found


def main():
    arms, features = [f"arm {i}" for i in range(ARMS)], [f"feature {i}" for i in range(FEATURES)]
    preselector = Preselector(arms, features, policy="nearby", nobody_may_win=True, seed=0)
    generator = np.random.default_rng(0)
    for _ in range(PAST):
        race(preselector, generator)
    middle = statistics.median(measure(preselector, generator))
    print(f"nearby, {ARMS} arms, {FEATURES} features, k = {K}, {PAST} past races: "
          f"{middle:.2f} ms of CPU to choose and learn; target {MOST_MILLISECONDS:g}")  # fmt: skip
    return 0 if middle <= MOST_MILLISECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
