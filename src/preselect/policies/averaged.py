"""Polyak-Ruppert averaged SGD on the log-likelihood: how CPPL and its greedy relatives estimate theta."""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import kernels
from preselect.context import Floats, as_floats, require_finite
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.policies.linear import LinearPolicy


class AveragedSGD(LinearPolicy):
    """Section 5.3: theta_hat steps by gamma_1 t^-alpha along the gradient, theta_bar is the mean of the iterates.

    What the paper leaves open is decided here: theta_0 is drawn uniformly from [0, 1]^d by the policy's generator
    unless it is given, as a number or as d of them; t counts the outcomes learnt, so late feedback needs no care.
    """

    _state: ClassVar[tuple[str, ...]] = ("theta_hat", "theta_bar")
    _learn = staticmethod(kernels.learn_average)

    def __init__(self, *, d: int, gamma_1: float, alpha: float, theta_0: ArrayLike | None, seed: int | None) -> None:
        super().__init__(d=d, seed=seed)
        if not gamma_1 > 0.0 or not math.isfinite(gamma_1):
            raise InputError(f"gamma_1 must be positive, got {gamma_1}")
        if not 0.5 < alpha < 1.0:
            raise InputError(f"alpha must lie between 1/2 and 1, got {alpha}")
        self.gamma_1 = gamma_1
        self.alpha = alpha
        self.theta_0 = None if theta_0 is None else np.asarray(theta_0, dtype=np.float64).tolist()
        self._estimate = np.zeros((self._estimate_rows(d), d))  # one block for the kernels, of which the rest are views
        self.theta_hat, self.theta_bar = self._estimate[:2]
        self.theta_hat[:] = self._generator.random(d) if theta_0 is None else _as_theta(theta_0, d)
        self.theta_bar[:] = self.theta_hat
        self.theta = self.theta_bar

    @staticmethod
    def _estimate_rows(d: int) -> int:  # noqa: ARG004
        return 2

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        t = self.observations + 1
        step = self.gamma_1 * t**-self.alpha
        if self._learn(decision.numbers, len(decision.arms), ranking, step, t, self._estimate) != kernels.OK:
            raise InputError("decision must have finite rows of a size at which theta stays finite; nothing was learnt")


def _as_theta(theta_0: ArrayLike, d: int) -> Floats:
    values = np.full(d, theta_0, dtype=np.float64) if np.ndim(theta_0) == 0 else as_floats(theta_0, "theta_0", 1).copy()
    if len(values) != d:
        raise InputError(f"theta_0 must be one number or d={d} of them, got {len(values)}")
    require_finite(values, "theta_0")
    return values
