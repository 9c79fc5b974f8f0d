"""The runs of an ASlib scenario: one per instance and algorithm, and the measures that compare them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.environments.aslib import arff
from preselect.environments.aslib.description import as_list
from preselect.environments.aslib.names import select_names
from preselect.errors import InputError

Booleans = NDArray[np.bool_]

_KEYS = ("instance_id", "repetition", "algorithm", "runstatus")
_TRUE = ("true", "yes", "on", "1")


@dataclass(frozen=True)
class _Measure:
    """A performance measure: its name, its column in the table of runs, and what is good."""

    name: str
    position: int
    quality: bool
    maximise: bool


@dataclass(frozen=True, eq=False)
class Runs:
    """One run per instance and algorithm. Arrays are instances x algorithms (x measures)."""

    measure: _Measure  # the first one
    instances: list[str]
    algorithms: list[str]
    solved: Booleans
    performance: Floats  # all measures as in the file, NaN where no run has one
    keys: Floats  # all measures with signs such that less is better, infinite where missing

    def rank(self) -> Integers:
        """Ranks on each instance by the first measure, then the next; those that did not solve it share the last."""
        keys = np.where(self.solved[..., None], self.keys, np.inf)
        order = np.lexsort((*np.moveaxis(keys, -1, 0)[::-1], ~self.solved), axis=-1)
        ordered = np.take_along_axis(keys, order[..., None], axis=1)
        solved = np.take_along_axis(self.solved, order, axis=1)
        differs = (ordered[:, 1:] != ordered[:, :-1]).any(axis=-1) | (solved[:, 1:] != solved[:, :-1])
        ranks = np.zeros(order.shape, dtype=np.int64)
        np.put_along_axis(ranks, order[:, 1:], np.cumsum(differs, axis=1), axis=1)
        return ranks

    def measure_loss(self) -> Floats:
        """0 for the best quality on each instance, 1 for the worst and where the instance was not solved."""
        keys, solved = self.keys[..., 0], self.solved
        best = np.where(solved, keys, np.inf).min(axis=1, keepdims=True)
        worst = np.where(solved, keys, -np.inf).max(axis=1, keepdims=True)
        loss = np.ones(solved.shape)
        span = np.broadcast_to(np.where(worst > best, worst - best, 1.0), solved.shape)
        np.divide(keys - np.where(np.isfinite(best), best, 0.0), span, out=loss, where=solved)
        return loss

    def limit_times(self, cutoff: float | None) -> tuple[Floats, float]:
        """Times up to the cutoff, and the cutoff: the longest time if none is given. In the unit of the file."""
        times = self.performance[..., 0]
        longest = np.max(times, where=np.isfinite(times), initial=0.0)
        limit = float(longest) if cutoff is None else cutoff
        return np.where(self.solved, np.fmin(times, limit), limit), limit


def read_runs(path: Path, description: dict[str, Any], first: str | None) -> Runs:
    """Read the runs; `first` is the measure to compare by, the scenario's first one if None."""
    table = arff.read(path)
    measures = _find_measures(description, table, first)
    if not table.lines:
        raise InputError(f"{table.path} contains no runs")
    instances, instance_of = _number(table.names("instance_id"))
    algorithms, algorithm_of = _number(table.names("algorithm"))
    performance = np.column_stack([table.numbers[measure.position] for measure in measures])
    keys = performance * np.where([measure.maximise for measure in measures], -1.0, 1.0)
    keys[~np.isfinite(keys)] = np.inf
    statuses = table.texts[table.find("runstatus")]
    ok = np.array([(status or "").lower() == "ok" for status in statuses]) & np.isfinite(performance[:, 0])

    shape = (len(instances), len(algorithms))
    cells, runs = _find_medians(instance_of * len(algorithms) + algorithm_of, ok, keys)
    solved = _spread(ok[runs], cells, shape, False)
    return Runs(
        measures[0],
        instances,
        algorithms,
        solved,
        _spread(performance[runs], cells, shape, np.nan),
        _spread(keys[runs], cells, shape, np.inf),
    )


def _find_measures(description: dict[str, Any], table: arff.Table, first: str | None) -> list[_Measure]:
    """The measures in order of importance. A column is found by its name, or else by its position."""
    columns = [place for place, attribute in enumerate(table.attributes) if attribute.name.lower() not in _KEYS]
    columns = [place for place in columns if place in table.numbers]
    if not columns:
        raise InputError(f"{table.path} has no numeric attribute that measures performance")
    there = [table.attributes[place].name for place in columns]
    names = as_list(description.get("performance_measures")) or there
    kinds, better = (as_list(description.get(key)) for key in ("performance_type", "maximize"))
    measures = []
    for place, name in enumerate(names[: len(columns)]):
        found = select_names(there, [name])
        maximise = place < len(better) and better[place].lower() in _TRUE
        quality = "time" not in kinds[place].lower() if place < len(kinds) else maximise
        measures.append(_Measure(name, columns[found[0] if found else place], quality, maximise))
    return measures if first is None else _put_first(measures, first)


def _put_first(measures: list[_Measure], name: str) -> list[_Measure]:
    chosen = next((measure for measure in measures if measure.name.lower() == name.lower()), None)
    if chosen is None:
        there = ", ".join(measure.name for measure in measures)
        raise InputError(f"the scenario has no performance measure {name!r:.80}; it has {there}")
    return [chosen, *(measure for measure in measures if measure is not chosen)]


def _find_medians(cell: Integers, ok: Booleans, keys: Floats) -> tuple[Integers, Integers]:
    """The cells that have runs, and for each the position of its median run, the better of the middle two."""
    by_cell_best_first = np.lexsort((*keys.T[::-1], ~ok, cell))
    cells, begins, counts = np.unique(cell[by_cell_best_first], return_index=True, return_counts=True)
    return cells, by_cell_best_first[begins + (counts - 1) // 2]


def _spread(values: NDArray[Any], cells: Integers, shape: tuple[int, int], missing: float) -> NDArray[Any]:
    """An array of instances x algorithms with the values in their cells, and `missing` in the others."""
    spread = np.full((*shape, *values.shape[1:]), missing, dtype=values.dtype)
    spread.reshape(-1, *values.shape[1:])[cells] = values
    return spread


def _number(names: list[str]) -> tuple[list[str], Integers]:
    """The distinct names in order of appearance, and the position of each name among them."""
    positions: dict[str, int] = {}
    of = np.array([positions.setdefault(name, len(positions)) for name in names], dtype=np.int64)
    return list(positions), of
