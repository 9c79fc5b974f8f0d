"""The model against finite differences, brute force over all rankings, and the literal formulas."""

import itertools

import literal
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preselect import InputError, model

rankings = st.integers(2, 6).flatmap(
    lambda k: st.tuples(st.permutations(range(k)), st.integers(1, k)).map(lambda drawn: (k, drawn[0][: drawn[1]]))
)
seeds = st.integers(0, 10_000)


def problem(seed, k, d=4, scale=1.0):
    generator = np.random.default_rng(seed)
    return scale * generator.normal(size=(k, d)), generator.normal(size=d)


@given(rankings, seeds)
def test_gradient_and_curvature_equal_finite_differences(drawn, seed):
    k, ranking = drawn
    X, theta = problem(seed, k)
    step = 1e-5
    steps = step * np.eye(len(theta))
    value = lambda at: model.log_likelihood(model.utilities(X, at), ranking)  # noqa: E731
    slopes = [(value(theta + s) - value(theta - s)) / (2 * step) for s in steps]
    assert np.allclose(model.gradient(X, theta, ranking), slopes, atol=1e-8)
    bends = [
        (model.gradient(X, theta + s, ranking) - model.gradient(X, theta - s, ranking)) / (2 * step) for s in steps
    ]
    assert np.allclose(model.curvature(X, theta, ranking), -np.array(bends), atol=1e-8)


@given(rankings, seeds)
def test_the_model_equals_the_literal_formulas(drawn, seed):
    k, ranking = drawn
    X, theta = problem(seed, k)
    u = model.utilities(X, theta)
    assert model.log_likelihood(u, ranking) == pytest.approx(literal.log_likelihood(theta, ranking, X), abs=1e-12)
    assert np.allclose(model.gradient(X, theta, ranking), literal.gradient(theta, ranking, X), atol=1e-12)
    assert np.allclose(model.curvature(X, theta, ranking), -literal.hessian(theta, ranking, X), atol=1e-12)


@pytest.mark.parametrize("k", range(1, 7))
def test_probabilities_of_all_rankings_sum_to_one(k):
    u = np.random.default_rng(k).normal(scale=2.0, size=k)
    for m in range(1, k + 1):
        total = sum(model.ranking_probability(u, ranking) for ranking in itertools.permutations(range(k), m))
        assert total == pytest.approx(1.0, abs=1e-12)
    assert [model.ranking_probability(u, [i]) for i in range(k)] == pytest.approx(list(model.winner_probabilities(u)))


@given(rankings, seeds, st.floats(-500, 500))
def test_shifting_all_utilities_changes_nothing(drawn, seed, shift):
    k, ranking = drawn
    u = np.random.default_rng(seed).normal(size=k)
    assert np.allclose(model.winner_probabilities(u + shift), model.winner_probabilities(u), atol=1e-12)
    assert model.log_likelihood(u + shift, ranking) == pytest.approx(model.log_likelihood(u, ranking), abs=1e-9)


@given(rankings, seeds)
def test_curvature_factor_has_k_minus_one_rows(drawn, seed):
    k, ranking = drawn
    X, theta = problem(seed, k, d=8)
    F = model.curvature_factor(X, theta, ranking)
    assert F.shape == (k - 1, 8)
    assert np.linalg.matrix_rank(model.curvature(X, theta, ranking)) <= k - 1


@given(rankings, seeds)
def test_utilities_up_to_700_stay_finite_and_exact(drawn, seed):
    k, ranking = drawn
    generator = np.random.default_rng(seed)
    X = np.diag(generator.choice([-700.0, -699.0, 0.0, 1.0, 700.0], size=k))
    theta = np.ones(k)
    u = model.utilities(X, theta)
    p = model.winner_probabilities(u)
    assert p.sum() == pytest.approx(1.0)
    for value in (p, model.gradient(X, theta, ranking), model.curvature_factor(X, theta, ranking)):
        assert np.all(np.isfinite(value))
    places = [*ranking, *(set(range(k)) - set(ranking))]
    expected = sum(u[i] - np.logaddexp.reduce(u[places[s:]]) for s, i in enumerate(ranking))
    assert model.log_likelihood(u, ranking) == pytest.approx(expected, rel=1e-12)


def test_curvature_of_a_nearly_certain_outcome_keeps_its_digits():
    # p(1 - p) with p = 1 / (1 + e^-40): computing 1 - p first would leave nothing of it.
    assert model.curvature([[1.0], [0.0]], [40.0], [0])[0, 0] == pytest.approx(np.exp(-40.0), rel=1e-12)


def test_samples_follow_the_probabilities():
    u = np.array([0.0, 1.0, -1.0, 0.5])
    generator = np.random.default_rng(0)
    draws = 20_000
    winners = np.bincount([model.sample_winner(u, generator) for _ in range(draws)], minlength=4) / draws
    assert np.allclose(winners, model.winner_probabilities(u), atol=4 * np.sqrt(0.25 / draws))
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(draws):
        ranking = tuple(model.sample_ranking(u, generator, 2).tolist())
        seen[ranking] = seen.get(ranking, 0) + 1
    for ranking in itertools.permutations(range(4), 2):
        expected = model.ranking_probability(u, ranking)
        assert seen[ranking] / draws == pytest.approx(expected, abs=4 * np.sqrt(expected / draws))


@pytest.mark.parametrize("ranking", [[], [0, 0], [3], [-1], [0, 1, 2, 0]])
def test_a_bad_ranking_is_refused(ranking):
    with pytest.raises(InputError, match="ranking should be distinct positions from 0 to 2"):
        model.log_likelihood([0.0, 1.0, 2.0], ranking)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: model.gradient(np.eye(2), np.ones(3), [0]),
            "X has 2 columns, but theta has 3 entries",
        ),
        (lambda: model.utilities(np.eye(2), np.ones(3)), "X has 2 columns, but theta has 3 entries"),
        (lambda: model.winner_probabilities([]), "u is empty; give it one log-utility per arm"),
        (lambda: model.sample_winner([np.nan, 1.0], np.random.default_rng(0)), r"u is nan at \[0\]"),
        (lambda: model.log_likelihood([0.0, 1.0], [1.9]), r"ranking should be distinct positions .* not \[1.9\]"),
        (lambda: model.log_likelihood([0.0, 1.0], ["a"]), "ranking should be distinct positions"),
        (lambda: model.sample_ranking([0.0, 1.0], np.random.default_rng(0), 3), "m=3, but there are only 2 arms"),
        (
            lambda: model.sample_ranking([0.0, 1.0], np.random.default_rng(0), -1),
            "m is -1; use an integer of at least 1",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
