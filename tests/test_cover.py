"""The choice of a set: greedy, on joint draws, and where it differs from the k best."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preselect import Newton, NoWinner, Rules, Thompson, Winner
from preselect.kernels import covering
from preselect.policies.cover import cover
from preselect.policies.room import Randomness

EVERY = np.empty(0, dtype=np.bool_)


def value(draws, arms):
    """Mean over the draws of the best utility in the set, as a share of the best of all."""
    return np.exp(draws[list(arms)].max(axis=0) - draws.max(axis=0)).mean()


@given(st.integers(0, 10_000))
def test_each_place_goes_to_the_arm_that_adds_most(seed):
    generator = np.random.default_rng(seed)
    draws = generator.normal(size=(7, 5)) * 3.0
    arms = np.empty(4, dtype=np.int64)
    covering.cover(draws, draws.mean(axis=1), EVERY, arms)
    for place in range(4):
        rest = [i for i in range(7) if i not in arms[:place]]
        gains = [value(draws, [*arms[:place], i]) for i in rest]
        assert value(draws, arms[: place + 1]) == pytest.approx(max(gains))
    best = max(value(draws, some) for some in itertools.combinations(range(7), 4))
    assert value(draws, arms) >= (1 - np.exp(-1)) * best  # submodular, so greedy keeps its promise


def test_equal_gains_go_to_the_larger_estimate_and_only_the_eligible_count():
    draws = np.array([[5.0, 5.0], [1.0, 1.0], [2.0, 2.0], [9.0, 9.0]])
    arms = np.empty(3, dtype=np.int64)
    covering.cover(draws, draws.mean(axis=1), np.array([True, True, True, False]), arms)
    assert arms.tolist() == [0, 2, 1]  # after the first nothing is gained


@pytest.mark.parametrize("make", [Newton, Thompson])
def test_arms_that_are_good_or_bad_together_do_not_fill_the_set(make):
    """Three near-clones lead by a little; the belief knows nothing of the second feature, on which another arm bets."""
    X = np.array([[1.0, 0.0], [0.99, 0.0], [0.98, 0.0], [0.9, 1.0]])
    prior = {"mean": [1.0, 0.0], "precision": [1e4, 1.0]}
    covered = make(d=2, choose="cover", seed=0, **prior).select(X, 2)
    assert 3 in covered.arms
    best = Newton(d=2, beta=0.0, seed=0, **prior).select(X, 2)
    assert best.arms.tolist() == [0, 1]


def test_the_set_hardly_depends_on_the_draws():
    """The fourth arm is the best in half of all draws: two draws would often miss that, and 64 do not."""
    X = np.array([[1.0, 0.0], [0.99, 0.0], [0.98, 0.0], [0.9, 1.0]])
    for seed in range(40):
        covered = Newton(d=2, choose="cover", mean=[1.0, 0.0], precision=[1e4, 1.0], seed=seed).select(X, 2)
        assert 3 in covered.arms


def test_beta_plays_no_part_in_covering():
    generator = np.random.default_rng(0)
    cautious, bold = (Newton(d=3, beta=beta, choose="cover", seed=0) for beta in (0.1, 50.0))
    for _ in range(20):
        X = generator.normal(size=(8, 3))
        one, other = cautious.select(X, 3), bold.select(X, 3)
        assert one.arms.tolist() == other.arms.tolist()
        for policy in (cautious, bold):
            policy.learn(one, Winner(one.arms[1]))


@pytest.mark.parametrize("size", [0.0, 1.0])
@pytest.mark.parametrize("make", [Newton, Thompson])
def test_equal_arms_are_taken_at_random(make, size):
    """Six equal arms and one that is not eligible; each of the six has a place in a third of the sets."""
    policy = make(d=3, choose="cover", seed=0)
    shown = np.zeros(7)
    for _ in range(600):
        shown[policy.select(np.full((7, 3), size), 2, eligible=range(6)).arms] += 1
    assert shown[6] == 0
    assert np.abs(shown[:6] - 200).max() < 5 * np.sqrt(600 * (1 / 3) * (2 / 3))


def test_without_ties_no_random_number_is_spent_on_them():
    draws = np.random.default_rng(0).normal(size=(6, 64))
    randomness = Randomness(1)
    arms = cover(draws, draws.mean(axis=1), EVERY, 3, randomness)
    assert len(set(arms.tolist())) == 3
    assert randomness.generator.random() == np.random.default_rng(1).random()


@pytest.mark.parametrize("make", [Newton, Thompson])
def test_a_set_of_one_explores_if_there_is_an_outside_option(make):
    """The expected best of single arms would be the first one that won, for ever, in 7 of 20 runs."""
    chances = np.array([0.6, 0.7, 0.8, 0.95])
    for seed in range(10):
        policy, generator, chosen = make(d=4, outside=True, choose="cover", seed=seed), np.random.default_rng(seed), []
        for _ in range(400):
            decision = policy.select(np.eye(4), 1)
            chosen.append(int(decision.arms[0]))
            policy.learn(decision, Winner(chosen[-1]) if generator.random() < chances[chosen[-1]] else NoWinner())
        assert set(chosen) == {0, 1, 2, 3}


@pytest.mark.parametrize("make", [Newton, Thompson])
def test_a_set_of_one_is_chosen_as_by_best_whatever_made_it_so_small(make):
    covering, plain = (make(d=3, outside=True, choose=choose, seed=0) for choose in ("cover", "best"))
    generator, budget = np.random.default_rng(1), Rules(prices=np.ones(6), budget=1.0)
    for seed in range(20):
        X = generator.normal(size=(6, 3))
        for k, rules in ((1, None), (1, Rules(include=[2])), (3, budget)):
            one, other = (policy.decide(X, k, seed, rules=rules) for policy in (covering, plain))
            assert one.arms.tolist() == other.arms.tolist()
            assert one.scores.tolist() == other.scores.tolist()
        for policy in (covering, plain):
            policy.learn(one, Winner(one.arms[0]) if seed % 3 else NoWinner())
    assert (covering.propensities(X, 1) is None) == (make is Newton)  # no draws
    assert (covering.propensities(X, 3, rules=budget) is None) == (make is Newton)
    assert covering.propensities(X, 2) is not None
