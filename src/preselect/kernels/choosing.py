"""Choosing k of n arms: scores, widths, and the pruned search for the k best.

The search has three parts. `_seed` finds the k arms with the largest utility. Their exact scores give a threshold
that a better arm has to reach; `_prune` and `_misses` tell by upper bounds of widths whether an arm cannot, and `_fill`
computes the exact scores, which cost O(d^2) each, of the arms that are left.
"""

import math
from typing import TypeAlias, cast

import numpy as np

from preselect.compiling import embedded, embedded_sum, fused, helper, inlined, reordered
from preselect.kernels.types import CONTRAST, LOGARITHM, NOT_FINITE, OK, TIED, Booleans, Floats, Integers, Matrix

_FIRST = cast(int, np.int64(0))  # numba gives a plain 0 a type of its own, and would compile the helpers again for it
_PACE = 8.0  # how fast the square of a growing beta grows
_MOST_VARIANCE = 2.0  # a growing beta counts the variance of a lead up to this
UNDERFLOW = 1e-290  # smaller squares lose digits or vanish

_Line: TypeAlias = tuple[float, float, float, float, float]  # bound, shift, largest, widest, slope
_Curve: TypeAlias = tuple[float, float, float, float]  # eigenvalue, per_square_along, constant, slope


@embedded_sum
def _product_and_square(X: Matrix, i: int, y: Floats) -> tuple[float, float]:
    """x_i'y and x_i'x_i, the latter never too small: the upper bounds of widths rest on it."""
    total = 0.0
    square = UNDERFLOW
    for j in range(y.shape[0]):
        x = np.float64(X[i, j])
        total += x * y[j]
        square += x * x
    return total, square


@embedded_sum
def _difference(X: Matrix, i: int, b: int, y: Floats) -> tuple[float, float]:
    """(x_i - x_b)'y and (x_i - x_b)'(x_i - x_b), the latter never too small."""
    total = 0.0
    square = UNDERFLOW
    for a in range(X.shape[1]):
        x = np.float64(X[i, a]) - np.float64(X[b, a])
        total += x * y[a]
        square += x * x
    return total, square


@embedded_sum
def _quadratic_form(X: Matrix, i: int, Sigma: Floats) -> float:
    """x_i' Sigma x_i from the lower half of Sigma, four rows at a time; zeros in x_i (one-hot arms) cost nothing."""
    row, a, d = np.uint64(i), np.uint64(0), np.uint64(X.shape[1])
    one, four = np.uint64(1), np.uint64(4)
    total = 0.0
    while a + four <= d:
        a1, a2, a3 = a + one, a + one + one, a + one + one + one
        x0, x1, x2, x3 = X[row, a], X[row, a1], X[row, a2], X[row, a3]
        if x0 != 0.0 or x1 != 0.0 or x2 != 0.0 or x3 != 0.0:
            s0 = s1 = s2 = s3 = 0.0
            for b in range(a):
                x = np.float64(X[row, b])
                s0 += Sigma[a, b] * x
                s1 += Sigma[a1, b] * x
                s2 += Sigma[a2, b] * x
                s3 += Sigma[a3, b] * x
            s1 += Sigma[a1, a] * x0
            s2 += Sigma[a2, a] * x0 + Sigma[a2, a1] * x1
            s3 += Sigma[a3, a] * x0 + Sigma[a3, a1] * x1 + Sigma[a3, a2] * x2
            total += x0 * (2.0 * s0 + Sigma[a, a] * x0) + x1 * (2.0 * s1 + Sigma[a1, a1] * x1)
            total += x2 * (2.0 * s2 + Sigma[a2, a2] * x2) + x3 * (2.0 * s3 + Sigma[a3, a3] * x3)
        a += four
    while a < d:
        if X[row, a] != 0.0:
            s0 = 0.0
            for b in range(a):
                s0 += Sigma[a, b] * X[row, b]
            total += X[row, a] * (2.0 * s0 + Sigma[a, a] * X[row, a])
        a += one
    return max(total, 0.0)


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


@inlined
def _grow(beta: float, growth: float, q: float) -> float:
    """The factor of sqrt(q) in a width: beta, which grows with q up to 2 if `growth` is above 0."""
    return math.sqrt(beta * beta + _PACE * math.log1p(growth * min(q, _MOST_VARIANCE))) if growth > 0.0 else beta


@embedded
def _width(X: Matrix, i: int, leader: int, Sigma: Floats, beta: float, growth: float, form: int, x: Floats) -> float:
    """The width of arm i, or of its contrast with the leader unless that is -1. `x` is scratch space for a row."""
    for a in range(X.shape[1]):
        x[0, a] = np.float64(X[i, a]) - (np.float64(X[leader, a]) if leader >= 0 else 0.0)
    q = _quadratic_form(x, _FIRST, Sigma)
    root = _grow(beta, growth, q) * math.sqrt(q)
    return math.log1p(root) if form == LOGARITHM else root


@helper
def tolerance(score: float) -> float:
    """The difference below which scores are tied, because it may be due to rounding."""
    return 1e-12 * (1.0 + abs(score))


@embedded
def _place(arm: int, score: float, width: float, arms: Integers, bounds: Floats, filled: int) -> float:
    """Insert an arm into the list sorted by score, which has `filled` entries; return the score that drops out."""
    k = arms.shape[0]
    out = -np.inf
    place = filled
    if filled == k:
        place = k - 1
        if not score > bounds[place]:
            return score
        out = bounds[place]
    while place > 0 and bounds[place - 1] < score:
        arms[place] = arms[place - 1]
        bounds[place] = bounds[place - 1]
        bounds[k + place] = bounds[k + place - 1]
        place -= 1
    arms[place] = arm
    bounds[place] = score
    bounds[k + place] = width
    return out


@inlined
def _seed(
    X: Matrix, theta: Floats, eligible: Booleans, scratch: Floats, arms: Integers, bounds: Floats
) -> tuple[bool, float, float]:
    """Find the k eligible arms with the largest utility; the rows of `scratch` become x'theta and x'x of every arm.

    Returns whether all of these are finite, the largest x'x of an eligible arm, and the best utility left out.
    """
    k = arms.shape[0]
    largest_square = 0.0
    finite = True
    filled = _FIRST
    best_out = -np.inf
    for i in range(X.shape[0]):
        u, square = _product_and_square(X, i, theta)
        scratch[0, i], scratch[1, i] = u, square
        finite &= math.isfinite(u) and math.isfinite(square)
        if eligible.shape[0] == 0 or eligible[i]:
            largest_square = max(largest_square, square)
            if filled < k or u >= bounds[k - 1] - tolerance(bounds[k - 1]):
                best_out = max(best_out, _place(i, u, 0.0, arms, bounds, filled))
                filled = min(filled + 1, k)
    return finite, largest_square, best_out


@inlined
def _finish(X: Matrix, arms: Integers, bounds: Floats, rows: Floats, best_out: float) -> int:
    """Copy the rows of the chosen arms if there is room for them; say whether the last place is tied."""
    k = arms.shape[0]
    for place in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            rows[place, a] = X[arms[place], a]
    return TIED if best_out >= bounds[k - 1] - tolerance(bounds[k - 1]) else OK


@helper
def _bound_widths(
    eigenvalue: float, beta: float, growth: float, form: int, largest_square: float, leader_square: float
) -> _Line:
    """A line in the norm of x that lies above every width; with LOGARITHM, the tangent at the widest arm."""
    root = math.sqrt(eigenvalue)
    widest = root * (math.sqrt(largest_square) + math.sqrt(leader_square))
    bound = _grow(beta, growth, widest * widest) * root
    shift = bound * math.sqrt(leader_square)
    largest = bound * math.sqrt(largest_square) + shift
    if form == LOGARITHM:
        return bound, shift, largest, math.log1p(largest), 1.0 / (1.0 + largest)
    return bound, shift, largest, largest, 1.0


@embedded
def _prune(u: float, square: float, least: float, line: _Line) -> bool:
    """Whether an arm cannot reach the score `least`, by the upper bound of its width; never if that is not finite."""
    bound, shift, largest, widest, slope = line
    if u + widest < least:
        return True
    return u + widest - slope * (largest - shift - bound * math.sqrt(square)) < least


@inlined
def _bound_squares(eigenvalue: float, per_square_along: float, beta: float, growth: float, square: float) -> _Curve:
    """A curve above every squared width, as `_misses` takes it; the logarithm in beta by its tangent at `square`."""
    q = min(eigenvalue * square, _MOST_VARIANCE)
    slope = _PACE * growth / (1.0 + growth * q) if q < _MOST_VARIANCE else 0.0
    constant = beta * beta + _PACE * math.log1p(growth * q) - slope * q
    return eigenvalue, per_square_along, constant, slope


@inlined
def _misses(lead: float, square: float, along: float, curve: _Curve) -> bool:
    """Whether the width of an arm with this x'x, or contrast, is less than `lead`; never if it may overflow."""
    eigenvalue, per_square_along, constant, slope = curve
    q = eigenvalue * square + per_square_along * along * along
    return lead > 0.0 and q * (constant + slope * q) < lead * lead


@inlined
def _fill(
    X: Matrix,
    Sigma: Floats,
    beta: float,
    growth: float,
    form: int,
    leader: int,
    line: _Line,
    curve: _Curve,
    y: Floats,
    eligible: Booleans,
    scratch: Floats,
    arms: Integers,
    bounds: Floats,
) -> tuple[bool, float]:
    """Sort the seeds by their exact scores, the leader first, then place the other arms that are not pruned.

    Returns whether all widths are finite, and the best score left out.
    """
    finite = True
    best_out = least = -np.inf
    k = arms.shape[0]
    seeds = arms.copy()
    x = np.empty((1, X.shape[1]))
    for turn in range(k + X.shape[0]):  # one loop for both, because _width is copied to wherever it is called
        i = seeds[turn] if turn < k else turn - k
        u, square = scratch[0, i], scratch[1, i]
        if turn >= k:
            if not (eligible.shape[0] == 0 or eligible[i]) or square < 0.0 or _prune(u, square, least, line):
                continue
            along = 0.0
            if leader >= 0:
                along, square = _difference(X, i, leader, y)
            if form != LOGARITHM and _misses(least - u, square, along, curve):
                continue
        width = 0.0 if i == leader else _width(X, i, leader, Sigma, beta, growth, form, x)
        finite &= math.isfinite(width)
        best_out = max(best_out, _place(i, np.inf if i == leader else u + width, width, arms, bounds, min(turn, k)))
        least = bounds[k - 1] - 2.0 * tolerance(bounds[k - 1])
        scratch[1, i] = -1.0  # not to be placed again
    return finite, best_out


@fused
def choose(
    X: Matrix,
    theta: Floats,
    Sigma: Floats,
    beta: float,
    growth: float,
    form: int,
    apart: Floats,
    eligible: Booleans,
    arms: Integers,
    bounds: Floats,
    rows: Floats,
) -> int:
    """Find the k eligible arms with the largest x'theta + width, best first: line 6 of Algorithm 1, and others.

    The width has one of three forms: LOGARITHM log1p(beta sqrt(q)), PLAIN beta sqrt(q), where q = x' Sigma x, and
    CONTRAST, the same for q = (x - x_b)' Sigma (x - x_b), where b is the arm with the largest x'theta, which always
    comes first, with the largest score. If `growth` is above 0, sqrt(beta^2 + 8 log(1 + growth min(q, 2))) takes the
    place of a beta above 0. `bounds` receives their k scores and k widths, `rows` their rows of X, if it is not empty.
    An empty `eligible` means every arm. `apart` is what `set_apart` returned, for CONTRAST, or empty: it changes
    nothing but how many arms are pruned. TIED: the k-th place is shared with an arm left out, or the lead is.
    """
    scratch = np.empty((2, X.shape[0]))
    finite, largest_square, best_out = _seed(X, theta, eligible, scratch, arms, bounds)
    if not finite:
        return NOT_FINITE
    if beta > 0.0 and (form != CONTRAST or arms.shape[0] > 1):  # otherwise the seeds are the choice
        leader = -1
        if form == CONTRAST:
            leader = arms[0]
            if bounds[1] >= bounds[0] - tolerance(bounds[0]):
                return TIED
        eigenvalue, leader_square = largest_eigenvalue_bound(Sigma), scratch[1, leader] if leader >= 0 else 0.0
        line = _bound_widths(eigenvalue, beta, growth, form, largest_square, leader_square)
        along, per_square_along = theta, 0.0
        if apart.shape[0] > 0:
            along, per_square_along, eigenvalue = apart, apart[-2], apart[-1]
        curve = _bound_squares(eigenvalue, per_square_along, beta, growth, largest_square)
        finite, best_out = _fill(
            X, Sigma, beta, growth, form, leader, line, curve, along, eligible, scratch, arms, bounds
        )
        if not finite:
            return NOT_FINITE
        if leader >= 0:
            bounds[arms.shape[0]] = bounds[arms.shape[0] + 1]  # of its contrast with the best of the others
            bounds[0] = scratch[0, leader] + bounds[arms.shape[0]]
    return _finish(X, arms, bounds, rows, best_out)


@fused
def score(
    X: Matrix,
    theta: Floats,
    Sigma: Floats,
    beta: float,
    growth: float,
    form: int,
    leader: int,
    least: float,
    scores: Floats,
    widths: Floats,
) -> int:
    """Compute score and width of every arm, the same to the last bit as those by which `choose` ranks.

    An arm that can neither reach `least` nor be tied with it is given minus infinity instead, without the quadratic
    form. The leader matters to the form CONTRAST only.
    """
    finite = True
    least -= 2.0 * tolerance(least)
    root = math.sqrt(largest_eigenvalue_bound(Sigma)) if beta > 0.0 else 0.0
    leader = leader if form == CONTRAST else -1
    x = np.empty((1, X.shape[1]))
    for i in range(X.shape[0]):
        u, square = _product_and_square(X, i, theta)
        finite &= math.isfinite(u) and math.isfinite(square)
        scores[i] = u
        widths[i] = 0.0
        if beta > 0.0 and i != leader:
            if leader >= 0:
                _, square = _difference(X, i, leader, theta)
            largest = root * math.sqrt(square)
            largest *= _grow(beta, growth, largest * largest)
            if least > -np.inf and u + (math.log1p(largest) if form == LOGARITHM else largest) < least:
                scores[i] = -np.inf
            else:
                widths[i] = _width(X, i, leader, Sigma, beta, growth, form, x)
                scores[i] += widths[i]
                finite &= math.isfinite(widths[i])
    return OK if finite else NOT_FINITE
