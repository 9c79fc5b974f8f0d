"""One step of averaged SGD, with the covariances that CPPL keeps."""

import numpy as np

from preselect.compiling import fused, helper, inlined
from preselect.kernels.algebra import (
    add_product,
    add_rows,
    invert,
    scaled_transpose,
    solve_shrinkage,
    squares_are_finite,
)
from preselect.kernels.plackett_luce import differentiate, gradient_of_ranking, rank_rows, utilities
from preselect.kernels.types import IMPRECISE, NOT_FINITE, OK, Floats, Integers


@helper
def _averaged_step(ranked: Floats, ranking: Integers, step: float, t: int, estimate: Floats) -> Floats:
    """The next SGD iterate and the next running average, as the rows of a new array."""
    d = ranked.shape[1]
    g = gradient_of_ranking(ranked, utilities(ranked, estimate[0]), ranking)
    new = np.empty((2, d))
    for a in range(d):
        new[0, a] = estimate[0, a] + step * g[0, a]  # Eq. (10), right; line 8 of Algorithm 1
        new[1, a] = ((t - 1) * estimate[1, a] + new[0, a]) / t  # Eq. (10), left
    return new


@fused
def learn_average(rows: Floats, ranking: Integers, step: float, t: int, estimate: Floats) -> int:
    """One step of averaged SGD. The rows of `estimate` are theta_hat and theta_bar."""
    ranked = rank_rows(rows, ranking)
    new = _averaged_step(ranked, ranking, step, t, estimate)
    if not squares_are_finite(new):
        return NOT_FINITE
    for a in range(estimate.shape[1]):
        estimate[0, a], estimate[1, a] = new[0, a], new[1, a]
    return OK


@helper
def _sandwich(B: Floats, P: Floats, Sigma: Floats) -> bool:
    """Sigma = P B P; False if it is not finite."""
    half = np.zeros(P.shape)
    add_product(half, P, B)
    Sigma[:] = 0.0
    add_product(Sigma, half, P)
    return squares_are_finite(Sigma)


@helper
def _update(F: Floats, F_columns: Floats, g: Floats, P: Floats, Sigma: Floats) -> bool:
    """P and Sigma after A gains F'F and B gains gg': O(k d^2). False, and nothing changed, if rounding prevents it.

    With V and L of `solve_shrinkage`, the new P is P - V'V = (I - G'F) P, where L'G = V. Hence the new P B P is
    Sigma - G'Z - Z'G with Z = F Sigma - (F Sigma F') G / 2, and gg' adds hh' to it, where h = P g.
    """
    r, d = F.shape
    V, M, N = np.zeros((r, d)), np.zeros((r, r)), np.zeros((r, r))
    terms = np.zeros((2 * r + 1, d))
    G, Z, h = terms[:r], terms[r : 2 * r], terms[2 * r :]
    if not solve_shrinkage(F, F_columns, P, V, M):
        return False
    add_product(Z, F, Sigma)
    add_product(N, Z, F_columns)
    for i in range(r):
        for a in range(d):
            G[i, a] = V[i, a]
        for j in range(r):
            N[i, j] *= -0.5
    for i in range(r - 1, -1, -1):
        add_rows(G, i, M, G, i + 1, r)
        for a in range(d):
            G[i, a] *= M[i, i]
    add_product(Z, N, G)
    if not squares_are_finite(terms):
        return False
    add_product(P, scaled_transpose(V, -1.0), V)
    add_product(h, g, P)
    weights = np.empty((d, 2 * r + 1))
    for a in range(d):
        for j in range(r):
            weights[a, j] = -Z[j, a]
            weights[a, r + j] = -G[j, a]
        weights[a, 2 * r] = h[0, a]
    add_product(Sigma, weights, terms)
    return True


@inlined
def _add_sums(A: Floats, B: Floats, F: Floats, F_columns: Floats, g: Floats) -> None:
    """A gains F'F, B gains gg'."""
    add_product(A, F_columns, F)
    for a in range(A.shape[0]):
        for b in range(A.shape[0]):
            B[a, b] += g[0, a] * g[0, b]


@inlined
def _step_and_slopes(
    rows: Floats, ranking: Integers, step: float, t: int, estimate: Floats
) -> tuple[bool, Floats, Floats, Floats]:
    """The next theta_hat and theta_bar, gradient and curvature factor there, and whether all of it is finite."""
    ranked = rank_rows(rows, ranking)
    theta = _averaged_step(ranked, ranking, step, t, estimate)
    g, F = differentiate(ranked, utilities(ranked, theta[1]), ranking)
    return squares_are_finite(theta) and squares_are_finite(F) and squares_are_finite(g), theta, g, F


@inlined
def _set_theta(estimate: Floats, theta: Floats) -> None:
    for a in range(estimate.shape[1]):
        estimate[0, a], estimate[1, a] = theta[0, a], theta[1, a]


@fused
def update_sandwich(rows: Floats, ranking: Integers, step: float, t: int, estimate: Floats) -> int:
    """One step of averaged SGD, with A = sum of -Hessians, B = sum of gg', P = inv(A), Sigma = P B P.

    The rows of `estimate` are theta_hat, theta_bar, then those of A, B, P and Sigma. P and Sigma are updated, in
    O(k d^2). IMPRECISE, and nothing changed, if that loses too many digits.
    """
    d = estimate.shape[1]
    finite, theta, g, F = _step_and_slopes(rows, ranking, step, t, estimate)
    if not finite:
        return NOT_FINITE
    A, B = estimate[2 : 2 + d], estimate[2 + d : 2 + 2 * d]
    P, Sigma = estimate[2 + 2 * d : 2 + 3 * d], estimate[2 + 3 * d : 2 + 4 * d]
    F_columns = scaled_transpose(F, 1.0)
    if not _update(F, F_columns, g, P, Sigma):
        return IMPRECISE
    _add_sums(A, B, F, F_columns, g)
    _set_theta(estimate, theta)
    return OK


@fused
def recompute_sandwich(rows: Floats, ranking: Integers, step: float, t: int, estimate: Floats) -> int:
    """As `update_sandwich`, but recomputes P and Sigma, in O(d^3): exact, and cheaper if d <= 2 (k - 1)."""
    d = estimate.shape[1]
    finite, theta, g, F = _step_and_slopes(rows, ranking, step, t, estimate)
    if not finite:
        return NOT_FINITE
    new = estimate[2:].copy()
    A, B, P, Sigma = new[:d], new[d : 2 * d], new[2 * d : 3 * d], new[3 * d :]
    _add_sums(A, B, F, scaled_transpose(F, 1.0), g)
    if not (invert(A, P) and _sandwich(B, P, Sigma)):
        return NOT_FINITE
    for a in range(4 * d):
        for b in range(d):
            estimate[2 + a, b] = new[a, b]
    _set_theta(estimate, theta)
    return OK
