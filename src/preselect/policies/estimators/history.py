"""The outcomes that an estimator keeps: all rows in one array, what is added to their utilities, and their rankings."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.kernels import likelihood
from preselect.scaling import Change

Outcomes: TypeAlias = tuple[Floats, Floats, Integers, Integers, int]  # rows, offsets, sizes, lengths, how many

NO_OFFSETS = np.empty(0)  # nothing is added to utilities


class History:
    """Outcomes in the order in which they were learnt, as the kernels read them.

    The arrays have room for more outcomes than were kept, so that adding one is cheap.
    """

    def __init__(self, d: int) -> None:
        self.outcomes, self._rows = 0, 0
        self._history, self._offsets = np.empty((0, d)), np.empty(0)
        self._sizes, self._lengths = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    @property
    def rows(self) -> Floats:
        """The rows of all outcomes, one outcome after another, each in the order of its ranking."""
        return self._history[: self._rows]

    @property
    def offsets(self) -> Floats:
        """What is added to x'theta of each row."""
        return self._offsets[: self._rows]

    @property
    def sizes(self) -> Integers:
        """The number of rows of each outcome."""
        return self._sizes[: self.outcomes]

    @property
    def lengths(self) -> Integers:
        """The number of ranked arms of each outcome."""
        return self._lengths[: self.outcomes]

    def place(self, rows: Floats, ranking: Integers, offsets: Floats = NO_OFFSETS) -> None:
        """Write an outcome behind the others; it is one of them once it is kept. `offsets` are in ranked order."""
        k, outcome = len(rows), self.outcomes
        self._make_room(k)
        self._history[self._rows : self._rows + k] = likelihood.rank_rows(rows, ranking)
        self._offsets[self._rows : self._rows + k] = offsets if offsets.size else 0.0
        self._sizes[outcome], self._lengths[outcome] = k, len(ranking)

    def keep(self) -> None:
        """Keep the outcome that was placed."""
        self._rows += int(self._sizes[self.outcomes])
        self.outcomes += 1

    def clear(self) -> None:
        """Drop all outcomes."""
        self.outcomes, self._rows = 0, 0

    def transform(self, change: Change) -> None:
        """Express all rows in joint features that have changed."""
        self._history[: self._rows] = change.map_rows(self.rows)

    def first(self, outcomes: int) -> Outcomes:
        """Return the arrays and the number of outcomes, for a kernel that is to read that many from the start."""
        return self._history, self._offsets, self._sizes, self._lengths, outcomes

    def placed(self) -> Outcomes:
        """Return the same for the outcome that was placed, and only that."""
        r, t = self._rows, self.outcomes
        return self._history[r:], self._offsets[r:], self._sizes[t:], self._lengths[t:], 1

    def _make_room(self, k: int) -> None:
        """Make room for one more outcome with k rows, by doubling."""
        if self._rows + k > len(self._history):
            self._history = _lengthen(self._history, 2 * (self._rows + k))
            self._offsets = _lengthen(self._offsets, 2 * (self._rows + k))
        if self.outcomes == len(self._sizes):
            self._sizes = _lengthen(self._sizes, 2 * self.outcomes + 1)
            self._lengths = _lengthen(self._lengths, 2 * self.outcomes + 1)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the outcomes, under the names that state files have for them."""
        return {"history": self.rows, "offsets": self.offsets, "sizes": self.sizes, "lengths": self.lengths}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over saved outcomes, however many; old files have no offsets."""
        rows, sizes, lengths = (arrays[name] for name in ("history", "sizes", "lengths"))
        offsets = arrays.get("offsets", np.zeros(len(rows)))
        if rows.ndim != 2 or rows.shape[1] != self._history.shape[1] or sizes.sum() != len(rows):
            raise ValueError(f"history has shape {rows.shape}, but sizes add up to {sizes.sum()} rows")
        if sizes.shape != lengths.shape or not np.all((lengths >= 1) & (lengths <= sizes)):
            raise ValueError("lengths has to say for each outcome how many of its rows were ranked")
        if offsets.shape != (len(rows),):
            raise ValueError(f"offsets has shape {offsets.shape}, but history has {len(rows)} rows")
        if not (np.isfinite(rows).all() and np.isfinite(offsets).all()):
            raise ValueError("history or offsets has entries that are not finite")
        self._history, self._offsets, self._sizes, self._lengths = rows, offsets, sizes, lengths
        self._rows, self.outcomes = len(rows), len(sizes)

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of a history with fewer features, with zeros for the new ones."""
        rows = arrays["history"]
        added = np.zeros((len(rows), self._history.shape[1] - rows.shape[1]))
        return {**{name: arrays[name] for name in self.arrays()}, "history": np.hstack((rows, added))}


def _lengthen(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
