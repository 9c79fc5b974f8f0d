"""Tables of run times of algorithms on instances, as in the paper's second study (Section 6.2).

A table is a folder, in one of two forms. The paper's: `cpu_times.tsv` (instances x algorithms, seconds), `features.csv`
(instances x features) and `parameters.json` (one row [alpha, rho, ps, wp] per algorithm). Or that of
`preselect sat runtimes` and `preselect sat features`: `runs.csv` and `features.csv`, for the paper's 20
parametrizations. Files may be compressed (.gz or .xz).
"""

import csv
import json
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats
from preselect.errors import InputError
from preselect.features import Reduction
from preselect.files import read_text
from preselect.sat import PRINTED, read_runtimes


@dataclass(frozen=True, eq=False)
class RuntimeTable:
    """Run times of every algorithm on every instance, with features of both.

    Parameters
    ----------
    instances : list of str
        Names of the instances.
    seconds : array of shape (instances, algorithms)
        Run times; the cutoff where a run did not solve its instance.
    solved : boolean array of shape (instances, algorithms)
        Whether a run solved its instance; all True if the table does not say.
    features : array of shape (instances, features)
        Features of the instances.
    feature_names : list of str
        Their names.
    parameters : array of shape (algorithms, parameters)
        Parameters of the algorithms.
    """

    instances: list[str]
    seconds: Floats
    solved: NDArray[np.bool_]
    features: Floats
    feature_names: list[str]
    parameters: Floats

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> Self:
        """Read a table from its folder.

        Parameters
        ----------
        folder : path
            The folder with the files that the module describes.
        """
        path = Path(folder)
        names, columns, features = _read_numbers(_require(path, "features.csv"), ",")
        if _find(path, "cpu_times.tsv"):
            rows, _, seconds = _read_numbers(_require(path, "cpu_times.tsv"), "\t")
            solved = np.ones(seconds.shape, dtype=np.bool_)
            parameters = _read_parameters(_require(path, "parameters.json"))
        else:
            rows, seconds, solved = _read_runs(_require(path, "runs.csv"))
            parameters = PRINTED
        if seconds.shape[1] != len(parameters):
            counts = f"run times of {seconds.shape[1]} algorithms, but parameters of {len(parameters)}"
            raise InputError(f"{path} has {counts}")
        ordered = features[_match_rows(path, names, rows)]
        return cls(rows, seconds, solved, ordered, columns, parameters)

    @classmethod
    def read_shipped(cls) -> Self:
        """Read the table that is part of this library: small-world graph colouring, mixed sizes and ratios."""
        with resources.as_file(resources.files("preselect") / "data" / "saps") as folder:
            return cls.read(folder)

    def log_utilities(self, scale: float) -> Floats:
        """The paper's utilities exp(-λ seconds), as logarithms.

        Parameters
        ----------
        scale : float
            λ, in 1/seconds.
        """
        return -scale * self.seconds

    @cached_property
    def joint_features(self) -> tuple[Floats, Floats]:
        """The two factors of the joint features (of arms and of instances), preprocessed as in the paper.

        Parameters are scaled to [0, 1]; features of instances are scaled and reduced over the whole table (see
        `Reduction`).
        """
        contexts = Reduction().fit(self.features, self.feature_names).transform(self.features)
        low, high = self.parameters.min(axis=0), self.parameters.max(axis=0)
        return (self.parameters - low) / (high - low), contexts


def _match_rows(folder: Path, names: list[str], wanted: list[str]) -> list[int]:
    """Positions of the wanted names."""
    row_of = {name: row for row, name in enumerate(names)}
    missing = [name for name in wanted if name not in row_of]
    if missing:
        raise InputError(f"{folder}: features.csv has no row for the instance {missing[0]}")
    return [row_of[name] for name in wanted]


def _find(folder: Path, name: str) -> Path | None:
    candidates = (folder / f"{name}{suffix}" for suffix in ("", ".gz", ".xz"))
    return next((path for path in candidates if path.exists()), None)


def _require(folder: Path, name: str) -> Path:
    found = _find(folder, name)
    if found is None:
        raise InputError(f"{folder} is not a table of run times: it has no {name}")
    return found


def _read_numbers(path: Path, separator: str) -> tuple[list[str], list[str], Floats]:
    """Row names, column names and numbers of a table that has both kinds of names."""
    rows = list(csv.reader(read_text(path).splitlines(), delimiter=separator))
    if len(rows) < 2:
        raise InputError(f"{path} is too short: a header and at least one row are needed")
    numbers = np.empty((len(rows) - 1, len(rows[0]) - 1))
    for index, row in enumerate(rows[1:]):
        try:
            numbers[index] = [float(value) for value in row[1:]]
        except ValueError as error:
            raise InputError(f"{path}, line {index + 2}: {error}") from None
    return [row[0] for row in rows[1:]], rows[0][1:], numbers


def _read_parameters(path: Path) -> Floats:
    expected = f"{path} is not a JSON list with one row of numbers per algorithm"
    try:
        parameters = np.array(json.loads(read_text(path)), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{expected}: {error}") from None
    if parameters.ndim != 2:
        raise InputError(f"{expected}: its shape is {parameters.shape}")
    return parameters


def _read_runs(path: Path) -> tuple[list[str], Floats, NDArray[np.bool_]]:
    """Instances on which all parametrizations were run, their times, and whether they were solved."""
    lines = read_runtimes(path)
    instances = list(dict.fromkeys(line.instance for line in lines))
    row_of = {name: row for row, name in enumerate(instances)}
    shape = (len(instances), max((line.parametrization for line in lines), default=0))
    seconds, solved = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
    for line in lines:
        where = row_of[line.instance], line.parametrization - 1
        seconds[where], solved[where] = line.seconds, line.solved
    complete = np.isfinite(seconds).all(axis=1)
    if not complete.any():
        raise InputError(f"{path} has no instance on which all parametrizations were run")
    kept: Any = np.flatnonzero(complete)
    return [instances[row] for row in kept], seconds[kept], solved[kept]
