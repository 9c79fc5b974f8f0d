"""The Plackett-Luce likelihood of an outcome with ties: the sum of Eq. (4) over all orders of the arms in each tie.

Let the arms in a tie, G, have utilities v_i, and let V be the sum of v over the arms behind them. In the race of
exponential clocks that is behind Plackett-Luce, y is V times the moment at which the first arm behind G rings:

    P(all of G are before all others) = integral from 0 to infinity of exp(-y) prod_i (1 - exp(-v_i y / V)) dy,

one integral for a tie of any size, where the orders are too many to list. Its derivatives are moments of y under the
density in it. With b_i = x_i / (exp(x_i) - 1), x_i = v_i y / V, and q_j = v_j / V, the gradient in the log-utilities is
E b_i for the arms in G and -q_j sum_i E b_i for those behind them. Minus the Hessian is the Laplacian of a graph, as it
is without ties, whose edges weigh Cov(b_i, b_i') in G, -q_j Cov(b_i, y) between both, and q_j q_j' (Var y - 1) behind
G. None is negative: b falls and y rises in y, and y is a sum of independent times, the last with variance 1.

A tie of all arms that are left teaches nothing: their orders add up to certainty.
"""

import math

import numpy as np

from preselect.compiling import helper
from preselect.kernels.types import Floats, Integers

# y = exp(s - exp(-s)), with s at equal steps (Takahasi and Mori 1974), integrates to ten digits whatever the v_i
_STEP = 1.0 / 16.0
_S = np.arange(-3.5, 7.0, _STEP)
_Y = np.exp(_S - np.exp(-_S))
_LOG_WEIGHTS = np.log(_STEP * _Y * (1.0 + np.exp(-_S))) - _Y

_LARGEST = 600.0  # beyond that, a difference of log-utilities is as good as infinite


@helper
def _sum_behind(u: Floats, end: int) -> float:
    """Log of the sum of exp(u) over the arms from `end` on."""
    largest: float = u[end:].max()
    return largest + math.log(np.exp(u[end:] - largest).sum())


@helper
def _weigh_nodes(u: Floats, first: int, end: int, behind: float, b: Floats) -> tuple[float, Floats]:
    """Log of the integral for the tie of arms `first` to `end`, and the shares of the nodes in it; b receives b_i."""
    terms, total = np.empty(_Y.shape[0]), 0.0
    for n in range(_Y.shape[0]):
        terms[n] = _LOG_WEIGHTS[n]
    for i in range(first, end):
        lead = u[i] - behind
        r = math.exp(min(max(lead, -_LARGEST), _LARGEST))
        total += min(lead + _LARGEST, 0.0)
        for n in range(_Y.shape[0]):
            x = r * _Y[n]
            before = -math.expm1(-x)
            terms[n] += math.log(before)
            b[n, i - first] = x * (1.0 - before) / before
    largest = terms.max()
    shares = np.exp(terms - largest)
    sum_of_shares = shares.sum()
    return total + largest + math.log(sum_of_shares), shares / sum_of_shares


@helper
def tied_log_likelihood(u: Floats, ends: Integers) -> float:
    """Log-probability of a ranking with ties; `ends` says for each ranked arm where its tie ends."""
    total, first = 0.0, 0
    while first < ends.shape[0]:
        end = ends[first]
        if end < u.shape[0]:
            behind = _sum_behind(u, end)
            if end == first + 1:
                lead = u[first] - behind
                total += min(lead, 0.0) - math.log1p(math.exp(-abs(lead)))
            else:
                total += _weigh_nodes(u, first, end, behind, np.empty((_Y.shape[0], end - first)))[0]
        first = end
    return total


@helper
def tied_slopes(u: Floats, ends: Integers) -> tuple[Floats, Floats]:
    """The gradient in u, as a row, and the weights of the edges of minus the Hessian, above the diagonal."""
    k, first = u.shape[0], 0
    c, w = np.zeros((1, k)), np.zeros((k, k))
    while first < ends.shape[0]:
        end = ends[first]
        if end < k:
            _add_slopes(u, first, end, c, w)
        first = end
    return c, w


@helper
def _add_slopes(u: Floats, first: int, end: int, c: Floats, w: Floats) -> None:
    """Add what the tie of arms `first` to `end` contributes."""
    g, behind = end - first, _sum_behind(u, end)
    moving = np.empty((_Y.shape[0], g + 1))  # b of the arms in the tie, then -y
    _, shares = _weigh_nodes(u, first, end, behind, moving)
    moving[:, g] = -_Y
    means = np.zeros(g + 1)
    for n in range(_Y.shape[0]):
        for i in range(g + 1):
            means[i] += shares[n] * moving[n, i]
    covariances = np.zeros((g + 1, g + 1))
    for n in range(_Y.shape[0]):
        for i in range(g + 1):
            x = shares[n] * (moving[n, i] - means[i])
            for j in range(i, g + 1):
                covariances[i, j] += x * (moving[n, j] - means[j])
    q = np.exp(u[end:] - behind)
    for i in range(g):
        c[0, first + i] += means[i]
        for other in range(i + 1, g):
            w[first + i, first + other] += max(covariances[i, other], 0.0)
        for j in range(q.shape[0]):
            c[0, end + j] -= q[j] * means[i]
            w[first + i, end + j] += q[j] * max(covariances[i, g], 0.0)
    for j in range(q.shape[0]):
        for other in range(j + 1, q.shape[0]):
            w[end + j, end + other] += q[j] * q[other] * max(covariances[g, g] - 1.0, 0.0)
