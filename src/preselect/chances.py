"""Chances of winning for reports: the model's, corrected by how earlier rounds ended."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from preselect.context import Floats
from preselect.model import winner_probabilities

_Slopes: TypeAlias = Callable[[float], tuple[float, float]]  # gradient and minus the curvature

_MEMORY = 0.99  # the weight of a round decreases by this factor with every later one
_LEVEL, _SLOPE = 1.0, 4.0  # prior precisions: of b around 0, of a and c around 1
_LARGEST = 1000.0
_CLOSE, _MOST_STEPS = 1e-9, 60


class Chances:
    """Corrects chances of winning: a policy only has to choose well, but a report has to predict well.

    With v_i = exp(u_i) and V their sum, the model says that some arm wins with probability V / (1 + V), and that it is
    arm i with probability v_i / V. But u is an estimate of many weights from few rounds, so these chances are too
    extreme. Here some arm wins with log-odds b + a log V, and it is arm i with probability

        v_i^c / sum_j v_j^c.

    a, b and c start at 1, 0 and 1 and are learnt round by round. A round 100 rounds ago counts only a third, because
    early estimates err more than later ones. The estimates may come from any policy.

    Parameters
    ----------
    outside : bool
        Whether rounds may end without a winner (outside option).

    Examples
    --------
    >>> chances = Chances(outside=True)
    >>> chances.predict(np.log([1.0, 2.0])).round(3).tolist()
    [0.25, 0.5, 0.25]
    >>> chances.learn(np.log([1.0, 2.0]), winner=None)
    >>> chances.predict(np.log([1.0, 2.0])).round(3).tolist()
    [0.195, 0.389, 0.416]
    """

    def __init__(self, outside: bool) -> None:
        self.outside = outside
        self._odds = _Belief(np.array([0.0, 1.0]), np.diag([_LEVEL, _SLOPE]))  # the belief about b and a
        self._shares = _Belief(np.array([1.0]), np.diag([_SLOPE]))  # the belief about c

    def predict(self, u: Floats) -> Floats:
        """Return each arm's chance of winning, followed by the chance that no arm wins.

        Parameters
        ----------
        u : array of k numbers
            The estimated log-utilities of the arms that were chosen.
        """
        z = float(self._odds.mean @ _describe(u)) if self.outside else math.inf
        return np.append(_sigmoid(z) * winner_probabilities(self._shares.mean[0] * _bound(u)), _sigmoid(-z))

    def learn(self, u: Floats, winner: int | None) -> None:
        """Learn from how a round ended.

        Parameters
        ----------
        u : array of k numbers
            The estimated log-utilities of the arms when they were chosen.
        winner : int or None
            The position of the arm that won; None if no arm did.
        """
        if self.outside:
            won = float(winner is not None)
            self._odds.learn(_describe(u), lambda z: (won - _sigmoid(z), _sigmoid(z) * _sigmoid(-z)))
        if winner is not None:
            lead = _bound(u) - _bound(u)[winner]
            self._shares.learn(np.ones(1), lambda c: _compare(lead, c))


class _Belief:
    """A Gaussian belief about a few weights, which slowly forgets; an outcome's likelihood depends on z = x'w only."""

    def __init__(self, mean: Floats, precision: Floats) -> None:
        self.mean, self._precision = mean, precision
        self._prior = mean.copy(), precision.copy()

    def learn(self, x: Floats, slopes: _Slopes) -> None:
        """Move to the maximum of belief times likelihood; `slopes` returns its gradient and curvature in z."""
        mean, precision = self._prior
        faded = _MEMORY * self._precision + (1.0 - _MEMORY) * precision
        pulled = _MEMORY * self._precision @ self.mean + (1.0 - _MEMORY) * precision @ mean
        centre, step = np.linalg.solve(faded, np.stack((pulled, x), axis=1)).T
        g, h = _find_mode(float(x @ centre), float(x @ step), slopes)
        self.mean, self._precision = centre + g * step, faded + h * np.outer(x, x)


def _find_mode(z: float, variance: float, slopes: _Slopes) -> tuple[float, float]:
    """Return the slopes at the maximum of belief times likelihood, given the mean and variance of z under the belief.

    Newton's method for point = z + variance * gradient, kept between bounds that close in on the solution.
    """
    low, high = sorted((z, z + variance * slopes(z)[0]))
    point = z
    for _ in range(_MOST_STEPS):
        g, h = slopes(point)
        excess = point - z - variance * g
        low, high = (low, point) if excess > 0.0 else (point, high)
        moved = point - excess / (1.0 + variance * h)
        moved = moved if low <= moved <= high else 0.5 * (low + high)
        if abs(moved - point) <= _CLOSE * (1.0 + abs(point)):
            break
        point = moved
    return slopes(moved)


def _describe(u: Floats) -> Floats:
    """Return the features of the odds that some arm wins: 1 and log V."""
    u = _bound(u)
    return np.array([1.0, u.max() + math.log(np.exp(u - u.max()).sum())])


def _bound(u: Floats) -> Floats:
    """Return u clipped to ±1000: beyond that a chance is 0 or 1 anyway, and squares may overflow."""
    return np.clip(u, -_LARGEST, _LARGEST)


def _compare(lead: Floats, c: float) -> tuple[float, float]:
    """Return gradient and curvature in c of the winner's log-probability; `lead` is u minus the winner's u."""
    p = winner_probabilities(c * lead)
    mean = float(p @ lead)
    return -mean, float(p @ (lead - mean) ** 2)


def _sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0.0 else math.exp(z) / (1.0 + math.exp(z))
