"""The contextual Plackett-Luce model as pure functions.

Probabilities and likelihoods take log-utilities u; derivatives take rows X and theta, since u = X theta. A `ranking`
lists positions in the set, best first. Every function takes full rankings, top-m rankings and winners (m = 1) alike.
Tied arms share a list: [[0, 1], 2] has the probability of all its orders together. exp(u) is never computed without a
shift, so utilities may be arbitrarily large. Equation numbers are those of El Mesaoudi-Paul, Bengs and Hüllermeier
(2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import as_floats, as_integers, integer, require_finite, show
from preselect.context import Floats
from preselect.errors import InputError
from preselect.kernels import likelihood
from preselect.outcomes import Ranking

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

_Positions: TypeAlias = Sequence[int | Sequence[int]] | NDArray[np.int64]


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
    with np.errstate(over="ignore", invalid="ignore"):
        u: Floats = rows @ weights
    require_finite(u, "the product of X and theta")
    return u


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
    ranking : sequence of distinct ints, or of lists of them
        Positions of all arms or of the best m, best first; tied arms are in a list of their own.
    """
    values = _as_utilities(u)
    places = _as_ranking(ranking, len(values))
    return likelihood.log_likelihood(likelihood.rank_rows(values[:, None], places).ravel(), places)


def ranking_probability(u: ArrayLike, ranking: _Positions) -> float:
    """Return the probability of the ranking, Eq. (4).

    Parameters
    ----------
    u : array of k numbers
        Log-utility of each arm.
    ranking : sequence of distinct ints, or of lists of them
        Positions of all arms or of the best m, best first; tied arms are in a list of their own.

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
    ranking : sequence of distinct ints, or of lists of them
        Positions of all arms or of the best m, best first; tied arms are in a list of their own.
    """
    return _differentiate(X, theta, ranking)[0].ravel()


def curvature(X: ArrayLike, theta: ArrayLike, ranking: _Positions) -> Floats:
    """Return minus the Hessian of the log-likelihood in theta (Appendix A), d x d and of rank at most k - 1.

    Parameters
    ----------
    X : array of k x d numbers
        The joint features of each arm.
    theta : array of d numbers
        The weights.
    ranking : sequence of distinct ints, or of lists of them
        Positions of all arms or of the best m, best first; tied arms are in a list of their own.
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
    ranking : sequence of distinct ints, or of lists of them
        Positions of all arms or of the best m, best first; tied arms are in a list of their own.
    """
    return _differentiate(X, theta, ranking)[1]


def sample_winner(u: ArrayLike, generator: np.random.Generator) -> int:
    """Draw a winner from the model, Eq. (6); return its position.

    Parameters
    ----------
    u : array of k numbers
        Log-utility of each arm.
    generator : numpy.random.Generator
        Source of randomness.
    """
    return int(np.argmax(_perturb(_as_utilities(u), generator)))


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
    return np.argsort(-_perturb(values, generator))[:m]


def _perturb(u: Floats, generator: np.random.Generator) -> Floats:
    """Add Gumbel noise to log-utilities: the largest is then a winner drawn from the model."""
    if not isinstance(generator, np.random.Generator):
        raise InputError(f"generator is {show(generator)}; use numpy.random.default_rng(seed)")
    return u + generator.gumbel(size=len(u))


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


def _as_ranking(ranking: _Positions, k: int) -> NDArray[np.int64]:
    """Return a ranking as the kernels read it: an array of positions or, if arms are tied, two columns."""
    expectation = f"distinct positions from 0 to {k - 1}, best first"
    if isinstance(ranking, Sequence) and any(isinstance(place, list | tuple | np.ndarray) for place in ranking):
        return Ranking(ranking).positions(np.arange(k))
    named = as_integers(ranking, "ranking", expectation)
    if not 1 <= len(named) <= k or len(np.unique(named)) < len(named) or np.any((named < 0) | (named >= k)):
        raise InputError(f"ranking should be {expectation}, not {show(ranking)}")
    return named


def _differentiate(X: ArrayLike, theta: ArrayLike, ranking: _Positions) -> tuple[Floats, Floats]:
    """Return the gradient of the log-likelihood, and the factor of minus its Hessian."""
    rows, weights = _as_rows(X, theta)
    places = _as_ranking(ranking, len(rows))
    ranked = likelihood.rank_rows(rows, places)
    return likelihood.differentiate(ranked, _as_utilities(likelihood.utilities(ranked, weights)), places)
