"""What a race teaches a policy with an outside option: one likelihood, for races with and without times.

The arms of a race compete with two virtual arms, in a Plackett-Luce ranking. NOBODY, whose log-utility is 0, finishes
at the time limit; EARLY, whose utility e is learnt, at a tenth of it. A race shows a part of this ranking, with the
following probability, where v is exp(x'theta) and V the sum of v over the arms that raced:

    arm w wins, no later than EARLY         w is first                      v_w / (V + e + 1)
    arm w wins, later                       EARLY is first, w second        e / (V + e + 1) * v_w / (V + 1)
    arm w wins, at a time that is unknown   w is before NOBODY              v_w / (V + 1)
    no arm wins                             NOBODY is before all arms       1 / (V + 1)

The chance that w wins in time is v_w / (V + 1) whether times are known or not. A slow winner has lost to EARLY, which
counts as half a failure, because such an arm often fails on the next instance. As e adapts to how fast winners usually
are, chances do not depend on where EARLY stands.

The easiest races are won by arms that start fast, not by those that solve hard instances, on which nearly all the time
is spent. So a race that costs less than a thousandth of the average race (of the limit, if the average is above it)
only teaches that some arm was first, V / (V + e + 1), not which. A race without a winner costs ten limits, as in the
measure PAR10.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from preselect.context import Floats, Integers
from preselect.model import winner_probabilities
from preselect.outcomes import NoWinner, Outcome

_EARLY = 0.1  # when EARLY finishes, as a share of the time limit
_FAILURE = 10.0  # the cost of a race without a winner, in time limits
_TRIVIAL = 1e-3  # races that cost less than this share of the average do not teach which arm won


class Race(NamedTuple):
    """A race as a ranking of arms and virtual arms, with the rows of both.

    `offsets` are added to x'theta, in the order of the ranking, followed by the arms that are not ranked.
    """

    rows: Floats
    ranking: Integers
    offsets: Floats


def watch(
    rows: Floats, ranking: Integers, outcome: Outcome, u: Floats, pace: Floats, discount: float
) -> tuple[Race, Floats]:
    """Return what a race of the arms with these rows and log-utilities teaches, and the pace of races after it.

    `ranking` ranks the arms; it is empty if no arm won. The pace is five sums over the races whose time is known, each
    multiplied by `discount` at every such race: how many, their cost, early wins, late wins, and V / (1 + g V) of the
    wins (see `_estimate_early`).
    """
    early = _estimate_early(pace[2:])
    if outcome.after is None:
        return _rank_race(rows, ranking, outcome, early), pace
    cost = _measure_cost(outcome)
    new = discount * pace + (1.0, cost, *_count_win(outcome, u.tolist(), early))
    if cost < _TRIVIAL * min(new[1] / new[0], 1.0):
        return _merge_race(rows, u, early), new
    return _rank_race(rows, ranking, outcome, early), new


def _rank_race(rows: Floats, ranking: Integers, outcome: Outcome, early: float) -> Race:
    """Return a race with virtual arms; `early` is the log-utility of EARLY.

    >>> from preselect import Winner
    >>> _rank_race(np.eye(3), np.array([1]), Winner(7, after=0.3), -0.5)[1:]
    (array([3, 1]), array([-0.5,  0. ,  0. ,  0. ,  0. ]))
    """
    k = len(rows)
    if not ranking.size:
        return _join(rows, [k], [0.0] * k, [0.0])
    if outcome.after is not None:
        return _join(rows, [k] * _is_late(outcome) + ranking.tolist(), [0.0] * k, [early, 0.0])
    race = _join(rows, ranking.T[0].tolist() if ranking.ndim == 2 else ranking.tolist(), [0.0] * k, [0.0])
    return race if ranking.ndim == 1 else race._replace(ranking=ranking)


def _merge_race(rows: Floats, u: Floats, early: float) -> Race:
    """Return a race that some arm won, unknown which: the arms, with log-utilities u, are merged into one.

    log V, which is convex in theta, is replaced by its tangent at the present estimate. There the value and the
    gradient of the likelihood are exact, and the curvature is the same as in a race of one arm.
    """
    p = winner_probabilities(u)
    entropy = -float(p @ np.log(np.where(p > 0.0, p, 1.0)))  # log V is the mean of u plus the entropy
    return _join(p[None] @ rows, [0], [entropy], [early, 0.0])


def _join(rows: Floats, ranking: list[int], offsets: list[float], virtual: list[float]) -> Race:
    """Add virtual arms, whose features are zero, given their log-utilities."""
    k, offsets = len(rows), offsets + virtual
    longer: Floats = np.zeros((len(offsets), rows.shape[1]))
    longer[:k] = rows
    order = ranking + [place for place in range(len(offsets)) if place not in ranking]
    for array in (found := Race(longer, np.array(ranking, np.int64), np.array([offsets[i] for i in order]))):
        array.setflags(write=False)  # read-only, like the rows of decisions: kernels are compiled for one kind of array
    return found


def _measure_cost(outcome: Outcome) -> float:
    """Return the cost of a race whose time is known, in time limits."""
    return _FAILURE if isinstance(outcome, NoWinner) else min(outcome.after or 0.0, 1.0)


def _is_late(outcome: Outcome) -> bool:
    """Return whether a race that was won, at a known time, ended after EARLY."""
    return outcome.after is not None and outcome.after > _EARLY


def _estimate_early(clock: Floats) -> float:
    """Return the log-utility of EARLY, log e, given early wins, late wins and r.

    With g = 1 / (1 + e), a race that was won early or late has probability g / (1 + g V) or (1 - g) / (1 + g V), up to
    a factor that does not depend on g. After m early and n late wins, g maximises m log g + n log(1 - g) - r g, where r
    is the sum of V / (1 + g V), the slope of log(1 + g V), at the estimates when each race was learnt. One win of each
    kind is added, so that e starts at 1.

    >>> [round(_estimate_early(np.array(clock)), 3) for clock in ([0.0, 0.0, 0.0], [0.0, 9.0, 9.0], [9.0, 0.0, 9.0])]
    [0.0, 2.92, -1.151]
    """
    m, n, r = clock[0] + 1.0, clock[1] + 1.0, clock[2]
    half = 0.5 * (n + r - m)
    root = math.sqrt(half * half + m * n)  # m e^2 - (n + r - m) e - n = 0
    return math.log((half + root) / m if half > 0.0 else n / (root - half))


def _count_win(outcome: Outcome, u: list[float], early: float) -> tuple[float, float, float]:
    """Return what a race whose time is known adds to early wins, late wins and r."""
    if isinstance(outcome, NoWinner):
        return 0.0, 0.0, 0.0
    largest, late = max(u), float(_is_late(outcome))
    log_V = largest + math.log(sum(math.exp(one - largest) for one in u))
    g = 1.0 / (1.0 + math.exp(early))
    return 1.0 - late, late, 1.0 / (g + math.exp(min(-log_V, 700.0)))
