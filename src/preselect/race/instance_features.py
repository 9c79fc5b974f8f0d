"""Features of an instance: computed from a formula or any file, printed by a command, read from a CSV file, or none.

They are checked strictly, and the pool limits the time to compute them. Formulas may be compressed (gzip, xz) if the
solvers of the pool can read that; most cannot read xz.
"""

import csv
import json
import math
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from os import fspath
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, NoReturn

import numpy as np

from preselect.arguments import number
from preselect.errors import InputError
from preselect.files import read_text
from preselect.race.file_features import FILE_FEATURES, compute_file_features
from preselect.race.pool import FeatureSource
from preselect.race.pool_values import fill
from preselect.race.supervision import Limits, Racer, Status, Supervision
from preselect.sat import dimacs
from preselect.sat import features as satzilla

FeatureValues = dict[str, float | None]

_MAX_OUTPUT = 1_000_000  # bytes that a command may print
_MAX_ERRORS = 1000  # bytes of a command's standard error that are kept
_MIN_STEPS_PER_SECOND = 5e7  # of the compiled loops
_MISSING = ("", "?", "nan")


@dataclass(frozen=True)
class Instance:
    """A file to race on; if it is a formula, it is read once, on first use."""

    path: Path

    @cached_property
    def formula(self) -> dimacs.Formula:
        """The formula in the file, in DIMACS CNF."""
        return dimacs.read_formula(self.path)


class InstanceFeatures(NamedTuple):
    """The features of an instance, the seconds spent on them, and the error if they are unavailable."""

    values: FeatureValues | None
    seconds: float
    error: InputError | None = None


def measure_features(source: FeatureSource, instance: Instance) -> InstanceFeatures:
    """Compute an instance's features and measure the time; raises an InputError only for an unreadable formula."""
    start = monotonic()
    try:
        values = _collect_features(source, instance)
    except InputError as error:
        if source.kind == "sat":
            _ = instance.formula
        return InstanceFeatures(None, monotonic() - start, error)
    return InstanceFeatures(values, monotonic() - start)


def _collect_features(source: FeatureSource, instance: Instance) -> FeatureValues:
    """Compute or look up an instance's features, None for missing ones; an InputError says why that is impossible."""
    return _WAYS[source.kind](source, instance)


def list_feature_names(source: FeatureSource) -> tuple[str, ...] | None:
    """List the names of the features that all instances have; None if only the command knows them."""
    if source.kind == "command":
        return None
    if source.kind == "csv":
        return _read_table(source)[0]
    if source.kind == "file":
        return FILE_FEATURES
    names = satzilla.FEATURE_NAMES if source.kind == "sat" else ()
    return tuple(name for name in names if source.clause_graph or name not in _CLAUSE_GRAPH)


def _compute_none(source: FeatureSource, instance: Instance) -> FeatureValues:  # noqa: ARG001  # as the others in _WAYS
    return {}


def _describe_file(source: FeatureSource, instance: Instance) -> FeatureValues:  # noqa: ARG001  # as the others
    return compute_file_features(instance.path)


# --- SAT --------------------------------------------------------------------------------------------------------------

_CLAUSE_GRAPH = {name for name in satzilla.FEATURE_NAMES if name.startswith(("CG", "cluster-coeff"))}

_SCRIPT = """
import json, sys
from preselect.sat import compute_features, read_formula
print(json.dumps(compute_features(read_formula(sys.argv[1]), clause_graph=sys.argv[2] == "True").values))
"""


def _compute_sat(source: FeatureSource, instance: Instance) -> FeatureValues:
    """Compute SAT features in this process if that surely takes little time, otherwise in one that can be killed.

    The time to read the formula is not limited, because checking answers needs the formula anyway.
    """
    if _count_steps(instance.formula, source.clause_graph) / _MIN_STEPS_PER_SECOND < source.seconds:
        return dict(satzilla.compute_features(instance.formula, clause_graph=source.clause_graph).values)
    path = fspath(instance.path.absolute())
    return _ask_program([sys.executable, "-c", _SCRIPT, path, str(source.clause_graph)], source, "the SAT features")


def _count_steps(formula: dimacs.Formula, clause_graph: bool) -> float:
    """Estimate the largest number of steps to compute the features: pairs in clauses, triangles of clauses."""
    lengths = np.diff(formula.starts).astype(np.float64)
    steps = float(np.sum(lengths**2))
    if not clause_graph:
        return steps
    negative, positive = (
        np.bincount(np.abs(formula.literals[sign]), minlength=formula.variables + 1)
        for sign in (formula.literals < 0, formula.literals > 0)
    )
    clashes = float(np.sum(negative.astype(np.float64) * positive))
    return steps + clashes * math.sqrt(clashes)


# --- a command --------------------------------------------------------------------------------------------------------


def _compute_by_command(source: FeatureSource, instance: Instance) -> FeatureValues:
    command = fill(source.command, {"instance": fspath(instance.path.absolute())})
    return _ask_program(command, source, f"the features command {shlex.join(command)}")


def _ask_program(command: Sequence[str], source: FeatureSource, name: str) -> FeatureValues:
    exit_code, output, errors = _run(command, source, name)
    if exit_code:
        lines = errors.decode(errors="replace").strip().splitlines() or ["it printed nothing to standard error"]
        raise InputError(f"{name} failed with exit code {exit_code}: {lines[-1]:.200}")
    return _parse_numbers(output, name)


def _parse_numbers(output: bytes, name: str) -> FeatureValues:
    try:
        found = json.loads(output.decode(), parse_constant=_refuse_constant, object_pairs_hook=_require_distinct_keys)
        if not isinstance(found, dict):
            raise ValueError("it is not an object")
        return {key: _parse_number(value, key) for key, value in found.items()}
    except (ValueError, RecursionError) as error:
        shown = output[:60].decode(errors="replace")
        raise InputError(f"{name} printed {shown!r}, which is not one JSON object of numbers: {error}") from None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not allowed; print null for a missing number")


def _require_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _parse_number(value: Any, key: str) -> float | None:
    if isinstance(value, bool):
        raise ValueError(f"{key} is {str(value).lower()}; use 1 or 0")
    return None if value is None else number(value, key)


def _run(command: Sequence[str], source: FeatureSource, name: str) -> tuple[int, bytes, bytes]:
    """Run a command like a racer, supervised and limited; return its exit code, output and errors."""
    racer, limits = (
        Racer("features", tuple(command), exit_codes=tuple(range(256))),
        Limits(source.seconds, source.memory),
    )
    try:
        with tempfile.TemporaryDirectory(prefix="preselect-features-") as folder:
            finish = Supervision([racer], limits, folder=Path(folder), keep=_MAX_OUTPUT + 1).run().finishes[0]
    except OSError as error:
        raise InputError(f"cannot run {name}: {error}") from None
    if len(finish.output) > _MAX_OUTPUT:
        raise InputError(f"{name} printed more than {_MAX_OUTPUT} bytes")
    problem = {
        Status.NOT_STARTED: f"cannot start {name}: {finish.detail}",
        Status.TIMEOUT: f"{name} took more than {source.seconds:g} s; raise features.seconds",
        Status.MEMORY: f"{name} {finish.detail}; raise limits.memory",
        Status.INFRASTRUCTURE_ERROR: f"{name} could not be supervised: {finish.detail}",
    }.get(finish.status)
    if problem is not None:
        raise InputError(problem)
    code = -(finish.signal or 0) if finish.exit_code is None else finish.exit_code
    return code, finish.output, finish.errors[:_MAX_ERRORS]


# --- a CSV file -------------------------------------------------------------------------------------------------------

_Table = tuple[tuple[str, ...], dict[str, tuple[float | None, ...]]]


def _look_up(source: FeatureSource, instance: Instance) -> FeatureValues:
    names, rows = _read_table(source)
    for name in (fspath(instance.path), fspath(instance.path.absolute()), instance.path.name):
        if name in rows:
            return dict(zip(names, rows[name], strict=True))
    raise InputError(f"{source.file} has no row for {instance.path.name}; add one")


def _read_table(source: FeatureSource) -> _Table:
    assert source.file is not None  # as read_pool makes sure
    try:
        modified = source.file.stat().st_mtime_ns
    except OSError:
        modified = 0  # reading the table will raise the right error
    return _parse_table(source.file, modified)


@lru_cache(maxsize=4)
def _parse_table(file: Path, _modified: int) -> _Table:
    """Parse the names of the features and the values of every instance; cached until the file is modified."""
    try:
        header, *lines = list(csv.reader(read_text(file).splitlines())) or [[]]
    except csv.Error as error:
        raise InputError(f"{file} is not a CSV file: {error}") from None
    if len(header) < 2 or len(set(header)) < len(header) or not all(header[1:]):
        shown = ",".join(header)
        wanted = "name a column of instances and at least one feature, all differently"
        raise InputError(f"{file}, line 1: {shown!r:.80} is not a header; {wanted}")
    rows: dict[str, tuple[float | None, ...]] = {}
    for position, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise InputError(f"{file}, line {position}: {len(line)} values, but the header has {len(header)} names")
        if line[0] in rows:
            raise InputError(f"{file}, line {position}: there is another line for {line[0]!r:.80}; remove one of them")
        rows[line[0]] = tuple(_parse_cell(cell, f"{file}, line {position}") for cell in line[1:])
    return tuple(header[1:]), rows


def _parse_cell(text: str, where: str) -> float | None:
    if text.strip().lower() in _MISSING:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise InputError(f"{where}: {text!r:.40} is not a finite number; leave a missing feature empty")
    return value


_WAYS: dict[str, Callable[[FeatureSource, Instance], FeatureValues]] = {
    "sat": _compute_sat,
    "file": _describe_file,
    "command": _compute_by_command,
    "csv": _look_up,
    "none": _compute_none,
}
