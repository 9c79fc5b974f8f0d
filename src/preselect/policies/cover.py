"""The choice of a set instead of k single arms, for policies that can draw from a belief: choose="cover"."""

import numpy as np

from preselect.context import Floats, Integers, Mask
from preselect.kernels import covering
from preselect.kernels.types import TIED
from preselect.policies.choices import best, tie_tolerance
from preselect.randomness import Randomness
from preselect.rules import Room, Rules


def cover(
    draws: Floats, u: Floats, eligible: Mask, k: int, randomness: Randomness, rules: Rules | None = None
) -> Integers:
    """Return the set whose best arm comes closest to the best of all arms, in the mean over joint draws of utilities.

    Greedily, by max over the set of v_i / max v; `draws` is n x M, and u are the estimates, which decide between equal
    gains. Arms that are equal in both are taken at random. With rules, the arms to include come first, and then each
    arm that gains most of those that may join.
    """
    if rules is not None:
        chosen = _cover_by_rules(draws, u, eligible, Room(eligible, len(u), k, rules), randomness)
        return chosen[cover(draws[chosen], u[chosen], eligible[:0], len(chosen), randomness)]  # best first
    arms = np.empty(k, dtype=np.int64)
    if covering.cover(draws, u, eligible, arms) != TIED:
        return arms
    order = randomness.generator.permutation(len(u))
    covering.cover(draws[order], u[order], eligible[order] if eligible.size else eligible, arms)
    taken: Integers = order[arms]
    return taken


def _cover_by_rules(draws: Floats, u: Floats, eligible: Mask, room: Room, randomness: Randomness) -> Integers:
    highest = (draws[eligible] if eligible.size else draws).max(axis=0)
    reached = np.exp(draws[room.arms] - highest).max(axis=0, initial=0.0)
    while room.left:
        arms = room.list_open()
        gains = np.maximum(np.exp(draws[arms] - highest) - reached, 0.0).sum(axis=1)
        arm = int(best(u, arms[gains >= gains.max() - tie_tolerance(gains.max())], 1, randomness)[0])
        reached = np.maximum(reached, np.exp(draws[arm] - highest))
        room.take(arm)
    return room.arms
