"""What every estimator is: named arrays in one block, a step per outcome, and now and then a refresh."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import number
from preselect.context import Floats, Integers, as_floats, require_finite
from preselect.errors import InputError
from preselect.kernels.types import OK

_LEAST_ROUNDS_BETWEEN_REFRESHES = 256


class Estimator:
    """An estimate of theta, and whatever else it takes to update it after each outcome.

    A subclass names its arrays in `_vectors` (d numbers) and `_matrices` (d x d) and says in `_step` what an outcome
    changes. The arrays are views of one block, because the kernels take the block whole. A copy, deep or unpickled,
    makes the views anew from its own block; copied one by one they would no longer be parts of it.
    """

    _vectors: ClassVar[tuple[str, ...]] = ("theta",)
    _matrices: ClassVar[tuple[str, ...]] = ()
    theta: Floats

    def __init__(self, d: int) -> None:
        self.d = d
        self.block = np.zeros((len(self._vectors) + len(self._matrices) * d, d))
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

    def learn(self, rows: Floats, ranking: Integers, t: int) -> None:
        """Learn that the arms with these rows (k x d) came in this order: all of it, or an InputError and nothing.

        `ranking` lists positions in `rows`, best first; t counts the outcomes learnt, this one included.
        """
        if self._step(rows, ranking, t) != OK:
            raise InputError(
                f"the decision cannot be learnt from, because no finite estimate follows: its features go up to "
                f"{np.abs(rows).max():.3g}, the estimate so far up to {np.abs(self.block).max():.3g}; nothing was "
                "learnt; scale the features"
            )
        if t % self.refresh_every == 0:
            self.refresh()

    def _step(self, rows: Floats, ranking: Integers, t: int) -> int:
        """Change the block as the outcome asks; return OK, or something else if nothing was changed."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Compute inverses anew, which undoes the rounding of many small updates."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has been learnt, under the names that state files have for it."""
        return {name: getattr(self, name) for name in (*self._vectors, *self._matrices)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over arrays that another estimator of this kind and size returned."""
        restore_in_place(self.arrays(), arrays)

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of an estimator with fewer features, filled up with those that this one started with."""
        return widen_arrays(self.arrays(), arrays)


def restore_in_place(ours: dict[str, NDArray[Any]], arrays: dict[str, NDArray[Any]]) -> None:
    """Overwrite our arrays by those of the same names, which must have the same shapes and finite entries."""
    for name, expected in ours.items():
        if arrays[name].shape != expected.shape or arrays[name].dtype != expected.dtype:
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {expected.shape}")
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} has entries that are not finite")
        expected[...] = arrays[name]


def widen_arrays(ours: dict[str, NDArray[Any]], arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return copies of our arrays with the smaller ones of the same names in their first corner."""
    widened = {name: array.copy() for name, array in ours.items()}
    for name, array in widened.items():
        array[tuple(slice(size) for size in arrays[name].shape)] = arrays[name]
    return widened


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
    """Return a parameter of `spread` as it is kept and saved: a number, or a list."""
    return float(values) if isinstance(values, (int, float, np.number)) else np.asarray(values, float).tolist()
