"""A Gaussian belief about theta, and the Gram matrix of everything shown."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from preselect.context import Context, Floats, Integers
from preselect.kernels import learning
from preselect.kernels.types import OK
from preselect.policies.estimators.estimator import Estimator, spread

_JITTER = 1e-10  # arms may be equal, and their covariance singular


class Gaussian(Estimator):
    """The belief theta ~ N(theta, P), with A the inverse of P; the prior is N(mean, 1 / precision)."""

    _matrices = ("A", "P")
    A: Floats
    P: Floats

    def __init__(self, d: int, *, mean: ArrayLike, precision: ArrayLike) -> None:
        super().__init__(d)
        self.prior = np.stack((spread(mean, "mean", d), spread(precision, "precision", d, above=0.0)))
        self.theta[:] = self.prior[0]
        np.fill_diagonal(self.A, self.prior[1])
        np.fill_diagonal(self.P, 1.0 / self.prior[1])

    def refresh(self) -> None:
        """Recompute P from A."""
        _invert(self.A, self.P)

    def draw(self, context: Context, u: Floats, draws: int, generator: np.random.Generator) -> Floats:
        """Draw the utilities of all arms jointly from the belief, given their means u: n x draws.

        Draws utilities if there are fewer arms than features, otherwise theta; the distribution is the same.
        """
        n = len(u)
        if n < self.d:
            covariance = context.covariance(self.P)
            covariance[np.diag_indices(n)] += _JITTER * covariance.trace() / n
            return u[:, None] + np.linalg.cholesky(covariance) @ generator.standard_normal((n, draws))
        thetas = generator.standard_normal((draws, self.d)) @ np.linalg.cholesky(self.P).T
        return u[:, None] + context.utilities(thetas)


class Gram(Estimator):
    """G, `precision` times the identity plus the sum of xx' over all rows seen, and its inverse."""

    _vectors = ()
    _matrices = ("G", "inverse")
    G: Floats
    inverse: Floats

    def __init__(self, d: int, precision: float) -> None:
        super().__init__(d)
        np.fill_diagonal(self.G, precision)
        np.fill_diagonal(self.inverse, 1.0 / precision)

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:  # noqa: ARG002
        learning.gain_gram(rows, self.G, self.inverse)  # rows whose squares overflow are left out
        return OK

    def refresh(self) -> None:
        """Recompute the inverse."""
        _invert(self.G, self.inverse)


def _invert(A: Floats, P: Floats) -> None:
    """P = inv(A), symmetric."""
    inverse = np.linalg.inv(A)
    P[:] = 0.5 * (inverse + inverse.T)
