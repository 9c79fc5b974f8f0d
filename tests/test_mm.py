"""MM against its likelihood maximised numerically, and against closed forms."""

import numpy as np
import pytest
import scipy.optimize

from preselect import MM, Identity, InputError, Ranking, Winner, model
from preselect.kernels import mm

EXACT = {"tolerance": 1e-13, "sweeps": 100_000}


def history(n, k, rounds, seed, m=None):
    """Random sets of k of n arms with rankings drawn from worths that differ."""
    generator = np.random.default_rng(seed)
    u = np.linspace(-1.0, 1.0, n)
    for _ in range(rounds):
        arms = generator.choice(n, k, replace=False)
        yield arms, arms[model.sample_ranking(u[arms], generator, m)]


def teach(policy, n, rounds):
    """Let the policy learn outcomes of sets that it did not choose."""
    for arms, ranked in rounds:
        decision = policy.select(np.zeros((n, 1)), len(arms), eligible=arms)
        policy.learn(decision, Winner(ranked[0]) if len(ranked) == 1 else Ranking(ranked))


def worths(policy):
    """By id."""
    return policy.worth[np.argsort(policy.ids)]


def centred(worth):
    return np.log(worth) - np.log(worth).mean()


def log_posterior(u, rounds, prior):
    """Value and gradient."""
    total = np.sum(prior * (u - 2.0 * np.logaddexp(u, 0.0)))  # against the imaginary arm of worth 1
    slope = prior * (1.0 - 2.0 / (1.0 + np.exp(-u)))
    for arms, ranked in rounds:
        places = [arms.tolist().index(arm) for arm in ranked]
        total += model.log_likelihood(u[arms], places)
        slope[arms] += model.gradient(np.eye(len(arms)), u[arms], places)
    return total, slope


@pytest.mark.parametrize(("k", "m"), [(2, 1), (3, 1), (4, 4), (4, 2)])
def test_worths_maximise_the_likelihood(k, m):
    n, prior = 5, 0.3
    rounds = list(history(n, k, 60, seed=k, m=m))
    policy = MM(prior=prior, **EXACT)
    teach(policy, n, rounds)
    best = scipy.optimize.minimize(
        lambda u: [-part for part in log_posterior(u, rounds, prior)], np.zeros(n), jac=True, tol=1e-12
    ).x
    assert np.allclose(np.log(worths(policy)), best, atol=1e-5)


def test_one_sweep_is_hunters_update():
    policy = MM(prior=0.25, sweeps=1)
    teach(policy, 3, [(np.array([0, 1, 2]), np.array([1, 0, 2]))])
    # All worths start at 1. Arm 1 wins the set of three, then arm 0 wins against arm 2.
    wins, games = np.array([1, 1, 0]), np.array([1 / 3 + 1 / 2, 1 / 3, 1 / 3 + 1 / 2])
    assert worths(policy) == pytest.approx((wins + 0.25) / (games + 2 * 0.25 / 2))


def test_two_arms_have_worths_in_the_ratio_of_their_wins():
    policy = MM(prior=1e-9, **EXACT)
    teach(policy, 2, [(np.array([0, 1]), np.array([0]))] * 3 + [(np.array([0, 1]), np.array([1]))])
    assert worths(policy)[0] / worths(policy)[1] == pytest.approx(3.0, rel=1e-6)


def test_the_incremental_estimate_keeps_up_with_the_exact_one_for_10_000_rounds():
    policy = MM()
    rounds = list(history(12, 3, 10_000, seed=0, m=1))
    teach(policy, 12, rounds)
    exact = np.ones(12)
    history_so_far = policy.wins, policy.starts, policy.members, policy.counts, len(policy._sets)
    assert mm.minorise_maximise(exact, *history_so_far, policy.prior, 1e-13, 100_000) < 100_000
    assert np.allclose(np.log(policy.worth), np.log(exact), atol=1e-3)
    assert np.allclose(centred(policy.worth), centred(exact), atol=1e-5)  # all that choices depend on
    assert np.allclose(centred(worths(policy)), np.linspace(-1.0, 1.0, 12), atol=0.2)
    assert policy.counts.sum() == policy.observations == 10_000
    assert len(policy._sets) <= 220  # 3 of 12


def test_arms_are_known_by_their_ids():
    policy = MM(seed=0)
    for _ in range(30):
        decision = policy.select(Identity()(np.zeros((3, 1)), ids=[2**62, 7, 19]), 2)
        policy.learn(decision, Winner(decision.arms[np.argmin(decision.ids)]))
    shown = Identity()(np.zeros((4, 1)), ids=[19, 7, 500, 2**62])
    scores = policy.scores(shown)
    assert scores.argmax() == 1
    assert scores[2] == 0.0  # never seen: worth 1
    assert policy.select(shown, 1).ids.tolist() == [7]
    assert len(policy.worth) == 3


def test_arms_need_no_features():
    policy = MM(seed=0)
    decision = policy.select(np.empty((3, 0)), 2)
    assert decision.rows.shape == (2, 0)
    policy.learn(decision, Winner(decision.arms[1]))


def test_a_set_of_one_teaches_nothing():
    policy = MM()
    teach(policy, 3, [(np.array([1]), np.array([1]))])
    assert worths(policy) == pytest.approx([1.0])


@pytest.mark.parametrize(
    "wrong", [{"prior": 0.0}, {"prior": np.inf}, {"sweeps": 0}, {"sweeps": 1.5}, {"tolerance": -1}]
)
def test_bad_parameters_are_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(InputError, match=f"{name} is {value}; use"):
        MM(**wrong)
