"""What races on a scenario are measured by: the virtual best, the single best, and the best fixed set in hindsight."""

import math
from dataclasses import dataclass

import numpy as np

from preselect.arguments import integer
from preselect.context import Floats
from preselect.environments.aslib import Scenario
from preselect.errors import InputError

_MOST_SUBSETS = 200_000


@dataclass(frozen=True)
class FixedSet:
    """A set of algorithms that is raced on every instance, and the mean cost of that."""

    arms: tuple[int, ...]
    names: tuple[str, ...]
    cost: float
    exact: bool  # whether no other set of that size costs less, or none that the search has seen


def virtual_best(scenario: Scenario) -> float:
    """The mean cost if the best algorithm were known for every instance (VBS)."""
    return float(scenario.costs.min(axis=1).mean())


def single_best(scenario: Scenario) -> float:
    """The mean cost of the one algorithm that is best over all instances (SBS)."""
    return float(scenario.costs.mean(axis=0).min())


def best_fixed_set(scenario: Scenario, k: int) -> FixedSet:
    """The k algorithms whose race on every instance has the least mean cost, in hindsight: a race costs its least.

    All sets are tried if there are at most 200 000 of them. Otherwise algorithms are added one by one, and then
    exchanged one for one while that helps.
    """
    k = integer(k, "k", 1)
    count = len(scenario.algorithms)
    if k > count:
        raise InputError(f"k must be at most {count}, the number of algorithms, got {k}")
    costs = np.ascontiguousarray(scenario.costs.T)
    exact = math.comb(count, k) <= _MOST_SUBSETS
    arms = _try_all(costs, k) if exact else _exchange(costs, _add_greedily(costs, k))
    names = tuple(scenario.algorithms[arm] for arm in arms)
    return FixedSet(arms, names, float(costs[list(arms)].min(axis=0).mean()), exact)


def _try_all(costs: Floats, k: int) -> tuple[int, ...]:
    """The best set of all: sets grow in order, and each last algorithm is tried for all its candidates at once."""
    least, best = math.inf, tuple(range(k))
    stack: list[tuple[tuple[int, ...], Floats]] = [((), np.full(costs.shape[1], np.inf))]
    while stack:
        chosen, so_far = stack.pop()
        begin, missing = chosen[-1] + 1 if chosen else 0, k - len(chosen)
        if missing == 1:
            means = np.minimum(so_far, costs[begin:]).mean(axis=1)
            last = int(means.argmin())
            if means[last] < least:
                least, best = float(means[last]), (*chosen, begin + last)
        else:
            end = len(costs) - missing + 1
            stack += [((*chosen, arm), np.minimum(so_far, costs[arm])) for arm in reversed(range(begin, end))]
    return best


def _add_greedily(costs: Floats, k: int) -> list[int]:
    chosen: list[int] = []
    so_far = np.full(costs.shape[1], np.inf)
    for _ in range(k):
        means = np.minimum(so_far, costs).mean(axis=1)
        means[chosen] = np.inf
        chosen.append(int(means.argmin()))
        so_far = np.minimum(so_far, costs[chosen[-1]])
    return chosen


def _exchange(costs: Floats, chosen: list[int]) -> tuple[int, ...]:
    """Exchange the pair that helps most, until none does."""
    least = costs[chosen].min(axis=0).mean()
    while True:
        offers = []
        for out in chosen:
            rest = [arm for arm in chosen if arm != out]
            means = np.minimum(costs[rest].min(axis=0), costs).mean(axis=1)
            means[chosen] = np.inf
            offers.append((float(means.min()), [*rest, int(means.argmin())]))
        best = min(offers)
        if best[0] >= least:
            return tuple(sorted(chosen))
        least, chosen = best
