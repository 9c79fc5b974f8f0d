"""Bases of estimators: a Gaussian belief about theta, and the Gram matrix of all rows seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from preselect.context import Context, Floats, Integers
from preselect.errors import InputError
from preselect.kernels import learning
from preselect.policies.estimators.estimator import Estimator, spread
from preselect.scaling import Change

_LEAST_PRECISION = 1e-300
_JITTER = 1e-12  # share of a variance to add to it: far more than rounding, too little to matter


class Gaussian(Estimator):
    """The belief theta ~ N(theta, P), with A the inverse of P; the prior is N(mean, 1 / precision)."""

    _matrices = ("A", "P")
    A: Floats
    P: Floats

    def __init__(self, d: int, *, mean: ArrayLike, precision: ArrayLike) -> None:
        super().__init__(d)
        self.prior = np.stack((spread(mean, "mean", d), spread(precision, "precision", d, above=0.0)))
        if self.prior[1].min() < _LEAST_PRECISION:
            raise InputError(
                f"precision goes down to {self.prior[1].min():.3g}, so its inverse, a variance, overflows; "
                f"use at least {_LEAST_PRECISION:g}"
            )
        self.theta[:] = self.prior[0]
        np.fill_diagonal(self.A, self.prior[1])
        np.fill_diagonal(self.P, 1.0 / self.prior[1])

    @property
    def covariance(self) -> Floats:
        """The covariance of theta."""
        return self.P

    def transform(self, change: Change, t: int) -> None:  # noqa: ARG002
        """Express the evidence in joint features that have changed; the prior stays."""
        self.theta[:], self.A[:] = self._map_belief(change, self.theta, self.A)
        self.refresh()

    def forget(self, places: Integers, fresh: Estimator) -> None:
        """Reset the belief about some features to the prior; the belief about all others stays as it is."""
        P = self.P.copy()
        P[places] = P[:, places] = 0.0
        P[places, places] = 1.0 / self.prior[1][places]
        super().forget(places, fresh)
        self.P[:] = P
        _invert(P, self.A)

    def _map_belief(self, change: Change, theta: Floats, A: Floats) -> tuple[Floats, Floats]:
        """Return theta and A in joint features that have changed by L, with the prior N(mean, 1 / Λ) as before.

        A - Λ becomes L (A - Λ) L', and A theta - Λ mean becomes L (A theta - Λ mean).
        """
        mean, precision = self.prior
        mapped = np.diag(precision) + change.map_matrix(A - np.diag(precision))
        evidence = change.map_rows(A @ theta - precision * mean)
        return np.linalg.solve(mapped, precision * mean + evidence), mapped

    def refresh(self) -> None:
        """Recompute P from A."""
        _invert(self.A, self.P)

    def draw(self, context: Context, u: Floats, draws: int, generator: np.random.Generator) -> Floats:
        """Draw the utilities of all arms jointly from the belief, given their means u: n x draws.

        With fewer arms than features it draws utilities, otherwise theta; the distribution is the same.
        """
        deviations = self._draw_few(context, len(u), draws, generator) if len(u) < self.d else None
        if deviations is None:
            deviations = context.utilities(self.draw_deviations(draws, generator))
        deviations += u[:, None]  # in place, because fresh memory costs more than the sum
        return deviations

    def draw_deviations(self, draws: int, generator: np.random.Generator) -> Floats:
        """Draw theta minus its mean from the belief: draws x d."""
        try:
            root = np.linalg.cholesky(self.P)
        except np.linalg.LinAlgError:
            root = find_root(self.P)
        return generator.standard_normal((draws, self.d)) @ root.T

    def _draw_few(self, context: Context, n: int, draws: int, generator: np.random.Generator) -> Floats | None:
        """Draw utilities minus their means from their n x n covariance; None if it overflows where they do not."""
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = context.covariance(self.P)
        if not np.isfinite(covariance).all():
            return None
        return find_root(covariance) @ generator.standard_normal((n, draws))


class Gram(Estimator):
    """G, `precision` times the identity plus the sum of xx' over all rows seen, and its inverse."""

    _vectors = ()
    _matrices = ("G", "inverse")
    G: Floats
    inverse: Floats

    def __init__(self, d: int, precision: float) -> None:
        super().__init__(d)
        self.precision = precision
        np.fill_diagonal(self.G, precision)
        np.fill_diagonal(self.inverse, 1.0 / precision)

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:  # noqa: ARG002
        return learning.gain_gram(rows, self.G, self.inverse)

    def transform(self, change: Change, t: int) -> None:  # noqa: ARG002
        """Express G in joint features that have changed; the ridge stays as it is."""
        ridge = self.precision * np.eye(self.d)
        self.G[:] = ridge + change.map_matrix(self.G - ridge)
        self.refresh()

    def refresh(self) -> None:
        """Recompute the inverse."""
        _invert(self.G, self.inverse)

    @contextmanager
    def undo_on_error(self) -> Iterator[None]:
        """Undo what was learnt inside the block if it ends in an InputError, so that no outcome is learnt by half."""
        before = self.block.copy()
        try:
            yield
        except InputError:
            self.block[:] = before
            raise


def _invert(A: Floats, P: Floats) -> None:
    """P = inv(A), symmetric."""
    inverse = np.linalg.inv(A)
    P[:] = 0.5 * (inverse + inverse.T)


def find_root(S: Floats) -> Floats:
    """Return a matrix R with RR' = S, for S positive semidefinite up to rounding: arms may be equal, or zero.

    S is scaled to a diagonal of ones, so that small entries matter as much as large ones, and a little is added to the
    diagonal: then Cholesky's method succeeds, and its result hardly depends on rounding. If it fails all the same,
    because S is very badly conditioned, the root is computed from the eigenvalues.
    """
    scale = np.sqrt(np.maximum(S.diagonal(), 0.0))
    over = np.where(scale > 0.0, scale, 1.0)
    correlations = S / over / over[:, None]
    np.fill_diagonal(correlations, 1.0 + _JITTER)
    root: Floats
    try:
        root = scale[:, None] * np.linalg.cholesky(correlations)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(correlations)
        root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return root
