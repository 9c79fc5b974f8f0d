"""Scenarios of ASlib, the algorithm selection library: what every algorithm did on every instance.

A scenario is a folder with `description.txt`, `algorithm_runs.arff`, `feature_values.arff`, and optionally
`feature_costs.arff` and `algorithm_feature_values.arff`. Scenarios come from many sources; this is how they are read:

Solved
    A run solved its instance if its status is ok and its performance is known. The measured number does not decide: in
    a column called PAR10 a failed run has ten times the cutoff. A run that is not in the file did not solve its
    instance.
Seconds
    The format asks for seconds and has no field for another unit. Times are taken to be milliseconds if the readme or
    the measure's name says so, or if the cutoff would be more than 115 days; then so are the costs of features. The
    argument `milliseconds` overrides this.
Cutoff
    If a scenario of run times has none (`?` or 0), it is the longest measured time.
Quality
    A scenario whose measure is not a run time has no time limit to race against. The algorithm with the best quality
    wins, further measures (often the time) break ties, and an algorithm that is not ok cannot win. `times` then
    contains a loss: 0 for the best quality on the instance, 1 for the worst and for an algorithm that did not solve it;
    `cutoff` is 1. Each instance is scaled separately, because scales differ between instances. `performance` has the
    qualities.
Repetitions
    Of several runs of an algorithm on an instance, the median run is used, the better of the middle two: a run that
    took place, which solved the instance if at least half of them did. Features and their costs are averaged.
Names
    Algorithms and instances are named as in the runs. The other files may have names changed by R (`-` becomes `.`, a
    leading digit gets an `X`). What has no runs is left out; what has runs but no features has NaN.
Features
    A nominal feature is the position of its value among the declared ones; a text is left out. An infinite value counts
    as missing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.context import Floats, Integers
from preselect.environments.aslib import arff
from preselect.environments.aslib.description import as_list, read_description
from preselect.environments.aslib.runs import read_runs
from preselect.errors import InputError

_REQUIRED = ("description.txt", "algorithm_runs.arff", "feature_values.arff")


@dataclass(frozen=True, eq=False)
class Scenario:
    """What every algorithm did on every instance, with features of both. Arrays are read-only.

    Parameters
    ----------
    name : str
        The scenario's id, or else the folder's name.
    instances, algorithms : list of str
        Names, in order of appearance in the runs.
    performance : array of shape (instances, algorithms)
        The first measure as in the file; NaN where it is missing.
    times : array of shape (instances, algorithms)
        Seconds, or the loss if qualities are compared; the cutoff where the instance was not solved.
    solved : boolean array of shape (instances, algorithms)
        Whether the algorithm solved the instance.
    ranks : integer array of shape (instances, algorithms)
        0 for the best. Equal only if equal in every measure, or if neither solved the instance.
    cutoff : float
        Seconds after which a run is stopped; 1 if qualities are compared.
    features : array of shape (instances, features)
        Features of the instances; NaN where missing.
    feature_names : list of str
        Their names.
    feature_costs : array of shape (instances,)
        Seconds to compute the features of an instance in all steps that are used; 0 where unknown.
    algorithm_features : array of shape (algorithms, features of algorithms), or None
        Features of the algorithms; NaN where missing.
    algorithm_feature_names : list of str
        Their names.
    quality : bool
        Whether qualities are compared instead of run times.
    maximise : bool
        Whether larger performance is better.
    """

    name: str
    instances: list[str]
    algorithms: list[str]
    performance: Floats
    times: Floats
    solved: NDArray[np.bool_]
    ranks: Integers
    cutoff: float
    features: Floats
    feature_names: list[str]
    feature_costs: Floats
    algorithm_features: Floats | None
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
        """Read a scenario from its folder.

        Parameters
        ----------
        folder : path
            The folder with `description.txt` and the tables.
        measure : str, optional
            The performance measure to compare by; the scenario's first one by default.
        steps : str or list of str, optional
            Feature steps to use; those that they require are added. "default" stands for the steps that the scenario
            recommends. All steps are used by default.
        milliseconds : bool, optional
            Whether times are in milliseconds. By default the readme, the measure's name and the cutoff decide.
        """
        path = _require_scenario(Path(folder))
        description = read_description(path / "description.txt")
        runs = read_runs(path, description, measure, milliseconds)
        features = _read_instance_features(path, description, runs.instances, steps)
        algorithm_features, algorithm_feature_names = _read_algorithm_features(path, runs.algorithms)
        scenario = cls(
            name=str(description.get("scenario_id") or path.resolve().name),
            instances=runs.instances,
            algorithms=runs.algorithms,
            performance=runs.performance,
            times=runs.times,
            solved=runs.solved,
            ranks=runs.ranks,
            cutoff=runs.cutoff,
            features=features.values,
            feature_names=features.names,
            feature_costs=features.costs * runs.unit,
            algorithm_features=algorithm_features,
            algorithm_feature_names=algorithm_feature_names,
            quality=runs.quality,
            maximise=runs.maximise,
        )
        for value in vars(scenario).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        return scenario

    @cached_property
    def costs(self) -> Floats:
        """Cost of each run, instances x algorithms: its PAR10, or its loss if qualities are compared."""
        costs = self.times.copy() if self.quality else par10(self.times, self.solved, self.cutoff)
        costs.setflags(write=False)
        return costs

    @cached_property
    def charged_costs(self) -> Floats:
        """Cost of each run if it starts only after the instance's features have been computed."""
        if self.quality:
            return self.costs
        costs = par10(self.times + self.feature_costs[:, None], self.charged_solved, self.cutoff)
        costs.setflags(write=False)
        return costs

    @cached_property
    def charged_solved(self) -> NDArray[np.bool_]:
        """Whether each run solves its instance before the cutoff if it starts only after the features."""
        if self.quality:
            return self.solved
        solved: NDArray[np.bool_] = self.solved & (self.times + self.feature_costs[:, None] <= self.cutoff)
        solved.setflags(write=False)
        return solved

    def order(self, instance: int, among: ArrayLike | None = None) -> Integers:
        """The algorithms that solve an instance, best first; equal ones stay in the given order.

        Parameters
        ----------
        instance : int
            Position of the instance.
        among : array of int, optional
            Positions of the algorithms to consider; all by default.
        """
        shown = np.arange(len(self.algorithms)) if among is None else np.asarray(among, dtype=np.int64)
        ranked = shown[np.argsort(self.ranks[instance, shown], kind="stable")]
        solving: Integers = ranked[self.solved[instance, ranked]]
        return solving

    def winner(self, instance: int, among: ArrayLike | None = None) -> int | None:
        """The algorithm that wins the race on an instance; None if none solves it. Parameters as for `order`."""
        order = self.order(instance, among)
        return int(order[0]) if len(order) else None


def par10(times: ArrayLike, solved: ArrayLike, cutoff: float) -> Floats:
    """The time of each run that solved its instance, and ten times the cutoff for every other run.

    Parameters
    ----------
    times : array of float
        Time of each run, in seconds.
    solved : array of bool
        Whether each run solved its instance.
    cutoff : float
        Seconds after which a run is stopped.

    >>> par10([3.0, 60.0], [True, False], 60.0).tolist()
    [3.0, 600.0]
    """
    penalised: Floats = np.where(np.asarray(solved, dtype=bool), np.asarray(times, dtype=np.float64), 10.0 * cutoff)
    return penalised


def _require_scenario(folder: Path) -> Path:
    for name in _REQUIRED:
        if not (folder / name).is_file():
            raise InputError(f"{folder} is not an ASlib scenario: it has no {name}")
    return folder


class _InstanceFeatures(NamedTuple):
    """Features of instances: values (instances x features, NaN where missing), names, and costs per instance."""

    values: Floats
    names: list[str]
    costs: Floats  # costs of all steps together, in the unit of the file; 0 where unknown


def _read_instance_features(
    folder: Path, description: dict[str, Any], instances: list[str], steps: str | Sequence[str] | None
) -> _InstanceFeatures:
    """Read the features that some steps provide, and what these steps cost; all steps if `steps` is None."""
    used = _find_steps(description, steps)
    values, names = _read_features(folder / "feature_values.arff", "instance_id", instances)
    if used is not None:
        kept = arff.select_names(names, [name for provided in used.values() for name in provided])
        values, names = values[:, kept], [names[column] for column in kept]
    return _InstanceFeatures(values, names, _read_costs(folder / "feature_costs.arff", instances, used))


def _read_algorithm_features(folder: Path, algorithms: list[str]) -> tuple[Floats | None, list[str]]:
    """Features of the algorithms and their names; None if the scenario has none."""
    path = folder / "algorithm_feature_values.arff"
    return _read_features(path, "algorithm", algorithms) if path.is_file() else (None, [])


def _find_steps(description: dict[str, Any], steps: str | Sequence[str] | None) -> dict[str, list[str]] | None:
    """For each step used, including required ones, the features it provides; None means all steps."""
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
            raise InputError(f"the scenario has no feature step {step!r:.80}; it has {', '.join(map(str, there))}")
        if step not in used:
            parts = there[step] if isinstance(there[step], dict) else {}
            used[step] = as_list(parts.get("provides"))
            wanted += as_list(parts.get("requires"))
    return used


def _read_costs(path: Path, instances: list[str], steps: Iterable[str] | None) -> Floats:
    """What the steps cost on each instance, in the unit of the file; 0 where that is unknown."""
    if not path.is_file():
        return np.zeros(len(instances))
    costs, names = _read_features(path, "instance_id", instances)
    kept = slice(None) if steps is None else arff.select_names(names, steps)
    total: Floats = np.nansum(costs[:, kept], axis=1)
    return total


def _read_features(path: Path, key: str, owners: list[str]) -> tuple[Floats, list[str]]:
    """Features of instances or algorithms (the owners), NaN where missing, and the features' names."""
    table = arff.read(path)
    columns = [
        column
        for column, attribute in enumerate(table.attributes)
        if attribute.name.lower() not in (key, "repetition") and attribute.kind != arff.TEXT
    ]
    numbers = [table.numbers[one] if one in table.numbers else _as_positions(table, one) for one in columns]
    values = np.column_stack(numbers) if numbers else np.empty((len(table.lines), 0))
    values[~np.isfinite(values)] = np.nan
    owner_of = arff.match_names(table.names(key), owners)
    known = owner_of >= 0
    means = _average(values[known], owner_of[known], len(owners))
    return means, [table.attributes[column].name for column in columns]


def _as_positions(table: arff.Table, column: int) -> Floats:
    """Nominal values as their positions among the declared ones."""
    positions = {value: float(position) for position, value in enumerate(table.attributes[column].values)}
    return np.array([positions.get(text or "", np.nan) for text in table.texts[column]])


def _average(values: Floats, owner_of: Integers, count: int) -> Floats:
    """Mean of each owner's rows, ignoring what is missing."""
    there = ~np.isnan(values)
    sums, counts = np.zeros((count, values.shape[1])), np.zeros((count, values.shape[1]))
    np.add.at(sums, owner_of, np.where(there, values, 0.0))
    np.add.at(counts, owner_of, there)
    means = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
