"""Scale features by what has been seen of them, and convert joint features when the scaling changes.

The joint features of an arm are (its features, its identity) ⊗ (1, context), all of them scaled. A new scaling changes
scaled features by factors and shifts; as there is a constant among the features of the context, and the identities of
arms add up to one, the joint features change linearly. So what a policy has learnt can be converted: see `Change`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import as_floats, integer, show
from preselect.context import Floats
from preselect.errors import InputError

_MOST_FEATURES = 100_000_000  # in one row
_MOST_DEVIATIONS = 3.0  # where a scaled value is cut off
_MOST_SEEN = 4.0  # a limit for new values while few have been seen, in deviations from the mean


class Scaling:
    """Scales features by what has been seen of them so far, for rounds that come one by one.

    Each value x becomes sign(x) log(1 + |x|), because counts and sizes spread over orders of magnitude. The result is
    standardised to mean 0 and deviation 1 and cut off at ±3; a value that is not known (NaN) counts as the mean, and a
    feature that has not varied yet is 0. Finally rows are multiplied by 2 / √size, so that many features do not
    outweigh few: the priors of policies expect rows of about that length.

    No single value changes much: the mean moves by at most half its standard error, the variance by at most a quarter
    (while fewer than 64 have been seen, by as much as a value four deviations away would move it).

    Parameters
    ----------
    size : int
        How many features a row has.

    Examples
    --------
    >>> scaling = Scaling(2)
    >>> for row in ([1.0, 100.0], [3.0, 300.0], [5.0, np.nan]):
    ...     scaling.learn(row)
    >>> scaling([1.0, np.nan]).round(2).tolist()
    [-1.86, 0.0]
    """

    def __init__(self, size: int) -> None:
        self.size = integer(size, "size", 0, _MOST_FEATURES)
        self.seen = np.zeros((3, self.size))  # counts, means, and sums of squared deviations from them
        self._slopes: Floats | None = None  # one over the deviations; computed when first needed

    @classmethod
    def of(cls, seen: Floats) -> Self:
        """Make a scaling from counts, means and sums of squared deviations.

        Parameters
        ----------
        seen : array of shape (3, size)
            What another scaling has seen; it is copied.
        """
        found = as_floats(seen, "seen", 2)
        if len(found) != 3 or not is_possible(found):
            raise InputError(f"seen is {show(seen)}; use a row of counts, one of means and one of sums of squares")
        scaling = cls(found.shape[1])
        scaling.seen[:] = found
        return scaling

    @classmethod
    def fit(cls, rows: ArrayLike) -> Self:
        """Make a scaling from many rows at once; their order does not matter.

        In each feature, the value farthest from the median is limited by the others, as `learn` limits values.

        Parameters
        ----------
        rows : array of shape (n, size)
            The features, one row each; NaN for those that are not known.
        """
        known = as_floats(rows, "rows", 2)
        if np.isinf(known).any():
            raise InputError("rows has infinite entries; use numbers, NaN for those that are not known")
        values = _take_logarithm(known)
        scaling = cls(values.shape[1])
        for column, found in enumerate(values.T):
            scaling.seen[:, column] = _summarise(found[~np.isnan(found)])
        return scaling

    def learn(self, values: ArrayLike) -> None:
        """Learn from one row (Welford's update).

        Parameters
        ----------
        values : array of `size` floats
            The features; NaN for those that are not known.
        """
        row = self._as_row(values)
        count, mean, squares = self.seen
        is_known = row == row
        away = np.where(is_known, row - mean, 0.0)
        # how far a value may be from the mean; any distance before the feature has varied
        most = np.sqrt(squares * np.maximum(0.25, _MOST_SEEN**2 / np.maximum(count, 1.0)))
        away = np.where(squares > 0.0, _cut(away, most), away)
        count += is_known
        step = away / np.maximum(count, 1.0)
        mean += step
        squares += away * (away - step)
        self._slopes = None

    def __call__(self, values: ArrayLike) -> Floats:
        """Scale one row or several.

        Parameters
        ----------
        values : array of shape (size,) or (n, size)
            The features; NaN for those that are not known.
        """
        away = (_take_logarithm(self._as_rows(values)) - self.seen[1]) * self._find_slopes()
        away[away != away] = 0.0
        scaled: Floats = _cut(away, _MOST_DEVIATIONS) * self.unit
        return scaled

    def change_to(self, other: Scaling) -> tuple[Floats, Floats]:
        """Return the factors and shifts that turn values scaled by this into values scaled by another.

        Exact for values that neither cuts off. A feature that had not varied was 0, and its factor is 0, too.

        Parameters
        ----------
        other : Scaling
            The other scaling, of the same size.
        """
        if not isinstance(other, Scaling) or other.size != self.size:
            raise InputError(f"other is {show(other)}; use a Scaling of size {self.size}")
        ours, theirs = self._find_slopes(), other._find_slopes()
        factor = np.divide(theirs, ours, out=np.zeros(self.size), where=ours > 0.0)
        return factor, (self.seen[1] - other.seen[1]) * theirs * self.unit

    @property
    def unit(self) -> float:
        """The scaled value of a number one deviation above the mean."""
        return 2.0 / math.sqrt(max(self.size, 1))

    @property
    def varied(self) -> NDArray[np.bool_]:
        """Whether each feature has varied."""
        return self._find_slopes() > 0.0

    def _find_slopes(self) -> Floats:
        """One over the deviation of each feature; 0 for those that have not varied."""
        if self._slopes is None:
            count, mean, squares = self.seen
            deviation = np.sqrt(squares / np.maximum(count, 1.0))
            varied = deviation > 1e-12 * np.abs(mean)
            self._slopes = np.divide(1.0, deviation, out=np.zeros(self.size), where=varied)
        return self._slopes

    def _as_rows(self, values: ArrayLike) -> Floats:
        rows = as_floats(values, "values", 1, 2)
        if rows.shape[-1] != self.size or np.count_nonzero(np.isinf(rows)):
            raise InputError(f"values is {show(values)}; use {self.size} numbers, NaN for those that are not known")
        return rows

    def _as_row(self, values: ArrayLike) -> Floats:
        row = as_floats(values, "values", 1)
        if len(row) != self.size or np.count_nonzero(np.isinf(row)):
            raise InputError(f"values is {show(values)}; use {self.size} numbers, NaN for those that are not known")
        return _take_logarithm(row)


def is_possible(seen: Floats) -> bool:
    """Whether these may be counts, means and sums of squared deviations."""
    return bool(np.isfinite(seen).all() and (seen[[0, 2]] >= 0.0).all())


def _cut(values: Floats, most: Floats | float) -> Floats:
    return np.minimum(np.maximum(values, -most), most)  # a third of the time of np.clip


def _take_logarithm(values: Floats) -> Floats:
    return np.sign(values) * np.log1p(np.abs(values))


def _summarise(values: Floats) -> tuple[int, float, float]:
    """Return the count, mean and sum of squares about it, with the value farthest from the median cut off."""
    values = np.sort(values)  # sorted, so that the result does not depend on the order of arms, to the last bit
    if len(values) > 3:
        farthest = int(np.abs(values - np.median(values)).argmax())
        others = np.delete(values, farthest)
        most = max(_MOST_SEEN, 0.5 * np.sqrt(len(values))) * others.std()
        if most > 0.0:
            values = np.append(others, np.clip(values[farthest], others.mean() - most, others.mean() + most))
    mean = float(values.mean()) if len(values) else 0.0
    return len(values), mean, float(((values - mean) ** 2).sum())


@dataclass(frozen=True)
class Change:
    """A linear map L of joint features: what a change of scaling does to them.

    Of an a x c matrix of joint features, the first columns and rows follow the others: column j becomes
    context[0, j - 1] times itself plus context[1, j - 1] times column 0, the constant; row i, if it belongs to a
    feature of the arms, becomes arms[0, i] times itself plus arms[1, i] times the sum of the identities' rows.

    Parameters
    ----------
    arms : array of shape (2, features of arms)
        Factors and shifts of the arms' features.
    context : array of shape (2, features of the context)
        Factors and shifts of the context's features.
    """

    arms: Floats
    context: Floats

    def map_rows(self, rows: Floats) -> Floats:
        """Return L x for every row x.

        Parameters
        ----------
        rows : array of shape (n, d)
            Joint features, or anything that is linear in them.
        """
        z, c = self._shape(rows)
        mapped = rows.reshape(-1, z, c).copy()
        mapped[:, :, 1:] = self.context[0] * mapped[:, :, 1:] + self.context[1] * mapped[:, :, :1]
        features, identities = np.split(mapped, [self.arms.shape[1]], axis=1)
        features[:] = self.arms[0][:, None] * features + self.arms[1][:, None] * identities.sum(axis=1, keepdims=True)
        return mapped.reshape(rows.shape)

    def map_matrix(self, matrix: Floats) -> Floats:
        """Return L M L' for a symmetric matrix M.

        Parameters
        ----------
        matrix : array of shape (d, d)
            A sum of outer products of rows.
        """
        mapped = self.map_rows(self.map_rows(matrix).T)
        symmetric: Floats = 0.5 * (mapped + mapped.T)
        return symmetric

    def map_weights(self, theta: Floats) -> Floats:
        """Return the weights with which mapped rows have the utilities that the rows had with theta.

        The weight of a feature that had not varied stays.

        Parameters
        ----------
        theta : array of shape (d,)
            Weights of joint features.
        """
        z, c = self._shape(theta)
        mapped = theta.reshape(z, c).copy()
        mapped[:, 1:] /= np.where(self.context[0] > 0.0, self.context[0], 1.0)
        mapped[:, 0] -= mapped[:, 1:] @ self.context[1]
        features, identities = np.split(mapped, [self.arms.shape[1]])
        features /= np.where(self.arms[0] > 0.0, self.arms[0], 1.0)[:, None]
        identities -= self.arms[1] @ features
        return mapped.ravel()

    def _shape(self, rows: Floats) -> tuple[int, int]:
        columns = 1 + self.context.shape[1]
        return rows.shape[-1] // columns, columns
