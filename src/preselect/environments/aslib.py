"""Scenarios of ASlib, the library of algorithm selection: what every algorithm did on every instance.

A scenario is a folder: `description.txt`, `algorithm_runs.arff`, `feature_values.arff`, and, if there are any,
`feature_costs.arff` and `algorithm_feature_values.arff`. Scenarios come from many hands; what is read into them:

Solved
    A run is solved if its status is ok and its performance is known. The measured number says nothing about that: a
    column called PAR10 holds ten times the cutoff where a run failed. A run that is not in the file was not solved.
Seconds
    The format asks for seconds, and has no field for another unit. Times are taken for milliseconds if the readme or
    the measure's name says so, or if the cutoff would be more than 115 days; so are the costs of features then.
    `milliseconds` settles it.
Cutoff
    Where a scenario of run times has none (`?` or 0), the longest measured time is taken for it.
Quality
    A scenario whose measure is not a run time has no clock to race against. The algorithm with the best quality wins,
    the further measures (often the time) decide between equals, and who is not ok cannot win. `times` then hold a loss:
    0 for the best quality on the instance, 1 for the worst and for who did not solve it, and `cutoff` is 1. The scales
    of instances have nothing in common, which is why each is taken for itself. `performance` has the qualities.
Repetitions
    Of several runs of one algorithm on one instance the median one is taken, the better of the middle two: a run that
    took place, and solved if at least half of them are. Features and their costs are means over the repetitions.
Names
    Algorithms and instances are named as in the runs. The other files may have them as R changes names (`-` becomes
    `.`, a leading digit gets an `X`). What has no runs is left out; what has runs but no features has NaN.
Features
    A feature that is a choice is the place of its value among the declared ones; one that is a text is left out. An
    infinite value counts as missing.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.context import Floats, Integers
from preselect.environments import arff
from preselect.environments.description import as_list, read_description
from preselect.errors import InputError

Booleans = NDArray[np.bool_]

_REQUIRED = ("description.txt", "algorithm_runs.arff", "feature_values.arff")
_KEYS = ("instance_id", "repetition", "algorithm", "runstatus")
_LONGEST_CUTOFF = 1e7  # seconds; nobody has waited longer for one run


@dataclass(frozen=True, eq=False)
class Scenario:
    """What every algorithm did on every instance, and what is known of both beforehand. Arrays are read-only."""

    name: str
    instances: list[str]
    algorithms: list[str]
    performance: Floats  # instances x algorithms, the first measure as in the file, NaN where no run has one
    times: Floats  # instances x algorithms, seconds (a loss for qualities); the cutoff where not solved
    solved: Booleans  # instances x algorithms
    ranks: Integers  # instances x algorithms, 0 for the best; equal only if equal in every measure, or not solved
    cutoff: float
    features: Floats  # instances x features, NaN where missing
    feature_names: list[str]
    feature_costs: Floats  # instances, seconds for all steps that are used; 0 where unknown
    algorithm_features: Floats | None  # algorithms x features of algorithms, NaN where missing
    algorithm_feature_names: list[str]
    quality: bool
    maximise: bool

    @classmethod
    def read(
        cls,
        folder: str | PathLike[str],
        *,
        measure: str | None = None,
        steps: str | Sequence[str] | None = None,
        milliseconds: bool | None = None,
    ) -> Self:
        """Read a scenario's folder.

        `measure` puts another of its performance measures first. `steps` are the feature steps to use, with those they
        require: a list of names, "default" for those the scenario recommends, all of them if None. `milliseconds` says
        whether times are, where the readme does not.
        """
        place = _require_scenario(Path(folder))
        description = read_description(place / "description.txt")
        table = arff.read(place / "algorithm_runs.arff")
        measures = _find_measures(description, table, measure)
        runs = _read_runs(table, measures)
        first, performance = measures[0], runs.performance[..., 0]
        if first.quality:
            unit, cutoff, times = 1.0, 1.0, _loss(runs.keys[..., 0], runs.solved)
        else:
            said = _read_cutoff(place / "description.txt", description)
            unit = 1e-3 if _are_milliseconds(place, first.name, said, milliseconds) else 1.0
            cutoff, times = _limit(performance, runs.solved, said)
        used = _find_steps(description, steps)
        features, feature_names = _read_instance_features(place, runs.instances, used)
        algorithm_features, algorithm_feature_names = _read_algorithm_features(place, runs.algorithms)
        scenario = cls(
            name=str(description.get("scenario_id") or place.resolve().name),
            instances=runs.instances,
            algorithms=runs.algorithms,
            performance=performance,
            times=times * unit,
            solved=runs.solved,
            ranks=_rank(runs.keys, runs.solved),
            cutoff=cutoff * unit,
            features=features,
            feature_names=feature_names,
            feature_costs=_read_costs(place / "feature_costs.arff", runs.instances, used) * unit,
            algorithm_features=algorithm_features,
            algorithm_feature_names=algorithm_feature_names,
            quality=first.quality,
            maximise=first.maximise,
        )
        for value in vars(scenario).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        return scenario

    @cached_property
    def costs(self) -> Floats:
        """What each run costs, instances x algorithms: its PAR10, or its loss where qualities are compared."""
        costs = self.times.copy() if self.quality else par10(self.times, self.solved, self.cutoff)
        costs.setflags(write=False)
        return costs

    def order(self, instance: int, among: ArrayLike | None = None) -> Integers:
        """The algorithms that solve an instance, best first: of all, or among some. Equals stay as they are given."""
        shown = np.arange(len(self.algorithms)) if among is None else np.asarray(among, dtype=np.int64)
        ahead = shown[np.argsort(self.ranks[instance, shown], kind="stable")]
        solvers: Integers = ahead[self.solved[instance, ahead]]
        return solvers

    def winner(self, instance: int, among: ArrayLike | None = None) -> int | None:
        """The algorithm that wins the race on an instance, of all or among some; None if none of them solves it."""
        order = self.order(instance, among)
        return int(order[0]) if len(order) else None


def par10(times: ArrayLike, solved: ArrayLike, cutoff: float) -> Floats:
    """The time of each run that solved its instance, ten times the cutoff for every other.

    >>> par10([3.0, 60.0], [True, False], 60.0).tolist()
    [3.0, 600.0]
    """
    penalised: Floats = np.where(np.asarray(solved, dtype=bool), np.asarray(times, dtype=np.float64), 10.0 * cutoff)
    return penalised


@dataclass(frozen=True)
class _Measure:
    """A performance measure: its name and place in the runs, and what is good."""

    name: str
    position: int
    quality: bool
    maximise: bool


@dataclass(frozen=True, eq=False)
class _Runs:
    """One run per instance and algorithm; measures along the last axis."""

    instances: list[str]
    algorithms: list[str]
    solved: Booleans
    performance: Floats  # as measured
    keys: Floats  # turned so that less is better, infinite where missing


def _require_scenario(folder: Path) -> Path:
    for name in _REQUIRED:
        if not (folder / name).is_file():
            contents = "description.txt, algorithm_runs.arff and feature_values.arff"
            raise InputError(f"folder must be an ASlib scenario with {contents}, got {folder}, which has no {name}")
    return folder


def _find_measures(description: dict[str, Any], table: arff.Table, first: str | None) -> list[_Measure]:
    """The measures in order of importance. A column is found by its name, or else by its place."""
    columns = [place for place, attribute in enumerate(table.attributes) if attribute.name.lower() not in _KEYS]
    columns = [place for place in columns if place in table.numbers]
    if not columns:
        raise InputError(f"{table.path} must have a numeric attribute that measures performance, got none")
    there = [table.attributes[place].name for place in columns]
    names = as_list(description.get("performance_measures")) or there
    kinds, better = (as_list(description.get(key)) for key in ("performance_type", "maximize"))
    measures = []
    for place, name in enumerate(names[: len(columns)]):
        found = _select(there, [name])
        maximise = place < len(better) and better[place].lower() in ("true", "yes", "on", "1")
        quality = "time" not in kinds[place].lower() if place < len(kinds) else maximise
        measures.append(_Measure(name, columns[found[0] if found else place], quality, maximise))
    if first is None:
        return measures
    ahead = [measure for measure in measures if measure.name.lower() == first.lower()]
    if not ahead:
        raise InputError(f"measure must be one of {', '.join(names)}, got {first!r:.80}")
    return ahead + [measure for measure in measures if measure is not ahead[0]]


def _read_runs(table: arff.Table, measures: list[_Measure]) -> _Runs:
    if not table.lines:
        raise InputError(f"{table.path} must have at least one run, got none")
    instances, instance_of = _number(table.names("instance_id"))
    algorithms, algorithm_of = _number(table.names("algorithm"))
    performance = np.column_stack([table.numbers[measure.position] for measure in measures])
    statuses = table.texts[table.find("runstatus")]
    ok = np.array([(status or "").lower() == "ok" for status in statuses]) & np.isfinite(performance[:, 0])
    keys = performance * np.where([measure.maximise for measure in measures], -1.0, 1.0)
    keys[~np.isfinite(keys)] = np.inf

    cell = instance_of * len(algorithms) + algorithm_of
    by_cell_best_first = np.lexsort((*keys.T[::-1], ~ok, cell))
    cells, begins, counts = np.unique(cell[by_cell_best_first], return_index=True, return_counts=True)
    median = by_cell_best_first[begins + (counts - 1) // 2]

    shape = (len(instances), len(algorithms))
    solved = np.zeros(shape, dtype=bool)
    solved.reshape(-1)[cells] = ok[median]
    known, turned = np.full((*shape, len(measures)), np.nan), np.full((*shape, len(measures)), np.inf)
    known.reshape(-1, len(measures))[cells] = performance[median]
    turned.reshape(-1, len(measures))[cells] = keys[median]
    return _Runs(instances, algorithms, solved, known, turned)


def _number(names: list[str]) -> tuple[list[str], Integers]:
    """Different names in the order in which they first come, and the number of each one's name."""
    numbers: dict[str, int] = {}
    of = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    return list(numbers), of


def _rank(keys: Floats, solved: Booleans) -> Integers:
    """Places on each instance by the first measure, then the next; those that have not solved it share the last."""
    turned = np.where(solved[..., None], keys, np.inf)
    order = np.lexsort((*np.moveaxis(turned, -1, 0)[::-1], ~solved), axis=-1)
    ahead = np.take_along_axis(turned, order[..., None], axis=1)
    of_solved = np.take_along_axis(solved, order, axis=1)
    apart = (ahead[:, 1:] != ahead[:, :-1]).any(axis=-1) | (of_solved[:, 1:] != of_solved[:, :-1])
    ranks = np.zeros(order.shape, dtype=np.int64)
    np.put_along_axis(ranks, order[:, 1:], np.cumsum(apart, axis=1), axis=1)
    return ranks


def _loss(keys: Floats, solved: Booleans) -> Floats:
    """0 for the best on each instance, 1 for the worst and for those that have not solved it."""
    best = np.where(solved, keys, np.inf).min(axis=1, keepdims=True)
    worst = np.where(solved, keys, -np.inf).max(axis=1, keepdims=True)
    loss = np.ones(solved.shape)
    span = np.broadcast_to(np.where(worst > best, worst - best, 1.0), solved.shape)
    np.divide(keys - np.where(np.isfinite(best), best, 0.0), span, out=loss, where=solved)
    return loss


def _limit(performance: Floats, solved: Booleans, cutoff: float | None) -> tuple[float, Floats]:
    """The cutoff, and times up to it, in the unit of the file."""
    longest = np.max(performance, where=np.isfinite(performance), initial=0.0)
    limit = float(longest) if cutoff is None else cutoff
    return limit, np.where(solved, np.fmin(performance, limit), limit)


def _read_cutoff(path: Path, description: dict[str, Any]) -> float | None:
    said = description.get("algorithm_cutoff_time")
    if said in (None, "?"):
        return None
    try:
        cutoff = float(str(said))
    except ValueError:
        raise InputError(f"{path}: algorithm_cutoff_time must be a number of seconds or ?, got {said!r:.80}") from None
    return cutoff if 0.0 < cutoff < math.inf else None


def _are_milliseconds(folder: Path, measure: str, cutoff: float | None, said: bool | None) -> bool:
    if said is not None:
        return said
    readme = folder / "readme.txt"
    sentences = re.split(r"\.\s", " ".join(arff.read_lines(readme)).lower()) if readme.is_file() else []
    documented = any(re.search(r"run\W?time", text) and "millisecond" in text for text in sentences)
    named = re.search(r"millisec|(?:\b|_)ms$|msecs?$", measure, re.IGNORECASE) is not None
    return documented or named or (cutoff is not None and cutoff > _LONGEST_CUTOFF)


def _find_steps(description: dict[str, Any], steps: str | Sequence[str] | None) -> dict[str, list[str]] | None:
    """The features that each of the steps to use provides; None for all steps, known or not."""
    if steps is None:
        return None
    there = description.get("feature_steps")
    there = there if isinstance(there, dict) else {}
    if steps == "default":
        wanted = [step for step in as_list(description.get("default_steps")) if step in there]
    else:
        wanted = [steps] if isinstance(steps, str) else list(steps)
    used: dict[str, list[str]] = {}
    while wanted:
        step = wanted.pop()
        if step not in there:
            raise InputError(f"steps must be feature steps of the scenario, {', '.join(there)}, got {step!r:.80}")
        if step not in used:
            parts = there[step] if isinstance(there[step], dict) else {}
            used[step] = as_list(parts.get("provides"))
            wanted += as_list(parts.get("requires"))
    return used


def _read_instance_features(
    folder: Path, instances: list[str], used: dict[str, list[str]] | None
) -> tuple[Floats, list[str]]:
    """Features of the instances, of the steps that are used."""
    features, names = _read_features(arff.read(folder / "feature_values.arff"), "instance_id", instances)
    if used is None:
        return features, names
    kept = _select(names, [name for provided in used.values() for name in provided])
    return features[:, kept], [names[column] for column in kept]


def _read_features(table: arff.Table, key: str, rows: list[str]) -> tuple[Floats, list[str]]:
    """Features of the rows named, NaN where missing, and the features' names."""
    places = [
        place
        for place, attribute in enumerate(table.attributes)
        if attribute.name.lower() not in (key, "repetition") and attribute.kind != arff.TEXT
    ]
    columns = [table.numbers[place] if place in table.numbers else _as_places(table, place) for place in places]
    values = np.column_stack(columns) if columns else np.empty((len(table.lines), 0))
    values[~np.isfinite(values)] = np.nan
    owners = _match(table.names(key), rows)
    known = owners >= 0
    means = _mean_by_owner(values[known], owners[known], len(rows))
    return means, [table.attributes[place].name for place in places]


def _as_places(table: arff.Table, position: int) -> Floats:
    """Choices as their places among the declared values."""
    places = {value: float(place) for place, value in enumerate(table.attributes[position].values)}
    return np.array([places.get(text or "", np.nan) for text in table.texts[position]])


def _mean_by_owner(values: Floats, owners: Integers, count: int) -> Floats:
    there = ~np.isnan(values)
    sums, counts = np.zeros((count, values.shape[1])), np.zeros((count, values.shape[1]))
    np.add.at(sums, owners, np.where(there, values, 0.0))
    np.add.at(counts, owners, there)
    means = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _read_costs(path: Path, instances: list[str], used: Iterable[str] | None) -> Floats:
    if not path.is_file():
        return np.zeros(len(instances))
    costs, steps = _read_features(arff.read(path), "instance_id", instances)
    kept = slice(None) if used is None else _select(steps, used)
    total: Floats = np.nansum(costs[:, kept], axis=1)
    return total


def _read_algorithm_features(folder: Path, algorithms: list[str]) -> tuple[Floats | None, list[str]]:
    path = folder / "algorithm_feature_values.arff"
    return _read_features(arff.read(path), "algorithm", algorithms) if path.is_file() else (None, [])


def _match(names: Iterable[str], known: list[str]) -> Integers:
    """The place of each name among those known, as it is or as R changes names; -1 if it is not among them."""
    places = {name: place for place, name in reversed(list(enumerate(known)))}
    plain = {_as_in_r(name): place for name, place in places.items()}
    return np.array([places.get(name, plain.get(_as_in_r(name), -1)) for name in names], dtype=np.int64)


def _select(names: list[str], wanted: Iterable[str]) -> list[int]:
    """Places of the names that are wanted, in their own order."""
    return sorted({int(place) for place in _match(wanted, names) if place >= 0})


def _as_in_r(name: str) -> str:
    """A name as R's make.names changes it.

    >>> _as_in_r("2-opt+ls")
    'X2.opt.ls'
    """
    changed = re.sub(r"[^A-Za-z0-9_.]", ".", name)
    return changed if re.match(r"[A-Za-z.]", changed) else "X" + changed
