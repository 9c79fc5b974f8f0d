"""The runs of an ASlib scenario: one per instance and algorithm, their times or losses, and their ranks."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.environments.aslib import arff
from preselect.environments.aslib.description import as_list
from preselect.errors import InputError

_Booleans = NDArray[np.bool_]

_KEYS = ("instance_id", "repetition", "algorithm", "runstatus")
_TRUE = ("true", "yes", "on", "1")
_MAX_CUTOFF = 1e7  # seconds; a larger cutoff must be in milliseconds


@dataclass(frozen=True)
class _Performance:
    """A performance measure: its name, its column in the table of runs, and which values are good."""

    name: str
    position: int
    quality: bool
    maximise: bool


@dataclass(frozen=True, eq=False)
class _Runs:
    """One run per instance and algorithm. Arrays are instances x algorithms."""

    instances: list[str]
    algorithms: list[str]
    performance: Floats  # the first measure as in the file, NaN where no run has one
    times: Floats  # in seconds, or losses
    solved: _Booleans
    ranks: Integers
    cutoff: float  # in seconds; 1 for losses
    quality: bool
    maximise: bool
    unit: float  # the unit of the times in the scenario's files, in seconds


def read_runs(folder: Path, description: dict[str, Any], first: str | None, milliseconds: bool | None) -> _Runs:
    """Read the runs; `first` is the measure to compare by, the scenario's first one if None."""
    table = arff.read(folder / "algorithm_runs.arff")
    measures = _find_measures(description, table, first)
    if not table.lines:
        raise InputError(f"{table.path} contains no runs")
    instances, instance_of = _number(table.names("instance_id"))
    algorithms, algorithm_of = _number(table.names("algorithm"))
    performance = np.column_stack([table.numbers[measure.position] for measure in measures])
    keys = performance * np.where([measure.maximise for measure in measures], -1.0, 1.0)  # less is better
    keys[~np.isfinite(keys)] = np.inf
    statuses = table.texts[table.find("runstatus")]
    ok = np.array([(status or "").lower() == "ok" for status in statuses]) & np.isfinite(performance[:, 0])

    shape = (len(instances), len(algorithms))
    cells, runs = _find_medians(instance_of * len(algorithms) + algorithm_of, ok, keys)
    solved = _spread(ok[runs], cells, shape, False)
    keys = _spread(keys[runs], cells, shape, np.inf)
    values = _spread(performance[runs, 0], cells, shape, np.nan)
    chosen = measures[0]
    unit, limit = (1.0, 1.0) if chosen.quality else _find_limit(folder, description, chosen, values, milliseconds)
    times = _measure_loss(keys[..., 0], solved) if chosen.quality else np.where(solved, np.fmin(values, limit), limit)
    return _Runs(
        instances=instances,
        algorithms=algorithms,
        performance=values,
        times=times * unit,
        solved=solved,
        ranks=_rank(keys, solved),
        cutoff=limit * unit,
        quality=chosen.quality,
        maximise=chosen.maximise,
        unit=unit,
    )


def _find_limit(
    folder: Path, description: dict[str, Any], measure: _Performance, values: Floats, milliseconds: bool | None
) -> tuple[float, float]:
    """The unit of the times in seconds, and the cutoff in that unit: the longest time if none is given."""
    cutoff = _read_cutoff(folder / "description.txt", description)
    if milliseconds is None:
        milliseconds = _are_milliseconds(folder, measure.name, cutoff)
    longest = float(np.max(values, where=np.isfinite(values), initial=0.0))
    return 1e-3 if milliseconds else 1.0, longest if cutoff is None else cutoff


def _read_cutoff(path: Path, description: dict[str, Any]) -> float | None:
    given = description.get("algorithm_cutoff_time")
    if given in (None, "?"):
        return None
    try:
        cutoff = float(str(given))
    except ValueError:
        raise InputError(f"{path}: algorithm_cutoff_time is {given!r:.80}; use a number of seconds, or ?") from None
    return cutoff if 0.0 < cutoff < math.inf else None


def _are_milliseconds(folder: Path, measure: str, cutoff: float | None) -> bool:
    readme = folder / "readme.txt"
    sentences = re.split(r"\.\s", " ".join(arff.read_lines(readme)).lower()) if readme.is_file() else []
    documented = any(re.search(r"run\W?time", text) and "millisecond" in text for text in sentences)
    named = re.search(r"millisec|(?:\b|_)ms$|msecs?$", measure, re.IGNORECASE) is not None
    return documented or named or (cutoff is not None and cutoff > _MAX_CUTOFF)


def _rank(keys: Floats, solved: _Booleans) -> Integers:
    """Rank algorithms on each instance by the first measure, then the next; those that failed share the last."""
    keys = np.where(solved[..., None], keys, np.inf)
    order = np.lexsort((*np.moveaxis(keys, -1, 0)[::-1], ~solved), axis=-1)
    ordered = np.take_along_axis(keys, order[..., None], axis=1)
    settled = np.take_along_axis(solved, order, axis=1)
    differs = (ordered[:, 1:] != ordered[:, :-1]).any(axis=-1) | (settled[:, 1:] != settled[:, :-1])
    ranks = np.zeros(order.shape, dtype=np.int64)
    np.put_along_axis(ranks, order[:, 1:], np.cumsum(differs, axis=1), axis=1)
    return ranks


def _measure_loss(keys: Floats, solved: _Booleans) -> Floats:
    """The loss of each run: 0 for the best quality on the instance, 1 for the worst and for unsolved instances."""
    best = np.where(solved, keys, np.inf).min(axis=1, keepdims=True)
    worst = np.where(solved, keys, -np.inf).max(axis=1, keepdims=True)
    loss = np.ones(solved.shape)
    span = np.broadcast_to(np.where(worst > best, worst - best, 1.0), solved.shape)
    np.divide(keys - np.where(np.isfinite(best), best, 0.0), span, out=loss, where=solved)
    return loss


def _find_measures(description: dict[str, Any], table: arff.Table, first: str | None) -> list[_Performance]:
    """The measures in order of importance. A column is found by its name, or else by its position."""
    columns = [
        column
        for column, attribute in enumerate(table.attributes)
        if attribute.name.lower() not in _KEYS and column in table.numbers
    ]
    if not columns:
        raise InputError(f"{table.path} has no numeric attribute that measures performance")
    there = [table.attributes[column].name for column in columns]
    names = as_list(description.get("performance_measures")) or there
    kinds, better = (as_list(description.get(key)) for key in ("performance_type", "maximize"))
    measures = []
    for position, name in enumerate(names[: len(columns)]):
        found = arff.select_names(there, [name])
        maximise = position < len(better) and better[position].lower() in _TRUE
        quality = "time" not in kinds[position].lower() if position < len(kinds) else maximise
        measures.append(_Performance(name, columns[found[0] if found else position], quality, maximise))
    return measures if first is None else _put_first(measures, first)


def _put_first(measures: list[_Performance], name: str) -> list[_Performance]:
    chosen = next((measure for measure in measures if measure.name.lower() == name.lower()), None)
    if chosen is None:
        there = ", ".join(measure.name for measure in measures)
        raise InputError(f"the scenario has no performance measure {name!r:.80}; it has {there}")
    return [chosen, *(measure for measure in measures if measure is not chosen)]


def _find_medians(cell: Integers, ok: _Booleans, keys: Floats) -> tuple[Integers, Integers]:
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
