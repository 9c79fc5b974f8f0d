"""The estimator of Nearby: online Newton in which each arm learns alone, with one covariance for all features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.kernels import arm_by_arm
from preselect.policies.estimators.gaussian import Gaussian
from preselect.policies.persistence import restore_in_place, widen_arrays

_NO_OWN = np.empty((1, 0))


class ArmByArm(Gaussian):
    """The belief theta ~ N(theta, P), updated arm by arm; `BlockNewton` does the same with a block for each arm."""

    def __init__(self, d: int) -> None:
        super().__init__(d, mean=0.0, precision=1.0)
        self.discount = 1.0
        self.pace = np.zeros(5)  # number and cost of races whose time is known; as in BlockNewton

    def look(self, rows: Floats, ids: Integers) -> tuple[Floats, Floats]:  # noqa: ARG002
        """Return the utilities of these arms and their variances."""
        with np.errstate(over="ignore", invalid="ignore"):
            return rows @ self.theta, np.einsum("id,id->i", rows @ self.P, rows)

    def gain(self, rows: Floats, ids: Integers, gradients: Floats, curvatures: Floats) -> None:
        """Update each of these arms separately, given the slope and the curvature of its log-likelihood."""
        arm_by_arm.learn_alone(rows, np.zeros_like(ids), gradients, curvatures, self.theta, self.P, _NO_OWN)
        self.A += (rows.T * curvatures) @ rows

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has been learnt, under the names that state files have for it."""
        return {**super().arrays(), "pace": self.pace}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore saved arrays."""
        restore_in_place(self.arrays(), arrays)

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of an estimator with fewer features, with the prior for the new ones."""
        return widen_arrays(self.arrays(), arrays)
