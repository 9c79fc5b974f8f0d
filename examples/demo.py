"""A small synthetic study in the setting of the paper (Section 6.1): a table, and a figure of the cumulative regret.

Each round shows n arms with fresh features; the policy chooses k; one of them wins, drawn from the Plackett-Luce model
with a hidden theta*. The regret of a round is the share of the best arm's utility that the best chosen arm lacks. Every
policy meets the same arms and the same luck.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import preselect

# name, class, colour (from Okabe and Ito's palette, which colour-blind readers can tell apart), line style
POLICIES = [
    ("Random", preselect.Random, "#BBBBBB", "-"),
    ("MM", preselect.MM, "#E69F00", "-."),
    ("ε-greedy", preselect.EpsilonGreedy, "#009E73", "--"),
    ("Max-Theta", preselect.MaxTheta, "#0072B2", (0, (5, 1))),
    ("CPPL", preselect.CPPL, "#D55E00", "-"),
    ("Newton", preselect.Newton, "#000000", "-"),
]


def play(make, n, d, k, horizon, repetition):
    """Play one repetition; return the cumulative regret after each round, and the seconds spent in the policy."""
    generator = np.random.default_rng(repetition)
    theta = generator.random(d)
    policy = make(d=d, seed=repetition)
    regret, seconds = np.empty(horizon), 0.0
    for t in range(horizon):
        X = generator.random((n, d))
        luck = generator.gumbel(size=n)
        start = perf_counter()
        decision = policy.select(X, k)
        seconds += perf_counter() - start
        u = X @ theta
        chosen = u[decision.arms]
        winner = preselect.Winner(decision.arms[np.argmax(chosen + luck[decision.arms])])
        start = perf_counter()
        policy.learn(decision, winner)
        seconds += perf_counter() - start
        regret[t] = 1.0 - np.exp(chosen.max() - u.max())
    return regret.cumsum(), seconds


def run_study(options):
    """Return for each policy the regret curves (repetitions x rounds) and its cost in µs per round."""
    results = {}
    for name, make, *_ in POLICIES:
        print(f"\r{name:<12}", end="", file=sys.stderr, flush=True)
        play(make, options.n, options.d, options.k, 40, 0)  # compile, or load what was compiled before
        runs = [play(make, options.n, options.d, options.k, options.horizon, r) for r in range(options.repetitions)]
        curves = np.array([curve for curve, _ in runs])
        results[name] = curves, 1e6 * sum(seconds for _, seconds in runs) / curves.size
    print("\r" + " " * 12 + "\r", end="", file=sys.stderr, flush=True)
    return results


def standard_error(values):
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


def print_table(results):
    print(f"{'policy':<12} {'cumulative regret ± s.e.':>26} {'µs per round':>14}")
    for name, (curves, cost) in results.items():
        print(f"{name:<12} {curves[:, -1].mean():>17.1f} ± {standard_error(curves[:, -1]):<6.1f} {cost:>14.1f}")


def draw_figure(results, options, path):
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    rounds = np.arange(1, options.horizon + 1)
    for name, _, colour, style in POLICIES:
        curves, _ = results[name]
        mean, error = curves.mean(axis=0), standard_error(curves)
        width = 5.0 if name == "Random" else 1.8  # so that it is seen beneath MM, which ignores the context
        axes.plot(rounds, mean, color=colour, linestyle=style, linewidth=width, label=name)
        axes.fill_between(rounds, np.maximum(mean - error, 1e-3), mean + error, color=colour, alpha=0.2, linewidth=0)
    axes.set_yscale("log")
    axes.set_ylim(1, None)
    axes.set_xlim(0, options.horizon)
    axes.set_xlabel("round")
    axes.set_ylabel("cumulative regret (log scale)")
    axes.set_title(
        f"Choose k={options.k} of n={options.n} arms, d={options.d} features, winner feedback\n"
        f"mean and standard error of {options.repetitions} repetitions",
        fontsize=10,
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=50, help="arms shown in each round (default %(default)s)")
    parser.add_argument("--d", type=int, default=5, help="features of each arm (default %(default)s)")
    parser.add_argument("--k", type=int, default=3, help="arms to choose (default %(default)s)")
    parser.add_argument("--horizon", type=int, default=2000, help="rounds (default %(default)s)")
    parser.add_argument("--repetitions", type=int, default=20, help="repetitions, 2 or more (default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the figure (default %(default)s)")
    options = parser.parse_args()
    if options.horizon < 1 or options.repetitions < 2:
        parser.error(
            f"{options.horizon} rounds and {options.repetitions} repetitions are too few; use at least 1 and 2"
        )
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        results = run_study(options)
        print_table(results)
        path = options.out / "regret.png"
        draw_figure(results, options, path)
    except (preselect.PreselectError, OSError) as error:
        sys.exit(f"demo: {error}")
    print(f"\nfigure: {path}")


if __name__ == "__main__":
    main()
