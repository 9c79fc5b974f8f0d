"""Small dense linear algebra: multiply matrices; invert and update positive definite matrices."""

import math
from typing import cast

import numpy as np

from preselect.compiling import embedded, helper, inlined, reordered
from preselect.kernels.types import IMPRECISE, NOT_FINITE, OK, Floats

_FIRST = cast(int, np.int64(0))  # numba gives a plain 0 a type of its own, and would compile add_rows again for it


@reordered
def squares_are_finite(values: Floats) -> bool:
    """Whether all values are finite and small enough for their products to be so."""
    total = 0.0
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            total += values[a, b] * values[a, b]
    return math.isfinite(total)


@embedded
def add_rows(out: Floats, i: int, W: Floats, S: Floats, first: int, last: int) -> None:
    """out[i] += sum of W[i, j] S[j] over first <= j < last, four rows at a time; zero weights (one-hot arms) are free.

    Most of the work of learning is done here. It takes row numbers because a slice costs two atomic operations on its
    owner. They are unsigned because a signed index is checked for being negative.
    """
    row, j, end = np.uint64(i), np.uint64(first), np.uint64(last)
    one, four = np.uint64(1), np.uint64(4)
    columns = np.uint64(out.shape[1])
    while j + four <= end:
        j1, j2, j3 = j + one, j + one + one, j + one + one + one
        w0, w1, w2, w3 = W[row, j], W[row, j1], W[row, j2], W[row, j3]
        if w0 != 0.0 or w1 != 0.0 or w2 != 0.0 or w3 != 0.0:
            for b in range(columns):
                out[row, b] += w0 * S[j, b] + w1 * S[j1, b] + w2 * S[j2, b] + w3 * S[j3, b]
        j += four
    if j + one < end:  # two or three are left: added one after the other as below, in one pass
        j1, j2 = j + one, end - one
        w0, w1, w2 = W[row, j], W[row, j1], W[row, j2]
        if w0 != 0.0 and w1 != 0.0 and w2 != 0.0:
            for b in range(columns):
                total = out[row, b] + w0 * S[j, b]
                total += w1 * S[j1, b]
                if j2 != j1:
                    total += w2 * S[j2, b]
                out[row, b] = total
            j = end
    while j < end:
        w0 = W[row, j]
        if w0 != 0.0:
            for b in range(columns):
                out[row, b] += w0 * S[j, b]
        j += one


@helper
def add_product(out: Floats, W: Floats, S: Floats) -> None:
    """Add W S to out."""
    for i in range(out.shape[0]):
        add_rows(out, i, W, S, _FIRST, S.shape[0])


@helper
def scaled_transpose(F: Floats, scale: float) -> Floats:
    """The transpose of F times a number, in memory order."""
    r, d = F.shape
    out = np.empty((d, r))
    for a in range(d):
        for i in range(r):
            out[a, i] = scale * F[i, a]
    return out


@helper
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


@helper
def invert(A: Floats, P: Floats) -> bool:
    """P = inv(A) by Gauss-Jordan elimination, stable if A is positive definite: O(d^3).

    It works without blocking, for d so small that this is less work than an update. False if A is not positive definite
    to working precision.
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


@helper
def solve_lower(M: Floats, V: Floats) -> None:
    """Replace V by inv(L) V, where M holds L as `_factor` leaves it."""
    for i in range(V.shape[0]):
        add_rows(V, i, M, V, _FIRST, i)
        for a in range(V.shape[1]):
            V[i, a] *= M[i, i]


@helper
def solve_shrinkage(F: Floats, F_columns: Floats, P: Floats, V: Floats, M: Floats) -> bool:
    """V with P - V'V = inv(inv(P) + F'F): with I + F P F' = L L', L V = F P (Woodbury). M then holds L, factored.

    V and M must be zero. Returns False if rounding prevents it.
    """
    add_product(V, F, P)
    add_product(M, V, F_columns)
    if not _factor(M):
        return False
    solve_lower(M, V)
    return True


@helper
def move(g: Floats, step: float, theta: Floats, P: Floats, V: Floats) -> Floats:
    """Return theta + step (P - V'V) g, as a single row."""
    r, d = V.shape
    moved = np.zeros((1, d))
    add_product(moved, g, P)
    for i in range(r):
        share = 0.0
        for a in range(d):
            share += V[i, a] * g[0, a]
        for a in range(d):
            moved[0, a] -= share * V[i, a]
    for a in range(d):
        moved[0, a] = theta[a] + step * moved[0, a]
    return moved


@inlined
def find_step(
    F: Floats, g: Floats, discount: float, step: float, theta: Floats, P: Floats, V: Floats
) -> tuple[int, Floats]:
    """V with P - V'V = inv(inv(P) + F'F / discount), and the row theta + step / discount (P - V'V) g.

    Nothing else is changed. V must be zero. NOT_FINITE if any of it overflows, IMPRECISE if rounding prevents it.
    """
    r, d = F.shape
    if not (squares_are_finite(F) and squares_are_finite(g)):
        return NOT_FINITE, g
    scaled = F
    if discount != 1.0:
        scaled = np.empty((r, d))
        for i in range(r):
            for a in range(d):
                scaled[i, a] = F[i, a] / math.sqrt(discount)
    if not solve_shrinkage(scaled, scaled_transpose(scaled, 1.0), P, V, np.zeros((r, r))):
        return IMPRECISE, g
    new_theta = move(g, step / discount, theta, P, V)
    return OK if squares_are_finite(V) and squares_are_finite(new_theta) else NOT_FINITE, new_theta


@inlined
def _update_precision(F: Floats, g: Floats, discount: float, step: float, theta: Floats, A: Floats, P: Floats) -> int:
    """As `gain_precision`, by updating P in O(k d^2), for F with fewer rows than columns; may be IMPRECISE."""
    r, d = F.shape
    V = np.zeros((r, d))
    status, new_theta = find_step(F, g, discount, step, theta, P, V)
    if status != OK:
        return status
    add_product(P, scaled_transpose(V, -1.0), V)
    if discount != 1.0:
        for a in range(d):
            for b in range(d):
                P[a, b] /= discount
                A[a, b] *= discount
    add_product(A, scaled_transpose(F, 1.0), F)
    for a in range(d):
        theta[a] = new_theta[0, a]
    return OK


@inlined
def _recompute_precision(
    F: Floats, g: Floats, discount: float, step: float, theta: Floats, A: Floats, P: Floats
) -> int:
    """As `gain_precision`, by inverting the new A: exact, and less work if F has many rows."""
    if not (squares_are_finite(F) and squares_are_finite(g)):
        return NOT_FINITE
    d = F.shape[1]
    new_A, new_P = np.empty((d, d)), np.empty((d, d))
    for a in range(d):
        for b in range(d):
            new_A[a, b] = discount * A[a, b]
    add_product(new_A, scaled_transpose(F, 1.0), F)
    if not invert(new_A, new_P):
        return NOT_FINITE
    new_theta = move(g, step, theta, new_P, np.empty((0, d)))
    if not (squares_are_finite(new_P) and squares_are_finite(new_theta)):
        return NOT_FINITE
    for a in range(d):
        theta[a] = new_theta[0, a]
        for b in range(d):
            A[a, b] = new_A[a, b]
            P[a, b] = new_P[a, b]
    return OK


@helper
def gain_precision(F: Floats, g: Floats, discount: float, step: float, theta: Floats, A: Floats, P: Floats) -> int:
    """A becomes discount A + F'F, P its inverse, and theta gains step P g."""
    status = IMPRECISE
    if F.shape[1] > F.shape[0]:
        status = _update_precision(F, g, discount, step, theta, A, P)
    if status == IMPRECISE:
        status = _recompute_precision(F, g, discount, step, theta, A, P)
    return status
