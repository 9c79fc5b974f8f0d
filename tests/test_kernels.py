"""The kernels against brute force: exact pruning, and the updates against recomputation."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from preselect.compiling import entry
from preselect.kernels import algebra, averaging, choosing, pruning
from preselect.kernels.types import CONTRAST, LOGARITHM, NOT_FINITE, OK, PLAIN, TIED

seeds = st.integers(0, 10_000)
EVERY = np.empty(0, dtype=np.bool_)
NOTHING = np.empty(0)

invert, sandwich, update = map(entry, (algebra.invert, averaging._sandwich, averaging._update))
gain_precision = entry(algebra.gain_precision)
largest_eigenvalue_bound = entry(choosing.largest_eigenvalue_bound)


FORMS = [LOGARITHM, PLAIN, CONTRAST]


def best_by_brute_force(X, theta, Sigma, beta, k, form=LOGARITHM, growth=0.0):
    X = X.astype(np.float64)
    u, leader = X @ theta, (X @ theta).argmax()
    measured = X - X[leader] if form == CONTRAST else X
    q = np.maximum(np.einsum("ia,ab,ib->i", measured, Sigma, measured), 0.0)
    roots = np.sqrt((beta**2 + 8.0 * np.log1p(growth * np.minimum(q, 2.0))) * q)
    scores = u + (np.log1p(roots) if form == LOGARITHM else roots)
    order = np.argsort(-scores)
    if form == CONTRAST:
        order = np.concatenate(([leader], order[order != leader]))
        scores[leader] += (scores - u)[order[1]] if k > 1 else 0.0  # the width of its contrast with the best other
    return order[:k], scores[order[:k]]


def random_covariance(generator, d):
    rank = generator.integers(1, d + 1)
    root = generator.normal(size=(d, rank)) * generator.choice([0.01, 1.0, 10.0], size=rank)
    return root @ root.T


def chosen(X, theta, Sigma, beta, k, eligible=EVERY, form=LOGARITHM, growth=0.0):
    n, d = X.shape
    apart = pruning.set_apart(Sigma, theta) if form == CONTRAST and n > 8 * d else NOTHING
    arms, bounds, rows = np.empty(k, dtype=np.int64), np.empty(2 * k), np.empty((k, d))
    assert choosing.choose(X, theta, Sigma, beta, growth, form, apart, eligible, arms, bounds, rows) == OK
    return arms, bounds, rows


@given(
    seeds,
    st.sampled_from([1, 5, 17, 40]),
    st.sampled_from([np.float64, np.float32]),
    st.floats(0.0, 20.0),
    st.sampled_from(FORMS),
    st.sampled_from([0.0, 0.01, 100.0]),
)
@example(0, 1, np.float64, 1.0, CONTRAST, 0.0)
@example(1, 5, np.float64, 2.0, CONTRAST, 0.01)
@example(2, 5, np.float64, 0.5, CONTRAST, 100.0)
@example(3, 17, np.float32, 0.1, CONTRAST, 100.0)
def test_pruned_choice_equals_brute_force(seed, d, dtype, beta, form, growth):
    generator, growth = np.random.default_rng(seed), growth * (beta > 0.0)  # with beta = 0 there are no widths
    n, k = 200, int(generator.integers(1, 12))
    X = (generator.normal(size=(n, d)) * generator.exponential(size=(n, 1))).astype(dtype)
    theta, Sigma = generator.normal(size=d), random_covariance(generator, d)
    arms, bounds, rows = chosen(X, theta, Sigma, beta, k, form=form, growth=growth)
    expected, scores = best_by_brute_force(X, theta, Sigma, beta, k, form, growth)
    assert arms.tolist() == expected.tolist()
    assert np.allclose(bounds[:k], scores)
    assert np.array_equal(rows, X[arms])
    every_score, every_width = np.empty(n), np.empty(n)
    choosing.score(X, theta, Sigma, beta, growth, form, arms[0], -np.inf, every_score, every_width)
    rest = 1 if form == CONTRAST else 0
    assert np.array_equal(bounds[rest:k], every_score[arms][rest:])
    assert np.array_equal(bounds[k + rest :], every_width[arms][rest:])
    assert np.all(np.diff(bounds[:k]) <= 0.0)
    assert np.allclose(bounds[:k] - bounds[k:], X[arms].astype(np.float64) @ theta, rtol=1e-9, atol=1e-9)
    some = generator.random(n) < 0.3
    some[arms[0]] = False
    arms, bounds, _ = chosen(X, theta, Sigma, beta, min(k, int(some.sum())), some, form, growth)
    subset, _ = best_by_brute_force(X[some], theta, Sigma, beta, len(arms), form, growth)
    assert arms.tolist() == np.flatnonzero(some)[subset].tolist()
    choosing.score(X, theta, Sigma, beta, growth, form, arms[0], bounds[: len(arms)].min(), every_score, every_width)
    assert np.all(np.isfinite(every_score[arms]))


@given(seeds, st.sampled_from([1, 2, 3]), st.floats(0.1, 20.0))
def test_pruning_is_exact_where_its_bound_is_tight(seed, d, beta):
    # The covariance has rank one and the arms lie along it, so the bound is attained; the scores lie close together.
    generator = np.random.default_rng(seed)
    direction = generator.normal(size=d)
    Sigma = np.outer(direction, direction)
    lengths = np.sort(generator.random(60) + 0.1)
    X = lengths[:, None] * direction / np.linalg.norm(direction)
    widths = np.log1p(beta * np.sqrt(np.einsum("ia,ab,ib->i", X, Sigma, X)))
    target = 3.0 + 1e-6 * generator.random(60)
    features, weights = np.column_stack((X, target - widths)), np.append(np.zeros(d), 1.0)
    padded = np.zeros((d + 1, d + 1))
    padded[:d, :d] = Sigma
    arms, *_ = chosen(features, weights, padded, beta, 5)
    assert arms.tolist() == best_by_brute_force(features, weights, padded, beta, 5)[0].tolist()


@given(seeds)
def test_the_order_in_which_arms_are_shown_does_not_matter(seed):
    generator = np.random.default_rng(seed)
    X, theta, Sigma = generator.random((40, 6)), generator.normal(size=6), random_covariance(generator, 6)
    order = generator.permutation(40)
    arms, *_ = chosen(X, theta, Sigma, 3.0, 7)
    assert order[chosen(X[order], theta, Sigma, 3.0, 7)[0]].tolist() == arms.tolist()


def test_a_tie_for_the_last_place_is_reported():
    X = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]])
    arms, bounds, rows = np.empty(2, dtype=np.int64), np.empty(4), np.empty((2, 2))
    for beta in (0.0, 1.0):
        args = (np.eye(2), beta, 0.0, LOGARITHM, NOTHING, EVERY, arms, bounds, rows)
        assert choosing.choose(X, np.array([3.0, 0.0]), *args) == TIED
        assert choosing.choose(X, np.array([3.0, 8.0]), *args) == TIED
        assert choosing.choose(X[:3], np.array([3.0, 8.0]), *args) == OK
        assert choosing.choose(X, np.array([np.nan, 2.5]), *args) == NOT_FINITE


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_scores_that_differ_by_rounding_only_are_tied(form, beta):
    """The widths are so small that nothing but the room for rounding keeps the third arm from being pruned."""
    X, theta, Sigma = np.array([[2.0, 0.0], [1.0, 0.0], [1.0 - 5e-13, 0.0]]), np.array([1.0, 0.0]), 1e-32 * np.eye(2)
    arms, bounds, rows = np.empty(2, dtype=np.int64), np.empty(4), np.empty((2, 2))
    for order in ([0, 1, 2], [2, 1, 0]):
        args = (theta, Sigma, beta, 0.0, form, NOTHING, EVERY, arms, bounds, rows)
        assert choosing.choose(X[order], *args) == TIED
        assert choosing.choose((X - [[0.0, 0.0], [0.0, 0.0], [1e-10, 0.0]])[order], *args) == OK


def test_a_tie_with_an_arm_that_was_no_seed_is_reported():
    """The last arm has the largest utility, the first replaces it by its width, and the second ties with the first."""
    X, Sigma = np.array([[1.0, 5e-13], [1.0, 0.0], [0.0, 1.0 + 1e-8]]), np.diag([0.01, 0.0])
    arms, bounds, rows = np.empty(1, dtype=np.int64), np.empty(2), np.empty((1, 2))
    args = (Sigma, 1.0, 0.0, PLAIN, NOTHING, EVERY, arms, bounds, rows)
    assert choosing.choose(X, np.array([1e6, 1e6]), *args) == TIED


@given(seeds, st.integers(1, 30))
def test_eigenvalue_bound_is_one(seed, d):
    Sigma = random_covariance(np.random.default_rng(seed), d)
    assert largest_eigenvalue_bound(Sigma) >= np.linalg.eigvalsh(Sigma)[-1]
    assert largest_eigenvalue_bound(np.eye(d)) >= 1.0


@pytest.mark.parametrize(("d", "r"), [(3, 1), (12, 2), (12, 5), (30, 9)])
def test_updating_equals_recomputing(d, r):
    generator = np.random.default_rng(d)
    A, B = 0.5 * np.eye(d), random_covariance(generator, d)
    P, Sigma, P_again, Sigma_again = (np.zeros((d, d)) for _ in range(4))
    assert invert(A, P)
    assert sandwich(B, P, Sigma)
    assert np.allclose(P, 2.0 * np.eye(d))
    for _ in range(50):
        F, g = generator.normal(size=(r, d)), generator.normal(size=(1, d))
        F[0, : d // 2] = 0.0  # as one-hot arms have
        A += F.T @ F
        B += g.T @ g
        update(F, np.ascontiguousarray(F.T), g, P, Sigma)
        assert invert(A, P_again)
        assert sandwich(B, P_again, Sigma_again)
        assert np.allclose(P, P_again, atol=1e-11)
        assert np.allclose(Sigma, Sigma_again, atol=1e-11)
        assert np.allclose(P_again, np.linalg.inv(A), atol=1e-11)
        assert np.allclose(Sigma_again, P_again @ B @ P_again, atol=1e-11)


@pytest.mark.parametrize("discount", [1.0, 0.6])
@pytest.mark.parametrize("r", [2, 8])  # P is updated, and computed anew
def test_a_gain_of_precision_is_what_it_says(r, discount):
    generator = np.random.default_rng(r)
    A, theta = np.diag(generator.random(5) + 0.5), generator.normal(size=5)
    P = np.linalg.inv(A)
    for step in (0.0, 0.3, 1.0):
        F, g = generator.normal(size=(r, 5)), generator.normal(size=(1, 5))
        expected = discount * A + F.T @ F
        moved = theta + step * np.linalg.solve(expected, g[0])
        assert gain_precision(F, g, discount, step, theta, A, P) == OK
        assert np.allclose(A, expected, rtol=1e-12)
        assert np.allclose(P @ A, np.eye(5), atol=1e-10)
        assert np.allclose(theta, moved, atol=1e-10)
