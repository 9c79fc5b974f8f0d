"""How what a study measures is summed up over repetitions, and how two policies are compared."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from preselect.context import Floats


@dataclass(frozen=True)
class Summary:
    """Regret at the end, over repetitions."""

    repetitions: int
    mean: float
    standard_error: float
    median: float
    lower: float
    upper: float


def standard_error(values: Floats) -> Floats:
    """Standard error of the mean over the first axis; not a number for a single repetition."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    error: Floats = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return error


def summarise(values: Floats) -> Summary:
    """Mean, standard error, median and the 5 % and 95 % quantiles over repetitions."""
    lower, median, upper = np.quantile(values, (0.05, 0.5, 0.95))
    return Summary(
        len(values), float(values.mean()), float(standard_error(values)), float(median), float(lower), float(upper)
    )


def medians(values: Mapping[tuple[Any, str], float]) -> dict[tuple[int, str], float]:
    """The median over settings of each policy's value, for each k; what is not a number does not count."""
    groups: dict[tuple[int, str], list[float]] = {}
    for (setting, policy), value in values.items():
        if not math.isnan(value):
            groups.setdefault((setting.k, policy), []).append(value)
    return {group: float(np.median(among)) for group, among in groups.items()}


@dataclass(frozen=True)
class PairedComparison:
    """One policy less the other, repetition by repetition, on common random numbers."""

    difference: float
    standard_error: float
    p_mean: float
    wins: int
    losses: int
    p_sign: float


def compare(one: Floats, other: Floats) -> PairedComparison:
    """Paired: is the mean of `one` different (normal approximation), and is it smaller more often (sign test)?

    Below 30 repetitions the approximation is not good enough, and the first p is not a number.
    """
    differences = one - other
    mean, error = float(differences.mean()), float(standard_error(differences))
    p_mean = math.nan
    if len(differences) >= 30:
        p_mean = math.erfc(abs(mean) / error / math.sqrt(2.0)) if error > 0.0 else float(mean == 0.0)
    wins, losses = int(np.sum(differences < 0.0)), int(np.sum(differences > 0.0))
    return PairedComparison(mean, error, p_mean, wins, losses, _sign_test(wins, losses))


def _sign_test(wins: int, losses: int) -> float:
    """Probability of a split at least as uneven if both were equally likely to win."""
    rounds, few = wins + losses, min(wins, losses)
    return min(1.0, 2 * sum(math.comb(rounds, i) for i in range(few + 1)) / (1 << rounds))
