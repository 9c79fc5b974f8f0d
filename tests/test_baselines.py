"""Baselines: the best fixed set and regrets of choices that learn nothing, against brute force."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from preselect import InputError
from preselect.environments import (
    RuntimeTable,
    baselines,
    best_fixed_set,
    par10,
    regret_baselines,
    single_best,
    virtual_best,
)

PAPER = Path(__file__).parents[2] / "shared" / "data" / "swgcp"


def draw_costs(instances, arms, seed=0):
    times = np.random.default_rng(seed).exponential(50.0, (instances, arms))
    return par10(times, times <= 100.0, 100.0)


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_the_best_fixed_set_is_the_best_of_all(k):
    costs = draw_costs(40, 7, seed=k)
    means = {
        arms: math.fsum(min(costs[row, arm] for arm in arms) for row in range(40)) / 40
        for arms in itertools.combinations(range(7), k)
    }
    found = best_fixed_set(costs, k)
    assert found.exact
    assert found.arms == min(means, key=means.get)
    assert found.cost == pytest.approx(means[found.arms])


def test_too_many_sets_are_searched(monkeypatch):
    costs = draw_costs(60, 12)
    exact = [best_fixed_set(costs, k) for k in (1, 4)]
    monkeypatch.setattr(baselines, "_MAX_SUBSETS", 10)
    single, found = (best_fixed_set(costs, k) for k in (1, 4))
    assert not found.exact
    assert exact[1].cost <= found.cost <= 1.05 * exact[1].cost
    assert found.arms == tuple(sorted(set(found.arms)))
    assert single.arms == exact[0].arms


def test_exchange_corrects_a_greedy_choice(monkeypatch):
    half = np.array([[1.0, 99.0, 40.0], [1.0, 99.0, 40.0], [99.0, 1.0, 40.0], [99.0, 1.0, 40.0]])
    monkeypatch.setattr(baselines, "_MAX_SUBSETS", 0)
    found = best_fixed_set(half, 2)  # the greedy search begins with the last arm
    assert (found.arms, found.cost) == ((0, 1), 1.0)


def test_a_single_arm_is_the_single_best_and_all_arms_are_the_virtual_best():
    costs = draw_costs(30, 5)
    assert best_fixed_set(costs, 1).cost == pytest.approx(single_best(costs))
    assert best_fixed_set(costs, 5).cost == pytest.approx(virtual_best(costs))


@pytest.mark.parametrize(("k", "message"), [(3, "k=3, but there are only 2 algorithms"), (0, "k is 0")])
def test_sizes_that_do_not_fit(k, message):
    with pytest.raises(InputError, match=message):
        best_fixed_set(np.ones((4, 2)), k)


def test_regrets_equal_brute_force():
    seconds = np.random.default_rng(0).random((12, 4))
    v = np.exp(-10.0 * seconds)
    pairs = list(itertools.combinations(range(4), 2))
    regret = {arms: float((1.0 - v[:, arms].max(axis=1) / v.max(axis=1)).sum()) for arms in pairs}
    best_two = np.sort(v, axis=1)[:, -2:].sum(axis=1)
    lost = {arms: float((1.0 - v[:, arms].sum(axis=1) / best_two).sum()) for arms in pairs}
    found = regret_baselines(-10.0 * seconds, 2)
    best = min(regret, key=regret.get)
    top = tuple(sorted(np.argsort(-v.mean(axis=0))[:2].tolist()))
    assert found["random set"] == pytest.approx(
        {"best_arm": np.mean(list(regret.values())), "top_k": np.mean(list(lost.values()))}
    )
    assert found["best fixed set"] == pytest.approx({"best_arm": regret[best], "top_k": lost[best]})
    assert found["top k by mean utility"] == pytest.approx({"best_arm": regret[top], "top_k": lost[top]})


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's run times are not beside the project")
def test_the_papers_table_has_the_baselines_known_of_it():
    u = RuntimeTable.read(PAPER).log_utilities(10.0)
    found = {k: regret_baselines(u, k) for k in (2, 3, 5, 10)}
    assert [round(found[k]["top k by mean utility"]["best_arm"]) for k in found] == [417, 328, 286, 125]
    assert [round(found[k]["best fixed set"]["best_arm"]) for k in found] == [417, 300, 165, 60]
