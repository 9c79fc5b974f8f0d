"""Estimates from rounds, with intervals.

Every estimator of an evaluation returns one number for each round. The mean of these numbers is the estimate; their
standard deviation, divided by the square root of the number of rounds, is its standard error. To compare two estimates
on the same rounds, take the differences of their numbers.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple, Self

import numpy as np

from preselect.context import Floats

_QUANTILE = NormalDist().inv_cdf(0.975)


class Interval(NamedTuple):
    """A number that was estimated, and its 95 % confidence interval.

    Parameters
    ----------
    value : float
        The estimate.
    low : float
        Lower end of the interval.
    high : float
        Upper end of the interval.
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Floats, variance: float = 0.0) -> Self:
        """Return the mean of one number for each round, with its interval.

        Parameters
        ----------
        numbers : array of T floats
            One for each of at least two rounds.
        variance : float, default 0.0
            A variance that all rounds have in common, such as the one that a model's uncertain weights cause.
        """
        mean = float(numbers.mean())
        reach = _QUANTILE * float(np.sqrt(numbers.var(ddof=1) / len(numbers) + variance))
        return cls(mean, mean - reach, mean + reach)


def self_normalise(wins: Floats, weights: Floats, expected: Floats) -> Floats:
    """Estimate E[wins] E[expected] / E[weights]: wins weighted by inverse propensities, divided by the weights.

    The estimate is the mean of the numbers returned. They are its linearisation: the estimate plus what each round
    changes in it to first order, so that their standard deviation gives its error (the delta method).

    Parameters
    ----------
    wins : array of T floats
        The wins of each round, weighted.
    weights : array of T floats
        The weights of each round; not all zero.
    expected : array of T floats
        The expected weights of each round.

    Examples
    --------
    >>> float(self_normalise(np.array([3.0, 0.0]), np.array([3.0, 1.0]), np.ones(2)).mean())
    0.75
    """
    share, size = wins.mean() / weights.mean(), expected.mean()
    found: Floats = share * expected + size / weights.mean() * (wins - share * weights)
    return found


def count_effective(weights: Floats) -> float:
    """Return how many rounds of equal weight would say as much (Kish's effective sample size).

    >>> count_effective(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0
