"""LinUCB (Li, Chu, Langford and Schapire 2010), with one theta shared by all arms, and winning as the reward."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import number
from preselect.context import Floats, Integers
from preselect.kernels import learning
from preselect.kernels.types import PLAIN
from preselect.outcomes import list_ties
from preselect.policies.estimators import Estimator, Gaussian
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy, Width
from preselect.scaling import Change


class _Ridge(Gaussian):
    """Ridge regression of rewards on rows: A gains the sum of xx', b the sum of reward x, and theta = inv(A) b."""

    def __init__(self, d: int, precision: float) -> None:
        super().__init__(d, mean=0.0, precision=precision)
        self.b = np.zeros(d)

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:  # noqa: ARG002
        rewards = np.zeros(len(rows))
        tied = next(list_ties(ranking))
        rewards[tied] = 1.0 / len(tied)
        return learning.learn_rewards(rows, rewards, self.b, self.block)

    def transform(self, change: Change, t: int) -> None:
        super().transform(change, t)
        self.b[:] = change.map_rows(self.b)
        self.theta[:] = self.P @ self.b

    def forget(self, places: Integers, fresh: Estimator) -> None:
        super().forget(places, fresh)
        self.b[:] = self.A @ self.theta

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), "b": self.b}


class LinUCB(LinearPolicy):
    """Ridge regression of winning on the features, and upper confidence bounds x'theta + alpha sqrt(x' inv(A) x).

    A is `precision` times the identity plus the sum of xx' over all arms tried, b the sum of reward times x, and
    theta = inv(A) b. For the paper's hybrid model, with weights of all arms and of each arm, use joint features with
    both the shared features and one-hot ⊗ context. For the paper's disjoint model, use one-hot ⊗ context alone.

    Adapted: the paper tries one arm and sees its reward. Here the k arms with the largest bounds are tried, and each is
    an observation: reward 1 for the winner (the first of a ranking; arms tied for first place share 1), 0 for the
    others. Scores are therefore winning probabilities rather than log-utilities, and depend on which arms were tried
    together.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    alpha : float, default 1.0
        How many standard deviations the bounds lie above the estimate, at least 0; larger values explore more.
    precision : float, default 1.0
        The ridge, above 0: A starts at this multiple of the identity.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = LinUCB(d=2, alpha=0.0, seed=0)
    >>> from preselect.outcomes import Winner
    >>> policy.learn(policy.select([[1.0, 0.0], [0.0, 1.0]], k=2), Winner(1))
    >>> policy.scores([[1.0, 0.0], [0.0, 1.0]])
    array([0. , 0.5])
    """

    has_log_utilities = False
    source = "Li, Chu, Langford and Schapire 2010"
    estimate: _Ridge
    A, P, b = Part(), Part(), Part()

    def __init__(self, *, d: int, alpha: float = 1.0, precision: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d=d, seed=seed)
        self.alpha = number(alpha, "alpha", least=0.0)
        self.precision = number(precision, "precision", above=0.0)
        self.estimate = _Ridge(self.d, self.precision)

    def _width(self) -> Width:
        return self.estimate.P, self.alpha, 0.0, PLAIN
