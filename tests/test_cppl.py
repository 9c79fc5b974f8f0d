"""CPPL against the paper's formulas taken literally, and over the long run."""

import warnings

import numpy as np
import pytest
from literal import LiteralCPPL

from preselect import CPPL, Decision, InputError, Ranking, Winner, model


@pytest.mark.parametrize("feedback", ["winner", "ranking", "top-2"])
@pytest.mark.parametrize(("n", "d", "k"), [(20, 5, 3), (15, 4, 5), (30, 12, 4)])
def test_same_choices_as_the_paper_for_500_rounds(n, d, k, feedback):
    m = {"winner": 1, "ranking": k, "top-2": 2}[feedback]
    policy = CPPL(d=d, seed=1)
    oracle = LiteralCPPL(policy.theta_bar, gamma_1=2.0, alpha=0.6, omega=1.0, ridge=policy.ridge)
    generator = np.random.default_rng(n)
    theta = generator.random(d)
    for _ in range(500):
        X = generator.random((n, d))
        decision = policy.select(X, k)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy's matrix root of a singular matrix, in the first rounds
            expected = oracle.select(X, k)
            bounds = oracle.upper_bounds(X)
        assert decision.arms.tolist() == expected.tolist()
        assert np.allclose(np.exp(decision.scores), bounds[expected], rtol=1e-6)
        ranking = model.sample_ranking(decision.rows @ theta, generator, m)
        named = decision.arms[ranking]
        policy.learn(decision, Winner(named[0]) if feedback == "winner" else Ranking(named))
        oracle.learn(ranking.tolist(), X[expected])
        assert np.max(np.abs(policy.theta_bar - oracle.theta_bar)) < 1e-10
        assert np.max(np.abs(policy.theta_hat - oracle.theta_hat)) < 1e-10


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_100_000_rounds_keep_the_inverse_exact_and_memory_flat():
    policy = CPPL(d=20, seed=0)
    generator = np.random.default_rng(0)
    theta = generator.random(20)
    contexts = generator.random((500, 30, 20))
    noise = generator.gumbel(size=(1000, 5))
    for t in range(100_000):
        decision = policy.select(contexts[t % 500], 5)
        policy.learn(decision, Winner(decision.arms[np.argmax(decision.rows @ theta + noise[t % 1000])]))
        if t == 20_000:
            before = resident_bytes()
    assert resident_bytes() - before < 5_000_000
    assert (policy.observations + 1) % policy._refresh_every > 100  # not just after recomputing
    assert np.max(np.abs(policy.P @ policy.A - np.eye(20))) < 1e-8
    assert np.max(np.abs(policy.P @ policy.B @ policy.P - policy.Sigma)) < 1e-8 * np.max(np.abs(policy.Sigma))


def test_utilities_of_700_are_chosen_and_learnt_from():
    policy = CPPL(d=3, theta_0=[700.0, -700.0, 0.0])
    decision = policy.select(np.eye(3), 2)
    assert decision.arms.tolist() == [0, 2]
    policy.learn(decision, Winner(2))
    policy.learn(decision, Ranking([0, 2]))
    assert np.all(np.isfinite(policy.scores(np.eye(3))))
    assert np.all(np.isfinite(policy.Sigma))


def test_rows_that_would_spoil_the_estimate_are_refused():
    policy = CPPL(d=2, theta_0=0.0)
    before = policy._estimate.copy()
    for size in (1e160, 1e300, np.inf, np.nan):
        with pytest.raises(InputError, match=r"X must .*finite"):
            policy.select(np.diag([size, size]), 2)
        decision = Decision.of(
            arms=np.arange(2),
            rows=np.diag([size, size]),
            scores=np.zeros(2),
            widths=np.zeros(2),
            ids=np.arange(2),
            round=1,
        )
        with pytest.raises(InputError, match="decision must have finite rows"):
            policy.learn(decision, Winner(0))
    assert np.array_equal(policy._estimate, before)


def test_ties_are_broken_at_random_and_repeatably():
    X = np.tile([[0.3, 0.7]], (10, 1))
    first = [CPPL(d=2, seed=seed).select(X, 2).arms.tolist() for seed in range(50)]
    again = [CPPL(d=2, seed=seed).select(X, 2).arms.tolist() for seed in range(50)]
    assert first == again
    assert {arm for arms in first for arm in arms} == set(range(10))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"d": 0}, "d must be at least 1, got 0"),
        ({"gamma_1": 0.0}, "gamma_1 must be positive, got 0.0"),
        ({"alpha": 0.5}, "alpha must lie between 1/2 and 1, got 0.5"),
        ({"omega": -1.0}, "omega must not be negative, got -1.0"),
        ({"ridge": 0.0}, "ridge must be positive, got 0.0"),
        ({"theta_0": [1.0]}, "theta_0 must be one number or d=2 of them, got 1"),
        ({"theta_0": np.nan}, "theta_0 must be finite, got nan"),
    ],
)
def test_bad_parameters_are_named(wrong, message):
    with pytest.raises(InputError, match=message):
        CPPL(**{"d": 2, **wrong})
