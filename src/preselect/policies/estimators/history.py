"""The outcomes that an estimator keeps: all rows in one array, what is added to their utilities, and their rankings."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.kernels import likelihood
from preselect.scaling import Change

_Outcomes: TypeAlias = tuple[Floats, Floats, Integers, Integers, int]  # rows, offsets, sizes, lengths, how many

NO_OFFSETS = np.empty(0)  # nothing is added to utilities


class History:
    """Outcomes in the order in which they were learnt, as the kernels read them.

    They are put into the arrays when those are needed, because that takes longer than learning from one outcome; the
    arrays have room for more.
    """

    def __init__(self, d: int) -> None:
        self.outcomes, self.length = 0, 0  # how many, and how many rows they have
        self._waiting: list[tuple[Floats, Integers, Floats]] = []  # the latest, not in the arrays yet
        self._rows, self._offsets = np.empty((0, d)), np.empty(0)
        self._sizes, self._lengths = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def append(self, rows: Floats, ranking: Integers, offsets: Floats = NO_OFFSETS) -> None:
        """Add an outcome; `offsets`, which are added to the utilities, are in the order of the ranking."""
        self._waiting.append((rows, ranking, offsets))
        self.outcomes += 1
        self.length += len(rows)

    def drop_last(self) -> None:
        """Take back the latest outcome."""
        self._put_away()
        self.length -= int(self._sizes[self.outcomes - 1])
        self.outcomes -= 1

    def clear(self) -> None:
        """Drop all outcomes."""
        self._waiting.clear()
        self.outcomes, self.length = 0, 0

    def transform(self, change: Change) -> None:
        """Express all rows in joint features that have changed."""
        rows = self.arguments()[0][: self.length]
        rows[:] = change.map_rows(rows)

    def arguments(self) -> _Outcomes:
        """Return what kernels take: rows, their offsets, how many rows and ranked arms each outcome has, and outcomes.

        The rows of an outcome are in the order of its ranking. The arrays may be longer than what is in them.
        """
        self._put_away()
        return self._rows, self._offsets, self._sizes, self._lengths, self.outcomes

    def _put_away(self) -> None:
        """Put the outcomes that wait into the arrays."""
        self._make_room()
        end = self.length - sum(len(rows) for rows, _, _ in self._waiting)
        for place, (rows, ranking, offsets) in enumerate(self._waiting, self.outcomes - len(self._waiting)):
            first, end = end, end + len(rows)
            self._rows[first:end] = likelihood.rank_rows(rows, ranking)
            self._offsets[first:end] = offsets if offsets.size else 0.0
            self._sizes[place], self._lengths[place] = len(rows), len(ranking)
        self._waiting.clear()

    def _make_room(self) -> None:
        """Make room for the outcomes that wait, by doubling."""
        if self.length > len(self._rows):
            self._rows = _lengthen(self._rows, 2 * self.length)
            self._offsets = _lengthen(self._offsets, 2 * self.length)
        if self.outcomes > len(self._sizes):
            self._sizes = _lengthen(self._sizes, 2 * self.outcomes)
            self._lengths = _lengthen(self._lengths, 2 * self.outcomes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the outcomes, under the names that state files have for them."""
        rows, offsets, sizes, lengths, outcomes = self.arguments()
        rows, offsets = rows[: self.length], offsets[: self.length]
        return {"history": rows, "offsets": offsets, "sizes": sizes[:outcomes], "lengths": lengths[:outcomes]}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over saved outcomes, however many; old files have no offsets."""
        rows, sizes, lengths = (arrays[name] for name in ("history", "sizes", "lengths"))
        offsets = arrays.get("offsets", np.zeros(len(rows)))
        if rows.ndim != 2 or rows.shape[1] != self._rows.shape[1] or sizes.sum() != len(rows):
            raise ValueError(f"history has shape {rows.shape}, but sizes add up to {sizes.sum()} rows")
        if sizes.shape != lengths.shape or not np.all((lengths >= 1) & (lengths <= sizes)):
            raise ValueError("lengths has to say for each outcome how many of its rows were ranked")
        if offsets.shape != (len(rows),):
            raise ValueError(f"offsets has shape {offsets.shape}, but history has {len(rows)} rows")
        if not (np.isfinite(rows).all() and np.isfinite(offsets).all()):
            raise ValueError("history or offsets has entries that are not finite")
        self._waiting, self._rows, self._offsets, self._sizes, self._lengths = [], rows, offsets, sizes, lengths
        self.outcomes, self.length = len(sizes), len(rows)

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of a history with fewer features, with zeros for the new ones."""
        rows = arrays["history"]
        added = np.zeros((len(rows), self._rows.shape[1] - rows.shape[1]))
        return {**{name: arrays[name] for name in self.arrays()}, "history": np.hstack((rows, added))}


def _lengthen(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
