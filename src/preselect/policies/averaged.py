"""Polyak-Ruppert averaged SGD on the log-likelihood: how CPPL and its greedy relatives estimate theta."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import number
from preselect.decision import Decision
from preselect.kernels import averaging
from preselect.kernels.types import OK
from preselect.policies.linear import LinearPolicy, per_feature, refuse_decision, saved


class AveragedSGD(LinearPolicy):
    """Section 5.3: theta_hat steps by gamma_1 t^-alpha along the gradient, theta_bar is the mean of the iterates.

    What the paper leaves open is decided here: theta_0 is drawn uniformly from [0, 1]^d by the policy's generator
    unless it is given, as a number or as d of them; t counts the outcomes learnt, so late feedback needs no care.
    """

    _state: ClassVar[tuple[str, ...]] = ("theta_hat", "theta_bar")
    _learn = staticmethod(averaging.learn_average)
    _refresh_every = 256

    def __init__(self, *, d: int, gamma_1: float, alpha: float, theta_0: ArrayLike | None, seed: int | None) -> None:
        super().__init__(d=d, seed=seed)
        self.gamma_1 = number(gamma_1, "gamma_1", above=0.0)
        self.alpha = number(alpha, "alpha", above=0.5, below=1.0)
        start = None if theta_0 is None else per_feature(theta_0, "theta_0", self.d)
        self.theta_0 = None if theta_0 is None else saved(theta_0)
        self._estimate = np.zeros(
            (self._estimate_rows(self.d), self.d)
        )  # one block for the kernels, of which the rest are views
        self.theta_hat, self.theta_bar = self._estimate[:2]
        self.theta_hat[:] = self._generator.random(self.d) if start is None else start
        self.theta_bar[:] = self.theta_hat
        self.theta = self.theta_bar

    @staticmethod
    def _estimate_rows(d: int) -> int:  # noqa: ARG004
        return 2

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        t = self.observations + 1
        step = self.gamma_1 * t**-self.alpha
        if self._learn(decision.rows, ranking, step, t, self._estimate) != OK:
            refuse_decision(decision, self._estimate)
        if t % self._refresh_every == 0:
            self._refresh()

    def _refresh(self) -> None:
        """Undo the rounding of many small updates; there is none in the plain average."""
