"""Evaluation of policies on logs: how often do 95 % intervals contain what the policy really wins?

Every log is of another world, in which the truth is known (tests/logged_world.py). Target: self-normalised and doubly
robust intervals contain it in 92 to 98 % of 200 logs.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from logged_world import LoggedWorld, evaluate_with_truth

LOGS, ROUNDS = 200, 1000
KINDS = {"misspecified": 1.5, "linear": 0.0}


def measure(outside, bend, first):
    """Return the truth, estimate and interval of every method and policy in every log."""
    found = {}
    for seed in range(first, first + LOGS):
        world = LoggedWorld(seed, outside, bend)
        for policy, truth, value in evaluate_with_truth(world, ROUNDS):
            for estimate in value.estimates:
                found.setdefault((policy, estimate.method), []).append((truth, *estimate.value))
    return {key: np.array(rows) for key, rows in found.items()}


def main():
    missed = False
    for name in sys.argv[1:] or ("picks", "wins"):
        for kind, bend in KINDS.items():
            print(
                f"{name}, {kind}: policy, method, truth, mean error, width of intervals, share that contain the truth"
            )
            for (policy, method), rows in measure(name == "picks", bend, 10_000).items():
                truth, value, low, high = rows.T
                share = np.mean((low <= truth) & (truth <= high))
                missed |= method != "the model" and not 0.92 <= share <= 0.98
                numbers = f"{truth.mean():.3f} {np.mean(value - truth):+.3f} {np.mean(high - low):.3f} {share:7.1%}"
                print(f"  {policy:<15} {method:<16} {numbers}", flush=True)
    sys.exit(int(missed))


if __name__ == "__main__":
    main()
