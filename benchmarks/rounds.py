"""Cost per round, select + learn, of CPPL: the public API beside the paper's formulas, literally, and the bare kernels.
And of the default policy, beside CPPL.

All four run in this process, in turn, in short blocks on the same contexts. A cost is the median over all rounds; a
ratio is the median over the blocks, each of which runs under the same load. The bare kernels are the two compiled
functions that the policy calls, called the same way on preallocated arrays.

The targets are about API/bare, what Python costs beside the compiled functions, and default/CPPL: all of these run in
one interpreter on one core, so their ratios hardly depend on the machine. literal/API has none, because the literal
formulas spend their time in LAPACK, whose speed differs several times over between processors and builds.
"""

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import sys
import warnings
from pathlib import Path
from time import perf_counter_ns

import numpy as np

import preselect
from preselect.kernels import averaging, choosing

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from literal import LiteralCPPL

# (n, d, k), largest API/bare, rounds measured of the API and of the literal formulas
SIZES = [
    ((20, 5, 5), 2.1, 6000, 400),
    ((50, 10, 10), 1.65, 6000, 200),
    ((100, 20, 10), 1.45, 6000, 100),
    ((20, 28, 4), 1.7, 6000, 200),
    ((1000, 50, 10), 1.2, 1500, 20),
]
MOST_TIMES_CPPL = 1.6  # of the default policy, at every size
BLOCKS = 20


class Problem:
    """Contexts as in the paper's synthetic study, and winners drawn from the model."""

    def __init__(self, n, d, k):
        generator = np.random.default_rng(0)
        self.contexts = generator.random((max(20, 2_000_000 // (n * d * 10)), n, d))
        self.theta = generator.random(d)
        self.noise = generator.gumbel(size=(1000, k))
        self.round = 0

    def show(self):
        self.round += 1
        return self.contexts[self.round % len(self.contexts)]

    def winner(self, rows):
        return int(np.argmax(rows @ self.theta + self.noise[self.round % 1000]))


def api(n, d, k, make=preselect.CPPL):
    policy, problem = make(d=d, seed=0), Problem(n, d, k)

    def play():
        X = problem.show()
        start = perf_counter_ns()
        decision = policy.select(X, k)
        chosen = perf_counter_ns()
        winner = decision.arms[problem.winner(decision.rows)]
        reported = perf_counter_ns()
        policy.learn(decision, preselect.Winner(winner))
        return perf_counter_ns() - reported + chosen - start

    return play


def default(n, d, k):
    return api(n, d, k, preselect.Newton)


def bare(n, d, k):
    policy, problem = preselect.CPPL(d=d, seed=0), Problem(n, d, k)
    nothing, every = np.empty(0), np.empty(0, dtype=np.bool_)
    arms, bounds, ranking = np.empty(k, dtype=np.int64), np.empty(2 * k), np.empty(1, dtype=np.int64)
    rows = np.empty((k, d))
    read_only = rows.view()
    read_only.setflags(False)
    learn = averaging.update_sandwich if d > 2 * (k - 1) else averaging.recompute_sandwich

    def play():
        X = problem.show()
        t = problem.round
        Sigma, beta, growth, form = policy._width()
        step = policy.gamma_1 * t**-policy.alpha
        start = perf_counter_ns()
        choosing.choose(X, policy.theta_bar, Sigma, beta, growth, form, nothing, every, arms, bounds, rows)
        chosen = perf_counter_ns()
        ranking[0] = problem.winner(rows)
        reported = perf_counter_ns()
        learn(read_only, ranking, step, t, policy.estimate.block)
        end = perf_counter_ns()
        policy.observations += 1
        return end - reported + chosen - start

    return play


def literal(n, d, k):
    problem = Problem(n, d, k)
    policy = LiteralCPPL(np.random.default_rng(0).random(d), gamma_1=2.0, alpha=0.6, omega=1.0, ridge=1e-3)

    def play():
        X = problem.show()
        start = perf_counter_ns()
        arms = policy.select(X, k)
        chosen = perf_counter_ns()
        winner = problem.winner(X[arms])
        reported = perf_counter_ns()
        policy.learn([winner], X[arms])
        return perf_counter_ns() - reported + chosen - start

    return play


def ratio(one, other):
    """Median over the blocks of the ratio of median costs."""
    return float(np.median(np.median(one, axis=1) / np.median(other, axis=1)))


def main():
    warnings.simplefilter("ignore")  # SciPy warns of singular matrices in the first rounds of the literal formulas
    print(
        "cost per round, select + learn, µs, one thread: CPPL by API, bare and literally; the default policy by API\n"
    )
    heads = ("API", 8), ("bare", 8), ("literal", 10), ("API/bare", 9), ("target", 7), ("literal/API", 12)
    heads = (("(n, d, k)", 16), *heads, ("default", 8), ("default/CPPL", 13))
    print(*(f"{head:>{width}}" for head, width in heads))
    missed = []
    for size, target, rounds, literal_rounds in SIZES:
        players = {api: rounds, bare: rounds, literal: literal_rounds, default: rounds}
        plays = {make: make(*size) for make in players}
        costs = {make: [] for make in players}
        for make, play in plays.items():  # compile, load, and leave the first rounds behind
            for _ in range(min(100, players[make])):
                play()
        for _ in range(BLOCKS):
            for make, count in players.items():
                costs[make].append([plays[make]() / 1000 for _ in range(count // BLOCKS)])
        ours, kernel, paper, newton = (np.array(costs[make]) for make in (api, bare, literal, default))
        times_bare, speed_up, times_cppl = ratio(ours, kernel), ratio(paper, ours), ratio(newton, ours)
        print(
            f"{size!s:>16} {np.median(ours):8.1f} {np.median(kernel):8.1f} {np.median(paper):10.0f}"
            f" {times_bare:9.2f} {target:7} {speed_up:12.0f} {np.median(newton):8.1f} {times_cppl:13.2f}",
            flush=True,
        )
        if times_bare > target:
            missed.append(f"API/bare at {size} is {times_bare:.2f}, target at most {target}")
        if times_cppl > MOST_TIMES_CPPL:
            missed.append(f"default/CPPL at {size} is {times_cppl:.2f}, target at most {MOST_TIMES_CPPL}")
    print("\nall targets reached" if not missed else "\nmissed: " + "; ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
