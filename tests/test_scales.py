"""Features and beliefs of any size: the choice is the brute-force one, and draws have the belief's covariance.

Brute force computes in long doubles, whose exponents go to 4932 where they have more digits than doubles at all.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preselect import CPPL, TSMNL, UCBMNL, InputError, LinUCB, Newton, StructuredContext, Thompson, Winner
from preselect.context import as_context
from preselect.policies.estimators import gaussian

WIDE = np.longdouble
wide_exponents = pytest.mark.skipif(np.finfo(WIDE).maxexp < 16384, reason="long doubles are doubles here")


def widths(policy, X, leader):
    """beta sqrt(x' Sigma x) of every arm, of its contrast with the leader if there is one."""
    Sigma, beta, growth, _ = policy._width()
    Z = X.astype(WIDE) - (0 if leader is None else X[leader].astype(WIDE))
    q = np.maximum(np.einsum("ia,ab,ib->i", Z, Sigma.astype(WIDE), Z), 0)
    return np.sqrt(WIDE(beta) ** 2 + 8 * np.log1p(WIDE(growth) * np.minimum(q, 2))) * np.sqrt(q)


def score(policy, X, chosen):
    """Scores of all arms; for contrasts the leader, which has to have the largest utility, comes first."""
    u = X.astype(WIDE) @ policy.theta.astype(WIDE)
    if isinstance(policy, CPPL):
        return u + np.log1p(widths(policy, X, None))
    if policy.bonus == "arm":
        return u + widths(policy, X, None)
    leader = chosen[0]
    assert u[leader] >= u.max() - 1e-9 * (1 + abs(u.max()))
    scores = u + widths(policy, X, leader)
    scores[leader] = np.inf
    return scores


def require_best(policy, X, k):
    """No arm left out is better than the worst chosen, beyond rounding."""
    chosen = policy.select(X, k).arms
    scores = score(policy, X, chosen)
    left_out = np.setdiff1d(np.arange(len(X)), chosen)
    least = scores[chosen].min()
    assert least >= scores[left_out].max(initial=-np.inf) - 1e-9 * (1 + abs(least)), (chosen, scores)


@wide_exponents
@given(
    st.integers(0, 10_000),
    st.sampled_from([-140, -80, -20, 0, 20, 80, 140]),
    st.sampled_from([-8, -2, 0, 2]),
    st.sampled_from(["contrast", "arm"]),
)
def test_choices_are_the_best_for_features_and_precisions_of_any_size(seed, exponent, shift, bonus):
    """Features of size 10^exponent and a prior under which utilities have size 10^-shift / 2, whatever the exponent."""
    generator = np.random.default_rng(seed)
    n, d = generator.integers(3, 12), generator.integers(1, 7)
    precision = 10.0 ** (2 * exponent + shift) * 10.0 ** generator.uniform(-2.0, 2.0, d)
    X = generator.normal(size=(n, d)) * 10.0**exponent
    X[generator.integers(n)] *= 1e-3
    X[generator.integers(n)] = X[0]
    policy = Newton(d=d, beta=2.0, mean=generator.normal(size=d) * 10.0**-exponent, precision=precision, bonus=bonus)
    require_best(policy, X, int(generator.integers(2, n)))


@wide_exponents
@given(st.integers(0, 10_000), st.sampled_from([-163, -161, -155, 0, 100]))
def test_choices_are_the_best_where_squares_vanish_or_overflow(seed, exponent):
    """Precisions at the end of the range: squares of features vanish, and squares of the covariance overflow."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(8, 3)) * 10.0**exponent
    precision = 10.0 ** generator.uniform(-299.0, -290.0, 3) if exponent < 0 else 10.0 ** (2 * exponent) * np.ones(3)
    require_best(Newton(d=3, beta=1e8, precision=precision, bonus="arm"), X, 3)


@wide_exponents
@given(st.integers(0, 10_000), st.sampled_from([-100, 0, 100]))
def test_cppl_chooses_the_best_for_covariances_of_any_size(seed, exponent):
    generator = np.random.default_rng(seed)
    policy = CPPL(d=3, theta_0=generator.normal(size=3) * 10.0**-exponent, seed=0)
    policy.observations = 5
    root = generator.normal(size=(3, 3)) * [1.0, 0.1, 10.0] * 10.0**-exponent
    policy.estimate.Sigma[:] = root @ root.T
    require_best(policy, generator.normal(size=(9, 3)) * 10.0**exponent, 3)


def test_the_longest_of_three_tiny_arms_is_chosen():
    X = [[1e-80, 0.0], [2e-80, 0.0], [0.0, 5e-80]]
    assert Newton(d=2, beta=2.0, precision=1e-160, bonus="arm", seed=0).select(X, 1).arms == [2]


def test_the_widest_arm_is_chosen_where_squares_of_the_covariance_vanish():
    """Were the eigenvalues taken for equal, its bound would be half its width, and less than the other's score."""
    policy = Newton(d=4, beta=2.0, mean=[0.0, 1.5e-100, 0.0, 0.0], precision=[1e200, 1e204, 1e204, 1e204], bonus="arm")
    assert policy.select(1e100 * np.eye(4)[:2], 1).arms == [0]


@pytest.mark.parametrize(("bonus", "k", "chosen"), [("arm", 1, [1]), ("contrast", 2, [0, 1])])
def test_the_longest_arm_is_chosen_where_its_square_vanishes(bonus, k, chosen):
    X = [[0.0, 5e-163], [1.5e-162, 0.0], [0.0, 1e-163]]
    policy = Newton(d=2, beta=1e6, mean=[0.0, 1e156], precision=1e-300, bonus=bonus, seed=0)
    assert policy.select(X, k).arms.tolist() == chosen


def test_arms_are_not_pruned_by_a_bound_that_overflows():
    """Arms near each other and far from 0: widths of contrasts are finite, bounds by the arms' norms are not."""
    X = np.column_stack((np.full(8, 1e150), 1e50 * np.arange(8.0)))
    policy = Newton(d=2, beta=1e200, mean=[0.0, -1e-50], seed=0)
    assert policy.select(X, 2).arms.tolist() == [0, 7]


CONTEXTS = {
    "fewer arms than features": np.random.default_rng(0).normal(size=(4, 6)),
    "more arms than features": np.random.default_rng(1).normal(size=(9, 4)),
    "zero": np.zeros((3, 5)),
    "equal": np.ones((3, 5)),
    "equal, many": np.ones((7, 2)),
    "nearly equal": 1.0 + 1e-9 * np.random.default_rng(2).normal(size=(4, 6)),
    "one zero": np.vstack((np.zeros(6), np.random.default_rng(3).normal(size=(3, 6)))),
    "sizes apart": np.random.default_rng(4).normal(size=(4, 6)) * [[1e8], [1.0], [1e-8], [1e-3]],
    "sizes apart, two equal": np.random.default_rng(5).normal(size=6) * [[1e8], [1.0], [1e-8], [1.0]],
    "one-dimensional": np.outer([1.0, 2.0, -3.0, 1e5], np.arange(6.0)),
}


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("name", list(CONTEXTS))
def test_draws_have_the_covariance_of_the_belief_in_units_of_each_arm(name, size):
    """Each arm's variance and each pair's correlation, however small the arm beside others."""
    X = CONTEXTS[name] * size
    policy = Thompson(d=X.shape[1], precision=size**2 * np.geomspace(0.1, 10.0, X.shape[1]), seed=1)
    N = 4000
    draws = policy._draw(as_context(X, policy.d), np.zeros(len(X)), N, np.random.default_rng(0))
    covariance = X @ policy.P @ X.T
    scale = np.sqrt(covariance.diagonal())
    over = np.where(scale > 0.0, scale, 1.0)
    drawn = draws / over[:, None]
    np.testing.assert_array_equal(draws[scale == 0.0], 0.0)
    error = np.abs(drawn @ drawn.T / N - covariance / np.outer(over, over)).max()
    assert error < 6.0 * np.sqrt(2.0 / N)
    assert np.abs(X[0] - X[-1]).max() > 0.0 or np.abs(drawn[0] - drawn[-1]).max() < 1e-5  # equal arms, equal draws


@pytest.mark.parametrize("make", [Newton, Thompson, TSMNL])
@pytest.mark.parametrize("choose", ["best", "cover"])
@pytest.mark.parametrize("name", list(CONTEXTS))
def test_sets_are_chosen_and_learnt_from_whatever_the_arms(make, choose, name):
    X = CONTEXTS[name]
    policy = make(d=X.shape[1], choose=choose, seed=0)
    for _ in range(3):
        decision = policy.select(X, 2)
        policy.learn(decision, Winner(decision.arms[0]))
    assert np.isfinite(policy.theta).all()


def test_structured_arms_may_be_equal_too():
    context = StructuredContext(np.ones((3, 2)), [1.0, -1.0, 2.0])
    assert len(Thompson(d=6, seed=0).select(context, 2).arms) == 2
    assert len(Newton(d=6, choose="cover", seed=0).select(context, 2).arms) == 2


def test_a_precision_whose_inverse_overflows_is_refused():
    for policy in (Newton, Thompson, TSMNL, UCBMNL, LinUCB):
        with pytest.raises(InputError, match=r"down to 1e-310, .* use at least 1e-300"):
            policy(d=2, precision=1e-310)


def test_draws_are_finite_where_the_covariance_of_utilities_is_not():
    policy = Thompson(d=3, precision=1e-200, seed=0)
    assert np.isfinite(
        policy._draw(as_context(np.full((2, 3), 1e100), 3), np.zeros(2), 5, np.random.default_rng(0))
    ).all()


@given(st.integers(0, 10_000), st.integers(1, 8), st.sampled_from([0.0, 1e-15, 1e-9]))
def test_a_root_of_a_singular_matrix_is_one(seed, rank, rounding):
    """Also of one that rounding has made indefinite, by little or by much."""
    generator = np.random.default_rng(seed)
    F = generator.normal(size=(8, rank)) * 10.0 ** generator.uniform(-70.0, 70.0, (8, 1))
    F[generator.integers(8)] = 0.0
    scale = np.sqrt((F**2).sum(axis=1))
    S = F @ F.T - rounding * np.outer(scale, scale) * (1.0 - np.eye(8))
    R = gaussian.find_root(S)
    over = np.where(scale > 0.0, scale, 1.0)[:, None]
    assert np.abs((R / over) @ (R / over).T - S / over / over.T).max() < 2e-12 + 10.0 * rounding


def test_theta_is_drawn_from_a_belief_that_rounding_has_made_indefinite():
    """Two weights of which nothing but the difference is known, and that exactly."""
    policy = Thompson(d=2, seed=0)
    policy.estimate.P[:] = [[1.0, 1.0 + 1e-15], [1.0 + 1e-15, 1.0]]
    draws = policy._draw(
        as_context(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), 2), np.zeros(3), 2000, np.random.default_rng(0)
    )
    assert draws[2].std() == pytest.approx(2.0, rel=0.1)
    assert np.abs(draws[0] - draws[1]).max() < 1e-5
