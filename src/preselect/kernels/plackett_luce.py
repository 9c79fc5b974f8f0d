"""The Plackett-Luce likelihood of one outcome: its value, gradient and curvature.

A ranking is an array of positions, best first. One with ties has two columns: positions, and the place at which each
arm's tie ends. Branches on the number of dimensions are decided when a kernel is compiled, so that rankings without
ties do not pay for those with them.
"""

import math

import numpy as np

from preselect.compiling import helper, inlined, reordered
from preselect.kernels.ties import tied_log_likelihood, tied_slopes
from preselect.kernels.types import Floats, Integers, Matrix


@reordered
def product(X: Matrix, i: int, y: Floats) -> float:
    """x_i'y, where x_i is row i of X."""
    total = 0.0
    for j in range(y.shape[0]):
        total += X[i, j] * y[j]
    return total


@helper
def rank_rows(rows: Floats, ranking: Integers) -> Floats:
    """The rows in the order of the outcome: the ranked ones, best first, then the others."""
    k, d = rows.shape
    m = ranking.shape[0]
    ranked = np.empty((k, d))
    seen = np.zeros(k, dtype=np.bool_)
    place = m
    for i in range(m):
        position = ranking[i] if ranking.ndim == 1 else ranking[i, 0]
        seen[position] = True
        for a in range(d):
            ranked[i, a] = rows[position, a]
    for i in range(k):
        if not seen[i]:
            for a in range(d):
                ranked[place, a] = rows[i, a]
            place += 1
    return ranked


@helper
def utilities(X: Matrix, theta: Floats) -> Floats:
    """Log-utilities u = X theta, the logarithm of Eq. (3)."""
    u = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        u[i] = product(X, i, theta)
    return u


@helper
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


@helper
def stage_probabilities(u: Floats, m: int) -> Floats:
    """p[s, j], the probability that the j-th ranked arm wins stage s; zero for the arms that have left."""
    k = u.shape[0]
    normalisers = stage_normalisers(u, m)
    p = np.zeros((m, k))
    for s in range(m):
        for j in range(s, k):
            p[s, j] = math.exp(u[j] - normalisers[s])  # Eq. (6), over the arms that are left
    return p


@helper
def gradient(ranked: Floats, p: Floats) -> Floats:
    """The gradient of Eq. (5) in theta: the sum over the stages of (row of the winner - expected row)."""
    m, k = p.shape
    g = np.zeros((1, ranked.shape[1]))
    for j in range(k):
        coefficient = 1.0 if j < m else 0.0
        for s in range(min(j + 1, m)):
            coefficient -= p[s, j]
        for a in range(g.shape[1]):
            g[0, a] += coefficient * ranked[j, a]
    return g


@inlined
def _factor_laplacian(ranked: Floats, w: Floats) -> Floats:
    """F with k - 1 rows and F'F = ranked' L ranked; L is the Laplacian of the graph with edges w, overwritten here."""
    k, d = ranked.shape
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


@inlined
def curvature_factor(ranked: Floats, p: Floats) -> Floats:
    """F with k - 1 rows and F'F = minus the Hessian of Eq. (5), for any number of stages.

    Minus the Hessian is ranked' L ranked, where L is the Laplacian of the graph on the arms whose edge between i and j
    weighs the sum over the stages of p_i p_j. Eliminating the arms one by one factors L using sums, products and
    quotients of non-negative numbers only, so nothing cancels however unequal the probabilities are.
    """
    m, k = p.shape
    w = np.zeros((k, k))
    for i in range(k):
        for j in range(i + 1, k):
            for s in range(min(i + 1, m)):
                w[i, j] += p[s, i] * p[s, j]
    return _factor_laplacian(ranked, w)


@helper
def offset_utilities(X: Floats, theta: Floats, offsets: Floats) -> Floats:
    """U = X theta + offsets; none are added if `offsets` is empty."""
    u = utilities(X, theta)
    for i in range(offsets.shape[0]):
        u[i] += offsets[i]
    return u


@helper
def log_likelihood(u: Floats, ranking: Integers) -> float:
    """The logarithm of Eq. (5), given the utilities of the arms in the order of the outcome."""
    if ranking.ndim == 2:
        return tied_log_likelihood(u, ranking[:, 1].copy())
    m = ranking.shape[0]
    normalisers = stage_normalisers(u, m)
    total = 0.0
    for s in range(m):
        total += u[s] - normalisers[s]
    return total


@helper
def differentiate(ranked: Floats, u: Floats, ranking: Integers) -> tuple[Floats, Floats]:
    """The gradient g of the log-likelihood and F with F'F = minus its Hessian; u are the utilities of the rows."""
    if ranking.ndim == 2:
        return differentiate_ties(ranked, u, ranking[:, 1].copy())
    p = stage_probabilities(u, ranking.shape[0])
    return gradient(ranked, p), curvature_factor(ranked, p)


@helper
def gradient_of_ranking(ranked: Floats, u: Floats, ranking: Integers) -> Floats:
    """The gradient of the log-likelihood, without its curvature."""
    if ranking.ndim == 2:
        return differentiate_ties(ranked, u, ranking[:, 1].copy())[0]
    return gradient(ranked, stage_probabilities(u, ranking.shape[0]))


@helper
def differentiate_ties(ranked: Floats, u: Floats, ends: Integers) -> tuple[Floats, Floats]:
    """As `differentiate`, for a ranking with ties."""
    c, w = tied_slopes(u, ends)
    g = np.zeros((1, ranked.shape[1]))
    for j in range(ranked.shape[0]):
        for a in range(g.shape[1]):
            g[0, a] += c[0, j] * ranked[j, a]
    return g, _factor_laplacian(ranked, w)


@inlined
def slopes(rows: Floats, ranking: Integers, offsets: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """The gradient g of the log-likelihood at theta, and F with F'F = minus its Hessian; `offsets` as above."""
    ranked = rank_rows(rows, ranking)
    return differentiate(ranked, offset_utilities(ranked, theta, offsets), ranking)
