"""The contextual Plackett-Luce model as pure functions.

Probabilities and likelihoods take log-utilities u; derivatives take rows X and theta, since u = X theta. A `ranking`
lists positions in the set, best first. A full ranking, a top-m ranking and a winner (m = 1) are
the same to every function here. exp(u) is never computed without a shift, so utilities may be arbitrarily large.
Equation numbers are those of El Mesaoudi-Paul, Bengs and Hüllermeier (2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import integer
from preselect.context import Floats, as_floats, as_integers, require_finite
from preselect.errors import InputError
from preselect.kernels import likelihood

__all__ = [
    "curvature",
    "curvature_factor",
    "gradient",
    "log_likelihood",
    "ranking_probability",
    "sample_ranking",
    "sample_winner",
    "utilities",
    "winner_probabilities",
]

_Positions: TypeAlias = Sequence[int] | NDArray[np.int64]


def utilities(X: ArrayLike, theta: ArrayLike) -> Floats:
    """Return the log-utilities u_i = x_i'theta: the logarithm of Eq. (3).

    Parameters
    ----------
    X : array of k x d numbers
        The joint features of each arm.
    theta : array of d numbers
        The weights.

    Examples
    --------
    >>> utilities([[1.0, 2.0], [0.0, 1.0]], [0.5, 1.0])
    array([2.5, 1. ])
    """
    rows, weights = _as_rows(X, theta)
    return rows @ weights


def winner_probabilities(u: ArrayLike) -> Floats:
    """Return each arm's probability of winning, Eq. (6).

    Parameters
    ----------
    u : array of k numbers
        Log-utility of each arm.

    Examples
    --------
    >>> winner_probabilities([0.0, 0.0, 800.0])
    array([0., 0., 1.])
    """
    return likelihood.stage_probabilities(_as_utilities(u), 1).ravel()


def log_likelihood(u: ArrayLike, ranking: _Positions) -> float:
    """Return the log-probability of the ranking, Eq. (5); of a winner, Eq. (7).

    Parameters
    ----------
    u : array of k numbers
        Log-utility of each arm.
    ranking : sequence of distinct ints
        Positions of all arms or of the best m, best first.
    """
    values = _as_utilities(u)
    ranked = values[_complete(ranking, len(values))]
    m = len(ranking)
    return float(np.sum(ranked[:m] - likelihood.stage_normalisers(ranked, m)))


def ranking_probability(u: ArrayLike, ranking: _Positions) -> float:
    """Return the probability of the ranking, Eq. (4).

    Parameters
    ----------
    u : array of k numbers
        Log-utility of each arm.
    ranking : sequence of distinct ints
        Positions of all arms or of the best m, best first.

    Examples
    --------
    >>> round(ranking_probability([0.0, 0.0, 0.0], [2, 0, 1]), 6)
    0.166667
    """
    return float(np.exp(log_likelihood(u, ranking)))


def gradient(X: ArrayLike, theta: ArrayLike, ranking: _Positions) -> Floats:
    """Return the gradient of the log-likelihood in theta (Appendix A), d numbers.

    Parameters
    ----------
    X : array of k x d numbers
        The joint features of each arm.
    theta : array of d numbers
        The weights.
    ranking : sequence of distinct ints
        Positions of all arms or of the best m, best first.
    """
    return likelihood.gradient(*_rank_stages(X, theta, ranking)).ravel()


def curvature(X: ArrayLike, theta: ArrayLike, ranking: _Positions) -> Floats:
    """Return minus the Hessian of the log-likelihood in theta (Appendix A), d x d and of rank at most k - 1.

    Parameters
    ----------
    X : array of k x d numbers
        The joint features of each arm.
    theta : array of d numbers
        The weights.
    ranking : sequence of distinct ints
        Positions of all arms or of the best m, best first.
    """
    F = curvature_factor(X, theta, ranking)
    return F.T @ F


def curvature_factor(X: ArrayLike, theta: ArrayLike, ranking: _Positions) -> Floats:
    """Return F, (k - 1) x d, with F'F equal to the curvature.

    Parameters
    ----------
    X : array of k x d numbers
        The joint features of each arm.
    theta : array of d numbers
        The weights.
    ranking : sequence of distinct ints
        Positions of all arms or of the best m, best first.
    """
    return likelihood.curvature_factor(*_rank_stages(X, theta, ranking))


def sample_winner(u: ArrayLike, generator: np.random.Generator) -> int:
    """Draw a winner from the model, Eq. (6); return its position.

    Parameters
    ----------
    u : array of k numbers
        Log-utility of each arm.
    generator : numpy.random.Generator
        Source of randomness.
    """
    values = _as_utilities(u)
    return int(np.argmax(values + generator.gumbel(size=len(values))))


def sample_ranking(u: ArrayLike, generator: np.random.Generator, m: int | None = None) -> NDArray[np.int64]:
    """Draw a ranking from the model, Eq. (4); return positions, best first.

    Parameters
    ----------
    u : array of k numbers
        Log-utility of each arm.
    generator : numpy.random.Generator
        Source of randomness.
    m : int, optional
        How many places to return, from 1 to k; by default all.
    """
    values = _as_utilities(u)
    if m is not None and integer(m, "m", 1) > len(values):
        raise InputError(f"m={m}, but there are only {len(values)} arms to rank")
    return np.argsort(-(values + generator.gumbel(size=len(values))))[:m]


def _as_utilities(u: ArrayLike) -> Floats:
    values = as_floats(u, "u", 1)
    if not len(values):
        raise InputError("u is empty; give it one log-utility per arm")
    require_finite(values, "u")
    return values


def _as_rows(X: ArrayLike, theta: ArrayLike) -> tuple[Floats, Floats]:
    rows, weights = as_floats(X, "X", 2), as_floats(theta, "theta", 1)
    if rows.shape[1] != len(weights):
        raise InputError(f"X has {rows.shape[1]} columns, but theta has {len(weights)} entries")
    require_finite(rows, "X")
    require_finite(weights, "theta")
    return rows, weights


def _complete(ranking: _Positions, k: int) -> NDArray[np.int64]:
    """Return the ranked positions followed by the others."""
    expectation = f"distinct positions from 0 to {k - 1}, best first"
    named = as_integers(ranking, "ranking", expectation)
    if not 1 <= len(named) <= k or len(np.unique(named)) < len(named) or np.any((named < 0) | (named >= k)):
        raise InputError(f"ranking should be {expectation}, not {ranking!r:.80}")
    return np.concatenate((named, np.setdiff1d(np.arange(k), named)))


def _rank_stages(X: ArrayLike, theta: ArrayLike, ranking: _Positions) -> tuple[Floats, Floats]:
    """Return the rows in the order of the ranking, and the winning probabilities at each of its stages."""
    rows, weights = _as_rows(X, theta)
    ranked = rows[_complete(ranking, len(rows))]
    return ranked, likelihood.stage_probabilities(_as_utilities(likelihood.utilities(ranked, weights)), len(ranking))
