"""Rules about which sets of arms may be chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import as_floats, as_integers, number
from preselect.context import Floats, Integers, Mask
from preselect.errors import InputError

ROUNDING = 1.0 + 1e-9  # so that 0.1 + 0.2 is within a budget of 0.3
_MAX_SHOWN = 10


@dataclass(frozen=True, eq=False, init=False)
class Rules:
    """Rules about the set that `Policy.select` chooses. A Preselector makes them from names.

    With arms to include and limits of groups the choice is exact: no set of k arms that obeys them has a larger sum of
    scores. Policies that choose a leader first take the best arm that may be in a set, and then the best set with it.

    With a budget the set has as many arms as the budget pays for, up to k, because a larger set offers more to choose
    from and to learn. Among the sets of that size it is the one with the best first arm, then the best second arm, and
    so on (apart from the arms to include, which are in all of them). If nothing has to be included, its sum of
    utilities exp(score) is therefore at least 1 / size of the largest one possible; among 16 arms it was 0.995 of it on
    average, and 0.975 where prices rose with scores. If a single expensive arm is worth more to you than many cheap
    ones, ask for a smaller k. The set never costs more than the budget, except by rounding.

    Ties are broken as if tied arms had been shuffled first. Sets that are drawn at random grow arm by arm, and all arms
    that may join are equally likely to be next; so not all sets are equally likely.

    Parameters
    ----------
    include : sequence of int, optional
        The positions of the arms that have to be in the set.
    groups : sequence of n int, optional
        The number of each arm's group, counted from 0; -1 for arms that belong to none.
    limits : sequence of int, optional
        How many arms of each group may be in the set, at least 0.
    prices : sequence of n float, optional
        The price of each arm, at least 0.
    budget : float, optional
        The most that the arms of the set may cost together. The set then has as many arms as it pays for, up to k.
    names, group_names : sequence of str, optional
        What error messages call the n arms and the groups, instead of their numbers.

    Examples
    --------
    >>> from preselect import MaxTheta
    >>> policy, X = MaxTheta(d=1, theta_0=1.0), [[0.1], [0.4], [0.3], [0.2]]
    >>> policy.select(X, k=2, rules=Rules(include=[0])).arms
    array([1, 0])
    >>> policy.select(X, k=2, rules=Rules(groups=[-1, 0, 0, -1], limits=[1])).arms
    array([1, 3])
    >>> policy.select(X, k=3, rules=Rules(prices=[1.0, 5.0, 3.0, 2.0], budget=6.0)).arms
    array([2, 3, 0])
    """

    include: Integers
    groups: Integers
    limits: Integers
    prices: Floats
    budget: float
    names: Sequence[str] | None
    group_names: Sequence[str] | None

    def __init__(
        self,
        *,
        include: ArrayLike = (),
        groups: ArrayLike = (),
        limits: ArrayLike = (),
        prices: ArrayLike = (),
        budget: float = math.inf,
        names: Sequence[str] | None = None,
        group_names: Sequence[str] | None = None,
    ) -> None:
        given = {"include": include, "groups": groups, "limits": limits}
        found: dict[str, Any] = {name: as_integers(value, name, "a list of integers") for name, value in given.items()}
        found["prices"] = np.array(as_floats(prices, "prices", 1))
        for array in found.values():
            array.setflags(write=False)
        found["budget"] = (
            math.inf if isinstance(budget, float) and budget == math.inf else number(budget, "budget", least=0.0)
        )
        for name, value in {**found, "names": names, "group_names": group_names}.items():
            object.__setattr__(self, name, value)

    def check(self, n: int, k: int, eligible: Mask) -> None:
        """Raise an InputError that names the rule which leaves no set of k of n arms, or none within the budget."""
        may = np.ones(n, dtype=np.bool_) if not eligible.size else eligible
        self._check_include(n, k, may)
        if len(self.groups) or len(self.limits):
            self._check_groups(n, k, may)
        if self.budget != math.inf or len(self.prices):
            self._check_prices(n, may)

    def _check_include(self, n: int, k: int, may: Mask) -> None:
        include = self.include
        if np.any((include < 0) | (include >= n)) or len(np.unique(include)) < len(include):
            raise InputError(f"include should be distinct positions from 0 to {n - 1}, not {include.tolist()!r:.80}")
        if len(include) > k:
            raise InputError(f"include has {len(include)} arms, {self._list(include)}, but k={k}")
        if not may[include].all():
            raise InputError(f"include has {self._list(include[~may[include]])}, but eligible leaves it out")

    def _check_groups(self, n: int, k: int, may: Mask) -> None:
        groups, limits = self.groups, self.limits
        if len(groups) != n or np.any((groups < -1) | (groups >= len(limits))):
            raise InputError(
                f"groups should be {n} numbers, one per arm, from -1 to {len(limits) - 1}, because there are "
                f"{len(limits)} limits, not {groups.tolist()!r:.80}"
            )
        for group in np.flatnonzero(limits < 0).tolist():
            raise InputError(f"the limit of {self._name_group(group)} is {limits[group]}; use at least 0")
        included = groups[self.include]
        for group in np.flatnonzero(np.bincount(included[included >= 0], minlength=len(limits)) > limits).tolist():
            raise InputError(
                f"include has {self._list(self.include[included == group])} of {self._name_group(group)}, "
                f"but at most {limits[group]} of it may be in the set"
            )
        counts = np.bincount(groups[may] + 1, minlength=len(limits) + 1)
        left = int(counts[0] + np.minimum(counts[1:], limits).sum())
        if left < k:
            tight = np.flatnonzero(counts[1:] > limits).tolist()
            said = ", ".join(f"{self._name_group(group)}: {limits[group]}" for group in tight)
            raise InputError(f"k={k}, but the limits of groups ({said}) leave room for {left} arms only")

    def _check_prices(self, n: int, may: Mask) -> None:
        prices = self.prices
        if len(prices) != n:
            raise InputError(f"prices should be {n} numbers, one per arm, not {prices.tolist()!r:.80}")
        for arm in np.flatnonzero(may & ~((prices >= 0.0) & (prices < math.inf))):
            raise InputError(f"the price of {self._list([arm])} is {prices[arm]}; use a number of at least 0")
        cost = float(prices[self.include].sum())
        if cost > self.budget * ROUNDING:
            raise InputError(
                f"include has {self._list(self.include)}, which cost {cost:g}, but the budget is {self.budget:g}"
            )

    def _list_closed(self, n: int) -> Mask:
        """Return which arms belong to groups with a limit of 0."""
        groups = self.groups
        return np.isin(groups, np.flatnonzero(self.limits == 0)) if len(groups) else np.zeros(n, np.bool_)

    def _list(self, arms: ArrayLike) -> str:
        found = [str(arm) if self.names is None else repr(self.names[arm])[:40] for arm in np.asarray(arms).tolist()]
        more = f" and {len(found) - _MAX_SHOWN} more" if len(found) > _MAX_SHOWN else ""
        return ("" if self.names else "arm ") + ", ".join(found[:_MAX_SHOWN]) + more

    def _name_group(self, group: int) -> str:
        return f"group {group}" if self.group_names is None else f"{self.group_names[group]!r:.40}"


def check_size(rules: Rules, size: int, n: int, eligible: Mask) -> None:
    """Raise an InputError that names the cheapest arm if the budget pays only for a set of size 0."""
    if size == 0:
        is_open = ~rules._list_closed(n)
        arms = np.flatnonzero(is_open & eligible if eligible.size else is_open)
        cheapest = arms[np.argmin(rules.prices[arms])]
        raise InputError(
            f"the budget of {rules.budget:g} pays for no arm; the cheapest, {rules._list([cheapest])}, "
            f"costs {rules.prices[cheapest]:g}"
        )
