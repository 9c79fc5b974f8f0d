"""CPPL, the paper's algorithm (El Mesaoudi-Paul, Bengs, Hüllermeier 2020, Algorithm 1)."""

import math

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import number
from preselect.kernels import averaging
from preselect.kernels.types import LOGARITHM
from preselect.policies.averaged import AveragedSGD
from preselect.policies.linear import Width


class CPPL(AveragedSGD):
    """Upper confidence bounds on contextualised Plackett-Luce utilities, estimated by averaged SGD.

    The paper's defaults. Two identities make it cheap and change nothing: M in the confidence width has rank one, so
    the operator norm is exp(2 x'theta) x' Sigma x; and t^-1 S^-1 V S^-1 equals A^-1 B A^-1 with sums A, B in place of
    the means S, V. Arms are ranked by log(v + c) = x'theta + log1p(omega sqrt(... x' Sigma x)).

    Decided here, where the paper is silent: A starts at `ridge` times the identity, because the paper's S is singular
    in the first rounds (its size hardly matters for regret, but below 1e-6 it costs digits and is refused); the width
    in round t uses the estimates of round t - 1; before the first observation it is zero for every arm, so the first
    choice is by utility alone; ties are broken at random. For theta_0 see AveragedSGD.

    >>> policy = CPPL(d=2, seed=0)
    >>> decision = policy.select([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], k=2)
    >>> decision.arms
    array([2, 0])
    """

    source = "El Mesaoudi-Paul, Bengs and Hüllermeier 2020"
    _state = (*AveragedSGD._state, "A", "B", "P", "Sigma")
    _learn = staticmethod(averaging.learn_sandwich)

    def __init__(
        self,
        *,
        d: int,
        gamma_1: float = 2.0,
        alpha: float = 0.6,
        omega: float = 1.0,
        ridge: float = 1e-3,
        theta_0: ArrayLike | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, gamma_1=gamma_1, alpha=alpha, theta_0=theta_0, seed=seed)
        self.omega = number(omega, "omega", least=0.0)
        self.ridge = number(ridge, "ridge", least=1e-6)
        self.A, self.B, self.P, self.Sigma = self._estimate[2:].reshape(4, self.d, self.d)
        np.fill_diagonal(self.A, self.ridge)
        np.fill_diagonal(self.P, 1.0 / self.ridge)
        self._refresh_every = max(256, self.d)

    @staticmethod
    def _estimate_rows(d: int) -> int:
        return 2 + 4 * d

    def _width(self) -> Width:
        log_t = math.log(self.observations + 1)
        beta = self.omega * math.sqrt(2.0 * log_t + self.d + 2.0 * math.sqrt(self.d * log_t))
        return self.Sigma, beta, LOGARITHM

    def _refresh(self) -> None:
        P = np.linalg.inv(self.A)
        self.P[:] = 0.5 * (P + P.T)
        self.Sigma[:] = self.P @ self.B @ self.P
