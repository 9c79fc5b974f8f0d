"""Estimate context-free Plackett-Luce worths by minorise-maximise steps."""

import numpy as np

from preselect.compiling import fused
from preselect.kernels.types import Floats, Integers


@fused
def minorise_maximise(
    worth: Floats,
    wins: Floats,
    starts: Integers,
    members: Integers,
    counts: Floats,
    n_sets: int,
    prior: float,
    tolerance: float,
    most_sweeps: int,
) -> int:
    """Hunter's (2004) update, in place, until no worth changes by a larger share than `tolerance`; returns the sweeps.

    Set s, seen counts[s] times, holds the arms members[starts[s]:starts[s + 1]]. Each arm also meets an imaginary arm
    of worth 1 and wins and loses `prior` times against it, which fixes the scale and keeps every worth positive.
    """
    denominators = np.empty(worth.shape[0])
    for sweep in range(most_sweeps):
        for i in range(worth.shape[0]):
            denominators[i] = 2.0 * prior / (worth[i] + 1.0)
        for s in range(n_sets):
            total = 0.0
            for place in range(starts[s], starts[s + 1]):
                total += worth[members[place]]
            for place in range(starts[s], starts[s + 1]):
                denominators[members[place]] += counts[s] / total
        moved = 0.0
        for i in range(worth.shape[0]):
            new = (wins[i] + prior) / denominators[i]
            moved = max(moved, abs(new - worth[i]) / new)
            worth[i] = new
        if moved <= tolerance:
            return sweep + 1
    return most_sweeps
