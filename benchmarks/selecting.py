"""Cost of selecting where there is much to select from: a million arms, and Kronecker features that are never built.

References run in this process and interleaved. CPPL has learnt 300 rounds before it is measured.
"""

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import statistics
import sys
from time import perf_counter

import numpy as np

import preselect

MAX_TIMES_PRODUCT = 2.0
MAX_SHARE_OF_FULL = 0.05


def measure_in_turn(functions, repetitions):
    """Median seconds of each function, called in turn."""
    times = {name: [] for name in functions}
    for _ in range(repetitions + 1):
        for name, function in functions.items():
            start = perf_counter()
            function()
            times[name].append(perf_counter() - start)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def train_policy(d, k, rounds, seed=0):
    policy = preselect.CPPL(d=d, seed=seed)
    generator = np.random.default_rng(seed)
    theta = generator.random(d)
    for _ in range(rounds):
        decision = policy.select(generator.random((50, d)), k)
        winner = np.argmax(decision.rows @ theta + generator.gumbel(size=k))
        policy.learn(decision, preselect.Winner(decision.arms[winner]))
    return policy


def many_arms(n=1_000_000, d=64, k=10):
    print(f"\nselecting k={k} of n={n:,} arms, d={d}, ms\n")
    print(f"{'':>10} {'X @ theta':>10} {'select':>8} {'ratio':>6} {'target':>7}")
    missed = []
    policy = train_policy(d, k, 300)
    for dtype in (np.float64, np.float32):
        X = np.random.default_rng(1).random((n, d), dtype=dtype)
        theta = policy.theta.astype(dtype)
        times = measure_in_turn({"product": lambda: X @ theta, "select": lambda: policy.select(X, k)}, 9)  # noqa: B023
        ratio = times["select"] / times["product"]
        name = np.dtype(dtype).name
        product, select = 1e3 * times["product"], 1e3 * times["select"]
        print(f"{name:>10} {product:10.1f} {select:8.1f} {ratio:6.2f} {MAX_TIMES_PRODUCT:7}")
        if ratio > MAX_TIMES_PRODUCT:
            missed.append(f"select / product in {name} is {ratio:.2f}, target at most {MAX_TIMES_PRODUCT}")
        scores = policy.scores(X)
        assert set(policy.select(X, k).arms.tolist()) == set(np.argsort(-scores)[:k].tolist()), "pruning is not exact"
    return missed


def kronecker(n=100_000, features=64, k=10, measured=5_000):
    d = features * features
    print(f"\nselecting k={k} of n={n:,} arms, {features} x {features} Kronecker features, d={d}, ms")
    print(f"(building and using the full matrix is measured at n={measured:,} and scaled by {n // measured})\n")
    policy = preselect.CPPL(d=d, seed=0)
    generator = np.random.default_rng(0)
    arms, shown = generator.random((n, features)), preselect.Kronecker()
    for _ in range(3):  # enough for a covariance that is not zero; a round of learning at this d takes 0.2 s
        decision = policy.select(shown(arms[:50], generator.random(features)), k)
        policy.learn(decision, preselect.Winner(decision.arms[0]))
    context = generator.random(features)

    def full():
        X = (arms[:measured, :, None] * context).reshape(measured, d)
        policy.select(X, k)

    times = measure_in_turn({"full": full, "structured": lambda: policy.select(shown(arms, context), k)}, 5)
    scaled = times["full"] * n / measured
    share = times["structured"] / scaled
    print(f"{'full':>10} {'structured':>11} {'share':>7} {'target':>7}")
    print(f"{1e3 * scaled:10.0f} {1e3 * times['structured']:11.1f} {share:7.1%} {MAX_SHARE_OF_FULL:7.0%}")
    return [] if share <= MAX_SHARE_OF_FULL else [f"structured / full is {share:.1%}, target {MAX_SHARE_OF_FULL:.0%}"]


def main():
    missed = many_arms() + kronecker()
    print("\nall targets reached" if not missed else "\nmissed: " + "; ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
