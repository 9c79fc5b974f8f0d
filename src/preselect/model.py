"""The contextual Plackett-Luce model as pure functions.

One grid: probabilities and likelihoods take log-utilities u; derivatives take rows X and theta, since u = X theta.
Everywhere a `ranking` lists positions in the set, best first. A full ranking, a top-m ranking and a winner (m = 1) are
the same thing to every function here. Nothing forms exp(u) unshifted, so utilities may be as large as they like.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import integer
from preselect.context import Floats, as_floats, as_integers, require_finite
from preselect.errors import InputError
from preselect.kernels import likelihood

Positions = Sequence[int] | NDArray[np.int64]


def utilities(X: ArrayLike, theta: ArrayLike) -> Floats:
    """Log-utilities u_i = x_i'theta: the logarithm of Eq. (utility_param).

    >>> utilities([[1.0, 2.0], [0.0, 1.0]], [0.5, 1.0])
    array([2.5, 1. ])
    """
    rows, weights = _rows(X, theta)
    return rows @ weights


def winner_probabilities(u: ArrayLike) -> Floats:
    """Probability of each arm of the set to win, Eq. (top_rank_context).

    >>> winner_probabilities([0.0, 0.0, 800.0])
    array([0., 0., 1.])
    """
    return likelihood.stage_probabilities(_utilities(u), 1).ravel()


def log_likelihood(u: ArrayLike, ranking: Positions) -> float:
    """Log-probability of the ranking, Eq. (log_likelihood) and (log_likelihood_top_rank)."""
    values = _utilities(u)
    ranked = values[_order(ranking, len(values))]
    m = len(ranking)
    return float(np.sum(ranked[:m] - likelihood.stage_normalisers(ranked, m)))


def ranking_probability(u: ArrayLike, ranking: Positions) -> float:
    """Probability of the ranking, Eq. (marginals_context).

    >>> round(ranking_probability([0.0, 0.0, 0.0], [2, 0, 1]), 6)
    0.166667
    """
    return float(np.exp(log_likelihood(u, ranking)))


def gradient(X: ArrayLike, theta: ArrayLike, ranking: Positions) -> Floats:
    """Gradient of the log-likelihood in theta (supplementary material A)."""
    return likelihood.gradient(*_ranked_stages(X, theta, ranking)).ravel()


def curvature(X: ArrayLike, theta: ArrayLike, ranking: Positions) -> Floats:
    """Minus the Hessian of the log-likelihood in theta: positive semidefinite, of rank at most k - 1."""
    F = curvature_factor(X, theta, ranking)
    return F.T @ F


def curvature_factor(X: ArrayLike, theta: ArrayLike, ranking: Positions) -> Floats:
    """F with k - 1 rows such that F'F is the curvature."""
    return likelihood.curvature_factor(*_ranked_stages(X, theta, ranking))


def sample_winner(u: ArrayLike, generator: np.random.Generator) -> int:
    """Position of a winner drawn from the model."""
    values = _utilities(u)
    return int(np.argmax(values + generator.gumbel(size=len(values))))


def sample_ranking(u: ArrayLike, generator: np.random.Generator, m: int | None = None) -> NDArray[np.int64]:
    """A ranking drawn from the model, best first; its first m places if m is given."""
    values = _utilities(u)
    if m is not None and not 1 <= integer(m, "m", 1) <= len(values):
        raise InputError(f"m must be from 1 to {len(values)}, the number of arms, got {m}")
    return np.argsort(-(values + generator.gumbel(size=len(values))))[:m]


def _utilities(u: ArrayLike) -> Floats:
    values = as_floats(u, "u", 1)
    if not len(values):
        raise InputError("u must have one log-utility per arm, got none")
    require_finite(values, "u")
    return values


def _rows(X: ArrayLike, theta: ArrayLike) -> tuple[Floats, Floats]:
    rows, weights = as_floats(X, "X", 2), as_floats(theta, "theta", 1)
    if rows.shape[1] != len(weights):
        raise InputError(f"X must have as many columns as theta has entries, {len(weights)}, got shape {rows.shape}")
    require_finite(rows, "X")
    require_finite(weights, "theta")
    return rows, weights


def _order(ranking: Positions, k: int) -> NDArray[np.int64]:
    """The ranked positions followed by the others."""
    expectation = f"distinct positions from 0 to {k - 1}, best first"
    named = as_integers(ranking, "ranking", expectation)
    if not 1 <= len(named) <= k or len(np.unique(named)) < len(named) or np.any((named < 0) | (named >= k)):
        raise InputError(f"ranking must be {expectation}, got {ranking!r:.80}")
    return np.concatenate((named, np.setdiff1d(np.arange(k), named)))


def _ranked_stages(X: ArrayLike, theta: ArrayLike, ranking: Positions) -> tuple[Floats, Floats]:
    rows, weights = _rows(X, theta)
    ranked = rows[_order(ranking, len(rows))]
    return ranked, likelihood.stage_probabilities(_utilities(likelihood.utilities(ranked, weights)), len(ranking))
