"""Features of an instance before it is raced on: built in for SAT, printed by a command, from a CSV file, or none.

All within the time that the pool gives them, and strictly checked. Formulas may be compressed (gzip, xz) as far as this
library is concerned; the solvers of a pool must be able to read them too, and most read no xz.
"""

import csv
import json
import math
import os
import selectors
import shlex
import signal
import subprocess
import sys
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
from preselect.race.commands import fill
from preselect.race.pool import FeatureSource
from preselect.sat import dimacs
from preselect.sat import features as satzilla

Values = dict[str, float | None]

_MOST_OUTPUT = 1_000_000  # bytes that a command may print
_KEPT_ERRORS = 1000  # bytes of its standard error that are quoted from
_POLL_SECONDS = 0.02
_LEAST_WORK_PER_SECOND = 5e7  # what the compiled loops do at the very least
_MISSING = ("", "?", "nan")


@dataclass(frozen=True)
class Instance:
    """A file to race on; as a formula it is read once, when first asked for."""

    path: Path

    @cached_property
    def formula(self) -> dimacs.Formula:
        """What the file holds, if it is DIMACS CNF."""
        return dimacs.read_formula(self.path)


class Measured(NamedTuple):
    """The features of an instance, None for missing ones, and how long it took to get them."""

    values: Values
    seconds: float


def features_of(source: FeatureSource, instance: Instance) -> Measured:
    """Get an instance's features; an error in one sentence if they cannot be had in time, or are no numbers."""
    began = monotonic()
    values = _WAYS[source.kind](source, instance)
    return Measured(values, monotonic() - began)


def feature_names(source: FeatureSource) -> tuple[str, ...] | None:
    """The names that all instances' features will have; None if only the command knows them."""
    if source.kind == "command":
        return None
    if source.kind == "csv":
        return _read_table(source)[0]
    names = satzilla.FEATURE_NAMES if source.kind == "sat" else ()
    return tuple(name for name in names if source.clause_graph or name not in _CLAUSE_GRAPH)


def _none(source: FeatureSource, instance: Instance) -> Values:  # noqa: ARG001  # all ways have the same arguments
    return {}


# --- SAT --------------------------------------------------------------------------------------------------------------

_CLAUSE_GRAPH = {name for name in satzilla.FEATURE_NAMES if name.startswith(("CG", "cluster-coeff"))}

_ALONE = """
import json, sys
from preselect.sat import compute_features, read_formula
print(json.dumps(compute_features(read_formula(sys.argv[1]), clause_graph=sys.argv[2] == "True").values))
"""


def _sat(source: FeatureSource, instance: Instance) -> Values:
    """Computed here if that is surely in time; otherwise in a process of its own, which can be stopped.

    Reading the formula is not limited: answers could not be checked without it.
    """
    if _work(instance.formula, source.clause_graph) / _LEAST_WORK_PER_SECOND < source.seconds:
        return dict(satzilla.compute_features(instance.formula, clause_graph=source.clause_graph).values)
    path = fspath(instance.path.absolute())
    return _ask([sys.executable, "-c", _ALONE, path, str(source.clause_graph)], source.seconds, "the SAT features")


def _work(formula: dimacs.Formula, clause_graph: bool) -> float:
    """About the most steps that computing the features takes: neighbours of variables, triangles of clauses."""
    lengths = np.diff(formula.starts).astype(np.float64)
    work = float(np.sum(lengths**2))
    if not clause_graph:
        return work
    negative, positive = (
        np.bincount(np.abs(formula.literals[sign]), minlength=formula.variables + 1)
        for sign in (formula.literals < 0, formula.literals > 0)
    )
    clashes = float(np.sum(negative.astype(np.float64) * positive))
    return work + clashes * math.sqrt(clashes)


# --- a command --------------------------------------------------------------------------------------------------------


def _command(source: FeatureSource, instance: Instance) -> Values:
    command = fill(source.command, {"instance": fspath(instance.path.absolute())})
    return _ask(command, source.seconds, f"the features command {shlex.join(command)}")


def _ask(command: Sequence[str], seconds: float, name: str) -> Values:
    exit_code, output, errors = _run(command, seconds, name)
    if exit_code:
        last = (errors.decode(errors="replace").strip().splitlines() or ["and nothing on its standard error"])[-1]
        raise InputError(f"{name} must end with exit code 0, got {exit_code}: {last:.200}")
    return _numbers(output, name)


def _numbers(output: bytes, name: str) -> Values:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no number; print null for a missing one")

    try:
        found = json.loads(output.decode(), parse_constant=refuse, object_pairs_hook=_distinct)
        if not isinstance(found, dict):
            raise ValueError(f"it is a {type(found).__name__}")
        return {key: _number(value, key) for key, value in found.items()}
    except (ValueError, RecursionError) as error:
        shown = output[:60].decode(errors="replace")
        raise InputError(f"{name} must print one JSON object of numbers, got {shown!r}: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _number(value: Any, key: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool):
        raise ValueError(f"{key} is {str(value).lower()}, write 1 or 0")
    try:
        return number(value, key)
    except OverflowError:
        raise ValueError(f"{key} is too large") from None


def _run(command: Sequence[str], seconds: float, name: str) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of a command, run in a session of its own of which nothing is left afterwards."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(f"{name} must be a program that can be started, got {error.strerror}") from None
    with process:
        try:
            output, errors = _listen(process, monotonic() + seconds, name, seconds)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # not yet waited for: the number cannot belong to others
    return process.returncode, output, errors


def _listen(process: "subprocess.Popen[bytes]", deadline: float, name: str, seconds: float) -> tuple[bytes, bytes]:
    """What the process prints until it ends; whoever else holds its pipes open is not waited for."""
    output, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, output)  # type: ignore[arg-type]
        selector.register(process.stderr, selectors.EVENT_READ, errors)  # type: ignore[arg-type]
        while True:
            ended = _ended(process.pid)
            ready = selector.select(0 if ended else _POLL_SECONDS)
            for key, _ in ready:
                _take(selector, key)
            if len(output) > _MOST_OUTPUT:
                raise InputError(f"{name} must print at most {_MOST_OUTPUT} bytes, got more")
            if ended and not ready:
                return bytes(output), bytes(errors)
            if monotonic() > deadline:
                raise InputError(f"{name} must end within {seconds:g} s, got no end by then; raise features.seconds")
            del errors[_KEPT_ERRORS:]


def _take(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    chunk = os.read(key.fd, 65536)
    key.data.extend(chunk)
    if not chunk:
        selector.unregister(key.fileobj)


def _ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


# --- a CSV file -------------------------------------------------------------------------------------------------------

_Table = tuple[tuple[str, ...], dict[str, tuple[float | None, ...]]]


def _csv(source: FeatureSource, instance: Instance) -> Values:
    names, rows = _read_table(source)
    for name in (fspath(instance.path), fspath(instance.path.absolute()), instance.path.name):
        if name in rows:
            return dict(zip(names, rows[name], strict=True))
    raise InputError(f"{source.file} must have a row for every instance, got none for {instance.path.name}; add it")


def _read_table(source: FeatureSource) -> _Table:
    assert source.file is not None  # the pool's reader sees to it
    try:
        changed = source.file.stat().st_mtime_ns
    except OSError:
        changed = 0  # reading it says what is wrong
    return _parse_table(source.file, changed)


@lru_cache(maxsize=4)
def _parse_table(file: Path, _changed: int) -> _Table:
    """The names of the features, and the values of every instance; read again when the file has changed."""
    try:
        lines = list(csv.reader(read_text(file).splitlines()))
    except csv.Error as error:
        raise InputError(f"{file} must be a CSV file, got something else: {error}") from None
    header = lines[0] if lines else []
    if len(header) < 2 or len(set(header)) < len(header) or not all(header[1:]):
        raise InputError(
            f"{file}, line 1: the header must be distinct names, instance and features, got {header!r:.80}"
        )
    rows: dict[str, tuple[float | None, ...]] = {}
    for place, line in enumerate(lines[1:], start=2):
        if len(line) != len(header) or line[0] in rows:
            wanted = f"an instance that no other line has, and {len(header) - 1} features"
            raise InputError(f"{file}, line {place}: a line must be {wanted}, got {','.join(line)!r:.80}")
        rows[line[0]] = tuple(_cell(cell, f"{file}, line {place}") for cell in line[1:])
    return tuple(header[1:]), rows


def _cell(text: str, where: str) -> float | None:
    if text.strip().lower() in _MISSING:
        return None
    try:
        return number(float(text), "a feature")
    except ValueError:
        raise InputError(f"{where}: a feature must be a finite number, or empty if missing, got {text!r:.40}") from None


_WAYS: dict[str, Callable[[FeatureSource, Instance], Values]] = {
    "sat": _sat,
    "command": _command,
    "csv": _csv,
    "none": _none,
}
