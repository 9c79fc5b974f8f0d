"""Regret against the paper's formula round by round, and statistics against SciPy's."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from preselect.environments.regret import regrets
from preselect.study import AslibPlan, AslibSetting
from preselect.study.report import _compute_medians, _explain_limits, _format_comparison, _format_p, format_mean
from preselect.study.statistics import _adjust, _compute_p_values, compare, find_least_p, standard_error, summarise


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


def compare_two(one, other):
    return compare({"pair": (one, other)})["pair"]


def test_summaries_and_comparisons_equal_scipys():
    generator = np.random.default_rng(0)
    one, other = generator.exponential(size=200), generator.exponential(size=200) + 0.2
    summary = summarise(one)
    assert (summary.repetitions, summary.mean) == (200, pytest.approx(one.mean()))
    assert summary.standard_error == pytest.approx(scipy.stats.sem(one))
    assert (summary.lower, summary.median, summary.upper) == pytest.approx(np.percentile(one, (5, 50, 95)))
    compared = compare_two(one, other)
    assert compared.difference == pytest.approx(np.mean(one - other))
    assert compared.standard_error == pytest.approx(scipy.stats.sem(one - other))
    assert compared.p_sign == pytest.approx(scipy.stats.binomtest(compared.wins, 200).pvalue)
    assert (compared.repetitions, compared.wins + compared.losses) == (200, 200)


@pytest.mark.parametrize("skew", [False, True])
def test_p_values_of_means_equal_those_of_all_sign_flips_or_of_scipys_bootstrap(skew):
    """Whichever is larger: the bootstrap's where differences are skew towards the mean's side, else the flips'."""
    generator = np.random.default_rng(1)
    differences = generator.exponential(size=12) - 1.7 if skew else generator.standard_t(3, size=12) + 0.8
    flips = scipy.stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
    ).pvalue  # all 4096
    centred = differences - differences.mean()
    drawn = generator.choice(centred, size=(100_000, 12))
    with np.errstate(divide="ignore"):
        t = scipy.stats.ttest_1samp(drawn, 0.0, axis=1).statistic
    observed = scipy.stats.ttest_1samp(differences, 0.0).statistic
    bootstrap = 2.0 * min(np.mean(t <= observed), np.mean(t >= observed))
    assert 0.001 < min(flips, bootstrap) < 0.9 * max(flips, bootstrap)
    assert compare_two(differences, np.zeros(12)).p_mean == pytest.approx(max(flips, bootstrap), rel=0.1)


NULLS = {
    "symmetric": lambda g, shape: g.normal(size=shape),
    "heavy tails": lambda g, shape: g.lognormal(size=shape) - g.lognormal(size=shape),
    "exponential": lambda g, shape: g.exponential(size=shape) - 1.0,
    "unlike policies": lambda g, shape: 3.0 * g.gamma(0.5, size=shape) - g.gamma(1.5, size=shape),
}


LONG = [pytest.param(null, 100, marks=pytest.mark.soak) for null in NULLS if null != "exponential"]


@pytest.mark.parametrize(("null", "repetitions"), [*((null, 30) for null in NULLS), ("exponential", 100), *LONG])
def test_true_hypotheses_are_rejected_as_rarely_as_p_values_promise(null, repetitions):
    """Of 4000, at most 1.25, 2 and 3 times the nominal number, and not much fewer than that at 0.05.

    A normal approximation rejects 69 and 20 of the exponential ones at 0.001, where 4 are expected.
    """
    differences = NULLS[null](np.random.default_rng(7), (repetitions, 4000))
    p = _compute_p_values(differences, resamples=1999)
    rejected = [np.mean(p <= level) for level in (0.05, 0.01, 0.001)]
    assert np.all(rejected <= np.array([0.0625, 0.02, 0.003])), rejected
    assert rejected[0] >= 0.03


@pytest.mark.parametrize("repetitions", [10, 20])
@pytest.mark.parametrize("null", NULLS)
def test_few_repetitions_reject_little_more_than_they_promise(null, repetitions):
    """Student's t rejects 10 % of the exponential ones at 0.05, 4 % at 0.01 and 1.5 % at 0.001."""
    p = _compute_p_values(NULLS[null](np.random.default_rng(7), (repetitions, 4000)), resamples=1999)
    assert np.all([np.mean(p <= level) for level in (0.05, 0.01, 0.001)] <= np.array([0.075, 0.022, 0.005]))


def test_no_p_value_is_below_the_one_that_the_report_calls_the_smallest():
    """Ten differences of the same sign have it with one of 512 pairs of sign flips, of which random ones find fewer."""
    pairs = {i: (np.arange(10.0) + 5.0 + i, np.zeros(10)) for i in range(2)}
    assert all(found.p_mean >= find_least_p(10, 2) for found in compare(pairs).values())


def test_holm_multiplies_the_smallest_by_their_number_and_keeps_the_order():
    assert _adjust(np.array([0.03, 0.01, 0.5, 0.04])) == pytest.approx([0.09, 0.04, 0.5, 0.09])
    assert _adjust(np.array([0.9, 0.6])) == pytest.approx([1.0, 1.0])
    assert _adjust(np.empty(0)).shape == (0,)


@given(st.integers(0, 1000), st.floats(1e-6, 1e6), st.permutations(range(5)))
@settings(max_examples=5)
def test_p_values_depend_on_neither_unit_nor_direction_nor_order(seed, unit, order):
    generator = np.random.default_rng(seed)
    pairs = {i: (generator.exponential(size=12), generator.exponential(size=12) + i) for i in range(5)}
    found = compare(pairs)
    other = compare({i: (unit * pairs[i][1], unit * pairs[i][0]) for i in order})
    for i in order:
        assert other[i].difference == pytest.approx(-unit * found[i].difference)
        assert (other[i].p_mean, other[i].p_sign) == pytest.approx((found[i].p_mean, found[i].p_sign), rel=1e-3)
        assert (other[i].wins, other[i].losses) == (found[i].losses, found[i].wins)


def test_pairs_of_different_lengths_are_adjusted_together_but_tested_as_alone():
    generator = np.random.default_rng(0)
    long, short = generator.normal(1.0, size=20), generator.normal(0.5, size=12)
    together = compare({"long": (long, np.zeros(20)), "short": (short, np.zeros(12))})
    alone = compare_two(long, np.zeros(20)).p_mean, compare_two(short, np.zeros(12)).p_mean
    assert alone[0] < alone[1]
    assert (together["long"].p_mean, together["short"].p_mean) == (2.0 * alone[0], alone[1])


def test_equal_and_single_repetitions():
    same = compare_two(np.ones(30), np.ones(30))
    assert (same.difference, same.p_mean, same.p_sign, same.wins, same.losses) == (0.0, 1.0, 1.0, 0, 0)
    assert compare_two(np.full(30, 0.3), np.full(30, 0.1)).p_mean == 2e-5  # although rounding errors are not equal
    assert np.isnan(standard_error(np.ones((1, 3)))).all()
    assert np.isnan(summarise(np.ones(1)).standard_error)
    assert compare({}) == {}


def test_where_no_p_value_can_be_small_there_is_none():
    """Five repetitions that all differ in the same direction do so in one of 16 cases by chance."""
    five, six = (compare_two(np.arange(1.0, n + 1.0), np.zeros(n)) for n in (5, 6))
    assert np.isnan([five.p_mean, five.p_sign]).all()
    assert six.p_sign == 2.0**-5 == find_least_p(6, 1)
    assert six.p_mean == pytest.approx(2.0**-5, rel=0.1)
    assert np.isnan(compare_two(np.ones(1), np.zeros(1)).p_sign)
    assert _explain_limits([five]) == "With 5 repetitions and 1 comparison no p can be below .062, so none is shown."
    assert _explain_limits([six, six]) == "With 6 repetitions and 2 comparisons no p can be below .062."
    assert _explain_limits([compare_two(np.ones(30), np.zeros(30))]) == _explain_limits([]) == ""


def test_no_p_value_is_smaller_than_resampling_can_tell():
    clear = compare_two(np.arange(100.0), np.arange(100.0) ** 2 + 1000.0)
    assert (clear.p_mean, clear.p_sign) == (2e-5, 1e-5)
    assert _format_comparison(clear)[1::2] == ["< .001", "< .001"]
    assert [_format_p(p) for p in (0.00234, 0.05, 0.678, 1.0, np.nan)] == [".0023", ".05", ".68", "1", "–"]


def test_the_error_of_a_single_repetition_is_not_shown():
    assert format_mean(3.14, np.nan) == "3.1"
    assert format_mean(-3.14, 0.5, sign="+") == "-3.1 ± 0.5"
    assert _format_comparison(compare_two(np.ones(1), np.zeros(1))) == ["+1.0", "–", "0 : 1", "–"]


def test_medians_are_taken_for_each_k_over_what_is_there():
    values = {
        (AslibSetting("a", 1), "p"): 3.0,
        (AslibSetting("b", 1), "p"): 1.0,
        (AslibSetting("c", 1), "p"): np.nan,
        (AslibSetting("a", 2), "p"): 5.0,
    }
    plan = AslibPlan(settings=tuple(setting for setting, _ in values))
    assert _compute_medians(plan, values) == {("k = 1", "p"): 2.0, ("k = 2", "p"): 5.0}
