"""Baselines: the costs of choices that learn nothing, given the costs of all runs.

Costs are an array of instances x arms. A set of arms costs as much on an instance as its cheapest arm.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import integer
from preselect.context import Floats, Integers
from preselect.environments.regret import regrets
from preselect.errors import InputError

_MAX_SUBSETS = 200_000


@dataclass(frozen=True)
class FixedSet:
    """A set of arms that is chosen on every instance.

    Parameters
    ----------
    arms : tuple of int
        Positions of the arms, ascending.
    cost : float
        Mean cost per instance.
    exact : bool
        True if all sets of this size were compared, False if the set was found by a search.
    """

    arms: tuple[int, ...]
    cost: float
    exact: bool


def virtual_best(costs: Floats) -> float:
    """Mean cost of the best arm for each instance (the virtual best solver, VBS).

    Parameters
    ----------
    costs : array of shape (instances, arms)
        What each arm costs on each instance.
    """
    return float(costs.min(axis=1).mean())


def single_best(costs: Floats) -> float:
    """Mean cost of the arm that is best over all instances (the single best solver, SBS).

    Parameters
    ----------
    costs : array of shape (instances, arms)
        What each arm costs on each instance.
    """
    return float(costs.mean(axis=0).min())


def best_fixed_set(costs: ArrayLike, k: int) -> FixedSet:
    """The k arms with the least mean cost, chosen in hindsight.

    Compares all sets if there are at most 200 000. Otherwise adds one arm at a time, and then exchanges one arm for
    another as long as that helps.

    Parameters
    ----------
    costs : array of shape (instances, arms)
        What each arm costs on each instance.
    k : int
        Size of the set, from 1 to the number of arms.

    >>> best_fixed_set([[1.0, 9.0, 4.0], [9.0, 1.0, 4.0]], k=2)
    FixedSet(arms=(0, 1), cost=1.0, exact=True)
    """
    by_arm: Floats = np.ascontiguousarray(np.transpose(costs), dtype=np.float64)
    k = integer(k, "k", 1)
    if k > len(by_arm):
        raise InputError(f"k={k}, but there are only {len(by_arm)} algorithms")
    exact = math.comb(len(by_arm), k) <= _MAX_SUBSETS
    arms = _try_all(by_arm, k) if exact else _exchange(by_arm, _add_greedily(by_arm, k))
    return FixedSet(arms, float(by_arm[list(arms)].min(axis=0).mean()), exact)


def regret_baselines(u: Floats, k: int) -> dict[str, dict[str, float]]:
    """Total regret of three choices that learn nothing, by name and measure.

    They are a random set (in expectation), the k arms with the largest mean utility, and the fixed set with the least
    regret of the best arm.

    Parameters
    ----------
    u : array of shape (instances, arms)
        Log-utilities.
    k : int
        Size of the sets, from 1 to the number of arms.
    """
    largest_mean = np.argsort(-np.exp(u).mean(axis=0))[:k]
    return {
        "random set": _random_set(u, k),
        "top k by mean utility": _total_regrets(u, largest_mean),
        "best fixed set": _total_regrets(u, np.array(best_fixed_set(1.0 - _relative(u), k).arms)),
    }


def _random_set(u: Floats, k: int) -> dict[str, float]:
    """Expected total regret, by measure, of k arms drawn at random for each instance."""
    n = u.shape[1]
    share = np.sort(_relative(u), axis=1)
    # The utility at index j is the largest in C(j, k - 1) of the C(n, k) sets.
    chances = np.array([math.comb(j, k - 1) for j in range(n)]) / math.comb(n, k)
    reached = k * share.mean(axis=1) / share[:, -k:].sum(axis=1)
    return {"best_arm": float((1.0 - share @ chances).sum()), "top_k": float((1.0 - reached).sum())}


def _relative(u: Floats) -> Floats:
    """Utilities as shares of the best one on the instance."""
    share: Floats = np.exp(u - u.max(axis=1, keepdims=True))
    return share


def _total_regrets(u: Floats, arms: Integers) -> dict[str, float]:
    return {name: float(values.sum()) for name, values in regrets(u, np.tile(arms, (len(u), 1))).items()}


def _try_all(costs: Floats, k: int) -> tuple[int, ...]:
    """The best of all sets. Sets grow in ascending order; all candidates for the last arm are compared at once."""
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
    """Add the arm that helps most, k times."""
    chosen: list[int] = []
    for _ in range(k):
        chosen.append(_cheapest_addition(costs, chosen, chosen)[1])
    return chosen


def _exchange(costs: Floats, chosen: list[int]) -> tuple[int, ...]:
    """Exchange the pair of arms that helps most, until none does."""
    least = costs[chosen].min(axis=0).mean()
    while True:
        offers = []
        for out in chosen:
            rest = [arm for arm in chosen if arm != out]
            mean, arm = _cheapest_addition(costs, rest, chosen)
            offers.append((mean, [*rest, arm]))
        best = min(offers)
        if best[0] >= least:
            return tuple(sorted(chosen))
        least, chosen = best


def _cheapest_addition(costs: Floats, chosen: list[int], excluded: list[int]) -> tuple[float, int]:
    """The least mean cost of `chosen` and one more arm that is not excluded, and that arm."""
    means = np.minimum(costs[chosen].min(axis=0, initial=np.inf), costs).mean(axis=1)
    means[excluded] = np.inf
    return float(means.min()), int(means.argmin())
