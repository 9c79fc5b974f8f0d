"""Upper bounds of widths: arms that cannot be chosen are skipped without computing their exact scores."""

import math
from typing import TypeAlias

import numpy as np

from preselect.compiling import embedded, fused, helper, inlined, reordered
from preselect.kernels.types import LOGARITHM, Floats

_PACE = 8.0  # how fast the square of a growing beta grows
_MOST_VARIANCE = 2.0  # a growing beta counts the variance of a lead up to this
UNDERFLOW = 1e-290  # smaller squares lose digits or vanish

Line: TypeAlias = tuple[float, float, float, float, float]  # bound, shift, largest, widest, slope
Curve: TypeAlias = tuple[float, float, float, float]  # eigenvalue, per_square_along, constant, slope


@reordered
def largest_eigenvalue_bound(Sigma: Floats) -> float:
    """An upper bound, by trace and Frobenius norm (Wolkowicz and Styan 1980), with room for rounding.

    Computed for Sigma over its largest diagonal entry, which no other entry exceeds, because squares of its entries
    may overflow or vanish.
    """
    d = Sigma.shape[0]
    scale = 0.0
    trace = 0.0
    for a in range(d):
        scale = max(scale, Sigma[a, a])
        trace += Sigma[a, a]
    if not scale > UNDERFLOW:
        return max(trace, 0.0) * (1.0 + 1e-6)
    inverse = 1.0 / scale
    square = 0.0
    for a in range(d):
        for b in range(d):
            entry = Sigma[a, b] * inverse
            square += entry * entry
    mean = trace / d * inverse
    variance = max(square / d - mean * mean, 1e-12 * square / d)
    return float((abs(mean) + math.sqrt(variance * (d - 1))) * (1.0 + 1e-6) * scale)


@reordered
def _product_of_rows(M: Floats, a: int, b: int) -> float:
    total = 0.0
    for c in range(M.shape[1]):
        total += M[a, c] * M[b, c]
    return total


@reordered
def _largest_eigenvalue_bound_by_square(M: Floats) -> float:
    """As `largest_eigenvalue_bound`, from the square of a symmetric M: tighter, and more expensive."""
    d = M.shape[0]
    squared = np.empty((d, d))
    for a in range(d):
        for b in range(a + 1):
            squared[a, b] = squared[b, a] = _product_of_rows(M, a, b)
    return math.sqrt(largest_eigenvalue_bound(squared))


@inlined
def grow(beta: float, growth: float, q: float) -> float:
    """The factor of sqrt(q) in a width: beta, which grows with q up to 2 if `growth` is above 0."""
    return math.sqrt(beta * beta + _PACE * math.log1p(growth * min(q, _MOST_VARIANCE))) if growth > 0.0 else beta


@helper
def bound_widths(
    eigenvalue: float, beta: float, growth: float, form: int, largest_square: float, leader_square: float
) -> Line:
    """A line in the norm of x that lies above every width; with LOGARITHM, the tangent at the widest arm."""
    root = math.sqrt(eigenvalue)
    widest = root * (math.sqrt(largest_square) + math.sqrt(leader_square))
    bound = grow(beta, growth, widest * widest) * root
    shift = bound * math.sqrt(leader_square)
    largest = bound * math.sqrt(largest_square) + shift
    if form == LOGARITHM:
        return bound, shift, largest, math.log1p(largest), 1.0 / (1.0 + largest)
    return bound, shift, largest, largest, 1.0


@embedded
def prune(u: float, square: float, least: float, line: Line) -> bool:
    """Whether an arm cannot reach the score `least`, by the upper bound of its width; never if that is not finite."""
    bound, shift, largest, widest, slope = line
    if u + widest < least:
        return True
    return u + widest - slope * (largest - shift - bound * math.sqrt(square)) < least


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


@inlined
def bound_squares(eigenvalue: float, per_square_along: float, beta: float, growth: float, square: float) -> Curve:
    """A curve above every squared width, as `misses` takes it; the tangent at `square` bounds the logarithm in beta."""
    q = min(eigenvalue * square, _MOST_VARIANCE)
    slope = _PACE * growth / (1.0 + growth * q) if q < _MOST_VARIANCE else 0.0
    constant = beta * beta + _PACE * math.log1p(growth * q) - slope * q
    return eigenvalue, per_square_along, constant, slope


@inlined
def misses(lead: float, square: float, along: float, curve: Curve) -> bool:
    """Whether the width of an arm with this x'x, or contrast, is less than `lead`; never if it may overflow."""
    eigenvalue, per_square_along, constant, slope = curve
    q = eigenvalue * square + per_square_along * along * along
    return lead > 0.0 and q * (constant + slope * q) < lead * lead
