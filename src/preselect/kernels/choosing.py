"""Choosing k of n arms: scores, widths, and the pruned search for the k best."""

import math

import numpy as np

from preselect.compiling import fused, reordered
from preselect.kernels.types import CONTRAST, LOGARITHM, NOT_FINITE, OK, TIED, Booleans, Floats, Integers, Matrix


@reordered
def _product_and_square(X: Matrix, i: int, y: Floats) -> tuple[float, float]:
    total = 0.0
    square = 0.0
    for j in range(y.shape[0]):
        x = np.float64(X[i, j])
        total += x * y[j]
        square += x * x
    return total, square


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
    """An upper bound from trace and Frobenius norm (Wolkowicz and Styan 1980), with room for rounding."""
    d = Sigma.shape[0]
    trace = 0.0
    square = 0.0
    for a in range(d):
        trace += Sigma[a, a]
        for b in range(d):
            square += Sigma[a, b] * Sigma[a, b]
    mean = trace / d
    variance = max(square / d - mean * mean, 1e-12 * square / d)
    return float((abs(mean) + math.sqrt(variance * (d - 1))) * (1.0 + 1e-6))


@fused
def _place(arm: int, score: float, width: float, arms: Integers, numbers: Floats, filled: int) -> float:
    """Put an arm into the list sorted by score, of which `filled` places are taken; answer the score that falls out."""
    k = arms.shape[0]
    out = -np.inf
    place = filled
    if filled == k:
        place = k - 1
        if not score > numbers[place]:
            return score
        out = numbers[place]
    while place > 0 and numbers[place - 1] < score:
        arms[place] = arms[place - 1]
        numbers[place] = numbers[place - 1]
        numbers[k + place] = numbers[k + place - 1]
        place -= 1
    arms[place] = arm
    numbers[place] = score
    numbers[k + place] = width
    return out


@fused
def _rounding(score: float) -> float:
    """Scores that differ by less than this are tied: they differ by rounding only."""
    return 1e-12 * (1.0 + abs(score))


@reordered
def _square_of_difference(X: Matrix, i: int, b: int) -> float:
    square = 0.0
    for a in range(X.shape[1]):
        x = np.float64(X[i, a]) - np.float64(X[b, a])
        square += x * x
    return square


@fused
def _contrast_width(X: Matrix, i: int, b: int, Sigma: Floats, beta: float, scratch: Floats) -> float:
    """The width beta sqrt((x_i - x_b)' Sigma (x_i - x_b)); scratch is 1 x d."""
    for a in range(X.shape[1]):
        scratch[0, a] = np.float64(X[i, a]) - np.float64(X[b, a])
    return beta * math.sqrt(_quadratic_form(scratch, 0, Sigma))


@fused
def _width(X: Matrix, i: int, Sigma: Floats, beta: float, form: int) -> float:
    root = beta * math.sqrt(_quadratic_form(X, i, Sigma))
    return math.log1p(root) if form == LOGARITHM else root


@fused
def choose(
    X: Matrix,
    theta: Floats,
    Sigma: Floats,
    beta: float,
    form: int,
    eligible: Booleans,
    scratch: Floats,
    arms: Integers,
    numbers: Floats,
) -> int:
    """The k eligible arms with the largest x'theta + width, best first, exactly.

    The width has one of three forms: LOGARITHM log1p(beta sqrt(x' Sigma x)), PLAIN beta sqrt(x' Sigma x), CONTRAST
    beta sqrt((x - x_b)' Sigma (x - x_b)), where b is the arm with the largest x'theta, who always comes first.
    The exact quadratic form is computed only for arms whose upper bound reaches the k-th best exact score. An empty
    `eligible` means every arm. `scratch` is 2 x n or larger. TIED: the k-th place is shared with an arm left out, or
    the lead is.
    """
    n, d = X.shape
    k = arms.shape[0]
    every = eligible.shape[0] == 0
    u, square = scratch[0], scratch[1]
    largest_square = 0.0
    finite = True
    filled = 0
    best_out = -np.inf
    for i in range(n):
        u[i], square[i] = _product_and_square(X, i, theta)
        finite &= math.isfinite(u[i]) and math.isfinite(square[i])
        if every or eligible[i]:
            largest_square = max(largest_square, square[i])
            if filled < k or u[i] >= numbers[k - 1] - _rounding(numbers[k - 1]):
                best_out = max(best_out, _place(i, u[i], 0.0, arms, numbers, filled))
                filled = min(filled + 1, k)
    if not finite:
        return NOT_FINITE
    leader = -1
    if form == CONTRAST and beta > 0.0 and k > 1:
        leader = arms[0]
        if numbers[1] >= numbers[0] - _rounding(numbers[0]):
            return TIED
    if beta > 0.0 and (leader >= 0 or form != CONTRAST):
        # The width lies below a line in the norm of x: of the logarithm, the tangent at the widest arm.
        bound = beta * math.sqrt(_largest_eigenvalue_bound(Sigma))
        shift = bound * math.sqrt(square[leader]) if leader >= 0 else 0.0
        largest = bound * math.sqrt(largest_square) + shift
        slope = 1.0 / (1.0 + largest) if form == LOGARITHM else 1.0
        widest = math.log1p(largest) if form == LOGARITHM else largest
        contrast = np.empty((1 if leader >= 0 else 0, d))
        seeds = arms.copy()
        filled = 0
        best_out = -np.inf
        for seed in seeds:
            if seed == leader:
                _place(seed, np.inf, 0.0, arms, numbers, filled)
            else:
                if leader >= 0:
                    width = _contrast_width(X, seed, leader, Sigma, beta, contrast)
                else:
                    width = _width(X, seed, Sigma, beta, form)
                finite &= math.isfinite(width)
                _place(seed, u[seed] + width, width, arms, numbers, filled)
            filled += 1
            square[seed] = -1.0
        least = numbers[k - 1] - 2.0 * _rounding(numbers[k - 1])
        for i in range(n):
            if (every or eligible[i]) and u[i] + widest >= least and square[i] >= 0.0:
                if u[i] + widest - slope * (largest - shift - bound * math.sqrt(square[i])) >= least:
                    if leader < 0:
                        width = _width(X, i, Sigma, beta, form)
                    elif u[i] + bound * math.sqrt(_square_of_difference(X, i, leader)) >= least:
                        width = _contrast_width(X, i, leader, Sigma, beta, contrast)
                    else:
                        continue
                    finite &= math.isfinite(width)
                    best_out = max(best_out, _place(i, u[i] + width, width, arms, numbers, k))
                    least = numbers[k - 1] - 2.0 * _rounding(numbers[k - 1])
        if not finite:
            return NOT_FINITE
        if leader >= 0:
            numbers[0] = u[leader]
    if numbers.shape[0] == 2 * k + k * d:  # room for the rows
        for place in range(k):
            for a in range(d):
                numbers[2 * k + place * d + a] = X[arms[place], a]
    return TIED if best_out >= numbers[k - 1] - _rounding(numbers[k - 1]) else OK


@fused
def score(
    X: Matrix,
    theta: Floats,
    Sigma: Floats,
    beta: float,
    form: int,
    leader: int,
    least: float,
    scores: Floats,
    widths: Floats,
) -> int:
    """Score and width of every arm, the same numbers to the last bit as `choose` ranks by.

    An arm that cannot reach `least` is given minus infinity instead, without the quadratic form. The leader of form
    CONTRAST is given.
    """
    finite = True
    bound = beta * math.sqrt(_largest_eigenvalue_bound(Sigma)) if beta > 0.0 else 0.0
    contrast = np.empty((1 if form == CONTRAST else 0, X.shape[1]))
    for i in range(X.shape[0]):
        u, square = _product_and_square(X, i, theta)
        finite &= math.isfinite(u) and math.isfinite(square)
        scores[i] = u
        widths[i] = 0.0
        if beta > 0.0 and (form != CONTRAST or i != leader):
            if form == CONTRAST:
                square = _square_of_difference(X, i, leader)
            largest = bound * math.sqrt(square)
            if least > -np.inf and u + (math.log1p(largest) if form == LOGARITHM else largest) < least:
                scores[i] = -np.inf
            else:
                if form == CONTRAST:
                    widths[i] = _contrast_width(X, i, leader, Sigma, beta, contrast)
                else:
                    widths[i] = _width(X, i, Sigma, beta, form)
                scores[i] += widths[i]
                finite &= math.isfinite(widths[i])
    return OK if finite else NOT_FINITE


@fused
def cover(draws: Floats, u: Floats, eligible: Booleans, arms: Integers) -> None:
    """The greedy set of k arms that maximises the mean over the draws of max over the set of exp(utility - best).

    `draws` holds n x M utilities, `u` the plain estimates, which decide between equal gains. An empty `eligible` means
    every arm.
    """
    n, M = draws.shape
    share = np.empty((n, M))
    for m in range(M):
        best = -np.inf
        for i in range(n):
            if eligible.shape[0] == 0 or eligible[i]:
                best = max(best, draws[i, m])
        for i in range(n):
            share[i, m] = math.exp(draws[i, m] - best)
    reached = np.zeros(M)
    taken = np.zeros(n, dtype=np.bool_)
    for place in range(arms.shape[0]):
        largest, chosen = -1.0, -1
        for i in range(n):
            if not taken[i] and (eligible.shape[0] == 0 or eligible[i]):
                gain = 0.0
                for m in range(M):
                    gain += max(share[i, m] - reached[m], 0.0)
                if gain > largest or (gain == largest and u[i] > u[chosen]):
                    largest, chosen = gain, i
        arms[place] = chosen
        taken[chosen] = True
        for m in range(M):
            reached[m] = max(reached[m], share[chosen, m])
