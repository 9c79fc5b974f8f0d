"""A closer upper bound of widths, which takes time to compute: it pays where there are many arms."""

import math

import numpy as np

from preselect.compiling import fused, reordered
from preselect.kernels.choosing import UNDERFLOW, largest_eigenvalue_bound
from preselect.kernels.types import Floats


@reordered
def _product_of_rows(M: Floats, a: int, b: int) -> float:
    total = 0.0
    for c in range(M.shape[1]):
        total += M[a, c] * M[b, c]
    return total


@reordered
def _largest_eigenvalue_bound_by_square(M: Floats) -> float:
    """An upper bound as `largest_eigenvalue_bound`, from the square of a symmetric M: tighter, and more expensive."""
    d = M.shape[0]
    squared = np.empty((d, d))
    for a in range(d):
        for b in range(a + 1):
            squared[a, b] = squared[b, a] = _product_of_rows(M, a, b)
    return math.sqrt(largest_eigenvalue_bound(squared))


@fused
def set_apart(Sigma: Floats, theta: Floats) -> Floats:
    """Bound x' Sigma x by eigenvalue * x'x + per_square_along * (x'along)^2; return along, then these two numbers.

    Chosen sets consist of arms with nearly the same utility, so the least is learnt about the direction of theta, which
    is often the only one with a large variance. The rest of Sigma without it (its Schur complement, for any direction)
    has a smaller largest eigenvalue.
    """
    d = len(theta)
    apart = np.empty(d + 2)
    eigenvalue = largest_eigenvalue_bound(Sigma)
    variance = 0.0
    for a in range(d):
        apart[a] = 0.0
        for b in range(d):
            apart[a] += Sigma[a, b] * theta[b]
        variance += theta[a] * apart[a]
    apart[d], apart[d + 1] = 0.0, eigenvalue
    if UNDERFLOW < variance < 1.0 / UNDERFLOW and eigenvalue > UNDERFLOW:
        rest = np.empty((d, d))
        for a in range(d):
            for b in range(d):
                rest[a, b] = (Sigma[a, b] - apart[a] * (apart[b] / variance)) / eigenvalue
        share = _largest_eigenvalue_bound_by_square(rest) + 1e-9
        apart[d], apart[d + 1] = 1.0 / variance, min(share, 1.0) * eigenvalue
    return apart
