"""What the time of a race teaches.

A virtual arm, NOBODY, competes with log-utility 0. When times are known it becomes two: one that finishes at 10 % of
the limit, one at the limit. A race is then a ranking of arms and virtual arms. An arm that wins early is ahead of both;
one that wins late is second, behind the early NOBODY; and if no arm wins, the virtual arms are first and second. So a
slow winner counts as half a failure, which is what it often is on the next instance.

The easiest races are won by arms that start fast, not by those that solve hard instances, on which nearly all the time
is spent. So when a race costs less than a thousandth of the average race (of the limit, if the average is above it),
only that some arm won is learnt: all arms, merged into one, are ahead of NOBODY. A race without a winner costs ten
limits, as in the measure PAR10.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.outcomes import NoWinner, Outcome

_EARLY = 0.1  # when the first NOBODY finishes, as a share of the time limit
_FAILURE = 10.0  # the cost of a race without a winner, in time limits
_TRIVIAL = 1e-3  # races that cost less than this share of the average do not teach which arm won


def _freeze(places: list[int] | Integers) -> Integers:
    order = np.array(places, dtype=np.int64)
    order.setflags(write=False)  # as all rankings are: kernels are compiled for one kind of array
    return order


FIRST = _freeze([0])  # the ranking in which the first arm wins


def rank_with_nobody(outcome: Outcome, ranking: Integers, k: int) -> tuple[Integers, int]:
    """Return the ranking of k arms followed by NOBODY, and how many virtual arms that is.

    `ranking` is that of the arms, empty if no arm won.

    >>> from preselect import Winner
    >>> rank_with_nobody(Winner(7, after=0.3), np.array([1]), 3)
    (array([3, 1]), 2)
    """
    if outcome.after is None:
        return (ranking if ranking.size else _freeze([k])), 1
    if not ranking.size:
        return _freeze([k, k + 1]), 2
    return (_freeze([k, *ranking.tolist()]) if outcome.after > _EARLY else ranking), 2


def add_nobody(rows: Floats, nobodies: int) -> Floats:
    """Return the rows of the arms followed by those of virtual arms, whose features are zero."""
    longer: NDArray[np.float64] = np.zeros((len(rows) + nobodies, rows.shape[1]))
    longer[: len(rows)] = rows
    longer.setflags(write=False)  # as the rows of decisions are
    return longer


def measure_cost(outcome: Outcome) -> float:
    """Return the cost of a race whose time is known, in time limits."""
    return _FAILURE if isinstance(outcome, NoWinner) else min(outcome.after or 0.0, 1.0)


def is_trivial(outcome: Outcome, average: float) -> bool:
    """Return whether the race was too short to tell which arms are good at hard instances."""
    return measure_cost(outcome) < _TRIVIAL * min(average, 1.0)
