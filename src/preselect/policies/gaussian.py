"""A Gaussian belief about theta: a prior, an estimate with its covariance, joint draws, and the choice of a set."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import one_of
from preselect.context import Context, Floats, StructuredContext
from preselect.kernels import choosing
from preselect.policies.linear import LinearPolicy, per_feature, saved
from preselect.policies.policy import Mask, described

_COVER_DRAWS = 64
_JITTER = 1e-10  # arms may be equal, and their covariance singular


class GaussianPolicy(LinearPolicy):
    """theta ~ N(theta, P) with A = inv(P); at first N(mean, 1 / precision), each one number or one per feature.

    `choose="cover"` chooses a set instead of k single arms: greedily the set whose best arm comes, in expectation over
    the belief, closest to the best of all arms in utility (the mean of max over the set of v_i / max v, over 64 joint
    draws of theta). Arms that are good or bad together do not fill the set; and no bonus is needed, because an arm is
    worth a place if it may be the best.
    """

    _state: ClassVar[tuple[str, ...]] = ("theta", "A", "P")

    def __init__(
        self, *, d: int, mean: ArrayLike, precision: ArrayLike, choose: str = "best", seed: int | None
    ) -> None:
        super().__init__(d=d, seed=seed)
        self._prior = np.stack(
            (per_feature(mean, "mean", self.d), per_feature(precision, "precision", self.d, above=0.0))
        )
        self.mean, self.precision = saved(mean), saved(precision)
        self.choose = one_of(choose, "choose", ("best", "cover"))
        self._estimate = np.zeros((1 + 2 * self.d, self.d))  # one block for the kernels, of which the rest are views
        self.theta = self._estimate[0]
        self.A, self.P = self._estimate[1:].reshape(2, self.d, self.d)
        self.theta[:] = self._prior[0]
        np.fill_diagonal(self.A, self._prior[1])
        np.fill_diagonal(self.P, 1.0 / self._prior[1])

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        if self.choose == "best":
            return super()._choose(context, k, eligible)
        scores, widths = self._score(context)  # first, because it refuses bad input before anything is drawn
        arms = np.empty(k, dtype=np.int64)
        choosing.cover(self._draw(context, scores - widths, _COVER_DRAWS), scores - widths, eligible, arms)
        return described(context, arms, scores, widths)

    def _draw(self, context: Context, u: Floats, draws: int) -> Floats:
        """Joint draws of the utilities of all arms from the belief, n x draws, given their means u.

        Of the utilities themselves if there are fewer arms than features, of theta otherwise: the same distribution.
        """
        n = len(u)
        if n < self.d:
            covariance = _covariance(context, self.P)
            covariance[np.diag_indices(n)] += _JITTER * covariance.trace() / n
            return u[:, None] + np.linalg.cholesky(covariance) @ self._generator.standard_normal((n, draws))
        thetas = self._generator.standard_normal((draws, self.d)) @ np.linalg.cholesky(self.P).T
        return u[:, None] + utilities(context, thetas)

    def _refresh(self) -> None:
        """P from A, which undoes the rounding of many small updates."""
        refresh(self.A, self.P)


def refresh(A: Floats, P: Floats) -> None:
    """P = inv(A), symmetric."""
    inverse = np.linalg.inv(A)
    P[:] = 0.5 * (inverse + inverse.T)


def _covariance(context: Context, P: Floats) -> Floats:
    """X P X', n x n."""
    if isinstance(context, StructuredContext):
        return context.covariance(P)
    X = np.asarray(context, dtype=np.float64)
    covariance: Floats = X @ P @ X.T
    return covariance


def utilities(context: Context, thetas: Floats) -> Floats:
    """Utilities x'theta of every arm for each of M vectors: n x M."""
    if isinstance(context, StructuredContext):
        return context.utilities(thetas)
    return np.asarray(context, dtype=np.float64) @ thetas.T
