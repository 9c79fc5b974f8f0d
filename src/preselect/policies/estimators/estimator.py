"""The base of all estimators, which learn theta one outcome at a time and keep their arrays in one block."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import as_floats, number, require_finite
from preselect.context import Floats, Integers
from preselect.errors import InputError
from preselect.outcomes import Outcome
from preselect.policies.persistence import make_block, restore_in_place, widen_arrays
from preselect.scaling import Change

_LEAST_ROUNDS_BETWEEN_REFRESHES = 256


class Estimator:
    """An estimate of theta, and everything needed to update it after each outcome.

    A subclass names its arrays in `_vectors` (d numbers) and `_matrices` (d x d) and says in `learn` what an outcome
    changes. The arrays are views of one block, because the kernels take the block whole. A deep or unpickled copy makes
    new views of its own block, because arrays that were copied one by one would not be parts of it.
    """

    _vectors: ClassVar[tuple[str, ...]] = ("theta",)
    _matrices: ClassVar[tuple[str, ...]] = ()
    theta: Floats

    def __init__(self, d: int) -> None:
        self.d = d
        self.block = make_block(len(self._vectors) + len(self._matrices) * d, d)
        self.refresh_every = max(_LEAST_ROUNDS_BETWEEN_REFRESHES, d)
        self._name_views()

    def _name_views(self) -> None:
        for row, name in enumerate(self._vectors):
            setattr(self, name, self.block[row])
        for place, name in enumerate(self._matrices):
            first = len(self._vectors) + place * self.d
            setattr(self, name, self.block[first : first + self.d])

    def __getstate__(self) -> dict[str, Any]:
        views = (*self._vectors, *self._matrices, "theta")
        return {name: value for name, value in vars(self).items() if name not in views}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._name_views()

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:
        """Learn from an outcome: the arms with these rows (k x d) came in this order.

        `ranking` lists positions in `rows`, best first; t counts the outcomes learnt, this one included. Returns OK;
        any other status means that the result would not be finite and nothing was changed.
        """
        raise NotImplementedError

    def learn_race(self, rows: Floats, ranking: Integers, outcome: Outcome, t: int) -> int:
        """Do what `learn` does, for a race that may have no winner and whose time may be known (outside option).

        `ranking` is empty if no arm won.
        """
        raise NotImplementedError

    def focus(self, rows: Floats, ids: Integers) -> tuple[Estimator, Floats]:  # noqa: ARG002
        """Return the estimator that learns from an outcome of these arms, and their rows in the form that it takes."""
        return self, rows

    def forget(self, places: Integers, fresh: Estimator) -> None:
        """Reset what is known about some features to what a fresh estimator knows."""
        for name in self._vectors:
            getattr(self, name)[places] = getattr(fresh, name)[places]
        for name in self._matrices:
            ours, theirs = getattr(self, name), getattr(fresh, name)
            ours[places], ours[:, places] = theirs[places], theirs[:, places]
        self.refresh()

    @property
    def covariance(self) -> Any:
        """The covariance of theta; None if the estimator has none."""
        return None

    def weigh(self, rows: Floats, ids: Integers) -> Floats:  # noqa: ARG002
        """Return what each joint feature of these arms adds to their utilities, in the shape of the rows."""
        weighed: Floats = rows * self.theta
        return weighed

    def find_covariance(self, rows: Floats, ids: Integers) -> Floats | None:  # noqa: ARG002
        """Return the covariance of the utilities of these arms, k x k; None if there is none."""
        Sigma = self.covariance
        return None if Sigma is None else rows @ Sigma @ rows.T

    def transform(self, change: Change, t: int) -> None:  # noqa: ARG002
        """Express what has been learnt in joint features that have changed; t counts the outcomes learnt.

        What does not come from outcomes, such as a prior, is not mapped: it holds for the new features.
        """
        self.theta[:] = change.map_weights(self.theta)

    def refresh(self) -> None:
        """Recompute inverses, which undoes the rounding of many small updates."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has been learnt, under the names that state files have for it."""
        return {name: getattr(self, name) for name in (*self._vectors, *self._matrices)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore arrays that another estimator of this kind and size returned."""
        restore_in_place(self.arrays(), arrays)

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of an estimator with fewer features, padded with the initial values of this one."""
        return widen_arrays(self.arrays(), arrays)


def spread(values: ArrayLike, argument: str, d: int, *, above: float = -math.inf) -> Floats:
    """Return d numbers: the given ones, or the given number d times; each above a limit."""
    if isinstance(values, (int, float, np.number)):
        return np.full(d, number(values, argument, above=above))
    array = as_floats(values, argument, 1)
    if len(array) != d:
        raise InputError(f"{argument} has {len(array)} entries; give one number for all features, or d={d} of them")
    require_finite(array, argument)
    if not np.all(array > above):
        raise InputError(f"{argument} has the entry {array.min()}, but every entry has to be above {above}")
    return array


def simplify(values: ArrayLike) -> float | list[float]:
    """Return a value given to `spread` in the form that is kept and saved: a number, or a list."""
    return float(values) if isinstance(values, (int, float, np.number)) else np.asarray(values, float).tolist()
