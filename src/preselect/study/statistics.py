"""Summarise the final sums of all repetitions, and compare policies repetition by repetition."""

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from preselect.context import Floats

_Key = TypeVar("_Key", bound=Hashable)
_RESAMPLES = 99_999
_CHUNK = 100_000  # how many numbers are handled at a time
_ROUNDING = 1e-12  # differences that are equal up to this share of the largest count as equal
_USEFUL = 0.05  # if no p-value can be as small as this, none is given


@dataclass(frozen=True)
class Summary:
    """A policy's sums at the horizon, summarised over repetitions.

    Parameters
    ----------
    repetitions : int
        How many repetitions there are.
    mean, standard_error : float
        The mean of the sums and its standard error, which is NaN for a single repetition.
    median, lower, upper : float
        The median of the sums, and their 5 % and 95 % quantiles.
    """

    repetitions: int
    mean: float
    standard_error: float
    median: float
    lower: float
    upper: float


@dataclass(frozen=True)
class PairedComparison:
    """The differences between two policies, repetition by repetition, on common random numbers.

    p-values are adjusted by Holm's method for all pairs that are compared together. They are never below 1e-5 times the
    number of pairs, and NaN where there are too few repetitions for any to be below 0.05 (see `find_least_p`).

    Parameters
    ----------
    repetitions : int
        How many repetitions both policies have.
    difference, standard_error : float
        Mean of the differences and its standard error; NaN for the error of a single repetition.
    p_mean : float
        p-value of the hypothesis that the mean difference is 0: the larger one of a test with random sign flips and of
        the studentised bootstrap.
    wins, losses : int
        In how many repetitions the first policy has the smaller sum, and in how many the larger.
    p_sign : float
        p-value of the hypothesis that wins and losses are equally likely, by a sign test.
    """

    repetitions: int
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


def compare(pairs: Mapping[_Key, tuple[Floats, Floats]]) -> dict[_Key, PairedComparison]:
    """Compare the two policies of each pair; p-values are adjusted for the number of pairs.

    Parameters
    ----------
    pairs : mapping
        For any key, the values of two policies in the same repetitions, at least one. The result has the same keys.
    """
    differences = {key: one - other for key, (one, other) in pairs.items()}
    splits = [(int(np.sum(values < 0.0)), int(np.sum(values > 0.0))) for values in differences.values()]
    p_mean = _adjust(_test_all(list(differences.values())))
    p_sign = _adjust(np.array([_sign_test(*split) for split in splits]))
    return {
        key: _describe(values, len(pairs), float(p_mean[i]), splits[i], float(p_sign[i]))
        for i, (key, values) in enumerate(differences.items())
    }


def _describe(
    differences: Floats, pairs: int, p_mean: float, split: tuple[int, int], p_sign: float
) -> PairedComparison:
    mean, error, repetitions = float(differences.mean()), float(standard_error(differences)), len(differences)
    if find_least_p(repetitions, pairs) > _USEFUL:
        p_mean = p_sign = math.nan
    return PairedComparison(repetitions, mean, error, p_mean, *split, p_sign)


def find_least_p(repetitions: int, pairs: int) -> float:
    """Return the smallest possible p-value, which differences that all have the same sign get.

    Parameters
    ----------
    repetitions : int
        Repetitions that are compared.
    pairs : int
        Pairs that are compared together.

    >>> find_least_p(repetitions=10, pairs=5)
    0.009765625
    """
    return min(1.0, pairs * max(2.0 ** (1 - repetitions), 2.0 / (_RESAMPLES + 1)))


def _adjust(p: Floats) -> Floats:
    """Adjust p-values by Holm's method: the smallest is multiplied by their number, the next by one less, and so on."""
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def _test_all(differences: list[Floats]) -> Floats:
    """Return the p-value of the mean of each array; arrays of the same length share their random numbers."""
    p = np.ones(len(differences))
    for length in {len(values) for values in differences}:
        columns = [i for i, values in enumerate(differences) if len(values) == length]
        p[columns] = _compute_p_values(np.column_stack([differences[i] for i in columns]))
    return p


def _compute_p_values(differences: Floats, resamples: int = _RESAMPLES) -> Floats:
    """Return the p-value of the hypothesis that the mean is 0, for each column; rows are repetitions.

    It is the larger of two. Random sign flips are exact where differences are symmetric, however heavy their tails, and
    reject too often where they are skew. The equal-tailed studentised bootstrap allows for skewness, and rejects too
    often where tails are heavy. The random numbers are the same in every call. No p-value is below that of all sign
    flips of differences with the same sign, 2 / 2^repetitions, which the random ones only estimate.

    With 30 repetitions or more, tests find the promised level with all kinds of differences that they try. With 10 to
    20, up to 7 % are rejected at 0.05 where differences are very skew; Student's t rejects up to 10 % of them.
    """
    largest = np.abs(differences).max(axis=0)
    scaled = differences / np.where(largest > 0.0, largest, 1.0)
    mean = scaled.mean(axis=0)
    centred = np.where(np.abs(scaled - mean) > _ROUNDING, scaled - mean, 0.0)
    squared = centred**2
    t, extreme = _studentise(mean, squared.mean(axis=0)), np.abs(mean) - _ROUNDING
    room = _ROUNDING * np.abs(t)
    counts = np.zeros((3, len(t)), dtype=np.int64)
    for signs, weights in _draw(len(scaled), len(t), resamples):
        means = weights @ centred
        resampled = _studentise(means, weights @ squared - means**2)
        found = np.abs(signs @ scaled) >= extreme, resampled >= t - room, resampled <= t + room
        counts += np.sum(found, axis=1)
    flipped, tail = counts[0] + 1, counts[1:].min(axis=0) + 1
    p: Floats = np.clip(np.maximum(flipped, 2 * tail) / (resamples + 1), 2.0 ** (1 - len(scaled)), 1.0)
    return p


def _studentise(mean: Floats, variance: Floats) -> Floats:
    """Return the t statistic, up to a factor that depends on the number of repetitions only."""
    t: Floats = mean / np.sqrt(np.maximum(variance, _ROUNDING**2))
    return t


def _draw(repetitions: int, columns: int, resamples: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield pairs of weights of the repetitions, for sign flips and for the bootstrap; each row is a resample."""
    generator = np.random.default_rng(0)
    rows = max(1, _CHUNK // max(repetitions, columns))
    for first in range(0, resamples, rows):
        shape = (min(rows, resamples - first), repetitions)
        signs = 2.0 * generator.integers(2, size=shape, dtype=np.int8) - 1.0
        drawn = generator.integers(repetitions, size=shape) + repetitions * np.arange(shape[0])[:, None]
        counts = np.bincount(drawn.ravel(), minlength=signs.size).reshape(shape)
        yield signs / repetitions, counts / repetitions


def _sign_test(wins: int, losses: int) -> float:
    """Return the probability of a split at least this uneven if wins and losses are equally likely; at least 1e-5."""
    rounds, few = wins + losses, min(wins, losses)
    p = 2 * sum(math.comb(rounds, i) for i in range(few + 1)) / (1 << rounds)
    return min(1.0, max(p, 1.0 / (_RESAMPLES + 1)))
