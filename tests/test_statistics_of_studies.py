"""Regret against the paper's formula round by round, and statistics against SciPy's."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from preselect.environments.regret import regrets
from preselect.study import AslibSetting
from preselect.study.report import _compute_medians
from preselect.study.statistics import compare, standard_error, summarise


@given(st.integers(0, 1000))
def test_regrets_equal_their_formulas(seed):
    generator = np.random.default_rng(seed)
    n, k = 7, int(generator.integers(1, 7))
    u = generator.normal(size=(5, n))
    arms = np.array([generator.choice(n, k, replace=False) for _ in range(5)])
    for t in range(5):
        v = np.exp(u[t])
        assert regrets(u, arms)["best_arm"][t] == pytest.approx((v.max() - v[arms[t]].max()) / v.max())
        best = np.sort(v)[-k:].sum()
        assert regrets(u, arms)["top_k"][t] == pytest.approx((best - v[arms[t]].sum()) / best)


def test_regret_of_the_best_set_is_zero_and_utilities_may_be_large():
    u = np.array([[700.0, -700.0, 699.0], [0.0, 0.0, 0.0]])
    best_arm, top_k = regrets(u, np.array([[0, 2], [1, 2]])).values()
    assert best_arm == pytest.approx([0.0, 0.0])
    assert top_k == pytest.approx([0.0, 0.0])
    assert regrets(u, np.array([[1, 2], [1, 2]]))["best_arm"] == pytest.approx([1.0 - np.exp(-1.0), 0.0])


def test_summaries_and_comparisons_equal_scipys():
    generator = np.random.default_rng(0)
    one, other = generator.exponential(size=200), generator.exponential(size=200) + 0.3
    summary = summarise(one)
    assert (summary.repetitions, summary.mean) == (200, pytest.approx(one.mean()))
    assert summary.standard_error == pytest.approx(scipy.stats.sem(one))
    assert (summary.lower, summary.median, summary.upper) == pytest.approx(np.percentile(one, (5, 50, 95)))
    compared = compare(one, other)
    assert compared.difference == pytest.approx(np.mean(one - other))
    normal = scipy.stats.norm.sf(abs(compared.difference) / scipy.stats.sem(one - other))
    assert compared.p_mean == pytest.approx(2.0 * normal)
    assert compared.p_sign == pytest.approx(scipy.stats.binomtest(compared.wins, 200).pvalue)
    assert compared.wins + compared.losses == 200


def test_equal_and_single_repetitions():
    same = compare(np.ones(30), np.ones(30))
    assert (same.difference, same.p_mean, same.p_sign, same.wins, same.losses) == (0.0, 1.0, 1.0, 0, 0)
    assert np.isnan(standard_error(np.ones((1, 3)))).all()
    assert np.isnan(summarise(np.ones(1)).standard_error)
    assert np.isnan(compare(np.ones(1), np.zeros(1)).p_mean)
    assert np.isnan(compare(np.arange(29.0), np.zeros(29)).p_mean)


def test_very_many_repetitions_are_no_problem():
    one = np.random.default_rng(0).random(5000)
    compared = compare(one, one[::-1])
    assert compared.p_sign == pytest.approx(scipy.stats.binomtest(compared.wins, 5000).pvalue)


def test_medians_are_taken_for_each_k_over_what_is_there():
    values = {
        (AslibSetting("a", 1), "p"): 3.0,
        (AslibSetting("b", 1), "p"): 1.0,
        (AslibSetting("c", 1), "p"): np.nan,
        (AslibSetting("a", 2), "p"): 5.0,
    }
    assert _compute_medians(values) == {(1, "p"): 2.0, (2, "p"): 5.0}
