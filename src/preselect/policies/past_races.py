"""The latest races, as Nearby keeps them: contexts, arms in order, and virtual arms that they competed with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.kernels import neighbours
from preselect.scaling import Change

_STEPS = 8  # of minorise-maximise
_LEAST = 3  # neighbours


class PastRaces:
    """The latest `memory` races, in arrays that grow by doubling; once they are full, a new race replaces the oldest.

    For each race it keeps the scaled context; the slots of its arms, ranked ones first and -1 after the last; how many
    arms are better than each ranked arm; how many are ranked (-1 if some arm won, unknown which); and the virtual arms
    that they competed with, as in `kernels.neighbours`.
    """

    _names = ("contexts", "arms", "places", "ranked", "rivals")

    def __init__(self, size: int, memory: int) -> None:
        self.memory, self.total = memory, 0  # the most races that are kept, and how many there have been
        self.contexts = np.zeros((0, size))
        self.arms, self.places = np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int64)
        self.ranked, self.rivals = np.zeros(0, np.int64), np.zeros(0, np.int64)

    @property
    def count(self) -> int:
        """How many races are kept."""
        return min(self.total, self.memory)

    def append(self, context: Floats, arms: Integers, ranking: Integers, ranked: int, rivals: int) -> None:
        """Remember a race; `ranking` has positions in `arms`, as for `Policy._learn`."""
        order, places = list_places(ranking)
        at, k = self.total % self.memory, len(arms)
        self._make_room(at + 1, k)
        self.contexts[at], self.ranked[at], self.rivals[at] = context, ranked, rivals
        self.arms[at], self.places[at] = -1, 0
        self.arms[at, :k] = np.concatenate((arms[order], np.delete(arms, order)))
        self.places[at, : len(order)] = places
        self.total += 1

    def _make_room(self, count: int, width: int) -> None:
        old = len(self.ranked), self.arms.shape[1]
        if count > old[0] or width > old[1]:
            rows = old[0] if count <= old[0] else min(max(2 * old[0], 64), self.memory)
            for name in self._names:
                kept = getattr(self, name)
                shape = (rows, *(max(width, old[1]) if name in ("arms", "places") else n for n in kept.shape[1:]))
                longer = np.full(shape, -1 if name == "arms" else 0, kept.dtype)
                longer[tuple(map(slice, kept.shape))] = kept
                setattr(self, name, longer)

    def correct(self, context: Floats, worths: Floats, alpha: float, sizes: tuple[int, ...]) -> None:
        """Correct the worths of all slots, in place, by the nearest races: first by many, then by few."""
        count = self.count
        distances = neighbours.measure_distances(context, self.contexts, count)
        for size in sizes:
            near, weights = _weigh(distances, min(size, max(_LEAST, count // 2)))
            races = self.arms, self.places, self.ranked, self.rivals
            neighbours.fit_worths(worths, alpha, weights, near, *races, _STEPS)

    def transform(self, change: Change) -> None:
        """Express the contexts in features that have changed."""
        kept = self.contexts[: self.count]
        kept[:, 1:] = change.context[0] * kept[:, 1:] + change.context[1] * kept[:, :1]

    def forget(self, slot: int) -> None:
        """Remove an arm from all races; races that it won lose all arms, because they no longer teach anything."""
        for at in np.flatnonzero((self.arms == slot).any(axis=1)):
            place = int(np.flatnonzero(self.arms[at] == slot)[0])
            if place < self.ranked[at]:
                self.arms[at], self.places[at], self.ranked[at] = -1, 0, 0
            else:
                self.arms[at] = np.append(np.delete(self.arms[at], place), -1)

    def restore(self, arrays: dict[str, NDArray[Any]], slots: int) -> None:
        """Restore saved races among this many slots; raise a ValueError if they are not valid."""
        found, total = {name: arrays[name] for name in self._names}, arrays["races"]
        count = len(found["ranked"])
        shapes = (count, self.contexts.shape[1]), (count, found["arms"].shape[-1])
        expected = dict(zip(self._names, (shapes[0], shapes[1], shapes[1], (count,), (count,)), strict=True))
        for name, array in found.items():
            if array.shape != expected[name] or array.dtype != getattr(self, name).dtype:
                raise ValueError(f"{name} has shape {array.shape}, expected {expected[name]}")
        if total.shape != (1,) or total.dtype != np.int64 or count != min(max(int(total[0]), 0), self.memory):
            raise ValueError(f"there are {count} races, but {total} were counted")
        if not (np.isfinite(found["contexts"]).all() and _are_races(slots, *list(found.values())[1:])):
            raise ValueError("some races are impossible")
        self.total = int(total[0])
        for name, array in found.items():
            setattr(self, name, array.copy())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what state files keep."""
        kept = {name: getattr(self, name)[: self.count] for name in self._names}
        return {**kept, "races": np.array([self.total])}


def list_places(ranking: Integers) -> tuple[Integers, Integers]:
    """Return the positions of ranked arms, best first, and how many arms are better than each of them.

    >>> list_places(np.array([[2, 1], [0, 3], [1, 3]]))
    (array([2, 0, 1]), array([0, 1, 1]))
    """
    if ranking.ndim == 1:
        return ranking, np.arange(len(ranking))
    return ranking[:, 0], np.searchsorted(ranking[:, 1], ranking[:, 1]).astype(np.int64)


def _weigh(distances: Floats, size: int) -> tuple[Integers, Floats]:
    """Return the nearest races and their weights: 1 - d² / h², where h is the distance of the next one."""
    h = np.partition(distances, size)[size] if len(distances) > size else distances.max() * (1.0 + 1e-9)
    near = np.flatnonzero(distances < h) if h > 0.0 else np.flatnonzero(distances == 0.0)[-size:]
    weights = 1.0 - distances[near] / h if h > 0.0 else np.ones(len(near))
    return near, weights / weights.max() if len(near) else weights


def _are_races(slots: int, arms: Integers, places: Integers, ranked: Integers, rivals: Integers) -> bool:
    """Whether arms are distinct slots without gaps, and places, numbers of ranked arms and rivals are possible."""
    column, known = np.arange(arms.shape[1]), arms >= 0
    ordered = np.sort(np.where(known, arms, -1 - column), axis=1)
    may = [
        (np.diff(ordered, axis=1) > 0).all() and (arms >= -1).all() and (arms < slots).all(),
        (np.diff(known.astype(np.int64), axis=1) <= 0).all(),
        ((places >= 0) & (places <= column)).all() and ((places == 0) | (column < ranked[:, None])).all(),
        ((ranked >= -1) & (ranked <= known.sum(axis=1))).all() and ((rivals > 0) & (rivals < 8)).all(),
    ]
    return all(map(bool, may))
