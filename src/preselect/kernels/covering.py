"""Choose a set of which one arm is likely to be nearly the best of all: choose="cover"."""

import math

import numpy as np

from preselect.compiling import fused, helper
from preselect.kernels.choosing import tolerance
from preselect.kernels.types import OK, TIED, Booleans, Floats, Integers


@helper
def _shares(draws: Floats, eligible: Booleans) -> Floats:
    """exp(utility - best), where best is the largest utility of an eligible arm in each draw."""
    n, M = draws.shape
    shares = np.empty((n, M))
    for m in range(M):
        best = -np.inf
        for i in range(n):
            if eligible.shape[0] == 0 or eligible[i]:
                best = max(best, draws[i, m])
        for i in range(n):
            shares[i, m] = math.exp(draws[i, m] - best)
    return shares


@fused
def cover(draws: Floats, u: Floats, eligible: Booleans, arms: Integers) -> int:
    """The greedy set of k arms that maximises the mean over the draws of max over the set of exp(utility - best).

    `draws` holds n x M utilities, `u` the plain estimates, which decide between equal gains. An empty `eligible` means
    every arm. TIED: a place is shared with an arm that gains as much and is estimated as high; the first has it.
    """
    n, M = draws.shape
    shares = _shares(draws, eligible)
    reached = np.zeros(M)
    taken = np.zeros(n, dtype=np.bool_)
    status = OK
    for place in range(arms.shape[0]):
        largest, chosen, tied = -1.0, -1, False
        for i in range(n):
            if not taken[i] and (eligible.shape[0] == 0 or eligible[i]):
                gain = 0.0
                for m in range(M):
                    gain += max(shares[i, m] - reached[m], 0.0)
                lead = gain - largest
                if abs(lead) <= tolerance(largest):  # equal but for rounding
                    lead = u[i] - u[chosen]
                    lead = 0.0 if abs(lead) <= tolerance(u[chosen]) else lead
                if lead > 0.0:
                    largest, chosen, tied = gain, i, False
                tied |= lead == 0.0
        arms[place] = chosen
        taken[chosen] = True
        if tied:
            status = TIED
        for m in range(M):
            reached[m] = max(reached[m], shares[chosen, m])
    return status
