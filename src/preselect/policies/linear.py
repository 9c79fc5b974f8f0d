"""Policies whose utility is linear in the features: scores by x'theta plus a width, chosen by the compiled kernels."""

import numpy as np
from numpy.typing import NDArray

from preselect import kernels
from preselect.context import Context, Floats, StructuredContext, require_finite, require_finite_context
from preselect.errors import InputError
from preselect.policies.policy import Mask, Policy

_NO_MATRIX: Floats = np.empty((0, 0))
_INT64 = np.dtype(np.int64)


class LinearPolicy(Policy):
    """Ranks arms by x'theta + log1p(beta sqrt(x' Sigma x)), in the log domain, where no utility overflows."""

    d: int
    theta: Floats

    def __init__(self, *, d: int, seed: int | None) -> None:
        super().__init__(d=d, seed=seed)
        self._scratch = np.empty((2, 0))

    def _width(self) -> tuple[Floats, float]:
        """Sigma and beta of the widths; without exploration there are none."""
        return _NO_MATRIX, 0.0

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        X, theta, (Sigma, beta) = context, self.theta, self._width()
        if isinstance(X, StructuredContext):
            X, theta, Sigma = _contracted(X, theta, Sigma)
        scores, widths = np.empty(len(X)), np.empty(len(X))
        if kernels.score(X, theta, Sigma, beta, scores, widths) == kernels.NOT_FINITE:
            self._refuse(context)
        return scores, widths

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        X, theta, (Sigma, beta) = context, self.theta, self._width()
        if isinstance(X, StructuredContext):
            X, theta, Sigma = _contracted(X, theta, Sigma)
        if self._scratch.shape[1] < len(X):
            self._scratch = np.empty((2, len(X)))
        arms, numbers = np.empty(k, _INT64), np.empty(k * (2 + self.d))
        status = kernels.choose(X, theta, Sigma, beta, eligible, self._scratch, arms, numbers)
        if status == kernels.NOT_FINITE:
            self._refuse(context)
        if status == kernels.TIED:
            return super()._choose(context, k, eligible)
        if isinstance(context, StructuredContext):
            numbers[2 * k :] = context.rows(arms).ravel()
        return arms, numbers

    def _refuse(self, context: Context) -> None:
        require_finite_context(context)
        raise InputError("X must give finite utilities, got an overflow in X @ theta; scale the features")


def _contracted(context: StructuredContext, theta: Floats, Sigma: Floats) -> tuple[Floats, Floats, Floats]:
    """The smaller problem, in the features of the arms, that is left when the context has been contracted."""
    require_finite(context.context, "context of X")
    return context.arms, context.contract_vector(theta), context.contract_matrix(Sigma) if Sigma.size else Sigma
