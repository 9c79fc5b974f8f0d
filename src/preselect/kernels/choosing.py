"""Choosing k of n arms: scores, widths, and the pruned search for the k best.

The search has three parts. `_seed` finds the k arms with the largest utility. Their exact scores give a threshold
that a better arm has to reach; `_prune` tells by an upper bound whether an arm cannot, and `_fill` computes the exact
scores, which cost O(d^2) each, of the arms that are left.
"""

import math
from typing import TypeAlias, cast

import numpy as np

from preselect.compiling import embedded, fused, helper, inlined, reordered
from preselect.kernels.types import CONTRAST, LOGARITHM, NOT_FINITE, OK, TIED, Booleans, Floats, Integers, Matrix

_FIRST = cast(int, np.int64(0))  # a plain 0 is a type of its own to numba
_UNDERFLOW = 1e-290  # above the squares that lose digits or vanish

_Line: TypeAlias = tuple[float, float, float, float, float]  # bound, shift, largest, widest, slope


@reordered
def _product_and_square(X: Matrix, i: int, y: Floats) -> tuple[float, float]:
    """x_i'y and x_i'x_i, the latter never too small: the upper bounds of widths rest on it."""
    total = 0.0
    square = _UNDERFLOW
    for j in range(y.shape[0]):
        x = np.float64(X[i, j])
        total += x * y[j]
        square += x * x
    return total, square


@reordered
def _square_of_difference(X: Matrix, i: int, b: int) -> float:
    """(x_i - x_b)'(x_i - x_b), never too small."""
    square = _UNDERFLOW
    for a in range(X.shape[1]):
        x = np.float64(X[i, a]) - np.float64(X[b, a])
        square += x * x
    return square


@reordered
def _quadratic_form(X: Matrix, i: int, Sigma: Floats) -> float:
    """x_i' Sigma x_i, four rows of Sigma at a time; features that are zero (one-hot arms) cost nothing."""
    row, a, d = np.uint64(i), np.uint64(0), np.uint64(X.shape[1])
    one, four = np.uint64(1), np.uint64(4)
    total = 0.0
    while a + four <= d:
        a1, a2, a3 = a + one, a + one + one, a + one + one + one
        x0, x1, x2, x3 = X[row, a], X[row, a1], X[row, a2], X[row, a3]
        if x0 != 0.0 or x1 != 0.0 or x2 != 0.0 or x3 != 0.0:
            s0 = s1 = s2 = s3 = 0.0
            for b in range(d):
                x = np.float64(X[row, b])
                s0 += Sigma[a, b] * x
                s1 += Sigma[a1, b] * x
                s2 += Sigma[a2, b] * x
                s3 += Sigma[a3, b] * x
            total += x0 * s0 + x1 * s1 + x2 * s2 + x3 * s3
        a += four
    while a < d:
        if X[row, a] != 0.0:
            s0 = 0.0
            for b in range(d):
                s0 += Sigma[a, b] * X[row, b]
            total += X[row, a] * s0
        a += one
    return max(total, 0.0)


@reordered
def _largest_eigenvalue_bound(Sigma: Floats) -> float:
    """An upper bound from trace and Frobenius norm (Wolkowicz and Styan 1980), with room for rounding.

    Of Sigma over its largest diagonal entry, which no other entry exceeds, because squares of the entries themselves
    may overflow or vanish.
    """
    d = Sigma.shape[0]
    scale = 0.0
    trace = 0.0
    for a in range(d):
        scale = max(scale, Sigma[a, a])
        trace += Sigma[a, a]
    if not scale > _UNDERFLOW:
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
    """The factor of sqrt(q) in a width: beta, which grows with q if it is to."""
    return math.sqrt(beta * beta + 4.0 * math.log1p(growth * q)) if growth > 0.0 else beta


@embedded
def _width(X: Matrix, i: int, leader: int, Sigma: Floats, beta: float, growth: float, form: int, x: Floats) -> float:
    """The width of arm i, by contrast with the leader if there is one (not -1); `x` is room for a row."""
    for a in range(X.shape[1]):
        x[0, a] = np.float64(X[i, a]) - (np.float64(X[leader, a]) if leader >= 0 else 0.0)
    q = _quadratic_form(x, _FIRST, Sigma)
    root = _grow(beta, growth, q) * math.sqrt(q)
    return math.log1p(root) if form == LOGARITHM else root


@helper
def _tolerance(score: float) -> float:
    """Scores that differ by less than this are tied: they differ by rounding only."""
    return 1e-12 * (1.0 + abs(score))


@helper
def _place(arm: int, score: float, width: float, arms: Integers, bounds: Floats, filled: int) -> float:
    """Put an arm into the list sorted by score, of which `filled` places are taken; return the score that drops out."""
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


@helper
def _seed(
    X: Matrix, theta: Floats, eligible: Booleans, scratch: Floats, arms: Integers, bounds: Floats
) -> tuple[bool, float, float]:
    """Find the k eligible arms with the largest utility; the rows of `scratch` become x'theta and x'x of every arm.

    Returns whether all of these are finite, the largest x'x of an eligible arm, and the best utility left out.
    """
    k = arms.shape[0]
    largest_square = 0.0
    finite = True
    filled = 0
    best_out = -np.inf
    for i in range(X.shape[0]):
        u, square = _product_and_square(X, i, theta)
        scratch[0, i], scratch[1, i] = u, square
        finite &= math.isfinite(u) and math.isfinite(square)
        if eligible.shape[0] == 0 or eligible[i]:
            largest_square = max(largest_square, square)
            if filled < k or u >= bounds[k - 1] - _tolerance(bounds[k - 1]):
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
    return TIED if best_out >= bounds[k - 1] - _tolerance(bounds[k - 1]) else OK


@helper
def _bound_widths(
    Sigma: Floats, beta: float, growth: float, form: int, largest_square: float, leader_square: float
) -> _Line:
    """A line in the norm of x that lies above every width: of the logarithm, the tangent at the widest arm."""
    root = math.sqrt(_largest_eigenvalue_bound(Sigma))
    widest = root * (math.sqrt(largest_square) + math.sqrt(leader_square))
    bound = _grow(beta, growth, widest * widest) * root
    shift = bound * math.sqrt(leader_square)
    largest = bound * math.sqrt(largest_square) + shift
    if form == LOGARITHM:
        return bound, shift, largest, math.log1p(largest), 1.0 / (1.0 + largest)
    return bound, shift, largest, largest, 1.0


@helper
def _prune(u: float, square: float, least: float, line: _Line) -> bool:
    """Whether an arm cannot reach the score `least`, by the upper bound of its width; never if that is not finite."""
    bound, shift, largest, widest, slope = line
    if u + widest < least:
        return True
    return u + widest - slope * (largest - shift - bound * math.sqrt(square)) < least


@inlined
def _score_seeds(
    X: Matrix,
    Sigma: Floats,
    beta: float,
    growth: float,
    form: int,
    leader: int,
    x: Floats,
    scratch: Floats,
    arms: Integers,
    bounds: Floats,
) -> bool:
    """Sort the seeds by score, the leader first, and mark them by x'x = -1; whether all widths are finite."""
    finite = True
    seeds = arms.copy()
    for place in range(arms.shape[0]):
        i = seeds[place]
        width = 0.0 if i == leader else _width(X, i, leader, Sigma, beta, growth, form, x)
        finite &= math.isfinite(width)
        _place(i, np.inf if i == leader else scratch[0, i] + width, width, arms, bounds, place)
        scratch[1, i] = -1.0
    return finite


@inlined
def _fill(
    X: Matrix,
    Sigma: Floats,
    beta: float,
    growth: float,
    form: int,
    leader: int,
    line: _Line,
    eligible: Booleans,
    x: Floats,
    scratch: Floats,
    arms: Integers,
    bounds: Floats,
) -> tuple[bool, float]:
    """Place the arms that are not pruned by their exact scores; whether all are finite, and the best score left out."""
    finite = True
    best_out = -np.inf
    k = arms.shape[0]
    least = bounds[k - 1] - 2.0 * _tolerance(bounds[k - 1])
    for i in range(X.shape[0]):
        u, square = scratch[0, i], scratch[1, i]
        if not (eligible.shape[0] == 0 or eligible[i]) or square < 0.0 or _prune(u, square, least, line):
            continue
        if leader < 0 or not u + line[0] * math.sqrt(_square_of_difference(X, i, leader)) < least:
            width = _width(X, i, leader, Sigma, beta, growth, form, x)
            finite &= math.isfinite(width)
            best_out = max(best_out, _place(i, u + width, width, arms, bounds, k))
            least = bounds[k - 1] - 2.0 * _tolerance(bounds[k - 1])
    return finite, best_out


@fused
def choose(
    X: Matrix,
    theta: Floats,
    Sigma: Floats,
    beta: float,
    growth: float,
    form: int,
    eligible: Booleans,
    scratch: Floats,
    arms: Integers,
    bounds: Floats,
    rows: Floats,
) -> int:
    """The k eligible arms with the largest x'theta + width, best first, exactly: line 6 of Algorithm 1, and others.

    The width has one of three forms: LOGARITHM log1p(beta sqrt(q)), PLAIN beta sqrt(q), where q = x' Sigma x, and
    CONTRAST, the same for q = (x - x_b)' Sigma (x - x_b), where b is the arm with the largest x'theta, which always
    comes first. If `growth` is above 0, sqrt(beta^2 + 4 log(1 + growth q)) takes the place of a beta above 0.
    `bounds` receives their k scores and k widths, `rows` their rows of X, if it is not empty. An empty `eligible` means
    every arm. `scratch` is 2 x n or larger. TIED: the k-th place is shared with an arm left out, or the lead is.
    """
    finite, largest_square, best_out = _seed(X, theta, eligible, scratch, arms, bounds)
    if not finite:
        return NOT_FINITE
    if beta > 0.0 and (form != CONTRAST or arms.shape[0] > 1):  # else the seeds are the choice
        leader = -1
        if form == CONTRAST:
            leader = arms[0]
            if bounds[1] >= bounds[0] - _tolerance(bounds[0]):
                return TIED
        line = _bound_widths(Sigma, beta, growth, form, largest_square, scratch[1, leader] if leader >= 0 else 0.0)
        x = np.empty((1, X.shape[1]))
        seeds_are_finite = _score_seeds(X, Sigma, beta, growth, form, leader, x, scratch, arms, bounds)
        others_are_finite, best_out = _fill(
            X, Sigma, beta, growth, form, leader, line, eligible, x, scratch, arms, bounds
        )
        if not (seeds_are_finite and others_are_finite):
            return NOT_FINITE
        if leader >= 0:
            bounds[0] = scratch[0, leader]
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
    """Score and width of every arm, the same bounds to the last bit as `choose` ranks by.

    An arm that cannot reach `least` is given minus infinity instead, without the quadratic form. The leader matters
    to the form CONTRAST only.
    """
    finite = True
    root = math.sqrt(_largest_eigenvalue_bound(Sigma)) if beta > 0.0 else 0.0
    leader = leader if form == CONTRAST else -1
    x = np.empty((1, X.shape[1]))
    for i in range(X.shape[0]):
        u, square = _product_and_square(X, i, theta)
        finite &= math.isfinite(u) and math.isfinite(square)
        scores[i] = u
        widths[i] = 0.0
        if beta > 0.0 and i != leader:
            if leader >= 0:
                square = _square_of_difference(X, i, leader)
            largest = root * math.sqrt(square)
            largest *= _grow(beta, growth, largest * largest)
            if least > -np.inf and u + (math.log1p(largest) if form == LOGARITHM else largest) < least:
                scores[i] = -np.inf
            else:
                widths[i] = _width(X, i, leader, Sigma, beta, growth, form, x)
                scores[i] += widths[i]
                finite &= math.isfinite(widths[i])
    return OK if finite else NOT_FINITE


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
                if abs(lead) <= _tolerance(largest):  # equal but for rounding
                    lead = u[i] - u[chosen]
                    lead = 0.0 if abs(lead) <= _tolerance(u[chosen]) else lead
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
