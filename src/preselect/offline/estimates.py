"""Estimates from rounds, with intervals.

Every estimator of an evaluation returns one number for each round. The mean of these numbers is the estimate; their
standard deviation, divided by the square root of the number of rounds, is its standard error. To compare two estimates
on the same rounds, take the differences of their numbers.

Where rounds are weighted, few of them decide the estimate. So quantiles are those of Student's t, with one degree of
freedom less than there are effective rounds. And what lies between 0 and a largest value gets the interval of Wilson
(Journal of the American Statistical Association 22, 1927), which is wider towards the middle: estimates near an end
seem surer than they are.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple, Self

import numpy as np

from preselect.context import Floats

_QUANTILE = NormalDist().inv_cdf(0.975)
_TINY = 1e-300


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
    def of(cls, numbers: Floats, variance: float = 0.0, *, effective: float = np.inf) -> Self:
        """Return the mean of one number for each round, with its interval.

        Parameters
        ----------
        numbers : array of T floats
            One for each of at least two rounds.
        variance : float, default 0.0
            A variance that all rounds have in common, such as the one that a model's uncertain weights cause.
        effective : float, optional
            The effective number of rounds, if few of them decide the mean.
        """
        mean = float(numbers.mean())
        reach = find_quantile(effective - 1.0) * float(np.sqrt(_square_error(numbers) + variance))
        return cls(mean, mean - reach, mean + reach)

    @classmethod
    def of_share(cls, numbers: Floats, most: float, effective: float) -> Self:
        """Return the mean of one number for each round, with its interval, if the truth is between 0 and `most`.

        Parameters
        ----------
        numbers : array of T floats
            One for each of at least two rounds. If their mean is out of bounds, the interval is that of `of`.
        most : float
            The largest value that the truth can have.
        effective : float
            The effective number of rounds.
        """
        p, error = float(numbers.mean()) / most, float(np.sqrt(_square_error(numbers))) / most
        if not 0.0 <= p <= 1.0:
            return cls.of(numbers, effective=effective)
        n = max(effective, 1.0)  # how many rounds of equal weight would be as sure
        if 0.0 < p < 1.0 and error <= min(p, 1.0 - p):
            n = p * (1.0 - p) / max(error**2, _TINY)
        elif error > 0.0:  # p is so near to an end only if some numbers lie beyond it, and cannot tell its own error
            n = min(n, max(1.0 / error - 1.0, 1.0))
        z = find_quantile(effective - 1.0)
        middle = (p + z**2 / (2.0 * n)) / (1.0 + z**2 / n)
        reach = z / (1.0 + z**2 / n) * float(np.sqrt(p * (1.0 - p) / n + (z / (2.0 * n)) ** 2))
        return cls(p * most, max(middle - reach, 0.0) * most, min(middle + reach, 1.0) * most)


def _square_error(numbers: Floats) -> float:
    return float(numbers.var(ddof=1)) / len(numbers)


def find_quantile(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t, by its expansion for many degrees of freedom; at least one is assumed.

    >>> round(find_quantile(10.0), 2)
    2.23
    """
    z, v = _QUANTILE, max(freedom, 1.0)
    return z + (z**3 + z) / (4.0 * v) + (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / (96.0 * v**2)


def self_normalise(wins: Floats, weights: Floats, expected: Floats) -> Floats:
    """Estimate E[wins] E[expected] / E[weights]: wins weighted by inverse propensities, divided by the weights.

    The estimate is the mean of the numbers returned. They differ by what the estimate would change if a round were left
    out, so that their standard deviation gives its error (the jackknife).

    Parameters
    ----------
    wins : array of T floats
        The wins of each round, weighted.
    weights : array of T floats
        The weights of each round, of which at least two are not zero.
    expected : array of T floats
        The expected weights of each round.

    Examples
    --------
    >>> float(self_normalise(np.array([3.0, 0.0]), np.array([3.0, 1.0]), np.ones(2)).mean())
    0.75
    """
    others = _sum_others(wins) / _sum_others(weights) * _sum_others(expected) / (len(wins) - 1)
    found: Floats = wins.sum() / weights.sum() * expected.mean() + (len(wins) - 1) * (others.mean() - others)
    return found


def _sum_others(values: Floats) -> Floats:
    """Return for each value the sum of the others, without a difference, in which small ones would be lost.

    >>> _sum_others(np.array([1e20, 1.0, 2.0])).tolist()
    [3.0, 1e+20, 1e+20]
    """
    before, after = np.zeros(len(values)), np.zeros(len(values))
    np.cumsum(values[:-1], out=before[1:])
    np.cumsum(values[:0:-1], out=after[-2::-1])
    return before + after


def count_effective(weights: Floats) -> float:
    """Return how many rounds of equal weight would say as much (Kish's effective sample size).

    >>> count_effective(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0
