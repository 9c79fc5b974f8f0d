"""One step of a second-order learner: online Newton, mirror descent, ridge regression."""

import math

import numpy as np

from preselect.compiling import fused
from preselect.kernels.algebra import columns, gain_precision, move, shrinking
from preselect.kernels.likelihood import curvature_factor, gradient, rank_rows, stage_probabilities, utilities
from preselect.kernels.types import OK, Floats, Integers


@fused
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


@fused
def learn_newton(rows: Floats, ranking: Integers, prior: Floats, discount: float, t: int, estimate: Floats) -> int:
    """One online Newton step: A gains minus the Hessian at theta, P = inv(A), theta gains P times the gradient.

    The rows of `estimate` are theta, then those of A and P; the rows of `prior` its mean and its precision.
    """
    d = estimate.shape[1]
    ranked = rank_rows(rows, ranking)
    theta, A, P = estimate[0], estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    p = stage_probabilities(utilities(ranked, theta), ranking.shape[0])
    g = gradient(ranked, p)
    F = curvature_factor(ranked, p)
    if discount < 1.0:
        F = _with_prior(F, g, theta, prior, discount, t)
    return gain_precision(F, g, discount, 1.0, theta, A, P)


@fused
def mirror_step(rows: Floats, ranking: Integers, eta: float, estimate: Floats) -> Floats:
    """The step of online mirror descent, before projection: theta + eta inv(A + eta F'F) g, with F and g at theta."""
    d = estimate.shape[1]
    ranked = rank_rows(rows, ranking)
    theta, P = estimate[0], estimate[1 + d : 1 + 2 * d].copy()
    p = stage_probabilities(utilities(ranked, theta), ranking.shape[0])
    F = math.sqrt(eta) * curvature_factor(ranked, p)
    r = F.shape[0]
    V, M = np.zeros((r, d)), np.zeros((r, r))
    new_theta: Floats = np.full((1, d), np.nan)
    if shrinking(F, columns(F), P, V, M):
        move(gradient(ranked, p), eta, theta, P, V, new_theta)
    return new_theta.reshape(d)


@fused
def learn_curvature(rows: Floats, ranking: Integers, theta: Floats, estimate: Floats) -> int:
    """Take over theta; A gains minus the Hessian at it. Rows of `estimate` as for `learn_newton`."""
    d = estimate.shape[1]
    ranked = rank_rows(rows, ranking)
    A, P = estimate[1 : 1 + d], estimate[1 + d : 1 + 2 * d]
    F = curvature_factor(ranked, stage_probabilities(utilities(ranked, theta), ranking.shape[0]))
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
