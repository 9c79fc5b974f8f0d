"""Choose the best arms where it is not enough to sort them: with rules, a leader, or ties, broken at random."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from preselect.context import Context, Floats, Integers, Mask
from preselect.kernels.types import CONTRAST
from preselect.rules import ROUNDING, Rules

if TYPE_CHECKING:
    from preselect.policies.policy import LinearPolicy

Choice: TypeAlias = tuple[Integers, Floats, Floats, Integers]  # k arms, scores and then widths, rows, ids


@dataclass(slots=True, eq=False)
class Randomness:
    """The random numbers of one decision. Most decisions need none, so the generator is made when it is first used.

    Parameters
    ----------
    seed : int
        The seed of the decision, at least 0: the same seed always gives the same choice.
    """

    seed: int
    _generator: np.random.Generator | None = field(default=None, init=False)

    @property
    def is_used(self) -> bool:
        """Whether any number has been asked for."""
        return self._generator is not None

    @property
    def generator(self) -> np.random.Generator:
        """The generator; every use advances it."""
        if self._generator is None:
            self._generator = np.random.default_rng(self.seed)
        return self._generator


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
        self.leader = -1  # an arm that comes first and is not among `arms`, once it was set apart
        self._open = eligible.copy() if eligible.size else np.ones(n, dtype=np.bool_)
        self._has_prices = rules is not None and rules.budget != math.inf
        if rules is None:
            return
        self._groups, self._free = rules.groups, np.array(rules.limits)
        self._prices, self._money = rules.prices, rules.budget * ROUNDING
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
        """Let an arm, which may be in the set already, come first: take it out of the set and of its size."""
        if arm not in self.arms:
            self.take(arm)
        self.arms = self.arms[self.arms != arm]
        self.size -= 1
        self.leader = arm

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


def choose_slowly(
    policy: LinearPolicy,
    context: Context,
    k: int,
    eligible: Mask,
    randomness: Randomness,
    rules: Rules | None = None,
    least: float = -math.inf,
) -> Choice:
    """Make the choice of a linear policy with rules, or with ties; `least` is a lower bound of the k-th best score."""
    room = Room(eligible, context.shape[0], k, rules)
    width = policy._width() if room.size > 1 else policy._width_of_one()
    if width[3] != CONTRAST:
        return choose_best(context, room, *policy._score_all(context, width, least=least), randomness)
    leader = lead(room, policy._score_all(context)[0], randomness)
    return choose_best(context, room, *policy._score_all(context, width, leader), randomness)


def choose_best(context: Context, room: Room, scores: Floats, widths: Floats, randomness: Randomness) -> Choice:
    """Fill the room with the arms that have the largest scores, behind its leader if it has one."""
    arms = fill(room, scores, randomness)
    if room.leader >= 0:
        arms = np.concatenate(([room.leader], arms))
        put_first(room.leader, scores, widths, arms)
    return assemble(context, arms, scores, widths)


def lead(room: Room, scores: Floats, randomness: Randomness) -> int:
    """Return the best of the arms that are in the room or may join it, and set it apart."""
    leader = int(best(scores, np.concatenate((room.arms, room.list_open())), 1, randomness)[0])
    room.set_apart(leader)
    return leader


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


def put_first(leader: int, scores: Floats, widths: Floats, arms: Integers | None = None) -> tuple[Floats, Floats]:
    """Give the leader the width of its contrast with the best of these arms, or of all, so that it has the best score.

    A leader that is chosen at random may be worse than that arm; then it is given that arm's score.
    """
    others = np.arange(len(scores)) if arms is None else arms
    others = others[others != leader]
    if len(others):
        toughest = others[scores[others].argmax()]
        top = max(scores[leader] + widths[toughest], scores[toughest])
        scores[leader], widths[leader] = top, top - scores[leader]
    return scores, widths


def assemble(context: Context, arms: Integers, scores: Floats, widths: Floats) -> Choice:
    """Return the chosen arms with all that a decision tells of them, given scores and widths of all arms."""
    return arms, np.concatenate((scores[arms], widths[arms])), *context.describe(arms)
