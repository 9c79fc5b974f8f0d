"""The posterior given all outcomes so far: its value, its maximum, and draws from it."""

import math

import numpy as np

from preselect.compiling import fused
from preselect.kernels.algebra import add_product, invert, scaled_transpose
from preselect.kernels.plackett_luce import differentiate_ties, offset_utilities, product, stage_normalisers
from preselect.kernels.ties import tied_log_likelihood
from preselect.kernels.types import ROUNDING, Floats, Integers


@fused
def _log_posterior(
    history: Floats,
    offsets: Floats,
    sizes: Integers,
    lengths: Integers,
    ties: Integers | None,
    outcomes: int,
    base: Floats,
    discount: float,
    theta: Floats,
) -> float:
    """Log-likelihood of all outcomes, each by Eq. (5), plus the logarithm of a Gaussian, `base`, up to a constant.

    Outcome t has sizes[t] rows in `history`, best first; lengths[t] of them were ranked. `offsets` are added to their
    utilities; every later outcome multiplies its weight by `discount`. `ties` is None if there are none; otherwise it
    holds for each row the place in its outcome where the row's tie ends, or 0 if the outcome has no ties. The
    rows of `base` are its mean, then those of its precision matrix.
    """
    total = 0.0
    for a in range(theta.shape[0]):
        for b in range(theta.shape[0]):
            total -= 0.5 * (theta[a] - base[0, a]) * base[1 + a, b] * (theta[b] - base[0, b])
    last = 0
    for t in range(outcomes):
        weight = discount ** (outcomes - 1 - t)
        last += sizes[t]
        if ties is not None:
            first = last - sizes[t]
            if ties[first] > 0:
                u_tied = offset_utilities(history[first:last], theta, offsets[first:last])
                total += weight * tied_log_likelihood(u_tied, ties[first : first + lengths[t]])
                continue
        largest, sum_of_exponentials = -np.inf, 0.0  # of the arms still running, from the last arm on
        for i in range(sizes[t]):
            u = product(history, last - 1 - i, theta) + offsets[last - 1 - i]
            if u > largest:
                sum_of_exponentials = sum_of_exponentials * math.exp(largest - u) + 1.0
                largest = u
            else:
                sum_of_exponentials += math.exp(u - largest)
            if i >= sizes[t] - lengths[t]:
                total += weight * (u - largest - math.log(sum_of_exponentials))
    return total


@fused
def metropolis(
    history: Floats,
    offsets: Floats,
    sizes: Integers,
    lengths: Integers,
    ties: Integers | None,
    outcomes: int,
    base: Floats,
    estimate: Floats,
    tails: float,
    proposals: Floats,
    chances: Floats,
    draw: Floats,
    drawn: Floats,
) -> None:
    """Metropolis-Hastings steps from `draw` on, with independent proposals from a t distribution around theta.

    A proposal is accepted if the log of a uniform number, from `chances`, is below the log of the acceptance ratio.
    `drawn` receives the state at equal intervals, one per row. The rows of `estimate` are those of
    `maximise_posterior`; P and `tails` degrees of freedom shape the proposals.
    """
    d = draw.shape[0]
    steps = proposals.shape[0] // drawn.shape[0]
    weight = -np.inf
    for step in range(-1, proposals.shape[0]):
        theta = draw if step < 0 else proposals[step]
        proposed = _log_posterior(history, offsets, sizes, lengths, ties, outcomes, base, 1.0, theta)
        square = 0.0
        for a in range(d):
            for b in range(d):
                square += (theta[a] - estimate[0, a]) * estimate[1 + a, b] * (theta[b] - estimate[0, b])
        proposed += 0.5 * (tails + d) * math.log1p(square / tails)  # divided by the density of the proposal
        if step < 0 or chances[step] < proposed - weight:
            weight = proposed
            for a in range(d):
                draw[a] = theta[a]
        if step >= 0:
            for a in range(d):
                drawn[step // steps, a] = draw[a]


@fused
def _slopes(
    history: Floats,
    offsets: Floats,
    sizes: Integers,
    lengths: Integers,
    ties: Integers | None,
    outcomes: int,
    discount: float,
    theta: Floats,
    g: Floats,
    A: Floats,
) -> None:
    """Add the gradient and minus the Hessian of the log-likelihood of all outcomes at theta to g and A."""
    d = theta.shape[0]
    mu, centred = np.empty(d), np.empty(d)
    first = 0
    for t in range(outcomes):
        k, weight = sizes[t], discount ** (outcomes - 1 - t)
        u = np.empty(k)
        for i in range(k):
            u[i] = product(history, first + i, theta) + offsets[first + i]
        if ties is not None:
            if ties[first] > 0:
                ranked = history[first : first + k]
                g_tied, F = differentiate_ties(ranked, u, ties[first : first + lengths[t]])
                for a in range(d):
                    g[a] += weight * g_tied[0, a]
                add_product(A, scaled_transpose(F, weight), F)
                first += k
                continue
        normalisers = stage_normalisers(u, lengths[t])
        for s in range(lengths[t]):
            for a in range(d):
                mu[a] = 0.0
            for i in range(s, k):
                share = math.exp(u[i] - normalisers[s])
                for a in range(d):
                    mu[a] += share * history[first + i, a]
            for a in range(d):
                g[a] += weight * (history[first + s, a] - mu[a])
            for i in range(s, k):
                share = weight * math.exp(u[i] - normalisers[s])
                for a in range(d):
                    centred[a] = history[first + i, a] - mu[a]
                for a in range(d):
                    x = share * centred[a]
                    if x != 0.0:
                        for b in range(a + 1):
                            A[a, b] += x * centred[b]
        first += k
    for a in range(d):
        for b in range(a):
            A[b, a] = A[a, b]


@fused
def maximise_posterior(
    history: Floats,
    offsets: Floats,
    sizes: Integers,
    lengths: Integers,
    ties: Integers | None,
    outcomes: int,
    base: Floats,
    discount: float,
    tolerance: float,
    most_steps: int,
    estimate: Floats,
) -> int:
    """Newton's method with halved steps from theta on, until a step is below `tolerance`; returns the number of steps.

    The length of a step is in standard deviations of the posterior. The last one is taken too, so that the error is of
    the order of its square. The rows of `estimate` are theta, then those of A, minus the Hessian before that step, and
    of P = inv(A). Returns -1, with nothing changed, if there is no finite maximum.
    """
    d = estimate.shape[1]
    theta, A, P = estimate[0].copy(), np.empty((d, d)), np.empty((d, d))
    value = _log_posterior(history, offsets, sizes, lengths, ties, outcomes, base, discount, theta)
    for step in range(most_steps):
        g = np.zeros((1, d))
        add_product(g, (base[0] - theta).reshape((1, d)), base[1:])
        A[:] = base[1:]
        _slopes(history, offsets, sizes, lengths, ties, outcomes, discount, theta, g[0], A)
        if not invert(A, P):
            return -1
        moved = np.zeros((1, d))
        add_product(moved, g, P)
        square = product(g, 0, moved[0])
        if not math.isfinite(square):
            return -1
        length, new_value, least = 2.0, -np.inf, value - ROUNDING * abs(value)
        while length > 1e-18 and not new_value >= least:  # a full step goes very far if the likelihood is flat
            length *= 0.5
            new_theta = theta + length * moved[0]
            new_value = _log_posterior(history, offsets, sizes, lengths, ties, outcomes, base, discount, new_theta)
        theta, value = new_theta, new_value
        if (square <= tolerance * tolerance and length == 1.0) or step + 1 == most_steps:
            estimate[0] = theta
            estimate[1 : 1 + d] = A
            estimate[1 + d :] = P
            return step + 1
    return 0
