"""Polyak-Ruppert averaged SGD on the log-likelihood: how CPPL and the paper's greedy baselines estimate theta."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import number
from preselect.context import Floats, Integers
from preselect.kernels import averaging
from preselect.kernels.types import IMPRECISE
from preselect.policies.estimators.estimator import Estimator, spread
from preselect.scaling import Change


class AveragedSGD(Estimator):
    """theta_hat follows the gradient; the mean of its iterates, theta_bar, is the estimate (Section 5.3).

    The paper leaves theta_0 open; here it is drawn uniformly from [0, 1]^d unless it is given. t counts the outcomes
    learnt, so feedback may come late.
    """

    _vectors = ("theta_hat", "theta_bar")
    theta_hat: Floats
    theta_bar: Floats

    def __init__(self, d: int, *, gamma_1: float, alpha: float, theta_0: ArrayLike | None, seed: int | None) -> None:
        super().__init__(d)
        self.gamma_1 = number(gamma_1, "gamma_1", above=0.0)
        self.alpha = number(alpha, "alpha", above=0.5, below=1.0)
        # Algorithm 1, lines 1 and 2
        self.theta_hat[:] = np.random.default_rng(seed).random(d) if theta_0 is None else spread(theta_0, "theta_0", d)
        self.theta_bar[:] = self.theta_hat

    def _name_views(self) -> None:
        super()._name_views()
        self.theta = self.theta_bar

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:
        # Algorithm 1, line 8: the recursion above Eq. (13)
        return averaging.learn_average(rows, ranking, self.gamma_1 * t**-self.alpha, t, self.block)

    def transform(self, change: Change, t: int) -> None:  # noqa: ARG002
        """Express both iterates in joint features that have changed: utilities stay."""
        self.theta_hat[:], self.theta_bar[:] = change.map_weights(self.theta_hat), change.map_weights(self.theta_bar)


class Sandwich(AveragedSGD):
    """Averaged SGD with the covariance Sigma = P B P of theta_bar, where P is the inverse of A.

    A is the sum of the negative Hessians, and B of the gradients' outer products, at theta_bar: t times the paper's -S
    and V (below Eq. (13)), so that Sigma is its t^-1 S^-1 V S^-1. A starts at `ridge` times the identity, because S is
    singular in the first rounds.
    """

    _matrices = ("A", "B", "P", "Sigma")
    A: Floats
    B: Floats
    P: Floats
    Sigma: Floats

    def __init__(
        self,
        d: int,
        *,
        ridge: float,
        gamma_1: float,
        alpha: float,
        theta_0: ArrayLike | None,
        seed: int | None,
    ) -> None:
        super().__init__(d, gamma_1=gamma_1, alpha=alpha, theta_0=theta_0, seed=seed)
        self.ridge = ridge
        np.fill_diagonal(self.A, ridge)
        np.fill_diagonal(self.P, 1.0 / ridge)

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:
        step, status = self.gamma_1 * t**-self.alpha, IMPRECISE
        if self.d > 2 * (len(rows) - 1):
            status = averaging.update_sandwich(rows, ranking, step, t, self.block)
        return averaging.recompute_sandwich(rows, ranking, step, t, self.block) if status == IMPRECISE else status

    @property
    def covariance(self) -> Floats:
        """The covariance of theta_bar."""
        return self.Sigma

    def transform(self, change: Change, t: int) -> None:
        """Express iterates and covariance in joint features that have changed; the ridge stays as it is."""
        super().transform(change, t)
        ridge = self.ridge * np.eye(self.d)
        self.A[:] = ridge + change.map_matrix(self.A - ridge)
        self.B[:] = change.map_matrix(self.B)
        self.refresh()

    def refresh(self) -> None:
        """Recompute P and Sigma from A and B."""
        P = np.linalg.inv(self.A)
        self.P[:] = 0.5 * (P + P.T)
        self.Sigma[:] = self.P @ self.B @ self.P
