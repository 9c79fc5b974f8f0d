"""The choice of a set instead of k single arms, for policies that can draw from a belief: choose="cover"."""

import numpy as np

from preselect.context import Floats, Integers, Mask
from preselect.kernels import choosing
from preselect.kernels.types import TIED


def cover(draws: Floats, u: Floats, eligible: Mask, k: int, generator: np.random.Generator) -> Integers:
    """Return the set whose best arm comes closest to the best of all arms, in the mean over joint draws of utilities.

    Greedily, by max over the set of v_i / max v; `draws` is n x M, and u are the estimates, which decide between equal
    gains. Arms that are equal in both are taken at random.
    """
    arms = np.empty(k, dtype=np.int64)
    if choosing.cover(draws, u, eligible, arms) != TIED:
        return arms
    order = generator.permutation(len(u))
    choosing.cover(draws[order], u[order], eligible[order] if eligible.size else eligible, arms)
    taken: Integers = order[arms]
    return taken
