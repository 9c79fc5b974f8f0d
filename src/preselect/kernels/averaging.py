"""One step of averaged SGD, with the covariances that CPPL keeps."""

import numpy as np

from preselect.compiling import fused
from preselect.kernels.algebra import add_rows, columns, invert, shrink, shrinking, squares_are_finite
from preselect.kernels.likelihood import curvature_factor, gradient, rank_rows, stage_probabilities, utilities
from preselect.kernels.types import NOT_FINITE, OK, Floats, Integers


@fused
def _averaged_step(ranked: Floats, m: int, step: float, t: int, estimate: Floats) -> Floats:
    """The next SGD iterate and the next running average, as the rows of a new array."""
    d = ranked.shape[1]
    g = gradient(ranked, stage_probabilities(utilities(ranked, estimate[0]), m))
    new = np.empty((2, d))
    for a in range(d):
        new[0, a] = estimate[0, a] + step * g[0, a]
        new[1, a] = ((t - 1) * estimate[1, a] + new[0, a]) / t
    return new


@fused
def learn_average(rows: Floats, ranking: Integers, step: float, t: int, estimate: Floats) -> int:
    """One round of averaged SGD. The rows of `estimate` are theta_hat and theta_bar."""
    ranked = rank_rows(rows, ranking)
    new = _averaged_step(ranked, ranking.shape[0], step, t, estimate)
    if not squares_are_finite(new):
        return NOT_FINITE
    estimate[:] = new
    return OK


@fused
def _sandwich(B: Floats, P: Floats, Sigma: Floats) -> bool:
    """Sigma = P B P; False if it is not finite."""
    d = B.shape[0]
    half = np.zeros(P.shape)
    Sigma[:] = 0.0
    for a in range(d):
        add_rows(half, a, P, a, B, 0, d)
        add_rows(Sigma, a, half, a, P, 0, d)
    return squares_are_finite(Sigma)


@fused
def _update(F: Floats, F_columns: Floats, g: Floats, P: Floats, Sigma: Floats) -> bool:
    """P and Sigma after A gains F'F and B gains gg': O(k d^2). False, and nothing changed, if precision does not allow.

    With V and L of `shrinking`, the new P is P - V'V = (I - G'F) P, where L'G = V. Hence the new P B P is
    Sigma - G'Z - Z'G with Z = F Sigma - (F Sigma F') G / 2, and gg' adds hh' to it, where h = P g.
    """
    r, d = F.shape
    V = np.zeros((r, d))
    terms = np.zeros((2 * r + 1, d))  # the rows of G, of Z, and h
    M = np.zeros((r, r))
    N = np.zeros((r, r))
    if not shrinking(F, F_columns, P, V, M):
        return False
    for i in range(r):
        add_rows(terms, r + i, F, i, Sigma, 0, d)
        add_rows(N, i, terms, r + i, F_columns, 0, d)
        for a in range(d):
            terms[i, a] = V[i, a]
    for i in range(r - 1, -1, -1):
        add_rows(terms, i, M, i, terms, i + 1, r)
        for a in range(d):
            terms[i, a] *= M[i, i]
    for i in range(r):
        for j in range(r):
            N[i, j] *= -0.5
        add_rows(terms, r + i, N, i, terms, 0, r)
    if not squares_are_finite(terms):
        return False
    shrink(P, V)
    add_rows(terms, 2 * r, g, 0, P, 0, d)
    weights = np.empty((1, 2 * r + 1))
    for a in range(d):
        for j in range(r):
            weights[0, j] = -terms[r + j, a]
            weights[0, r + j] = -terms[j, a]
        weights[0, 2 * r] = terms[2 * r, a]
        add_rows(Sigma, a, weights, 0, terms, 0, 2 * r + 1)
    return True


@fused
def _add_sums(A: Floats, B: Floats, F: Floats, F_columns: Floats, g: Floats) -> None:
    """A gains F'F, B gains gg'."""
    for a in range(A.shape[0]):
        add_rows(A, a, F_columns, a, F, 0, F.shape[0])
        for b in range(A.shape[0]):
            B[a, b] += g[0, a] * g[0, b]


@fused
def learn_sandwich(rows: Floats, ranking: Integers, step: float, t: int, estimate: Floats) -> int:
    """One round of averaged SGD, and of A = sum of -Hessians, B = sum of gg', P = inv(A), Sigma = P B P.

    The rows of `estimate` are theta_hat, theta_bar, then those of A, B, P and Sigma.
    """
    d = estimate.shape[1]
    ranked = rank_rows(rows, ranking)
    m = ranking.shape[0]
    theta = _averaged_step(ranked, m, step, t, estimate)
    p = stage_probabilities(utilities(ranked, theta[1]), m)
    g = gradient(ranked, p)
    F = curvature_factor(ranked, p)
    if not (squares_are_finite(theta) and squares_are_finite(F) and squares_are_finite(g)):
        return NOT_FINITE
    F_columns = columns(F)
    A, B = estimate[2 : 2 + d], estimate[2 + d : 2 + 2 * d]
    P, Sigma = estimate[2 + 2 * d : 2 + 3 * d], estimate[2 + 3 * d : 2 + 4 * d]
    if d > 2 * F.shape[0] and _update(F, F_columns, g, P, Sigma):
        _add_sums(A, B, F, F_columns, g)
    else:  # recomputing is cheaper, and exact; or updating has failed
        new_A, new_B, new_P, new_Sigma = A.copy(), B.copy(), np.empty((d, d)), np.empty((d, d))
        _add_sums(new_A, new_B, F, F_columns, g)
        if not (invert(new_A, new_P) and _sandwich(new_B, new_P, new_Sigma)):
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
