"""Rules about which sets of arms may be chosen, and how to fill a set that obeys them with the best arms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import as_floats, as_integers, number
from preselect.context import Context, Floats, Integers, Mask
from preselect.errors import InputError
from preselect.randomness import Randomness

Choice: TypeAlias = tuple[Integers, Floats, Floats]  # k arms, their scores and then their widths, and their rows

_ROUNDING = 1.0 + 1e-9  # so that 0.1 + 0.2 is within a budget of 0.3
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
            self._check_prices(n, k, may, eligible)

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

    def _check_prices(self, n: int, k: int, may: Mask, eligible: Mask) -> None:
        prices = self.prices
        if len(prices) != n:
            raise InputError(f"prices should be {n} numbers, one per arm, not {prices.tolist()!r:.80}")
        for arm in np.flatnonzero(may & ~((prices >= 0.0) & (prices < math.inf))):
            raise InputError(f"the price of {self._list([arm])} is {prices[arm]}; use a number of at least 0")
        cost = float(prices[self.include].sum())
        if cost > self.budget * _ROUNDING:
            raise InputError(
                f"include has {self._list(self.include)}, which cost {cost:g}, but the budget is {self.budget:g}"
            )
        if Room(eligible, n, k, self).size == 0:
            open_ = np.flatnonzero(may & ~self._list_closed(n))
            cheapest = open_[np.argmin(prices[open_])]
            raise InputError(
                f"the budget of {self.budget:g} pays for no arm; the cheapest, {self._list([cheapest])}, "
                f"costs {prices[cheapest]:g}"
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


class Room:
    """A set that is being filled: the arms in it, and those that may join it.

    Whichever arm joins, the set can still reach its size. An arm that may not join now may not join later either.

    Parameters
    ----------
    eligible : array of n booleans, or empty
        The arms that may be chosen; empty for all of them.
    n : int
        How many arms there are.
    k : int
        How many to choose; the size of the set, unless the budget pays fewer.
    rules : Rules, optional
        What the set has to obey; checked already. The arms to include are in it from the start.
    """

    def __init__(self, eligible: Mask, n: int, k: int, rules: Rules | None = None) -> None:
        self.rules, self.size, self.arms = rules, k, np.empty(0, dtype=np.int64)
        self._open = eligible.copy() if eligible.size else np.ones(n, dtype=np.bool_)
        self._has_prices = rules is not None and rules.budget != math.inf
        if rules is None:
            return
        self._groups, self._free = rules.groups, np.array(rules.limits)
        self._prices, self._money = rules.prices, rules.budget * _ROUNDING
        for group in np.flatnonzero(self._free == 0):
            self._open[self._groups == group] = False
        for arm in rules.include.tolist():
            self.take(arm)
        if self._has_prices:
            self._by_price = np.argsort(self._prices, kind="stable")
            costs = np.cumsum(self._prices[self._list_cheapest()])
            self.size = len(self.arms) + int(np.searchsorted(costs, self._money, side="right"))

    @property
    def left(self) -> int:
        """How many arms are still to join."""
        return self.size - len(self.arms)

    def list_open(self) -> Integers:
        """Return the arms that may join; none if the set is complete."""
        arms = np.flatnonzero(self._open) if self.left else self.arms[:0]
        return arms[self._find_affordable(arms)] if self._has_prices and len(arms) else arms

    def take(self, arm: int) -> None:
        """Add an arm that may join."""
        self.arms = np.append(self.arms, arm)
        self._open[arm] = False
        if self.rules is None:
            return
        if len(self._groups) and (group := self._groups[arm]) >= 0:
            self._free[group] -= 1
            if self._free[group] == 0:
                self._open[self._groups == group] = False
        if self._has_prices:
            self._money -= self._prices[arm]

    def set_apart(self, arm: int) -> None:
        """Take an arm, which may be in the set already, out of the set and of its size: its place is settled."""
        if arm not in self.arms:
            self.take(arm)
        self.arms = self.arms[self.arms != arm]
        self.size -= 1

    def _list_cheapest(self) -> Integers:
        """Return the arms with which it is cheapest to complete the set, cheapest first."""
        arms = self._by_price[self._open[self._by_price]]
        if not len(self._groups):
            return arms[: self.left]
        free, size = np.append(self._free, len(arms)), 4 * self.left  # the last entry is for arms without a group
        while True:
            groups = self._groups[arms[:size]]
            fitting = arms[:size][_count_before(groups) < free[groups]]
            if len(fitting) >= self.left or size >= len(arms):
                return fitting[: self.left]
            size *= 4  # rarely necessary: only if many of the cheapest arms are of one group

    def _find_affordable(self, arms: Integers) -> Mask:
        """Return which of these arms leave enough to complete the set.

        The cheapest completion with an arm is the cheapest of all, without the dearest arm that it can replace:
        one of its group if that is full, else any.
        """
        cheapest = self._list_cheapest()
        prices = self._prices[cheapest]
        replaced = np.full(len(arms), prices[-1])
        if len(self._groups):
            for group in np.unique(self._groups[cheapest]).tolist():
                members = prices[self._groups[cheapest] == group]
                if group >= 0 and len(members) == self._free[group]:
                    replaced[self._groups[arms] == group] = members[-1]
        cost = prices.sum() - replaced + self._prices[arms]
        affordable: Mask = (cost <= self._money) | np.isin(arms, cheapest)
        return affordable


def _count_before(groups: Integers) -> Integers:
    """Return for each arm how many earlier ones are of the same group.

    >>> _count_before(np.array([2, 0, 2, 2, 0]))
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(groups, kind="stable")
    places = np.arange(len(groups))
    starts = np.searchsorted(groups[order], groups[order], side="left")
    counts = np.empty_like(places)
    counts[order] = places - starts
    return counts


def tie_tolerance(score: float) -> float:
    """Return the difference below which scores are tied: they differ by rounding only. The kernels use the same."""
    return 1e-12 * (1.0 + abs(score))


def best(scores: Floats, arms: Integers, k: int, randomness: Randomness) -> Integers:
    """Return the k of these arms with the largest scores, best first, ties broken at random."""
    if k == 0:
        return arms[:0]
    among = scores[arms]
    threshold = np.partition(among, -k)[-k]
    tolerance = tie_tolerance(threshold)
    above, tied = arms[among > threshold + tolerance], arms[np.abs(among - threshold) <= tolerance]
    if len(tied) > k - len(above):
        tied = randomness.generator.permutation(tied)[: k - len(above)]
    return sort_by_score(np.concatenate((above, tied)), scores)


def fill(room: Room, scores: Floats, randomness: Randomness) -> Integers:
    """Fill the room with the arms that have the largest scores; return all in it, best first.

    Arms join one after another, each the best of those that may. Without a budget no set that obeys the rules has a
    larger sum of scores, because such sets are the bases of a matroid. With a budget the set has the best arm that a
    set of its size can have, then the best second one beside it, and so on. Ties are broken at random.
    """
    if room.rules is None:
        return best(scores, room.list_open(), room.left, randomness)
    while room.left:
        room.take(int(best(scores, room.list_open(), 1, randomness)[0]))
    return sort_by_score(room.arms, scores)


def lead(room: Room, scores: Floats, randomness: Randomness) -> Integers:
    """Return the best of the arms that are in the room or may join it, and set it apart."""
    leader = best(scores, np.concatenate((room.arms, room.list_open())), 1, randomness)
    room.set_apart(int(leader[0]))
    return leader


def fill_at_random(room: Room, scores: Floats, randomness: Randomness) -> Integers:
    """Fill the room at random; return all arms in it, best first.

    Without rules every set is as likely as any other. With rules arms join one after another, each time any of those
    that may with equal chance.
    """
    if room.rules is None:
        return sort_by_score(randomness.generator.permutation(room.list_open())[: room.left], scores)
    return sort_by_score(fill(room, np.zeros(len(scores)), randomness), scores)


def sort_by_score(arms: Integers, scores: Floats) -> Integers:
    """Return these arms, best first."""
    return arms[np.argsort(-scores[arms], kind="stable")]


def assemble(context: Context, arms: Integers, scores: Floats, widths: Floats) -> Choice:
    """Return the chosen arms with their scores, widths and rows, given scores and widths of all arms."""
    return arms, np.concatenate((scores[arms], widths[arms])), context.rows(arms)
