"""One step of a second-order learner: online Newton, mirror descent, ridge regression."""

import math

import numpy as np

from preselect.compiling import fused, helper
from preselect.kernels.algebra import (
    add_product,
    find_step,
    gain_precision,
    move,
    scaled_transpose,
    solve_lower,
    solve_shrinkage,
    squares_are_finite,
)
from preselect.kernels.plackett_luce import (
    differentiate,
    log_likelihood,
    offset_utilities,
    product,
    rank_rows,
    slopes,
)
from preselect.kernels.types import IMPRECISE, LONG, NOT_FINITE, OK, ROUNDING, Floats, Integers

_LONG_STEP = 2.0  # a Newton step is trusted if it changes no difference of log-utilities by more
_CLOSE = 1e-2  # steps end at one whose square is less, in standard deviations of the belief
_MOST_STEPS = 50
_NO_OFFSETS = np.empty(0)


@helper
def _solve_outcome(v: Floats, ranking: Integers, K: Floats, c: Floats, C: Floats, M: Floats) -> int:
    """The utilities that are most likely after an outcome, v + K c, where they were Gaussian before.

    v, the mean, and K, the covariance, are those of the utilities relative to the last arm's. Newton's method, its
    steps halved where the likelihood is so flat that they would go too far. C receives the factor of the curvature
    before the last step, M the factor of I + C K C'; c must be zero. IMPRECISE if rounding prevents it.
    """
    r = v.shape[0]
    relative = np.zeros((r + 1, r))  # the rows of the arms, in these coordinates
    u, new_u, new_c = np.zeros(r + 1), np.zeros(r + 1), np.empty(r)
    for i in range(r):
        relative[i, i] = 1.0
        u[i] = v[i]
    value = log_likelihood(u, ranking)
    for _ in range(_MOST_STEPS):
        g, factor = differentiate(relative, u, ranking)
        for i in range(r):
            g[0, i] -= c[i]
        C[:] = factor
        V = np.zeros((r, r))
        M[:] = 0.0
        if not solve_shrinkage(C, scaled_transpose(C, 1.0), K, V, M):
            return IMPRECISE
        moved = move(g, 1.0, np.zeros(r), K, V)
        square = product(g, 0, moved[0])
        for i in range(r):  # g becomes the step of c, g - C'C moved
            share = product(C, i, moved[0])
            for j in range(r):
                g[0, j] -= share * C[i, j]
        length, new_value, least = 2.0, -np.inf, value - ROUNDING * abs(value)
        while length > 1e-18 and not new_value >= least:
            length *= 0.5
            loss = 0.0
            for i in range(r):
                new_u[i] = u[i] + length * moved[0, i]
                new_c[i] = c[i] + length * g[0, i]
                loss += 0.5 * new_c[i] * (new_u[i] - v[i])
            new_value = log_likelihood(new_u, ranking) - loss
        value = new_value
        for i in range(r):
            u[i], c[i] = new_u[i], new_c[i]
        if square <= _CLOSE and length == 1.0:
            return OK
    return OK


@helper
def _is_long(rows: Floats, theta: Floats, new_theta: Floats) -> bool:
    """Whether differences between the utilities of these rows change by more than `_LONG_STEP`."""
    least, most = np.inf, -np.inf
    for i in range(rows.shape[0]):
        change = product(rows, i, new_theta) - product(rows, i, theta)
        least, most = min(least, change), max(most, change)
    return not most - least <= _LONG_STEP


@fused
def update_newton(rows: Floats, ranking: Integers, offsets: Floats, estimate: Floats) -> int:
    """One online Newton step: A gains minus the Hessian at theta, P = inv(A), theta gains P times the gradient.

    The rows of `estimate` are theta, then those of A and P. P is updated, in O(k d^2). `offsets` is empty, or what is
    added to x'theta, for the arms in the order of the outcome. If the step is long, LONG, and if the update loses too
    many digits, IMPRECISE; then nothing is changed.
    """
    k, d = rows.shape
    theta, A, P = estimate[0], estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    g, F = slopes(rows, ranking, offsets, theta)
    V = np.zeros((k - 1, d))
    status, new_theta = find_step(F, g, 1.0, 1.0, theta, P, V)
    if status != OK:
        return status
    if _is_long(rows, theta, new_theta[0]):
        return LONG
    add_product(P, scaled_transpose(V, -1.0), V)
    add_product(A, scaled_transpose(F, 1.0), F)
    for a in range(d):
        theta[a] = new_theta[0, a]
    return OK


@fused
def proximal_newton(rows: Floats, ranking: Integers, offsets: Floats, estimate: Floats) -> int:
    """As `update_newton`, with steps until theta is at the maximum of belief times likelihood, and the Hessian there.

    Only differences between the arms matter, so the maximum is sought among their utilities, in k - 1 dimensions: the
    steps together cost O(k d^2), too.
    """
    k, d = rows.shape
    theta, A, P = estimate[0], estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    ranked = rank_rows(rows, ranking)
    D = np.empty((k - 1, d))
    for i in range(k - 1):
        for a in range(d):
            D[i, a] = ranked[i, a] - ranked[k - 1, a]
    DP, K = np.zeros((k - 1, d)), np.zeros((k - 1, k - 1))
    add_product(DP, D, P)
    add_product(K, DP, scaled_transpose(D, 1.0))
    if not squares_are_finite(K):
        return NOT_FINITE
    c, C, M = np.zeros((1, k - 1)), np.empty((k - 1, k - 1)), np.empty((k - 1, k - 1))
    last = offsets[k - 1] if offsets.shape[0] > 0 else 0.0
    status = _solve_outcome(offset_utilities(D, theta, offsets[: k - 1] - last), ranking, K, c[0], C, M)
    if status != OK:
        return status
    moved, F, V = np.zeros((1, d)), np.zeros((k - 1, d)), np.zeros((k - 1, d))
    add_product(moved, c, DP)
    add_product(F, C, D)
    add_product(V, C, DP)
    solve_lower(M, V)  # P - V'V = inv(A + F'F)
    for a in range(d):
        moved[0, a] += theta[a]
    if not (squares_are_finite(F) and squares_are_finite(V) and squares_are_finite(moved)):
        return NOT_FINITE
    add_product(P, scaled_transpose(V, -1.0), V)
    add_product(A, scaled_transpose(F, 1.0), F)
    for a in range(d):
        theta[a] = moved[0, a]
    return OK


@fused
def fade(prior: Floats, discount: float, t: int, since: int, estimate: Floats) -> int:
    """Multiply A by `discount`, and restore what the prior has lost by it, for a few features in turn.

    Every feature has its turn once in a cycle of at most 1 / (1 - discount) rounds: the precision that comes from the
    prior stays between 1/e of itself and all of it, as it was `since` outcomes ago. The rows of `prior` are its mean
    and its precision.
    """
    d = estimate.shape[1]
    theta, A, P = estimate[0], estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    count = min(d, math.ceil(d * (1.0 - discount)))
    cycle = (d + count - 1) // count
    lost = 1.0 - discount ** min(cycle, since)
    first = (t % cycle) * count
    last = min(first + count, d)
    F, g = np.zeros((last - first, d)), np.zeros((1, d))
    for a in range(first, last):
        F[a - first, a] = math.sqrt(lost * prior[1, a])
        g[0, a] = lost * prior[1, a] * (prior[0, a] - theta[a])
    return gain_precision(F, g, discount, 1.0, theta, A, P)


@fused
def mirror_step(rows: Floats, ranking: Integers, eta: float, estimate: Floats) -> Floats:
    """The step of online mirror descent, before projection: theta + eta inv(A + eta F'F) g, with F and g at theta."""
    d = estimate.shape[1]
    theta, P = estimate[0], estimate[1 + d : 1 + 2 * d].copy()
    g, F = slopes(rows, ranking, _NO_OFFSETS, theta)
    F = math.sqrt(eta) * F
    r = F.shape[0]
    V, M = np.zeros((r, d)), np.zeros((r, r))
    if solve_shrinkage(F, scaled_transpose(F, 1.0), P, V, M):
        return move(g, eta, theta, P, V).reshape(d)
    return np.full(d, np.nan)


@fused
def learn_curvature(rows: Floats, ranking: Integers, theta: Floats, estimate: Floats) -> int:
    """Take over theta; A gains minus the Hessian at it. Rows of `estimate` as for `update_newton`."""
    d = estimate.shape[1]
    A, P = estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    _, F = slopes(rows, ranking, _NO_OFFSETS, theta)
    status = gain_precision(F, np.zeros((1, d)), 1.0, 0.0, theta.copy(), A, P)
    if status == OK:
        for a in range(d):
            estimate[0, a] = theta[a]
    return status


@fused
def gain_gram(rows: Floats, A: Floats, P: Floats) -> int:
    """A gains the sum of xx' over the rows, P = inv(A)."""
    d = A.shape[0]
    return gain_precision(rows, np.zeros((1, d)), 1.0, 0.0, np.zeros(d), A, P)


@fused
def learn_rewards(rows: Floats, rewards: Floats, b: Floats, estimate: Floats) -> int:
    """Ridge regression: A gains the sum of xx', b that of reward x, theta = P b. `estimate` as for `update_newton`."""
    k, d = rows.shape
    A, P = estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    new_b = np.zeros((1, d))
    for a in range(d):
        new_b[0, a] = b[a]
        for i in range(k):
            new_b[0, a] += rewards[i] * rows[i, a]
    theta = np.zeros(d)
    status = gain_precision(rows, new_b, 1.0, 1.0, theta, A, P)
    if status == OK:
        for a in range(d):
            b[a] = new_b[0, a]
            estimate[0, a] = theta[a]
    return status
