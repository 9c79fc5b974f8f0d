"""Policies whose utility is linear in the features: scores by x'theta plus a width, chosen by the compiled kernels."""

import math

import numpy as np
from numpy.typing import NDArray

from preselect import kernels
from preselect.context import Context, Floats, StructuredContext, require_finite, require_finite_context
from preselect.errors import InputError
from preselect.policies.policy import Mask, Policy, rounding

_NO_MATRIX: Floats = np.empty((0, 0))
_INT64 = np.dtype(np.int64)
_MOST_SORTED_BY_INSERTION = 1000


class LinearPolicy(Policy):
    """Ranks arms by x'theta + log1p(beta sqrt(x' Sigma x)), in the log domain, where no utility overflows."""

    d: int
    theta: Floats

    def __init__(self, *, d: int, seed: int | None) -> None:
        super().__init__(d=d, seed=seed)
        self._scratch, self._room = np.empty((2, 0)), 0

    def _width(self) -> tuple[Floats, float]:
        """Sigma and beta of the widths; without exploration there are none."""
        return _NO_MATRIX, 0.0

    def _score(self, context: Context, least: float = -math.inf) -> tuple[Floats, Floats]:
        """Score and width of every arm; arms that cannot reach `least` may be given minus infinity instead."""
        X, theta, (Sigma, beta) = context, self.theta, self._width()
        if isinstance(X, StructuredContext):
            require_finite(X.context, "context of X")
            X, theta, Sigma = X.contract(theta, Sigma)
        scores, widths = np.empty(len(X)), np.empty(len(X))
        if kernels.score(X, theta, Sigma, beta, least, scores, widths) == kernels.NOT_FINITE:
            self._refuse(context)
        return scores, widths

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        if k > _MOST_SORTED_BY_INSERTION:
            return super()._choose(context, k, eligible)
        X, theta, (Sigma, beta) = context, self.theta, self._width()
        if isinstance(X, StructuredContext):
            require_finite(X.context, "context of X")
            X, theta, Sigma = X.contract(theta, Sigma)
        if self._room < len(X):
            self._scratch, self._room = np.empty((2, len(X))), len(X)
        arms, numbers = np.empty(k, _INT64), np.empty(k * (2 + self.d))
        status = kernels.choose(X, theta, Sigma, beta, eligible, self._scratch, arms, numbers)
        if status == kernels.NOT_FINITE:
            self._refuse(context)
        if status == kernels.TIED:
            least = float(numbers[k - 1])
            return self._pick(context, k, eligible, *self._score(context, least - 2.0 * rounding(least)))
        if isinstance(context, StructuredContext):
            numbers[2 * k :] = context.rows(arms).ravel()
        return arms, numbers

    def _refuse(self, context: Context) -> None:
        require_finite_context(context)
        largest = np.abs(np.asarray(context)).max()
        raise InputError(
            f"X must be small enough for finite utilities, got entries up to {largest:.3g}; scale features"
        )
