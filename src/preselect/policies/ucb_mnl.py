"""UCB-MNL (Oh and Iyengar 2021, Algorithm 1; the maximum likelihood approach of Chen, Wang and Zhou 2018)."""

import math

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import number
from preselect.decision import Decision
from preselect.kernels import learning
from preselect.kernels.types import PLAIN
from preselect.policies.gaussian import refresh
from preselect.policies.history import WholeHistory
from preselect.policies.linear import Width


class UCBMNL(WholeHistory):
    """Whole-history maximum likelihood and upper confidence bounds, x'theta + alpha_t sqrt(x' inv(V) x).

    V is the sum of xx' over all arms shown so far, whatever was chosen, and
    alpha_t = sqrt(2 d log(1 + t / d) + 2 log t) / (2 kappa), where kappa bounds p_i p_0 from below (Theorem 1).

    Adapted: their customer may choose nothing (an outside option of utility 0) and items have revenues; here one of the
    k arms wins, and all revenues are equal, for which their best assortment is the top k by the bound. Their first T_0
    rounds at random, which make V invertible, are replaced by V starting at `precision` times the identity, which also
    regularises the likelihood, as in the authors' own experiments. A ranking enters the likelihood whole.

    >>> policy = UCBMNL(d=2, seed=0)
    >>> policy.select([[3.0, 0.0], [0.0, 1.0], [2.0, 0.0]], k=2).arms
    array([0, 2])
    """

    source = "Oh and Iyengar 2021"
    _state = (*WholeHistory._state, "V", "V_inverse")

    def __init__(
        self, *, d: int, kappa: float = 0.5, precision: float = 1.0, every: int = 1, seed: int | None = None
    ) -> None:
        super().__init__(d=d, precision=number(precision, "precision", above=0.0), every=every, seed=seed)
        self.kappa = number(kappa, "kappa", above=0.0)
        self.V, self.V_inverse = self.A.copy(), self.P.copy()
        self._refresh_every = max(256, self.d)

    def _width(self) -> Width:
        t = self.observations + 1
        alpha = math.sqrt(2.0 * self.d * math.log1p(t / self.d) + 2.0 * math.log(t)) / (2.0 * self.kappa)
        return self.V_inverse, alpha, PLAIN

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        super()._observe(decision, ranking)
        learning.gain_gram(decision.rows, self.V, self.V_inverse)
        if (self.observations + 1) % self._refresh_every == 0:
            refresh(self.V, self.V_inverse)
