"""The truth, statistically: theta* is recovered at the right rate, and regret flattens."""

import functools

import numpy as np
import pytest

from preselect import CPPL, Ranking, Winner, model

CHECKPOINTS = (1_500, 12_000)


@functools.cache
def errors(feedback):
    """Root mean square error of theta_bar at the checkpoints, over 10 repetitions; every arm is tried."""
    squares = []
    for seed in range(10):
        generator = np.random.default_rng(seed)
        theta = generator.uniform(-1, 1, 4)
        policy = CPPL(d=4, theta_0=0.0)
        for t in range(1, CHECKPOINTS[-1] + 1):
            decision = policy.select(generator.normal(size=(6, 4)), 6)
            named = decision.arms[model.sample_ranking(decision.rows @ theta, generator)]
            policy.learn(decision, Winner(named[0]) if feedback == "winner" else Ranking(named))
            if t in CHECKPOINTS:
                squares.append(np.sum((policy.theta - theta) ** 2))
    return np.sqrt(np.mean(np.reshape(squares, (-1, len(CHECKPOINTS))), axis=0))


@pytest.mark.parametrize("feedback", ["winner", "ranking"])
def test_theta_is_recovered_like_one_over_root_t(feedback):
    early, late = errors(feedback)
    rate = np.log(late / early) / np.log(CHECKPOINTS[1] / CHECKPOINTS[0])
    assert late < 0.05
    assert -0.8 < rate < -0.35  # -1/2, and a little steeper while the start is still being forgotten


def test_rankings_teach_more_than_winners():
    assert errors("ranking")[1] < 0.85 * errors("winner")[1]


def test_regret_of_cppl_grows_slower_than_root_t():
    early, late = [], []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        theta = generator.random(5)
        policy = CPPL(d=5, seed=seed)
        regret = np.empty(4000)
        for t in range(4000):
            X = generator.random((20, 5))
            decision = policy.select(X, 3)
            u = decision.rows @ theta
            policy.learn(decision, Winner(decision.arms[model.sample_winner(u, generator)]))
            regret[t] = 1.0 - np.exp(u.max() - (X @ theta).max())
        early.append(regret[:1000].sum())
        late.append(regret.sum())
    assert np.mean(late) < 2.0 * np.mean(early)
    assert np.mean(late) < 80  # choosing at random: over 1000
