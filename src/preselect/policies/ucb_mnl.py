"""UCB-MNL (Oh and Iyengar 2021, Algorithm 1; the maximum likelihood approach of Chen, Wang and Zhou 2018)."""

from __future__ import annotations

import math

from preselect.arguments import number
from preselect.context import Floats, Integers
from preselect.kernels.types import PLAIN
from preselect.policies.estimators import Gram, WholeHistory
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy, Width, update
from preselect.scaling import Change


class UCBMNL(LinearPolicy):
    """Chooses by upper confidence bounds x'theta + alpha_t sqrt(x' inv(V) x), with maximum likelihood of all outcomes.

    V is the sum of xx' over all arms tried so far, whichever won, and
    alpha_t = sqrt(2 d log(1 + t / d) + 2 log t) / (2 kappa), where kappa bounds p_i p_0 from below (Theorem 1).
    A round costs O(t k d^2), and memory grows with every outcome.

    Adapted: the paper's customer may choose nothing (an outside option of utility 0), and items have revenues. Here one
    of the k arms wins and revenues are equal, so that the best assortment is the top k by the bound. The paper starts
    with T_0 random rounds to make V invertible; here V starts at `precision` times the identity, which also regularises
    the likelihood, as in the authors' own experiments. A ranking enters the likelihood as a whole.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    kappa : float, default 0.5
        Lower bound of p_i p_0, above 0; smaller values make the bounds wider. The default comes from Oh's own code
        (published with Lee and Oh 2024). As p_i p_0 cannot exceed 1/4, the theorem holds only for smaller values, which
        make wider bounds.
    precision : float, default 1.0
        What V starts with, and the precision of the prior around 0 that regularises the likelihood; above 0.
    every : int, default 1
        The estimate is recomputed after that many outcomes.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = UCBMNL(d=2, seed=0)
    >>> policy.select([[3.0, 0.0], [0.0, 1.0], [2.0, 0.0]], k=2).arms
    array([0, 2])
    """

    source = "Oh and Iyengar 2021"
    keeps_history = True
    _state = ("V", "V_inverse")
    estimate: WholeHistory
    A, P = Part(), Part()

    def __init__(
        self, *, d: int, kappa: float = 0.5, precision: float = 1.0, every: int = 1, seed: int | None = None
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.kappa = number(kappa, "kappa", above=0.0)
        self.precision = number(precision, "precision", above=0.0)
        self.estimate = WholeHistory(self.d, precision=self.precision, every=every)
        self.every = self.estimate.every
        self._gram = Gram(self.d, self.precision)

    @property
    def V(self) -> Floats:
        """The sum of xx' over all arms tried so far, plus `precision` times the identity."""
        return self._gram.G

    @property
    def V_inverse(self) -> Floats:
        """The inverse of V."""
        return self._gram.inverse

    def _width(self) -> Width:
        t = self.observations + 1
        alpha = math.sqrt(2.0 * self.d * math.log1p(t / self.d) + 2.0 * math.log(t)) / (2.0 * self.kappa)
        return self._gram.inverse, alpha, 0.0, PLAIN

    def transform(self, change: Change) -> None:
        super().transform(change)
        self._gram.transform(change, self.observations)

    def _observe(self, rows: Floats, ranking: Integers, t: int) -> None:
        with self._gram.undo_on_error():
            update(self._gram, rows, ranking, t)
            super()._observe(rows, ranking, t)
