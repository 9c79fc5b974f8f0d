"""Cost of very many arms, each with weights of its own, and of arms that come and go every hour.

100 000 arms and 10 features of the context: over a million joint features, in blocks. And a week of a page on which 20
arms join and 20 leave every hour, with 10 rounds a minute: its last day must not cost more than its second.
"""

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import statistics
import sys
from time import perf_counter, process_time

import numpy as np

import preselect

ARMS, FEATURES, K = 100_000, 10, 5
MAX_JOIN, MAX_LEARN, MAX_SELECT = 1e-3, 1e-3, 0.1  # seconds
MAX_STATE = 150e6  # bytes
HOURS, ROUNDS, CHURN, LIVE = 7 * 24, 600, 20, 200
MAX_GROWTH = 1.2  # of the cost of a round and of the state, from the second day to the last


def measure(function, repetitions):
    """Seconds of each call."""
    times = []
    for _ in range(repetitions):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return times


def report(what, found, limit, unit, scale):
    met = found <= limit
    print(f"{what:<42}{found * scale:10.3f} {unit:<3} (at most {limit * scale:g}){'' if met else '  MISSED'}")
    return met


def measure_many():
    preselector = preselect.Preselector(context=[f"c{i}" for i in range(FEATURES)], seed=0)
    names = iter(range(ARMS))
    joins = measure(lambda: preselector.add(f"arm {next(names)}"), ARMS)
    generator, selects, learns = np.random.default_rng(0), [], []
    for _ in range(200):
        context = generator.normal(size=FEATURES)
        start = perf_counter()
        decision = preselector.select(context, k=K)
        chosen = perf_counter()
        preselector.learn(decision, winner=decision.names[generator.integers(K)])
        selects.append(chosen - start)
        learns.append(perf_counter() - chosen)
    leaving = iter(range(200))
    leaves = measure(lambda: preselector.remove(f"arm {next(leaving)}"), 200)
    return [
        report("an arm joins, mean", statistics.mean(joins), MAX_JOIN, "us", 1e6),
        report("an arm leaves, median", statistics.median(leaves), MAX_JOIN, "us", 1e6),
        report(f"select {K} of {ARMS}, median", statistics.median(selects), MAX_SELECT, "ms", 1e3),
        report("learn, median", statistics.median(learns), MAX_LEARN, "ms", 1e3),
        report("state", len(preselector.to_bytes()), MAX_STATE, "MB", 1e-6),
    ]


def measure_churn(rounds):
    """Play a week with so many rounds an hour; return seconds per round and bytes of the state, by day."""
    generator, names = np.random.default_rng(1), iter(range(10**9))
    preselector = preselect.Preselector(context=[f"c{i}" for i in range(FEATURES)], seed=0)
    for _ in range(LIVE):
        preselector.add(f"arm {next(names)}")
    seconds, sizes = [], []
    for hour in range(HOURS):
        for name in generator.choice(preselector.arms, CHURN, replace=False):
            preselector.remove(str(name))
            preselector.add(f"arm {next(names)}")
        start = process_time()  # other processes must not look like growth
        for _ in range(rounds):
            decision = preselector.select(generator.normal(size=FEATURES), k=K)
            preselector.learn(decision, winner=decision.names[generator.integers(K)])
        seconds.append((process_time() - start) / rounds)
        if hour % 24 == 23:
            sizes.append(len(preselector.to_bytes()))
    return [statistics.median(seconds[day * 24 : day * 24 + 24]) for day in range(7)], sizes


def main():
    met = measure_many()
    seconds, sizes = measure_churn(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
    print("round, by day, us: " + " ".join(f"{day * 1e6:.0f}" for day in seconds))
    met += [
        report("a round on the last day over the second", seconds[6] / seconds[1], MAX_GROWTH, "", 1.0),
        report("state on the last day over the second", sizes[6] / sizes[1], MAX_GROWTH, "", 1.0),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
