"""Joint maps, structured contexts against the arrays they stand for, and the paper's reduction."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preselect import (
    CPPL,
    Concatenation,
    Identity,
    InputError,
    Kronecker,
    OneHot,
    Reduction,
    StateFileError,
    StructuredContext,
    Winner,
    state,
)

SWGCP = Path(__file__).parents[2] / "shared" / "data" / "swgcp" / "features.csv"


@given(st.integers(0, 1000), st.booleans())
def test_maps_equal_their_definition(seed, main_effects):
    generator = np.random.default_rng(seed)
    n, arm_features, context_features = generator.integers(1, 5, size=3)
    z, c = generator.normal(size=(n, arm_features)), generator.normal(size=context_features)
    one_c = np.concatenate(([1.0], c)) if main_effects else c
    assert np.array_equal(np.asarray(Kronecker(main_effects=main_effects)(z, c)), [np.kron(row, one_c) for row in z])
    assert np.array_equal(np.asarray(OneHot(n, main_effects=main_effects)(c)), [np.kron(e, one_c) for e in np.eye(n)])
    assert np.array_equal(np.asarray(Concatenation()(z, c)), [np.concatenate((row, c)) for row in z])
    assert np.array_equal(np.asarray(Identity()(z)), z)


@given(st.integers(0, 1000))
def test_contractions_equal_the_full_products(seed):
    generator = np.random.default_rng(seed)
    n, arm_features, context_features = generator.integers(1, 6, size=3)
    c = generator.normal(size=context_features)
    some = generator.permutation(n)[: max(1, n - 1)]
    for shown in (
        StructuredContext(generator.normal(size=(n, arm_features)), c),
        OneHot(n)(c),
        OneHot(n, main_effects=True)(c, ids=some),
    ):
        X, d = np.asarray(shown), shown.shape[1]
        theta, root = generator.normal(size=d), generator.normal(size=(d, d))
        Sigma = root @ root.T
        small, weights, form = shown.contract(theta, Sigma)
        assert np.allclose(small @ weights, X @ theta)
        assert np.allclose(np.einsum("ia,ab,ib->i", small, form, small), np.einsum("ia,ab,ib->i", X, Sigma, X))
        small, weights, form = shown.contract(theta, np.empty((0, 0)))
        assert np.allclose(small @ weights, X @ theta)
        small, weights, form = shown.contract(theta, Sigma, True)
        assert np.allclose(small @ weights, X @ theta)
        for leader in range(len(X)):  # forms of differences too
            apart, expected = small - small[leader], X - X[leader]
            assert np.allclose(
                np.einsum("ia,ab,ib->i", apart, form, apart), np.einsum("ia,ab,ib->i", expected, Sigma, expected)
            )
        assert np.allclose(shown.covariance(Sigma), X @ Sigma @ X.T)
        assert np.allclose(shown.utilities(root), X @ root.T)


@pytest.mark.parametrize("kind", ["kronecker", "one-hot"])
def test_structured_and_plain_choose_alike_over_500_rounds(kind):
    generator = np.random.default_rng(0)
    arms = generator.random((12, 3))
    maps = {"kronecker": lambda c: Kronecker(main_effects=True)(arms, c), "one-hot": OneHot(12, main_effects=True)}
    d = maps[kind](np.ones(4)).shape[1]
    structured, plain = CPPL(d=d, seed=0), CPPL(d=d, seed=0)
    theta = generator.normal(size=d)
    for _ in range(500):
        shown = maps[kind](generator.random(4))
        one, other = structured.select(shown, 4), plain.select(np.asarray(shown), 4)
        assert one.arms.tolist() == other.arms.tolist()
        winner = Winner(one.arms[np.argmax(one.rows @ theta + generator.gumbel(size=4))])
        structured.learn(one, winner)
        plain.learn(other, winner)
    assert np.array_equal(structured.theta, plain.theta)


def test_ids_are_carried_to_the_decision():
    shown = Kronecker()(np.eye(3), [1.0], ids=[30, 10, 20])
    decision = CPPL(d=3, theta_0=[0.0, 1.0, 2.0]).select(shown, 2)
    assert decision.arms.tolist() == [2, 1]
    assert decision.ids.tolist() == [20, 10]
    assert OneHot(5)([1.0], ids=[4, 2]).ids.tolist() == [4, 2]


def test_what_maps_share_cannot_be_spoilt():
    for shown in (Identity()(np.eye(2)), Concatenation()(np.eye(2), [1.0])):
        with pytest.raises(ValueError, match="read-only"):
            shown.context[:] = 5.0


def test_one_hot_arms_cost_no_square_of_their_number():
    policy = CPPL(d=1000, seed=0, theta_0=np.linspace(0, 1, 1000))
    one_hot = OneHot(1000)
    for _ in range(3):
        decision = policy.select(one_hot([1.0]), 2)
        policy.learn(decision, Winner(decision.arms[0]))
    big = OneHot(1_000_000)([1.0, 2.0])
    assert big.shape == (1_000_000, 2_000_000)
    assert big.rows(np.array([7]))[0, 14:16].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Kronecker()([1.0], [1.0]), r"arms has shape \(1,\), but a table with one row per arm"),
        (lambda: Kronecker()([[1.0]], [[1.0]]), r"context has shape \(1, 1\), but a list of numbers"),
        (lambda: Kronecker()([["a"]], [1.0]), "arms is not an array of real numbers"),
        (lambda: Kronecker()([[1.0], [2.0]], [1.0], ids=[1]), "ids should be 2 distinct non-negative integers"),
        (lambda: Kronecker()([[1.0], [2.0]], [1.0], ids=[1, 1]), "ids should be 2 distinct non-negative integers"),
        (lambda: Kronecker()([[1.0]], [1.0], ids=[[1], [2, 3]]), "ids should be 1 distinct non-negative integers"),
        (
            lambda: Kronecker()([[1.0]], [1.0], ids=np.array([2**63], dtype=np.uint64)),
            "ids should be 1 distinct non-negative integers",
        ),
        (lambda: Kronecker()([[1j]], [1.0]), "arms is not an array of real numbers"),
        (lambda: OneHot(2.5), "n_arms is 2.5; use an integer of at least"),
        (lambda: OneHot(3)([1.0], ids=[3]), "ids has 3, but the 3 arms are 0 to 2"),
        (lambda: OneHot(0), "n_arms is 0; use an integer of at least 1"),
    ],
)
def test_bad_features_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_reduction_scales_and_drops_what_is_constant_or_redundant():
    generator = np.random.default_rng(0)
    base = generator.random((200, 3))
    X = np.column_stack(
        (
            base[:, 0] * 50 - 7,
            np.full(200, 3.0),  # constant
            base[:, 1] * 1e-3,  # varies as much as the others, in its own unit
            -base[:, 0] * 2,  # a mirror image of the first
            np.where(np.arange(200) == 0, 1e3, 0.0),  # one outlier: variance below 0.01 of the square of its range
            base[:, 2],
        )
    )
    reduction = Reduction().fit(X, names=["a", "constant", "b", "minus a", "outlier", "c"])
    assert reduction.names == ["a", "b", "c"]
    assert reduction.kept.tolist() == [0, 2, 5]
    scaled = reduction.transform(X)
    assert np.array_equal(scaled.min(axis=0), np.zeros(3))
    assert np.array_equal(scaled.max(axis=0), np.ones(3))
    assert np.array_equal(reduction.transform(X[5]), scaled[5])


def test_reduction_drops_the_later_of_the_most_correlated_pair_first():
    generator = np.random.default_rng(1)
    x = generator.random(500)
    noise = lambda size: size * generator.normal(size=500)  # noqa: E731
    chain = np.column_stack((x, x + noise(0.05), x + noise(0.001)))
    assert Reduction().fit(chain).kept.tolist() == [0]
    assert Reduction(correlation=0.99).fit(chain).kept.tolist() == [0, 1]
    constant = np.column_stack((x, np.ones(500), generator.random(500)))
    assert Reduction(variance=0.0).fit(constant).kept.tolist() == [0, 2]


def test_reduction_is_saved_and_loaded(tmp_path):
    X = np.random.default_rng(0).random((50, 4))
    reduction = Reduction(correlation=0.9).fit(X, names=list("abcd"))
    reduction.save(tmp_path / "reduction.npz")
    loaded = Reduction.load(tmp_path / "reduction.npz")
    assert (loaded.names, loaded.variance, loaded.correlation) == (reduction.names, 0.01, 0.9)
    assert np.array_equal(loaded.transform(X), reduction.transform(X))
    state.write(tmp_path / "reduction.npz", "Reduction", {}, {})
    with pytest.raises(StateFileError, match="not a complete Reduction: 'variance'"):
        Reduction.load(tmp_path / "reduction.npz")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Reduction().fit([[1.0, np.nan], [1.0, 2.0]]), r"X is nan at \[0, 1\]"),
        (lambda: Reduction().fit([[1.0, 2.0]]), "a reduction is fitted to at least 2 rows; X has 1"),
        (lambda: Reduction().fit(np.eye(2), names=["a"]), "names has 1 entries, but X has 2 columns"),
        (lambda: Reduction().fit(np.eye(2)).transform([1.0]), "the last axis of X has length 1; in fit it was 2"),
        (lambda: Reduction().transform([1.0]), "fit"),
        (lambda: Reduction(correlation=np.nan), "correlation is nan; use a number of at least 0 and at most 1"),
    ],
)
def test_bad_reductions_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.skipif(not SWGCP.exists(), reason="the paper's own features are not on this machine")
def test_the_papers_28_features_reduce_to_its_7():
    with open(SWGCP) as file:
        names, *rows = csv.reader(file)
    numeric = [column for column, value in enumerate(rows[0]) if _is_number(value)]
    X = np.array([[float(row[column]) for column in numeric] for row in rows])
    assert X.shape == (5000, 28)
    assert Reduction().fit(X, names=[names[column] for column in numeric]).names == [
        "nvars",
        "VCG-CLAUSE-mean",
        "VCG-VAR-coeff-variation",
        "VCG-VAR-entropy",
        "CG-coeff-variation",
        "cluster-coeff-mean",
        "cluster-coeff-entropy",
    ]


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
