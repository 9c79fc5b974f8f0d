"""What the time of a race teaches: clocks take part in it, and who won in next to no time is not looked at.

Where nobody may win, nobody takes part, as an arm of log-utility 0. Once it is known how long races take, nobody is two
clocks: one rings after a tenth of the time limit, one at the limit. A race then ends in a ranking of arms and clocks.
Somebody who wins at once is ahead of both; one who wins late comes second, behind the first clock; and if nobody wins,
the clocks are first and second. So arms that are slow count as half failed, which is what they often are on the next
instance.

Who wins the easiest races is who is quick to start, not who solves the hard ones, on which nearly all time is spent. So
of a race that costs less than a thousandth of the average race (of the limit, if the average is above it) it is learnt
that somebody won, and not who: the arms together are ahead of the last clock. A failure costs ten limits here, as in
the measure PAR10.
"""

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats
from preselect.model import winner_probabilities
from preselect.outcomes import NoWinner, Outcome

_EARLY = 0.1  # when the first clock rings, as a share of the time limit
_FAILURE = 10.0  # what a race that nobody wins costs, in time limits
_TRIVIAL = 1e-3  # what a race costs, as a share of the average, of which the winner is not looked at


def ranked(outcome: Outcome, ranking: NDArray[np.int64], k: int) -> tuple[NDArray[np.int64], int]:
    """The ranking of k arms and the clocks behind them, given that of the arms; and how many clocks take part.

    >>> from preselect import Winner
    >>> ranked(Winner(7, after=0.3), np.array([1]), 3)
    (array([3, 1]), 2)
    """
    if outcome.after is None:
        return (ranking if ranking.size else np.array([k])), 1
    if not ranking.size:
        return np.array([k, k + 1]), 2
    return (np.concatenate(([k], ranking)) if outcome.after > _EARLY else ranking), 2


def cost_of(outcome: Outcome) -> float:
    """What a race that is known to have taken some time cost, in time limits."""
    return _FAILURE if isinstance(outcome, NoWinner) else min(outcome.after or 0.0, 1.0)


def is_trivial(cost: float, average: float) -> bool:
    """Whether a race took so little time that it says nothing about who is good at hard ones."""
    return cost < _TRIVIAL * min(average, 1.0)


def chances(u: Floats, clocks: int) -> Floats:
    """How likely each arm is to win by its log-utility, and last nobody: all clocks ring before anyone wins.

    >>> chances(np.log([1.0, 2.0]), clocks=1).round(3).tolist()
    [0.25, 0.5, 0.25]
    """
    together = u.max() + np.log(np.exp(u - u.max()).sum())
    rings = np.log(np.arange(1, clocks + 1))
    nobody = np.exp((rings - np.logaddexp(rings, together)).sum()) if clocks else 0.0
    return np.append(winner_probabilities(u) * (1.0 - nobody), nobody)
