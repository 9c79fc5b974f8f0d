"""One step of a second-order learner: online Newton, mirror descent, ridge regression."""

import math

import numpy as np

from preselect.compiling import fused, helper
from preselect.kernels.algebra import (
    gain_precision,
    move,
    recompute_precision,
    scaled_transpose,
    solve_shrinkage,
    squares_are_finite,
    update_precision,
)
from preselect.kernels.plackett_luce import slopes
from preselect.kernels.types import NOT_FINITE, OK, Floats, Integers


@helper
def _with_prior(F: Floats, g: Floats, theta: Floats, prior: Floats, discount: float, t: int) -> Floats:
    """F and g with a part of the prior that discounting has removed, restored for a few features in turn.

    Every feature has its turn once in a cycle of at most 1 / (1 - discount) rounds and then gets back what the prior
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


@fused
def update_newton(rows: Floats, ranking: Integers, estimate: Floats) -> int:
    """One online Newton step: A gains minus the Hessian at theta, P = inv(A), theta gains P times the gradient.

    The rows of `estimate` are theta, then those of A and P. P is updated, in O(k d^2). IMPRECISE, and nothing changed,
    if that loses too many digits.
    """
    d = estimate.shape[1]
    theta, A, P = estimate[0], estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    g, F = slopes(rows, ranking, theta)
    if not (squares_are_finite(F) and squares_are_finite(g)):
        return NOT_FINITE
    return update_precision(F, g, 1.0, 1.0, theta, A, P)


@fused
def recompute_newton(rows: Floats, ranking: Integers, estimate: Floats) -> int:
    """The same step with P recomputed from A, in O(d^3): exact, and cheaper if d < k."""
    d = estimate.shape[1]
    theta, A, P = estimate[0], estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    g, F = slopes(rows, ranking, theta)
    if not (squares_are_finite(F) and squares_are_finite(g)):
        return NOT_FINITE
    return recompute_precision(F, g, 1.0, 1.0, theta, A, P)


@fused
def discounted_newton(rows: Floats, ranking: Integers, prior: Floats, discount: float, t: int, estimate: Floats) -> int:
    """The same step after A has been multiplied by `discount`; the rows of `prior` are its mean and its precision."""
    d = estimate.shape[1]
    theta, A, P = estimate[0], estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    g, F = slopes(rows, ranking, theta)
    return gain_precision(_with_prior(F, g, theta, prior, discount, t), g, discount, 1.0, theta, A, P)


@fused
def mirror_step(rows: Floats, ranking: Integers, eta: float, estimate: Floats) -> Floats:
    """The step of online mirror descent, before projection: theta + eta inv(A + eta F'F) g, with F and g at theta."""
    d = estimate.shape[1]
    theta, P = estimate[0], estimate[1 + d : 1 + 2 * d].copy()
    g, F = slopes(rows, ranking, theta)
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
    _, F = slopes(rows, ranking, theta)
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
    """Ridge regression: A gains the sum of xx', b that of reward x, and theta = P b. Rows of `estimate` as above."""
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
