"""What a process pays before its first round: importing, and the first select and learn from the compiled cache."""

import statistics
import subprocess
import sys

MOST_SECONDS_TO_IMPORT = 1.0

CODE = """
from time import perf_counter
start = perf_counter()
import numba, numpy as np
theirs = perf_counter()
import preselect
imported = perf_counter()
policy = preselect.CPPL(d=5, seed=0)
decision = policy.select(np.random.default_rng(0).random((20, 5)), 5)
policy.learn(decision, preselect.Winner(decision.arms[0]))
end = perf_counter()
print(theirs - start, imported - theirs, imported - start, end - imported)
"""


def main():
    runs = [
        [float(number) for number in subprocess.check_output([sys.executable, "-c", CODE], text=True).split()]
        for _ in range(6)
    ]
    theirs, ours, whole, first = (statistics.median(column) for column in zip(*runs[1:], strict=True))
    print("\nstarting a process, s\n")
    print(f"import numba and numpy {theirs:.2f}, preselect itself {ours:.2f}, together {whole:.2f} (target 1)")
    print(f"first select and learn {first:.2f}, nothing compiled")
    return 0 if whole <= MOST_SECONDS_TO_IMPORT else 1


if __name__ == "__main__":
    sys.exit(main())
