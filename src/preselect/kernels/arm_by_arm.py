"""Online Newton steps of single arms, each with its own block of the covariance."""

import numpy as np

from preselect.compiling import fused
from preselect.kernels.types import Floats, Integers


@fused
def learn_alone(
    rows: Floats, slots: Integers, gradients: Floats, curvatures: Floats, theta: Floats, shared: Floats, own: Floats
) -> None:
    """Let arms learn one after another, in place: P loses H (Px)(Px)' / (1 + H x'Px), theta gains Px g with the new P.

    A row x has the shared features, then those of the arm's slot. P has a block for the shared features and one for
    each slot, of which own[slot] is the lower half, row after row; what a step would put between blocks is dropped.
    """
    m = shared.shape[0]
    size = rows.shape[1] - m
    Px = np.empty(m + size)
    for i in range(rows.shape[0]):
        x = rows[i]
        block = own[slots[i]]
        for a in range(m):
            Px[a] = 0.0
            for b in range(m):
                Px[a] += shared[a, b] * x[b]
        for a in range(size):
            Px[m + a] = 0.0
        at = 0
        for a in range(size):
            for b in range(a):
                Px[m + a] += block[at] * x[m + b]
                Px[m + b] += block[at] * x[m + a]
                at += 1
            Px[m + a] += block[at] * x[m + a]
            at += 1
        q = 0.0
        for a in range(m + size):
            q += x[a] * Px[a]
        scale = 1.0 / (1.0 + curvatures[i] * q)
        lost = curvatures[i] * scale
        step = gradients[i] * scale
        for a in range(m):
            theta[a] += step * Px[a]
            for b in range(m):
                shared[a, b] -= lost * Px[a] * Px[b]
        at = 0
        first = m + slots[i] * size
        for a in range(size):
            theta[first + a] += step * Px[m + a]
            for b in range(a + 1):
                block[at] -= lost * Px[m + a] * Px[m + b]
                at += 1
