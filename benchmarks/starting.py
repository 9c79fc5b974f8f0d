"""What the first round of a process costs: importing, then compiling, or loading what was compiled before.

Times of compiling are in seconds of CPU, so that other work on the machine matters less; each is the best of three.
"""

import os
import statistics
import subprocess
import sys
import tempfile

MOST_SECONDS_TO_COMPILE = 8.0
MOST_SECONDS_WHEN_COMPILED = 1.0

IMPORTING = """
from time import perf_counter
start = perf_counter()
import numba, numpy
theirs = perf_counter()
import preselect
print(theirs - start, perf_counter() - start)
"""

ROUND = """
from time import perf_counter, process_time
start = perf_counter()
import numpy as np, preselect
imported = process_time()
{}
print(process_time() - imported, perf_counter() - start)
"""

ARRAYS = """
policy = preselect.{}(d=5, seed=0)
decision = policy.select(np.random.default_rng(0).random((20, 5)), 5)
policy.learn(decision, preselect.Winner(decision.arms[0]))
"""

NAMES = """
chooser = preselect.Preselector(["a", "b", "c", "d"], context=["size"], seed=0)
decision = chooser.select({"size": 3.0}, k=2)
chooser.learn(decision, winner=decision.names[0])
"""

ROUNDS = {"Newton": ARRAYS.format("Newton"), "CPPL": ARRAYS.format("CPPL"), "Preselector": NAMES}


def measure(code, cache=None):
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache} if cache else os.environ
    return [
        float(word)
        for word in subprocess.check_output([sys.executable, "-c", code], text=True, env=environment).split()
    ]


def measure_rounds(code):
    """CPU seconds of the first round in the first process, and wall seconds of importing and a round in the second."""
    cold, warm = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(measure(code, cache)[0])
            warm.append(measure(code, cache)[1])
    return min(cold), min(warm)


def main():
    runs = [measure(IMPORTING) for _ in range(6)]
    theirs, whole = (statistics.median(column) for column in zip(*runs[1:], strict=True))
    print("\nstarting a process, s\n")
    print(f"importing {whole:.2f}, of which numba and numpy {theirs:.2f}; at most {MOST_SECONDS_WHEN_COMPILED:.0f}\n")
    print(f"{'':>12} {'first process':>14} {'at most':>8} {'second process':>15} {'at most':>8}")
    print(f"{'':>12} {'CPU of a round':>14} {'':>8} {'import + round':>15}")
    missed = whole > MOST_SECONDS_WHEN_COMPILED
    for name, code in ROUNDS.items():
        cold, warm = measure_rounds(ROUND.format(code))
        missed |= cold > MOST_SECONDS_TO_COMPILE or warm > MOST_SECONDS_WHEN_COMPILED
        limits = MOST_SECONDS_TO_COMPILE, MOST_SECONDS_WHEN_COMPILED
        print(f"{name:>12} {cold:14.2f} {limits[0]:8.0f} {warm:15.2f} {limits[1]:8.0f}", flush=True)
    print("\nmissed" if missed else "\nall targets reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
