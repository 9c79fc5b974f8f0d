"""What the first round of a process costs: importing, then compiling, or loading what was compiled before.

Times are seconds of CPU, so that other work on the machine matters less; each is the best of three. Machines differ
several times over in speed, so targets are multiples of what importing numba and numpy takes in the same run. Where
that is 0.22 s, they are 8 s for the first round on a machine, and 1 s for importing and a round in a later process.
"""

import os
import subprocess
import sys
import tempfile

MOST_TIMES_TO_COMPILE = 36.0
MOST_TIMES_WHEN_COMPILED = 4.5

IMPORTING = """
from time import process_time
start = process_time()
import numba, numpy
theirs = process_time()
import preselect
print(theirs - start, process_time() - start)
"""

ROUND = """
from time import process_time
start = process_time()
import numpy as np, preselect
imported = process_time()
{}
print(process_time() - imported, process_time() - start)
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
    """Seconds of CPU: the first round in the first process, and importing and a round in the second."""
    cold, warm = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(measure(code, cache)[0])
            warm.append(measure(code, cache)[1])
    return min(cold), min(warm)


def main():
    theirs, whole = (min(column) for column in zip(*(measure(IMPORTING) for _ in range(6)), strict=True))
    print(f"\nstarting a process, s of CPU: importing numba and numpy {theirs:.2f}, preselect with them {whole:.2f}\n")
    limits = MOST_TIMES_TO_COMPILE * theirs, MOST_TIMES_WHEN_COMPILED * theirs
    print(f"{'':>12} {'first process':>14} {'at most':>8} {'second process':>15} {'at most':>8}")
    print(f"{'':>12} {'a round':>14} {'':>8} {'import + round':>15}")
    missed = False
    for name, code in ROUNDS.items():
        cold, warm = measure_rounds(ROUND.format(code))
        missed |= cold > limits[0] or warm > limits[1]
        print(f"{name:>12} {cold:14.2f} {limits[0]:8.1f} {warm:15.2f} {limits[1]:8.1f}", flush=True)
    print("\nmissed" if missed else "\nall targets reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
