"""Correct worths of arms by the nearest past races: distances, and minorise-maximise steps with a prior."""

import numpy as np

from preselect.compiling import fused
from preselect.kernels.types import Floats, Integers


@fused
def measure_distances(now: Floats, contexts: Floats, count: int) -> Floats:
    """Return the squared distance of a context to each of the first `count` past ones."""
    distances = np.empty(count)
    for i in range(count):
        total = 0.0
        for j in range(now.shape[0]):
            away = now[j] - contexts[i, j]
            total += away * away
        distances[i] = total
    return distances


@fused
def fit_worths(
    worths: Floats,
    alpha: float,
    weights: Floats,
    near: Integers,
    arms: Integers,
    places: Integers,
    ranked: Integers,
    rivals: Integers,
    steps: int,
) -> None:
    """Move worths towards the maximum of a local likelihood with a gamma prior around them, by Hunter's (2004) steps.

    Race i, one of `near`, has the arms arms[i], ranked ones first, -1 behind the last; ranked[i] of them are ranked,
    none if nobody won, and if ranked[i] = -1 some arm won, unknown which. places[i, j] is how many arms are better than
    the ranked arm j: tied arms have equal ones, and count as if each of them were the first of its tie (Breslow). Bit r
    of rivals[i] says whether the arms compete with r virtual arms of worth 1.

    A step maximises the sum over arms of alpha (log v - v / centre) plus the weighted log-likelihoods, in which
    -log(V + r) is replaced by its tangent at the present worths.
    """
    m, width = worths.shape[0], arms.shape[1]
    centre, wins, losses, left = worths.copy(), np.empty(m), np.empty(m), np.empty(width + 1)
    for _ in range(steps):
        wins[:] = alpha
        for a in range(m):
            losses[a] = alpha / centre[a]
        for n in range(near.shape[0]):
            i = near[n]
            weight = weights[n]
            size = 0
            while size < width and arms[i, size] >= 0:
                size += 1
            left[size] = 0.0
            for j in range(size - 1, -1, -1):
                left[j] = left[j + 1] + worths[arms[i, j]]
            for stage in range(max(ranked[i], 1)):
                first = places[i, stage] if ranked[i] > 0 else 0
                slope = 0.0
                for r in range(3):
                    if rivals[i] >> r & 1:
                        slope += 1.0 / (left[first] + r)
                for j in range(first, size):
                    losses[arms[i, j]] += weight * slope
            for j in range(ranked[i]):
                wins[arms[i, j]] += weight
            if ranked[i] < 0:
                for j in range(size):
                    wins[arms[i, j]] += weight * worths[arms[i, j]] / left[0]
        for a in range(m):
            worths[a] = wins[a] / losses[a]
