"""What every choice is made of: room, the best arms that fill it, ties broken at random."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from preselect.context import Context, Floats, Integers
from preselect.randomness import Randomness
from preselect.rules import Room

Choice: TypeAlias = tuple[Integers, Floats, Floats]  # k arms, their scores and then their widths, and their rows


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

    Arms join one after another, each the best of those that may. If only arms to include and limits of groups rule, no
    set has a larger sum of scores: such sets are the bases of a matroid. With a budget the set has the best arm that
    a set of its size can have, then the best second one beside it, and so on. Ties are broken at random.
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


def put_first(leader: int, scores: Floats, widths: Floats, arms: Integers | None = None) -> tuple[Floats, Floats]:
    """Give the leader the width of its contrast with the best of these arms, or of all: then it has the best score.

    A leader that is chosen by chance may be worse than that arm; then it is given that arm's score.
    """
    others = np.arange(len(scores)) if arms is None else arms
    others = others[others != leader]
    if len(others):
        toughest = others[scores[others].argmax()]
        top = max(scores[leader] + widths[toughest], scores[toughest])
        scores[leader], widths[leader] = top, top - scores[leader]
    return scores, widths


def assemble(context: Context, arms: Integers, scores: Floats, widths: Floats) -> Choice:
    """Return the chosen arms with their scores, widths and rows, given scores and widths of all arms."""
    return arms, np.concatenate((scores[arms], widths[arms])), context.rows(arms)
