"""The outcomes that an estimator keeps: rows in one array, offsets of their utilities, and rankings."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.kernels import likelihood
from preselect.scaling import Change

# rows, offsets, sizes, lengths, ties, number of outcomes
_Outcomes: TypeAlias = tuple[Floats, Floats, Integers, Integers, Integers | None, int]

NO_OFFSETS = np.empty(0)  # nothing is added to utilities
NO_OFFSETS.setflags(write=False)  # read-only, like the offsets of races: kernels are compiled for one kind of array


class History:
    """Outcomes in the order in which they were learnt, as the kernels read them.

    Outcomes wait in a list until the arrays are needed, because storing them takes longer than learning from one. The
    arrays have room for more.
    """

    def __init__(self, d: int) -> None:
        self.outcomes, self.length = 0, 0  # the numbers of outcomes and of their rows
        self._waiting: list[tuple[Floats, Integers, Floats]] = []  # the latest outcomes, not in the arrays yet
        self._rows, self._offsets = np.empty((0, d)), np.empty(0)
        self._sizes, self._lengths = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._ties = np.empty(0, dtype=np.int64)
        self._has_ties = False  # kernels are compiled without ties until there are some

    def append(self, rows: Floats, ranking: Integers, offsets: Floats = NO_OFFSETS) -> None:
        """Add an outcome; `offsets`, which are added to the utilities, are in the order of the ranking."""
        self._waiting.append((rows, ranking, offsets))
        self.outcomes += 1
        self.length += len(rows)

    def drop_last(self) -> None:
        """Remove the latest outcome."""
        self._put_away()
        self.length -= int(self._sizes[self.outcomes - 1])
        self.outcomes -= 1

    def clear(self) -> None:
        """Drop all outcomes."""
        self._waiting.clear()
        self.outcomes, self.length = 0, 0
        self._has_ties = False

    def transform(self, change: Change) -> None:
        """Express all rows in joint features that have changed."""
        rows = self.arguments()[0][: self.length]
        rows[:] = change.map_rows(rows)

    def arguments(self) -> _Outcomes:
        """Return what kernels take: rows, offsets, how many rows and ranked arms each outcome has, ties, and outcomes.

        The rows of an outcome are in the order of its ranking. The arrays may be longer than what is in them.
        """
        self._put_away()
        ties = self._ties if self._has_ties else None
        return self._rows, self._offsets, self._sizes, self._lengths, ties, self.outcomes

    def _put_away(self) -> None:
        """Move the waiting outcomes into the arrays."""
        self._make_room()
        end = self.length - sum(len(rows) for rows, _, _ in self._waiting)
        for place, (rows, ranking, offsets) in enumerate(self._waiting, self.outcomes - len(self._waiting)):
            first, end = end, end + len(rows)
            self._rows[first:end] = likelihood.rank_rows(rows, ranking)
            self._offsets[first:end] = offsets if offsets.size else 0.0
            self._sizes[place], self._lengths[place] = len(rows), len(ranking)
            self._ties[first:end] = 0
            if ranking.ndim == 2:
                self._ties[first : first + len(ranking)] = ranking[:, 1]
                self._has_ties = True
        self._waiting.clear()

    def _make_room(self) -> None:
        """Make room for the outcomes that wait, by doubling."""
        if self.length > len(self._rows):
            self._rows = _lengthen(self._rows, 2 * self.length)
            self._offsets = _lengthen(self._offsets, 2 * self.length)
            self._ties = _lengthen(self._ties, 2 * self.length)
        if self.outcomes > len(self._sizes):
            self._sizes = _lengthen(self._sizes, 2 * self.outcomes)
            self._lengths = _lengthen(self._lengths, 2 * self.outcomes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the outcomes, under the names that state files have for them; "ties" only if there are some."""
        rows, offsets, sizes, lengths, ties, outcomes = self.arguments()
        rows, offsets = rows[: self.length], offsets[: self.length]
        arrays = {"history": rows, "offsets": offsets, "sizes": sizes[:outcomes], "lengths": lengths[:outcomes]}
        return arrays if ties is None else {**arrays, "ties": ties[: self.length]}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore any number of saved outcomes; old files have no offsets and no ties."""
        rows, sizes, lengths = (arrays[name] for name in ("history", "sizes", "lengths"))
        offsets = arrays.get("offsets", np.zeros(len(rows)))
        kinds = {"history": (rows, 2), "offsets": (offsets, 1), "sizes": (sizes, 1), "lengths": (lengths, 1)}
        for name, (array, ndim) in kinds.items():
            expected = np.dtype(np.int64 if name in ("sizes", "lengths") else np.float64)
            if array.ndim != ndim or array.dtype != expected:
                raise ValueError(f"{name} has {array.ndim} axes of {array.dtype}, expected {ndim} of {expected}")
        # checked one by one, because the sum of sizes may be right although some are not
        if sizes.shape != lengths.shape or not np.all((lengths >= 1) & (lengths <= sizes) & (sizes <= len(rows))):
            raise ValueError("lengths has to say for each outcome how many of its rows were ranked")
        if rows.shape[1] != self._rows.shape[1] or sum(sizes.tolist()) != len(rows):
            raise ValueError(f"history has shape {rows.shape}, but sizes add up to {sum(sizes.tolist())} rows")
        if offsets.shape != (len(rows),):
            raise ValueError(f"offsets has shape {offsets.shape}, but history has {len(rows)} rows")
        if not (np.isfinite(rows).all() and np.isfinite(offsets).all()):
            raise ValueError("history or offsets has entries that are not finite")
        ties = arrays.get("ties", np.zeros(len(rows), dtype=np.int64))
        if ties.shape != (len(rows),) or ties.dtype != np.int64 or not _are_ties(ties, sizes, lengths):
            raise ValueError("ties has to say for each ranked arm where its tie ends")
        self._waiting, self._rows, self._offsets, self._sizes, self._lengths = [], rows, offsets, sizes, lengths
        self.outcomes, self.length = len(sizes), len(rows)
        self._ties, self._has_ties = ties, bool(ties.any())

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of a history with fewer features, with zeros for the new ones."""
        rows = arrays["history"]
        added = np.zeros((len(rows), self._rows.shape[1] - rows.shape[1]))
        kept = {name: arrays[name] for name in (*self.arrays(), "ties") if name in arrays}
        return {**kept, "history": np.hstack((rows, added))}


def _are_ties(ties: Integers, sizes: Integers, lengths: Integers) -> bool:
    """Return whether every outcome has no ties, zeros only, or says for each ranked arm where its tie ends."""
    firsts = np.cumsum(sizes) - sizes
    ends = [ties[first : first + size].tolist() for first, size in zip(firsts, sizes, strict=True)]
    return all(not any(one) or _are_ends(one, int(m)) for one, m in zip(ends, lengths, strict=True))


def _are_ends(ends: list[int], m: int) -> bool:
    place = 0
    while place < m:
        end = ends[place]
        if not place < end <= m or ends[place:end] != [end] * (end - place):
            return False
        place = end
    return not any(ends[m:])


def _lengthen(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
