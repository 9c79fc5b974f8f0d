"""Sets drawn from a policy's belief: chosen as a whole with choose="cover", or in a share `explore` of the rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from preselect.context import Context, Floats, Integers, Mask
from preselect.kernels import covering
from preselect.kernels.types import TIED
from preselect.policies.room import Choice, Randomness, Room, assemble, best, choose_best, tie_tolerance
from preselect.rules import Rules

if TYPE_CHECKING:
    from preselect.policies.policy import LinearPolicy

_DRAWS = 64


def draw_set(
    policy: LinearPolicy, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None
) -> Choice | None:
    """Return the set of this round if it is drawn from the policy's belief; None if the round chooses by scores."""
    if policy.explore > 0.0 and explores(policy, randomness):
        return _draw_best(policy, context, Room(eligible, context.shape[0], k, rules), randomness)
    if covers(policy, Room(eligible, context.shape[0], k, rules).size):
        return cover_belief(policy, context, k, eligible, randomness, rules)
    return None


def explores(policy: LinearPolicy, randomness: Randomness) -> bool:
    """Return whether the set of this round is drawn from the belief: true in a share `explore` of all rounds."""
    return bool(randomness.generator.random() < policy.explore)


def _draw_best(policy: LinearPolicy, context: Context, room: Room, randomness: Randomness) -> Choice:
    """Choose the best arms of one draw from the belief, as Thompson sampling does."""
    u = policy._score_all(context)[0]  # first: it refuses bad input
    drawn = policy._draw(context, u, 1, randomness.generator)[:, 0]
    return choose_best(context, room, drawn, drawn - u, randomness)


def covers(policy: LinearPolicy, size: int) -> bool:
    """Return whether a set of this size is chosen as a whole; a set of one with an outside option is not."""
    return policy.choose == "cover" and (size > 1 or not policy.outside)


def cover_belief(
    policy: LinearPolicy, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None
) -> Choice:
    """Choose the set whose best arm comes closest to the best of all arms, in expectation over the belief."""
    scores, widths = policy._score(context)  # first, because it refuses bad input before anything is drawn
    u = scores - widths
    draws = policy._draw(context, u, _DRAWS, randomness.generator)
    return assemble(context, cover(draws, u, eligible, k, randomness, rules), scores, widths)


def cover(
    draws: Floats, u: Floats, eligible: Mask, k: int, randomness: Randomness, rules: Rules | None = None
) -> Integers:
    """Return the set whose best arm comes closest to the best of all arms, in the mean over joint draws of utilities.

    The set grows greedily and maximises the mean of (max of v over the set) / (max of v over all arms). `draws` is n x
    M. The estimates u decide between arms that gain equally much, and chance between those that are equal in both. With
    rules, the arms to include come first; then, each time, the arm that gains most of those that may join.
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
