"""CPPL against the paper's formulas taken literally, and over the long run."""

import warnings

import numpy as np
import pytest
from literal import LiteralCPPL

from preselect import CPPL, Decision, EpsilonGreedy, InputError, MaxTheta, OneHot, Ranking, Winner, model


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
    assert (policy.observations + 1) % policy.estimate.refresh_every > 100  # not just after recomputing
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
    before = policy.estimate.block.copy()
    for size in (np.inf, np.nan):
        with pytest.raises(InputError, match=r"X is (inf|nan) at"):
            policy.select(np.diag([size, size]), 2)
    for size in (1e160, 1e300):
        with pytest.raises(InputError, match=r"X has entries up to .* utilities are not finite"):
            policy.select(np.diag([size, size]), 2)
        decision = Decision.of(
            arms=np.arange(2),
            rows=np.diag([size, size]),
            scores=np.zeros(2),
            widths=np.zeros(2),
            ids=np.arange(2),
            round=1,
        )
        with pytest.raises(InputError, match="the decision cannot be learnt from, because no finite estimate follows"):
            policy.learn(decision, Winner(0))
    assert np.array_equal(policy.estimate.block, before)


def test_a_covariance_beyond_working_precision_is_never_taken_over():
    generator = np.random.default_rng(0)
    for _ in range(20):
        policy = CPPL(d=6, ridge=1e-6, gamma_1=1e-15, seed=1)
        scale = np.where(np.arange(6) < 3, 10.0 ** generator.integers(4, 12), 1.0)
        for _ in range(30):
            decision = policy.select(generator.random((8, 6)) * scale, 3)
            before = policy.estimate.block.copy()
            try:
                policy.learn(decision, Winner(decision.arms[generator.integers(3)]))
            except InputError:
                assert np.array_equal(policy.estimate.block, before)
            assert np.all(np.isfinite(policy.estimate.block))
            assert np.all(np.isfinite(decision.scores))


def test_now_and_then_the_inverse_is_computed_anew():
    policy, other = (CPPL(d=12, ridge=1e-6, gamma_1=1e-9, theta_0=0.0, seed=0) for _ in range(2))
    other.estimate.refresh_every = 10**9
    errors = []
    for learner in (policy, other):
        generator = np.random.default_rng(0)
        for _ in range(260):
            decision = learner.select(300.0 * generator.random((10, 12)), 3)
            learner.learn(decision, Winner(decision.arms[generator.integers(3)]))
        errors.append(np.max(np.abs(learner.P @ learner.A - np.eye(12))))
    assert errors[0] < 0.1 * errors[1]


def test_a_refresh_recomputes_what_follows_from_the_sums():
    policy, generator = CPPL(d=4, seed=0), np.random.default_rng(0)
    for _ in range(20):
        decision = policy.select(generator.random((6, 4)), 2)
        policy.learn(decision, Winner(decision.arms[generator.integers(2)]))
    before = policy.estimate.block.copy()
    policy.P[:], policy.Sigma[:] = 0.0, 0.0
    policy.estimate.refresh()
    np.testing.assert_allclose(policy.estimate.block, before, rtol=1e-8)


def test_numbers_of_numpy_are_parameters_like_any_other(tmp_path):
    policy = CPPL(d=np.prod([3, 1]), seed=np.int64(3), gamma_1=np.float32(2), theta_0=np.float64(0.5))
    policy.save(tmp_path / "a.npz")
    assert CPPL.load(tmp_path / "a.npz").theta_0 == 0.5


def test_ties_are_broken_at_random_and_repeatably():
    X = np.tile([[0.3, 0.7]], (10, 1))
    first = [CPPL(d=2, seed=seed).select(X, 2).arms.tolist() for seed in range(50)]
    again = [CPPL(d=2, seed=seed).select(X, 2).arms.tolist() for seed in range(50)]
    assert first == again
    assert {arm for arms in first for arm in arms} == set(range(10))


@pytest.mark.parametrize("theta_0", [0.0, 0.3, 0.5])
def test_arms_that_differ_by_rounding_only_are_tied_however_they_are_shown(theta_0):
    context = np.random.default_rng(0).random(3)
    shown = OneHot(10)(context)
    chosen = set()
    for seed in range(40):
        structured, plain = CPPL(d=30, theta_0=theta_0, seed=seed), CPPL(d=30, theta_0=theta_0, seed=seed)
        for _ in range(20):
            one, other = structured.select(shown, 3), plain.select(np.asarray(shown), 3)
            assert sorted(one.arms) == sorted(other.arms)
            structured.learn(one, Winner(one.arms[1]))
            plain.learn(other, Winner(one.arms[1]))
        chosen |= set(plain.select(shown, 3).arms.tolist())
    assert chosen == set(range(10))


def test_of_two_arms_that_differ_by_rounding_only_either_may_be_chosen():
    X = np.array([[1.0, 0.0], [1.0 - 5e-13, 0.0]])  # nothing was learnt, so there are no widths beside that
    chosen = {int(CPPL(d=2, theta_0=1.0, seed=seed).select(X, 1).arms[0]) for seed in range(30)}
    assert chosen == {0, 1}


def test_the_defaults_are_the_papers():
    """Section 6.1; the size of the ridge, which the paper does not need, is ours."""
    steps = {"gamma_1": 2.0, "alpha": 0.6, "theta_0": None}
    assert CPPL(d=3).parameters == {"d": 3, "seed": None, "omega": 1.0, "ridge": 1e-3, **steps}
    assert EpsilonGreedy(d=3).parameters == {"d": 3, "seed": None, "epsilon": 0.1, **steps}
    assert MaxTheta(d=3).parameters == {"d": 3, "seed": None, **steps}


def test_very_many_arms_may_be_chosen():
    X = np.random.default_rng(0).random((3000, 2))
    policy = CPPL(d=2, seed=0)
    assert policy.select(X, 2000).arms.tolist() == np.argsort(-policy.scores(X))[:2000].tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"d": 0}, "d is 0; use an integer of at least 1"),
        ({"gamma_1": 0.0}, "gamma_1 is 0.0; use a number above 0"),
        ({"alpha": 0.5}, "alpha is 0.5; use a number above 0.5 and below 1"),
        ({"omega": -1.0}, "omega is -1.0; use a number of at least 0"),
        ({"ridge": 1e-9}, "ridge is 1e-09; use a number of at least 1e-06"),
        ({"omega": np.inf}, "omega is inf; use a finite number of at least 0"),
        ({"d": 2.5}, "d is 2.5; use an integer of at least"),
        ({"seed": -1}, "seed is -1; use an integer of at least 0"),
        ({"seed": "a"}, "seed is 'a'; use an integer of at least"),
        ({"gamma_1": "2"}, "gamma_1 is '2'; use a"),
        ({"theta_0": "abc"}, "theta_0 is not an array of real numbers: 'abc'"),
        ({"theta_0": [1.0]}, "theta_0 has 1 entries; give one number for all features, or d=2 of them"),
        ({"theta_0": np.nan}, "theta_0 is nan; use a finite number"),
    ],
)
def test_bad_parameters_are_named(wrong, message):
    with pytest.raises(InputError, match=message):
        CPPL(**{"d": 2, **wrong})
