"""Features of any scale as joint features: scaling by what has been seen, and what a change of scaling means.

The joint features of an arm are (its features, its identity) ⊗ (1, context), all of them scaled. A new scaling changes
scaled features by factors and shifts; as there is a constant among the features of the context, and the identities of
arms add up to one, the joint features change linearly. So what a policy has learnt can follow: see `Change`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import integer
from preselect.context import Floats, Integers, OneHotContext, StructuredContext, as_floats
from preselect.errors import InputError

_MOST_DEVIATIONS = 3.0  # of a scaled value
_MOST_SEEN = 4.0  # deviations of a value that is learnt, while few have been seen
_RENEWAL = 2  # the scaling is renewed when this many times as many contexts have been seen as at the last time
_MEMORY = 0.5  # the weight that what was seen before then keeps
_CAUTION = 16.0  # how many contexts count as few


class Scaling:
    """Scales features by what has been seen of them so far, for rounds that come one by one.

    Each value x becomes sign(x) log(1 + |x|), because counts and sizes spread over orders of magnitude. The result is
    standardised to mean 0 and deviation 1 and cut off at ±3; a value that is not known (NaN) counts as the mean, and a
    feature that has not varied yet is 0. Finally rows are multiplied by 2 / √size, so that many features do not
    outweigh few: the priors of policies expect rows of about that length.

    No single value changes much: the mean moves by at most half its standard error, the variance by at most a quarter
    (while fewer than 64 have been seen, by what a value four deviations away does).

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
        self.size = integer(size, "size", 0)
        self.seen = np.zeros((3, self.size))  # how often, the mean, the sum of squared deviations from it

    @classmethod
    def of(cls, seen: Floats) -> Self:
        """Make a scaling from counts, means and sums of squared deviations.

        Parameters
        ----------
        seen : array of shape (3, size)
            What another scaling has seen; it is copied.
        """
        scaling = cls(seen.shape[1])
        scaling.seen[:] = seen
        return scaling

    @classmethod
    def fit(cls, rows: ArrayLike) -> Self:
        """Make a scaling from rows that are all known, in any order.

        The value of a feature that is farthest from the median is limited as in `learn`, by the others.

        Parameters
        ----------
        rows : array of shape (n, size)
            The features, one row each; NaN for those that are not known.
        """
        values = _take_logarithm(as_floats(rows, "rows", 2))
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
        away = np.where(np.isnan(row), 0.0, row - mean)
        # a value may be this far away; any distance before the feature has varied
        most = np.sqrt(squares * np.maximum(0.25, _MOST_SEEN**2 / np.maximum(count, 1.0)))
        away = np.where(squares > 0.0, _cut(away, most), away)
        known = count + ~np.isnan(row)
        step = away / np.maximum(known, 1.0)
        self.seen[:] = known, mean + step, squares + away * (away - step)

    def __call__(self, values: ArrayLike) -> Floats:
        """Scale one row or several.

        Parameters
        ----------
        values : array of shape (size,) or (n, size)
            The features; NaN for those that are not known.
        """
        away = (_take_logarithm(np.asarray(values, dtype=np.float64)) - self.seen[1]) * self._slopes()
        away[np.isnan(away)] = 0.0
        scaled: Floats = _cut(away, _MOST_DEVIATIONS) * self._unit
        return scaled

    def change_to(self, other: Scaling) -> tuple[Floats, Floats]:
        """Return factor and shift with which values scaled by this become values scaled by another.

        Exact for values that neither cuts off. A feature that had not varied was 0; the factor is 0, too.

        Parameters
        ----------
        other : Scaling
            The other scaling, of the same size.
        """
        ours, theirs = self._slopes(), other._slopes()
        factor = np.divide(theirs, ours, out=np.zeros(self.size), where=ours > 0.0)
        return factor, (self.seen[1] - other.seen[1]) * theirs * self._unit

    @property
    def _unit(self) -> float:
        return 2.0 / float(np.sqrt(max(self.size, 1)))

    def _slopes(self) -> Floats:
        """One over the deviation of each feature; 0 for those that have not varied."""
        count, mean, squares = self.seen
        deviation = np.sqrt(squares / np.maximum(count, 1.0))
        return np.divide(1.0, deviation, out=np.zeros(self.size), where=deviation > 1e-12 * np.abs(mean))

    def _as_row(self, values: ArrayLike) -> Floats:
        row = as_floats(values, "values", 1)
        if len(row) != self.size or np.isinf(row).any():
            raise InputError(f"values is {values!r:.80}; use {self.size} numbers, NaN for those that are not known")
        return _take_logarithm(row)


def _cut(values: Floats, most: Floats | float) -> Floats:
    return np.minimum(np.maximum(values, -most), most)  # a third of the time of np.clip


def _take_logarithm(values: Floats) -> Floats:
    return np.sign(values) * np.log1p(np.abs(values))


def _summarise(values: Floats) -> tuple[int, float, float]:
    """Return the count, mean and sum of squares about it, with the value farthest from the median cut off."""
    values = np.sort(values)  # so that the order in which arms join does not matter, to the last bit
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


class JointFeatures:
    """(arm's features, arm's identity) ⊗ (1, context), scaled: what a policy is shown of named arms and a context.

    The scaling in use changes in `renew` only, never because a context is shown or an arm joins: else what the weights
    of a policy mean would change without anything being learnt.

    Parameters
    ----------
    features : int
        How many features an arm has.
    context : int
        How many features a context has.
    capacity : int
        How many arms have an identity; 0 for none.
    """

    def __init__(self, features: int, context: int, capacity: int) -> None:
        self.values = np.empty((0, features))
        self.capacity = capacity
        self.arm_scaling, self.context_scaling = Scaling(features), Scaling(context)
        self.seen = Scaling(context)  # of which `context_scaling` is an earlier state
        self.contexts, self.scaled_contexts, self.scaled_arms = 0, 0, 0
        self._arms: Floats | None = None

    @property
    def d(self) -> int:
        """The number of joint features."""
        return (self.values.shape[1] + self.capacity) * (1 + self.seen.size)

    def add(self, values: Floats) -> None:
        """Add an arm with these features."""
        self.values = np.vstack((self.values, values))
        self._arms = None

    def make_room(self, capacity: int) -> None:
        """Make room for this many identities."""
        self.capacity = capacity
        self._arms = None

    def show(self, context: Floats) -> StructuredContext:
        """Return what a policy sees of all arms in a context."""
        if not self.values.shape[1]:
            n = len(self.values)
            return OneHotContext(self.capacity, self._complete(context), None if n == self.capacity else np.arange(n))
        if self._arms is None:
            self._arms = self._join(np.arange(len(self.values)), self.values)
        return StructuredContext(self._arms, self._complete(context))

    def see(self, context: Floats) -> None:
        """Take in a context for the scaling to come."""
        if self.seen.size:
            self.seen.learn(context)
        self.contexts += 1

    def rows(self, arms: Integers, values: Floats, context: Floats) -> Floats:
        """Return the joint features of some arms, whose own features are given, in a context."""
        c = self._complete(context)
        if not self.values.shape[1]:
            return OneHotContext(self.capacity, c, None).rows(arms)
        return (self._join(arms, values)[:, :, None] * c).reshape(len(arms), -1)

    def renew(self) -> Change | None:
        """Scale by what has been seen by now; return what that changes, None if it is not due.

        It is due when arms have joined, and when twice as many contexts have been seen as at the last time: so it
        becomes rarer and rarer. What was seen before then counts half, so that the scaling follows a drift.
        """
        due, joined = self.contexts >= _RENEWAL * max(self.scaled_contexts, 1), len(self.values) > self.scaled_arms
        arms = Scaling.fit(self.values) if joined and self.arm_scaling.size else self.arm_scaling
        context = self._adopt_seen() if due and self.seen.size else self.context_scaling
        self.scaled_arms = len(self.values)
        if due:
            self.scaled_contexts = self.contexts
            self.seen.seen[[0, 2]] *= _MEMORY
        if arms is self.arm_scaling and context is self.context_scaling:
            return None
        change = self._compare(arms, context)
        self.arm_scaling, self.context_scaling, self._arms = arms, context, None
        return change

    def _adopt_seen(self) -> Scaling:
        """The scaling by what has been seen, with larger deviations while that is little.

        A deviation that is much too small would cut off most values, which no later change could undo.
        """
        count, mean, squares = self.seen.seen
        return Scaling.of(np.stack((count, mean, squares * (1.0 + _CAUTION / np.maximum(count, 1.0)))))

    def arrays(self) -> dict[str, Floats]:
        """Return what state files keep, apart from counts."""
        return {
            "values": self.values,
            "arm_scaling": self.arm_scaling.seen,
            "context_scaling": self.context_scaling.seen,
            "context_seen": self.seen.seen,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]], n: int, counts: Sequence[int] | None) -> None:
        """Take over the arrays of n arms and the counts of a state file; files of earlier versions have fewer."""
        found = {"context_seen": arrays["context_scaling"], **arrays}
        expected = {**self.arrays(), "values": np.empty((n, self.values.shape[1]))}
        for name, array in expected.items():
            if found[name].shape != array.shape or found[name].dtype != np.float64:
                raise ValueError(f"{name} has shape {found[name].shape}, expected {array.shape}")
        self.values = found["values"]
        self.arm_scaling, self.context_scaling, self.seen = (
            Scaling.of(found[name]) for name in ("arm_scaling", "context_scaling", "context_seen")
        )
        contexts = int(self.seen.seen[0].max(initial=0.0))
        self.contexts, self.scaled_contexts, self.scaled_arms = (contexts, contexts, n) if counts is None else counts

    def _compare(self, arms: Scaling, context: Scaling) -> Change:
        factors, shifts = self.arm_scaling.change_to(arms)
        return Change(np.stack((factors, 0.5 * shifts)), np.stack(self.context_scaling.change_to(context)))

    def _join(self, arms: Integers, values: Floats) -> Floats:
        """Scaled features and one-hot identities of arms, in equal parts, as rows of length 1 on average.

        So a policy's prior says the same about an arm, however many features describe it.
        """
        identities = np.zeros((len(arms), self.capacity))
        if self.capacity:
            identities[np.arange(len(arms)), arms] = 1.0
        parts = [part for part in (0.5 * self.arm_scaling(values), identities) if part.shape[1]]
        joined: Floats = np.hstack(parts) / np.sqrt(len(parts))
        return joined

    def _complete(self, context: Floats) -> Floats:
        features = np.ones(1 + len(context))
        if len(context):
            features[1:] = self.context_scaling(context)
        return features
