"""Fits of logs: CPU time of one fit, beside the conditional logit of statsmodels on a part of the same rounds.

Targets: `Preselector.fit` to 100 000 rounds of 10 arms with 20 features in at most 5 seconds on one core, and the
maximum with a gradient below 1e-8. A preselector that is fitted to 600 rounds has at most a third of the regret of a
new one over the next 2000, on average. Times are the best of three.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from test_fit import compare_starts

from preselect import Preselector
from preselect.logs import Logs
from preselect.logs.ranked import RankedRows
from preselect.posterior import maximise

T, K, D, N, PART, WORLDS = 100_000, 10, 20, 50, 2_000, 20


def make_rounds(rounds):
    """Rounds whose winner stands first."""
    generator = np.random.default_rng(0)
    X, theta = generator.normal(size=(rounds, K, D)), 0.5 * generator.normal(size=D)
    winners = (X @ theta + generator.gumbel(size=(rounds, K))).argmax(axis=1)
    every = np.arange(rounds)
    X[every, 0], X[every, winners] = X[every, winners].copy(), X[every, 0].copy()
    return X


def fit(X):
    rounds = len(X)
    ranked = RankedRows(np.arange(rounds * K), np.arange(rounds), np.full(rounds, K), np.ones(rounds, np.int64), None)
    return maximise(X.reshape(-1, D), ranked, np.zeros(D), np.ones(D))


def make_logs(X):
    """The same rounds as logs; each shows 10 of 50 arms, and the features of an arm differ from round to round."""
    rounds, rows = len(X), len(X) * K
    return Logs(
        arms=tuple(f"arm {number}" for number in range(N)),
        features=tuple(f"x{number}" for number in range(D)),
        context=(),
        labels=tuple(map(str, range(rounds))),
        starts=np.arange(rounds + 1) * K,
        arm=((np.arange(rounds) * 7)[:, None] + np.arange(K) * 3).ravel() % N,
        values=X.reshape(-1, D),
        contexts=np.empty((rounds, 0)),
        shown=np.ones(rows, dtype=bool),
        places=(np.arange(rows) % K == 0).astype(np.int64),
        propensities=np.full(rows, np.nan),
        set_propensities=np.full(rounds, np.nan),
    )


def fit_logs(logs, identity):
    return Preselector.fit(logs, identity=identity, seed=0)


def find_gradient(X, theta):
    u = X @ theta
    p = np.exp(u - u.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return (X[:, 0] - np.einsum("tk,tkd->td", p, X)).sum(axis=0) - theta


def measure(call, *arguments):
    taken = []
    for _ in range(3):
        before = time.process_time()
        found = call(*arguments)
        taken.append(time.process_time() - before)
    return found, min(taken)


def fit_by_statsmodels(X):
    from statsmodels.discrete.conditional_models import ConditionalLogit

    won = (np.arange(X.shape[0] * K) % K == 0).astype(float)
    model = ConditionalLogit(won, X.reshape(-1, D), groups=np.repeat(np.arange(len(X)), K))
    return model.fit(disp=False, method="bfgs")


def main():
    X = make_rounds(T)
    fit(X[:10])  # compiles
    found, seconds = measure(fit, X)
    gradient = np.abs(find_gradient(X, found.theta)).max()
    logs = make_logs(X)
    fit_logs(logs.take(0, 10), True)
    whole, own = (measure(fit_logs, logs, identity)[1] for identity in (False, True))
    print(
        f"{T} rounds, {K} arms, {D} features, s of CPU: Preselector.fit {whole:.2f}; with weights of each arm {own:.2f}"
    )
    print(f"of that the maximum {seconds:.2f} in {found.steps} steps, with a gradient of {gradient:.1e}")
    _, ours = measure(fit, X[:PART])
    _, theirs = measure(fit_by_statsmodels, X[:PART])
    print(f"{PART} rounds: {1e3 * ours:.0f} ms; statsmodels {1e3 * theirs:.0f} ms: {theirs / ours:.0f} times as long")
    warm, cold = np.array([compare_starts(seed)[1] for seed in range(100, 100 + WORLDS)]).T
    error = (warm - cold).std(ddof=1) / np.sqrt(WORLDS)
    print(
        f"regret over 2000 rounds in {WORLDS} worlds: fitted {warm.mean():.2f}, new {cold.mean():.2f}, paired "
        f"difference {(warm - cold).mean():+.2f} ± {error:.2f}, largest ratios {np.sort(warm / cold)[-3:].round(2)}"
    )
    sys.exit(int(max(whole, own) > 5.0 or gradient > 1e-8 or warm.mean() > cold.mean() / 3.0))


if __name__ == "__main__":
    main()
