"""Sums at the horizon, summarised over repetitions, and two policies compared repetition by repetition."""

import math
from dataclasses import dataclass

import numpy as np

from preselect.context import Floats

_ENOUGH = 30  # repetitions from which on a mean is taken to be normal


@dataclass(frozen=True)
class Summary:
    """A policy's sums at the horizon, over repetitions.

    Parameters
    ----------
    repetitions : int
        How many there are.
    mean, standard_error : float
        Their mean and its standard error; NaN for the error of a single repetition.
    median, lower, upper : float
        Their median, and the 5 % and 95 % quantiles.
    """

    repetitions: int
    mean: float
    standard_error: float
    median: float
    lower: float
    upper: float


@dataclass(frozen=True)
class PairedComparison:
    """One policy minus another, repetition by repetition, on common random numbers.

    Parameters
    ----------
    difference, standard_error : float
        Mean of the differences and its standard error.
    p_mean : float
        p-value of the hypothesis that the mean difference is 0, by a normal approximation; NaN below 30 repetitions.
    wins, losses : int
        Repetitions in which the first policy has less, and in which it has more.
    p_sign : float
        p-value of the hypothesis that wins and losses are equally likely, by a sign test.
    """

    difference: float
    standard_error: float
    p_mean: float
    wins: int
    losses: int
    p_sign: float


def standard_error(values: Floats) -> Floats:
    """Return the standard error of the mean over the first axis; NaN for a single repetition."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    error: Floats = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return error


def summarise(values: Floats) -> Summary:
    """Summarise one value per repetition."""
    lower, median, upper = np.quantile(values, (0.05, 0.5, 0.95))
    return Summary(
        len(values), float(values.mean()), float(standard_error(values)), float(median), float(lower), float(upper)
    )


def compare(one: Floats, other: Floats) -> PairedComparison:
    """Compare two policies' values, given for the same repetitions in the same order."""
    differences = one - other
    mean, error = float(differences.mean()), float(standard_error(differences))
    p_mean = math.nan
    if len(differences) >= _ENOUGH:
        p_mean = math.erfc(abs(mean) / error / math.sqrt(2.0)) if error > 0.0 else float(mean == 0.0)
    wins, losses = int(np.sum(differences < 0.0)), int(np.sum(differences > 0.0))
    return PairedComparison(mean, error, p_mean, wins, losses, _sign_test(wins, losses))


def _sign_test(wins: int, losses: int) -> float:
    """Return the probability of a split at least as uneven if wins and losses are equally likely."""
    rounds, few = wins + losses, min(wins, losses)
    return min(1.0, 2 * sum(math.comb(rounds, i) for i in range(few + 1)) / (1 << rounds))
