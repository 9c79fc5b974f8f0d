"""Small dense linear algebra: rows added up, positive definite matrices inverted and updated."""

import math

import numpy as np

from preselect.compiling import fused, reordered
from preselect.kernels.types import NOT_FINITE, OK, Floats, Matrix


@reordered
def product(X: Matrix, i: int, y: Floats) -> float:
    """x_i'y, where x_i is row i of X."""
    total = 0.0
    for j in range(y.shape[0]):
        total += X[i, j] * y[j]
    return total


@fused
def add_rows(out: Floats, i: int, W: Floats, l: int, S: Floats, first: int, last: int) -> None:
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


@reordered
def squares_are_finite(values: Floats) -> bool:
    """Whether all values are finite and small enough for their products to be so."""
    total = 0.0
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            total += values[a, b] * values[a, b]
    return math.isfinite(total)


@fused
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


@fused
def columns(F: Floats) -> Floats:
    """The transpose of F, in memory order."""
    r, d = F.shape
    columns = np.empty((d, r))
    for a in range(d):
        for i in range(r):
            columns[a, i] = F[i, a]
    return columns


@fused
def invert(A: Floats, P: Floats) -> bool:
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


@fused
def shrinking(F: Floats, F_columns: Floats, P: Floats, V: Floats, M: Floats) -> bool:
    """V such that P - V'V = inv(inv(P) + F'F): with I + F P F' = L L', L V = F P (Woodbury). M then holds L, factored.

    V and M come in as zeros. False if precision does not allow.
    """
    r, d = F.shape
    for i in range(r):
        add_rows(V, i, F, i, P, 0, d)
        add_rows(M, i, V, i, F_columns, 0, d)
    if not _factor(M):
        return False
    for i in range(r):
        add_rows(V, i, M, i, V, 0, i)
        for a in range(d):
            V[i, a] *= M[i, i]
    return True


@fused
def shrink(P: Floats, V: Floats) -> None:
    """P loses V'V."""
    r, d = V.shape
    weights = np.empty((1, r))
    for a in range(d):
        for j in range(r):
            weights[0, j] = -V[j, a]
        add_rows(P, a, weights, 0, V, 0, r)


@fused
def move(g: Floats, step: float, theta: Floats, P: Floats, V: Floats, new_theta: Floats) -> None:
    """new_theta = theta + step (P - V'V) g."""
    r, d = V.shape
    moved = np.zeros((1, d))
    add_rows(moved, 0, g, 0, P, 0, d)
    for i in range(r):
        share = 0.0
        for a in range(d):
            share += V[i, a] * g[0, a]
        for a in range(d):
            moved[0, a] -= share * V[i, a]
    for a in range(d):
        new_theta[0, a] = theta[a] + step * moved[0, a]


@fused
def gain_precision(F: Floats, g: Floats, discount: float, step: float, theta: Floats, A: Floats, P: Floats) -> int:
    """A becomes discount A + F'F, P its inverse, and theta gains step P g: O(k d^2)."""
    r, d = F.shape
    if not (squares_are_finite(F) and squares_are_finite(g)):
        return NOT_FINITE
    new_theta = np.empty((1, d))
    if d > r:
        V, M = np.zeros((r, d)), np.zeros((r, r))
        scaled = F if discount == 1.0 else F / math.sqrt(discount)
        if shrinking(scaled, columns(scaled), P, V, M):
            move(g, step / discount, theta, P, V, new_theta)
            if not (squares_are_finite(V) and squares_are_finite(new_theta)):
                return NOT_FINITE
            shrink(P, V)
            if discount != 1.0:
                P /= discount
                A *= discount
            F_columns = columns(F)
            for a in range(d):
                add_rows(A, a, F_columns, a, F, 0, r)
                theta[a] = new_theta[0, a]
            return OK
    new_A, new_P = discount * A, np.empty((d, d))
    F_columns = columns(F)
    for a in range(d):
        add_rows(new_A, a, F_columns, a, F, 0, r)
    if not invert(new_A, new_P):
        return NOT_FINITE
    move(g, step, theta, new_P, np.empty((0, d)), new_theta)
    if not (squares_are_finite(new_P) and squares_are_finite(new_theta)):
        return NOT_FINITE
    for a in range(d):
        theta[a] = new_theta[0, a]
        for b in range(d):
            A[a, b] = new_A[a, b]
            P[a, b] = new_P[a, b]
    return OK
