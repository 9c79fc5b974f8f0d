"""The compiled inner loops: arrays in, arrays out, float64 arithmetic, no Python objects.

All kernels live in this one file on purpose: numba keys its disk cache by the source file of the kernel that is called,
so a helper in another file could change without its callers being compiled again.

Conventions. `X` is n x d (float64 or float32). `numbers` is the block of a decision: k scores, k widths, then the k
selected rows of X. `ranked` holds these rows in the order of the outcome: the m arms that were ranked, best first, then
the k - m others. A winner is a ranking with m = 1.
A kernel that changes a state computes first and commits last, and answers whether it did: a learner that meets a
number that is not finite stays exactly as it was.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

OK, NOT_FINITE, TIED = 0, 1, 2
LOGARITHM, PLAIN, CONTRAST = 0, 1, 2  # the forms of a width

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _compiled(kernel: _Kernel) -> _Kernel:
    """Compile in strict order of operations; only fused multiply-add is allowed."""
    return cast(_Kernel, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})(kernel))


def _reduction(kernel: _Kernel) -> _Kernel:
    """Compile so that sums may be reordered, hence vectorised; NaN and infinity keep their meaning."""
    fastmath = {"contract", "reassoc", "nsz"}
    return cast(_Kernel, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(kernel))


# --- small linear algebra ---------------------------------------------------------------------------------------------


@_reduction
def _product(X: Matrix, i: int, y: Floats) -> float:
    total = 0.0
    for j in range(y.shape[0]):
        total += X[i, j] * y[j]
    return total


@_reduction
def _product_and_square(X: Matrix, i: int, y: Floats) -> tuple[float, float]:
    total = 0.0
    square = 0.0
    for j in range(y.shape[0]):
        x = np.float64(X[i, j])
        total += x * y[j]
        square += x * x
    return total, square


@_compiled
def _add_rows(out: Floats, i: int, W: Floats, l: int, S: Floats, first: int, last: int) -> None:
    """out[i] += sum of W[l, j] S[j] over first <= j < last, four rows at a time; zero weights (one-hot arms) are free.

    Most of the work of this file is done here. Row numbers are passed, here and elsewhere, because a slice costs two
    atomic operations on its owner; and they are unsigned, because a signed index is checked for being negative.
    """
    row, line, j, end = np.uint64(i), np.uint64(l), np.uint64(first), np.uint64(last)
    one, four = np.uint64(1), np.uint64(4)
    columns = np.uint64(out.shape[1])
    while j + four <= end:
        j1, j2, j3 = j + one, j + one + one, j + one + one + one
        w0, w1, w2, w3 = W[line, j], W[line, j1], W[line, j2], W[line, j3]
        if w0 != 0.0 or w1 != 0.0 or w2 != 0.0 or w3 != 0.0:
            for b in range(columns):
                out[row, b] += w0 * S[j, b] + w1 * S[j1, b] + w2 * S[j2, b] + w3 * S[j3, b]
        j += four
    while j < end:
        w0 = W[line, j]
        if w0 != 0.0:
            for b in range(columns):
                out[row, b] += w0 * S[j, b]
        j += one


@_reduction
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


@_reduction
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


# --- choosing ---------------------------------------------------------------------------------------------------------


@_compiled
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


@_compiled
def _rounding(score: float) -> float:
    """Scores that differ by less than this are tied: they differ by rounding only."""
    return 1e-12 * (1.0 + abs(score))


@_reduction
def _square_of_difference(X: Matrix, i: int, b: int) -> float:
    square = 0.0
    for a in range(X.shape[1]):
        x = np.float64(X[i, a]) - np.float64(X[b, a])
        square += x * x
    return square


@_compiled
def _contrast_width(X: Matrix, i: int, b: int, Sigma: Floats, beta: float, scratch: Floats) -> float:
    """The width beta sqrt((x_i - x_b)' Sigma (x_i - x_b)); scratch is 1 x d."""
    for a in range(X.shape[1]):
        scratch[0, a] = np.float64(X[i, a]) - np.float64(X[b, a])
    return beta * math.sqrt(_quadratic_form(scratch, 0, Sigma))


@_compiled
def _width(X: Matrix, i: int, Sigma: Floats, beta: float, form: int) -> float:
    root = beta * math.sqrt(_quadratic_form(X, i, Sigma))
    return math.log1p(root) if form == LOGARITHM else root


@_compiled
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


@_compiled
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


@_compiled
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


# --- the Plackett-Luce model of one outcome ---------------------------------------------------------------------------


@_compiled
def rank_rows(numbers: Floats, k: int, d: int, ranking: Integers) -> Floats:
    """The rows of a decision in the order of the outcome: the ranked ones, best first, then the others."""
    m = ranking.shape[0]
    ranked = np.empty((k, d))
    seen = np.zeros(k, dtype=np.bool_)
    place = m
    for i in range(m):
        seen[ranking[i]] = True
        for a in range(d):
            ranked[i, a] = numbers[2 * k + ranking[i] * d + a]
    for i in range(k):
        if not seen[i]:
            for a in range(d):
                ranked[place, a] = numbers[2 * k + i * d + a]
            place += 1
    return ranked


@_compiled
def utilities(X: Matrix, theta: Floats) -> Floats:
    """Log-utilities u = X theta."""
    u = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        u[i] = _product(X, i, theta)
    return u


@_compiled
def stage_normalisers(u: Floats, m: int) -> Floats:
    """Log of the sum of exp(u) over the arms still in the running at each of the m stages, in one backward pass."""
    normalisers = np.empty(m)
    largest = u[-1]
    total = 1.0  # the sum is total * exp(largest)
    for place in range(u.shape[0] - 2, -1, -1):
        if u[place] > largest:
            total = total * math.exp(largest - u[place]) + 1.0
            largest = u[place]
        else:
            total += math.exp(u[place] - largest)
        if place < m:
            normalisers[place] = largest + math.log(total)
    if m == u.shape[0]:
        normalisers[m - 1] = u[-1]
    return normalisers


@_compiled
def stage_probabilities(u: Floats, m: int) -> Floats:
    """p[s, j], the probability that the j-th ranked arm wins stage s; zero for the arms that have left."""
    k = u.shape[0]
    normalisers = stage_normalisers(u, m)
    p = np.zeros((m, k))
    for s in range(m):
        for j in range(s, k):
            p[s, j] = math.exp(u[j] - normalisers[s])
    return p


@_compiled
def gradient(ranked: Floats, p: Floats) -> Floats:
    """The gradient of the log-likelihood in theta: the sum over the stages of (row of the winner - expected row)."""
    m, k = p.shape
    g = np.zeros((1, ranked.shape[1]))
    for j in range(k):
        coefficient = 1.0 if j < m else 0.0
        for s in range(min(j + 1, m)):
            coefficient -= p[s, j]
        for a in range(g.shape[1]):
            g[0, a] += coefficient * ranked[j, a]
    return g


@_compiled
def curvature_factor(ranked: Floats, p: Floats) -> Floats:
    """F with k - 1 rows and F'F = minus the Hessian of the log-likelihood, for any number of stages.

    Minus the Hessian is ranked' L ranked, where L is the Laplacian of the graph on the arms whose edge between i and j
    weighs the sum over the stages of p_i p_j. Eliminating the arms one by one factors L using sums, products and
    quotients of non-negative numbers only, so nothing cancels however unequal the probabilities are.
    """
    m, k = p.shape
    d = ranked.shape[1]
    w = np.zeros((k, k))
    for i in range(k):
        for j in range(i + 1, k):
            for s in range(min(i + 1, m)):
                w[i, j] += p[s, i] * p[s, j]
    F = np.zeros((k - 1, d))
    for i in range(k - 1):
        degree = 0.0
        for j in range(i + 1, k):
            degree += w[i, j]
        if degree == 0.0:
            continue
        root = math.sqrt(degree)
        for a in range(d):
            F[i, a] = root * ranked[i, a]
        for j in range(i + 1, k):
            share = w[i, j] / degree
            for a in range(d):
                F[i, a] -= root * share * ranked[j, a]
            for other in range(j + 1, k):
                w[j, other] += share * w[i, other]
    return F


# --- learning ---------------------------------------------------------------------------------------------------------


@_reduction
def _squares_are_finite(values: Floats) -> bool:
    """Whether all values are finite and small enough for their products to be so."""
    total = 0.0
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            total += values[a, b] * values[a, b]
    return math.isfinite(total)


@_compiled
def _averaged_step(ranked: Floats, m: int, step: float, t: int, estimate: Floats) -> Floats:
    """The next SGD iterate and the next running average, as the rows of a new array."""
    d = ranked.shape[1]
    g = gradient(ranked, stage_probabilities(utilities(ranked, estimate[0]), m))
    new = np.empty((2, d))
    for a in range(d):
        new[0, a] = estimate[0, a] + step * g[0, a]
        new[1, a] = ((t - 1) * estimate[1, a] + new[0, a]) / t
    return new


@_compiled
def learn_average(numbers: Floats, k: int, ranking: Integers, step: float, t: int, estimate: Floats) -> int:
    """One round of averaged SGD. The rows of `estimate` are theta_hat and theta_bar."""
    ranked = rank_rows(numbers, k, estimate.shape[1], ranking)
    new = _averaged_step(ranked, ranking.shape[0], step, t, estimate)
    if not _squares_are_finite(new):
        return NOT_FINITE
    estimate[:] = new
    return OK


@_compiled
def _factor(M: Floats) -> bool:
    """Replace M by -L below, -L' above, 1/L on the diagonal, where L L' = I + M (Cholesky); False if there is no L."""
    for i in range(M.shape[0]):
        for j in range(i + 1):
            total = M[i, j]
            for l in range(j):
                total -= M[i, l] * M[j, l]
            if i == j:
                if not (math.isfinite(total) and total > -1.0):
                    return False
                M[i, i] = 1.0 / math.sqrt(1.0 + total)
            else:
                M[i, j] = M[j, i] = -total * M[j, j]
    return True


@_compiled
def _columns(F: Floats) -> Floats:
    """The transpose of F, in memory order."""
    r, d = F.shape
    columns = np.empty((d, r))
    for a in range(d):
        for i in range(r):
            columns[a, i] = F[i, a]
    return columns


@_compiled
def _invert(A: Floats, P: Floats) -> bool:
    """P = inv(A) by Gauss-Jordan elimination, stable if A is positive definite: O(d^3).

    Without blocking: for d so small that this is less work than an update. False if A is not positive definite to
    working precision.
    """
    d = np.uint64(A.shape[0])
    for a in range(d):
        for b in range(d):
            P[a, b] = A[a, b]
    for pivot in range(d):
        if not (math.isfinite(P[pivot, pivot]) and P[pivot, pivot] > 0.0):
            return False
        reciprocal = 1.0 / P[pivot, pivot]
        P[pivot, pivot] = 1.0
        for b in range(d):
            P[pivot, b] *= reciprocal
        for a in range(d):
            if a != pivot:
                factor = P[a, pivot]
                P[a, pivot] = 0.0
                for b in range(d):
                    P[a, b] -= factor * P[pivot, b]
    for a in range(d):
        for b in range(a):
            P[a, b] = P[b, a] = 0.5 * (P[a, b] + P[b, a])
    return True


@_compiled
def _sandwich(B: Floats, P: Floats, Sigma: Floats) -> bool:
    """Sigma = P B P; False if it is not finite."""
    d = B.shape[0]
    half = np.zeros(P.shape)
    Sigma[:] = 0.0
    for a in range(d):
        _add_rows(half, a, P, a, B, 0, d)
        _add_rows(Sigma, a, half, a, P, 0, d)
    return _squares_are_finite(Sigma)


@_compiled
def _shrinking(F: Floats, F_columns: Floats, P: Floats, V: Floats, M: Floats) -> bool:
    """V such that P - V'V = inv(inv(P) + F'F): with I + F P F' = L L', L V = F P (Woodbury). M then holds L, factored.

    V and M come in as zeros. False if precision does not allow.
    """
    r, d = F.shape
    for i in range(r):
        _add_rows(V, i, F, i, P, 0, d)
        _add_rows(M, i, V, i, F_columns, 0, d)
    if not _factor(M):
        return False
    for i in range(r):
        _add_rows(V, i, M, i, V, 0, i)
        for a in range(d):
            V[i, a] *= M[i, i]
    return True


@_compiled
def _shrink(P: Floats, V: Floats) -> None:
    """P loses V'V."""
    r, d = V.shape
    weights = np.empty((1, r))
    for a in range(d):
        for j in range(r):
            weights[0, j] = -V[j, a]
        _add_rows(P, a, weights, 0, V, 0, r)


@_compiled
def _update(F: Floats, F_columns: Floats, g: Floats, P: Floats, Sigma: Floats) -> bool:
    """P and Sigma after A gains F'F and B gains gg': O(k d^2). False, and nothing changed, if precision does not allow.

    With V and L of `_shrinking`, the new P is P - V'V = (I - G'F) P, where L'G = V. Hence the new P B P is
    Sigma - G'Z - Z'G with Z = F Sigma - (F Sigma F') G / 2, and gg' adds hh' to it, where h = P g.
    """
    r, d = F.shape
    V = np.zeros((r, d))
    terms = np.zeros((2 * r + 1, d))  # the rows of G, of Z, and h
    M = np.zeros((r, r))
    N = np.zeros((r, r))
    if not _shrinking(F, F_columns, P, V, M):
        return False
    for i in range(r):
        _add_rows(terms, r + i, F, i, Sigma, 0, d)
        _add_rows(N, i, terms, r + i, F_columns, 0, d)
        for a in range(d):
            terms[i, a] = V[i, a]
    for i in range(r - 1, -1, -1):
        _add_rows(terms, i, M, i, terms, i + 1, r)
        for a in range(d):
            terms[i, a] *= M[i, i]
    for i in range(r):
        for j in range(r):
            N[i, j] *= -0.5
        _add_rows(terms, r + i, N, i, terms, 0, r)
    if not _squares_are_finite(terms):
        return False
    _shrink(P, V)
    _add_rows(terms, 2 * r, g, 0, P, 0, d)
    weights = np.empty((1, 2 * r + 1))
    for a in range(d):
        for j in range(r):
            weights[0, j] = -terms[r + j, a]
            weights[0, r + j] = -terms[j, a]
        weights[0, 2 * r] = terms[2 * r, a]
        _add_rows(Sigma, a, weights, 0, terms, 0, 2 * r + 1)
    return True


@_compiled
def _add_sums(A: Floats, B: Floats, F: Floats, F_columns: Floats, g: Floats) -> None:
    """A gains F'F, B gains gg'."""
    for a in range(A.shape[0]):
        _add_rows(A, a, F_columns, a, F, 0, F.shape[0])
        for b in range(A.shape[0]):
            B[a, b] += g[0, a] * g[0, b]


@_compiled
def learn_sandwich(numbers: Floats, k: int, ranking: Integers, step: float, t: int, estimate: Floats) -> int:
    """One round of averaged SGD, and of A = sum of -Hessians, B = sum of gg', P = inv(A), Sigma = P B P.

    The rows of `estimate` are theta_hat, theta_bar, then those of A, B, P and Sigma.
    """
    d = estimate.shape[1]
    ranked = rank_rows(numbers, k, d, ranking)
    m = ranking.shape[0]
    theta = _averaged_step(ranked, m, step, t, estimate)
    p = stage_probabilities(utilities(ranked, theta[1]), m)
    g = gradient(ranked, p)
    F = curvature_factor(ranked, p)
    if not (_squares_are_finite(theta) and _squares_are_finite(F) and _squares_are_finite(g)):
        return NOT_FINITE
    F_columns = _columns(F)
    A, B = estimate[2 : 2 + d], estimate[2 + d : 2 + 2 * d]
    P, Sigma = estimate[2 + 2 * d : 2 + 3 * d], estimate[2 + 3 * d : 2 + 4 * d]
    if d > 2 * F.shape[0] and _update(F, F_columns, g, P, Sigma):
        _add_sums(A, B, F, F_columns, g)
    else:  # recomputing is cheaper, and exact; or updating has failed
        new_A, new_B, new_P, new_Sigma = A.copy(), B.copy(), np.empty((d, d)), np.empty((d, d))
        _add_sums(new_A, new_B, F, F_columns, g)
        if not (_invert(new_A, new_P) and _sandwich(new_B, new_P, new_Sigma)):
            return NOT_FINITE
        for a in range(d):
            for b in range(d):
                A[a, b] = new_A[a, b]
                B[a, b] = new_B[a, b]
                P[a, b] = new_P[a, b]
                Sigma[a, b] = new_Sigma[a, b]
    for a in range(d):
        estimate[0, a] = theta[0, a]
        estimate[1, a] = theta[1, a]
    return OK


@_compiled
def _with_prior(F: Floats, g: Floats, theta: Floats, prior: Floats, discount: float, t: int) -> Floats:
    """F and g with a share of the prior, given back to some features in turn because discounting took it away.

    Every feature has its turn once in a cycle of at most 1 / (1 - discount) rounds, and is then given what the prior
    has lost since: the precision that comes from the prior stays between 1/e of itself and all of it.
    """
    r, d = F.shape
    count = min(d, math.ceil(d * (1.0 - discount)))
    cycle = (d + count - 1) // count
    lost = 1.0 - discount**cycle
    first = (t % cycle) * count
    last = min(first + count, d)
    longer = np.zeros((r + last - first, d))
    for i in range(r):
        for a in range(d):
            longer[i, a] = F[i, a]
    for a in range(first, last):
        longer[r + a - first, a] = math.sqrt(lost * prior[1, a])
        g[0, a] += lost * prior[1, a] * (prior[0, a] - theta[a])
    return longer


@_compiled
def _gain_precision(F: Floats, g: Floats, discount: float, step: float, theta: Floats, A: Floats, P: Floats) -> int:
    """A becomes discount A + F'F, P its inverse, and theta gains step P g: O(k d^2)."""
    r, d = F.shape
    if not (_squares_are_finite(F) and _squares_are_finite(g)):
        return NOT_FINITE
    new_theta = np.empty((1, d))
    if d > r:
        V, M = np.zeros((r, d)), np.zeros((r, r))
        scaled = F if discount == 1.0 else F / math.sqrt(discount)
        if _shrinking(scaled, _columns(scaled), P, V, M):
            _move(g, step / discount, theta, P, V, new_theta)
            if not (_squares_are_finite(V) and _squares_are_finite(new_theta)):
                return NOT_FINITE
            _shrink(P, V)
            if discount != 1.0:
                P /= discount
                A *= discount
            F_columns = _columns(F)
            for a in range(d):
                _add_rows(A, a, F_columns, a, F, 0, r)
                theta[a] = new_theta[0, a]
            return OK
    new_A, new_P = discount * A, np.empty((d, d))
    F_columns = _columns(F)
    for a in range(d):
        _add_rows(new_A, a, F_columns, a, F, 0, r)
    if not _invert(new_A, new_P):
        return NOT_FINITE
    _move(g, step, theta, new_P, np.empty((0, d)), new_theta)
    if not (_squares_are_finite(new_P) and _squares_are_finite(new_theta)):
        return NOT_FINITE
    for a in range(d):
        theta[a] = new_theta[0, a]
        for b in range(d):
            A[a, b] = new_A[a, b]
            P[a, b] = new_P[a, b]
    return OK


@_compiled
def _move(g: Floats, step: float, theta: Floats, P: Floats, V: Floats, new_theta: Floats) -> None:
    """new_theta = theta + step (P - V'V) g."""
    r, d = V.shape
    moved = np.zeros((1, d))
    _add_rows(moved, 0, g, 0, P, 0, d)
    for i in range(r):
        share = 0.0
        for a in range(d):
            share += V[i, a] * g[0, a]
        for a in range(d):
            moved[0, a] -= share * V[i, a]
    for a in range(d):
        new_theta[0, a] = theta[a] + step * moved[0, a]


@_compiled
def learn_newton(
    numbers: Floats, k: int, ranking: Integers, prior: Floats, discount: float, t: int, estimate: Floats
) -> int:
    """One online Newton step: A gains minus the Hessian at theta, P = inv(A), theta gains P times the gradient.

    The rows of `estimate` are theta, then those of A and P; the rows of `prior` its mean and its precision.
    """
    d = estimate.shape[1]
    ranked = rank_rows(numbers, k, d, ranking)
    theta, A, P = estimate[0], estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    p = stage_probabilities(utilities(ranked, theta), ranking.shape[0])
    g = gradient(ranked, p)
    F = curvature_factor(ranked, p)
    if discount < 1.0:
        F = _with_prior(F, g, theta, prior, discount, t)
    return _gain_precision(F, g, discount, 1.0, theta, A, P)


@_compiled
def mirror_step(numbers: Floats, k: int, ranking: Integers, eta: float, estimate: Floats) -> Floats:
    """The step of online mirror descent, before projection: theta + eta inv(A + eta F'F) g, with F and g at theta."""
    d = estimate.shape[1]
    ranked = rank_rows(numbers, k, d, ranking)
    theta, P = estimate[0], estimate[1 + d : 1 + 2 * d].copy()
    p = stage_probabilities(utilities(ranked, theta), ranking.shape[0])
    F = math.sqrt(eta) * curvature_factor(ranked, p)
    r = F.shape[0]
    V, M = np.zeros((r, d)), np.zeros((r, r))
    new_theta: Floats = np.full((1, d), np.nan)
    if _shrinking(F, _columns(F), P, V, M):
        _move(gradient(ranked, p), eta, theta, P, V, new_theta)
    return new_theta.reshape(d)


@_compiled
def learn_curvature(numbers: Floats, k: int, ranking: Integers, theta: Floats, estimate: Floats) -> int:
    """Take over theta; A gains minus the Hessian at it. Rows of `estimate` as for `learn_newton`."""
    d = estimate.shape[1]
    ranked = rank_rows(numbers, k, d, ranking)
    A, P = estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    F = curvature_factor(ranked, stage_probabilities(utilities(ranked, theta), ranking.shape[0]))
    status = _gain_precision(F, np.zeros((1, d)), 1.0, 0.0, theta.copy(), A, P)
    if status == OK:
        for a in range(d):
            estimate[0, a] = theta[a]
    return status


@_compiled
def gain_gram(rows: Floats, A: Floats, P: Floats) -> int:
    """A gains the sum of xx' over the rows, P = inv(A)."""
    d = A.shape[0]
    return _gain_precision(rows, np.zeros((1, d)), 1.0, 0.0, np.zeros(d), A, P)


@_compiled
def learn_rewards(rows: Floats, rewards: Floats, b: Floats, estimate: Floats) -> int:
    """Ridge regression: A gains the sum of xx', b that of reward x, and theta = P b. Rows of `estimate` as above."""
    k, d = rows.shape
    A, P = estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    new_b = np.zeros((1, d))
    for a in range(d):
        new_b[0, a] = b[a]
        for i in range(k):
            new_b[0, a] += rewards[i] * rows[i, a]
    theta = np.zeros(d)
    status = _gain_precision(rows, new_b, 1.0, 1.0, theta, A, P)
    if status == OK:
        for a in range(d):
            b[a] = new_b[0, a]
            estimate[0, a] = theta[a]
    return status


# --- maximum likelihood over the whole history ------------------------------------------------------------------------


@_compiled
def log_posterior(
    history: Floats, sizes: Integers, lengths: Integers, outcomes: int, prior: Floats, theta: Floats
) -> float:
    """Log-likelihood of all outcomes plus the logarithm of the Gaussian prior, up to a constant.

    Outcome t has sizes[t] rows in `history`, ranked, of which lengths[t] were placed; the rows of `prior` are its mean
    and its precision.
    """
    total = 0.0
    for a in range(theta.shape[0]):
        total -= 0.5 * prior[1, a] * (theta[a] - prior[0, a]) ** 2
    last = 0
    for t in range(outcomes):
        last += sizes[t]
        largest, sum_of_exponentials = -np.inf, 0.0  # of the arms still running, from the last one on
        for i in range(sizes[t]):
            u = _product(history, last - 1 - i, theta)
            if u > largest:
                sum_of_exponentials = sum_of_exponentials * math.exp(largest - u) + 1.0
                largest = u
            else:
                sum_of_exponentials += math.exp(u - largest)
            if i >= sizes[t] - lengths[t]:
                total += u - largest - math.log(sum_of_exponentials)
    return total


@_compiled
def metropolis(
    history: Floats,
    sizes: Integers,
    lengths: Integers,
    outcomes: int,
    prior: Floats,
    estimate: Floats,
    tails: float,
    proposals: Floats,
    chances: Floats,
    draw: Floats,
    drawn: Floats,
) -> None:
    """Metropolis-Hastings steps from `draw` on, with independent proposals from a t distribution around theta.

    A proposal is taken if its chance, the logarithm of a uniform number, allows; `drawn` takes every so many steps, as
    many as it has rows. Rows of `estimate` as for `maximise_posterior`; P and `tails` degrees of
    freedom shape the proposals.
    """
    d = draw.shape[0]
    steps = proposals.shape[0] // drawn.shape[0]
    weight = -np.inf
    for step in range(-1, proposals.shape[0]):
        theta = draw if step < 0 else proposals[step]
        proposed = log_posterior(history, sizes, lengths, outcomes, prior, theta)
        square = 0.0
        for a in range(d):
            for b in range(d):
                square += (theta[a] - estimate[0, a]) * estimate[1 + a, b] * (theta[b] - estimate[0, b])
        proposed += 0.5 * (tails + d) * math.log1p(square / tails)  # over the density of the proposal
        if step < 0 or chances[step] < proposed - weight:
            weight = proposed
            for a in range(d):
                draw[a] = theta[a]
        if step >= 0:
            for a in range(d):
                drawn[step // steps, a] = draw[a]


@_compiled
def _slopes(
    history: Floats, sizes: Integers, lengths: Integers, outcomes: int, theta: Floats, g: Floats, A: Floats
) -> None:
    """Add the gradient and minus the Hessian of the log-likelihood of all outcomes at theta to g and A."""
    d = theta.shape[0]
    mu = np.empty(d)
    first = 0
    for t in range(outcomes):
        k = sizes[t]
        u = np.empty(k)
        for i in range(k):
            u[i] = _product(history, first + i, theta)
        normalisers = stage_normalisers(u, lengths[t])
        for s in range(lengths[t]):
            for a in range(d):
                mu[a] = 0.0
            for i in range(s, k):
                share = math.exp(u[i] - normalisers[s])
                for a in range(d):
                    mu[a] += share * history[first + i, a]
            for a in range(d):
                g[a] += history[first + s, a] - mu[a]
            for i in range(s, k):
                share = math.exp(u[i] - normalisers[s])
                for a in range(d):
                    x = share * (history[first + i, a] - mu[a])
                    if x != 0.0:
                        for b in range(d):
                            A[a, b] += x * (history[first + i, b] - mu[b])
        first += k


@_compiled
def maximise_posterior(
    history: Floats,
    sizes: Integers,
    lengths: Integers,
    outcomes: int,
    prior: Floats,
    tolerance: float,
    most_steps: int,
    estimate: Floats,
) -> int:
    """Newton's method with halved steps from theta on, until a step is below `tolerance`; answers the steps taken.

    The last step is taken too, so that the error is of the order of its square. The rows of `estimate` are theta, then
    those of A, minus the Hessian before that step, and of P = inv(A); those of `prior` its
    mean and its precision.
    """
    d = estimate.shape[1]
    theta, A, P = estimate[0].copy(), np.empty((d, d)), np.empty((d, d))
    value = log_posterior(history, sizes, lengths, outcomes, prior, theta)
    for step in range(most_steps):
        g = prior[1] * (prior[0] - theta)
        A[:] = 0.0
        for a in range(d):
            A[a, a] = prior[1, a]
        _slopes(history, sizes, lengths, outcomes, theta, g, A)
        if not _invert(A, P):
            return -1
        moved = np.zeros((1, d))
        _add_rows(moved, 0, g.reshape((1, d)), 0, P, 0, d)
        largest = np.abs(moved).max()
        if not math.isfinite(largest):
            return -1
        length = 1.0
        new_theta = theta + moved[0]
        if largest > tolerance:
            new_value = log_posterior(history, sizes, lengths, outcomes, prior, new_theta)
            while length > 1e-18 and not new_value >= value:  # where all is flat, a full step goes very far
                length *= 0.5
                new_theta = theta + length * moved[0]
                new_value = log_posterior(history, sizes, lengths, outcomes, prior, new_theta)
            value = new_value
        theta = new_theta
        if largest <= tolerance or step + 1 == most_steps:
            estimate[0] = theta
            estimate[1 : 1 + d] = A
            estimate[1 + d :] = P
            return step + 1
    return 0


# --- context-free Plackett-Luce by minorise-maximise ------------------------------------------------------------------


@_compiled
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
    """Hunter's (2004) update, in place, until no worth moves by more than `tolerance` relatively; answers the sweeps.

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
