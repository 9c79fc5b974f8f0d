"""Features in an ASlib scenario: of instances, with what computing them costs, and of algorithms."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from preselect.context import Floats, Integers
from preselect.environments.aslib import arff
from preselect.environments.aslib.description import as_list
from preselect.errors import InputError


class _InstanceFeatures(NamedTuple):
    """Features of instances: values (instances x features, NaN where missing), names, and what each instance costs."""

    values: Floats
    names: list[str]
    costs: Floats  # of all steps together, in the unit of the file; 0 where unknown


def read_instance_features(
    folder: Path, description: dict[str, Any], instances: list[str], steps: str | Sequence[str] | None
) -> _InstanceFeatures:
    """Read the features that some steps provide, and what these steps cost; all steps if `steps` is None."""
    used = _find_steps(description, steps)
    values, names = _read_features(folder / "feature_values.arff", "instance_id", instances)
    if used is not None:
        kept = arff.select_names(names, [name for provided in used.values() for name in provided])
        values, names = values[:, kept], [names[column] for column in kept]
    return _InstanceFeatures(values, names, _read_costs(folder / "feature_costs.arff", instances, used))


def read_algorithm_features(folder: Path, algorithms: list[str]) -> tuple[Floats | None, list[str]]:
    """Features of the algorithms and their names; None if the scenario has none."""
    path = folder / "algorithm_feature_values.arff"
    return _read_features(path, "algorithm", algorithms) if path.is_file() else (None, [])


def _find_steps(description: dict[str, Any], steps: str | Sequence[str] | None) -> dict[str, list[str]] | None:
    """The features that each of the steps provides, with the steps they require; None for all steps."""
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
    """Features of the owners, NaN where missing, and the features' names."""
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
