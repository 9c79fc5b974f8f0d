"""The paper's baselines: what separates them from CPPL and from each other."""

import numpy as np
import pytest

from preselect import CPPL, EpsilonGreedy, InputError, MaxTheta, Random, Winner


def play(policy, rounds, n=15, d=4, k=3):
    generator = np.random.default_rng(9)
    theta = generator.random(d)
    chosen, greedy = [], []
    for _ in range(rounds):
        X = generator.random((n, d))
        greedy.append(sorted(np.argsort(-policy.scores(X))[:k].tolist()))
        decision = policy.select(X, k)
        policy.learn(decision, Winner(decision.arms[np.argmax(decision.rows @ theta + generator.gumbel(size=k))]))
        chosen.append(sorted(decision.arms.tolist()))
    return chosen, greedy


def test_max_theta_always_takes_the_largest_utilities():
    chosen, greedy = play(MaxTheta(d=4, seed=0), 300)
    assert chosen == greedy


def test_max_theta_is_cppl_without_widths():
    assert play(MaxTheta(d=4, seed=3), 300) == play(CPPL(d=4, omega=0.0, seed=3), 300)
    assert play(MaxTheta(d=4, seed=3), 300) != play(CPPL(d=4, seed=3), 300)


def test_epsilon_greedy_explores_with_probability_epsilon():
    assert play(EpsilonGreedy(d=4, epsilon=0.0, seed=3), 100) == play(MaxTheta(d=4, seed=3), 100)
    chosen, greedy = play(EpsilonGreedy(d=4, epsilon=0.1, seed=0), 3000)
    explored = np.mean([one != other for one, other in zip(chosen, greedy, strict=True)])
    assert explored == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 3000))


@pytest.mark.parametrize("policy", [EpsilonGreedy(d=1, epsilon=1.0, seed=0), Random(seed=0)])
def test_random_choices_are_uniform_over_the_eligible(policy):
    X = np.linspace(0, 1, 6)[:, None]
    times = np.zeros(6)
    for _ in range(6000):
        times[policy.select(X, 2, eligible=[0, 1, 3, 5]).arms] += 1
    assert times[[2, 4]].tolist() == [0, 0]
    assert times[[0, 1, 3, 5]] / 6000 == pytest.approx(np.full(4, 0.5), abs=4 * np.sqrt(0.25 / 6000))


def test_epsilon_must_be_a_probability():
    with pytest.raises(InputError, match=r"epsilon is 1\.5; use a number of at least 0 and at most 1"):
        EpsilonGreedy(d=2, epsilon=1.5)
