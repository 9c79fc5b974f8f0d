"""Regret: how far a choice falls short of the best one, given the true utilities."""

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats


def regrets(u: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
    """Return two kinds of regret for each round.

    `best_arm` is the paper's regret: the share of the best arm's utility that the best chosen arm lacks. `top_k` is the
    regret of the set: the share of the k best arms' total utility that the k chosen arms lack.

    Parameters
    ----------
    u : array of shape (rounds, n)
        True log-utilities.
    arms : integer array of shape (rounds, k)
        The chosen arms.

    >>> found = regrets(np.log([[4.0, 2.0, 2.0]]), np.array([[1, 2]]))
    >>> found["best_arm"].round(6), found["top_k"].round(6)
    (array([0.5]), array([0.333333]))
    """
    k = arms.shape[1]
    best = np.partition(u, -k, axis=1)[:, -k:]
    largest = best.max(axis=1, keepdims=True)
    of_chosen: Floats = np.exp(np.take_along_axis(u, arms, axis=1) - largest)
    of_best: Floats = np.exp(best - largest)
    return {
        "best_arm": 1.0 - of_chosen.max(axis=1),
        "top_k": 1.0 - of_chosen.sum(axis=1) / of_best.sum(axis=1),
    }
