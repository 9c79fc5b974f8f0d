"""Cost of propensities: a thousand sets drawn at n = 200 arms and d = 40 features, against as many selections."""

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import statistics
import sys
from time import perf_counter

import numpy as np

import preselect

N, D, K, DRAWS = 200, 40, 5, 1000
MAX_MILLISECONDS = 20.0
POLICIES = {
    "thompson": lambda: preselect.Thompson(d=D, seed=0),
    "newton(explore=0.1)": lambda: preselect.Newton(d=D, explore=0.1, seed=0),
    "thompson(draws='slot')": lambda: preselect.Thompson(d=D, draws="slot", seed=0),
}
LIMITED = ("thompson", "newton(explore=0.1)")  # slot after slot, k times as many draws are needed


def measure(function, repetitions):
    """Median milliseconds of a call."""
    times = []
    for _ in range(repetitions + 1):
        start = perf_counter()
        function()
        times.append(1e3 * (perf_counter() - start))
    return statistics.median(times[1:])


def main():
    generator = np.random.default_rng(0)
    missed = []
    print(f"\n{DRAWS} draws of k={K} of n={N} arms, d={D}, ms\n")
    print(f"{'':>24} {'propensities':>13} {f'{DRAWS} selections':>16} {'ratio':>6} {'target':>7}")
    for name, make in POLICIES.items():
        policy = make()
        for _ in range(100):
            decision = policy.select(generator.normal(size=(N, D)), K)
            policy.learn(decision, preselect.Winner(decision.arms[generator.integers(K)]))
        X = generator.normal(size=(N, D))
        found = measure(lambda: policy.propensities(X, K, draws=DRAWS), 21)  # noqa: B023
        selections = DRAWS / 100 * measure(lambda: [policy.decide(X, K, seed) for seed in range(100)], 3)  # noqa: B023
        target = MAX_MILLISECONDS if name in LIMITED else K * MAX_MILLISECONDS
        print(f"{name:>24} {found:13.1f} {selections:16.1f} {found / selections:6.2f} {target:7.0f}")
        if found > target:
            missed.append(f"propensities of {name} take {found:.1f} ms, target at most {target:.0f}")
    print("\nall targets reached" if not missed else "\nmissed: " + "; ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
