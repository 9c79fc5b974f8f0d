"""Tables of run times: every parametrization of SAPS on every instance, censored at a cutoff, in one CSV file.

One line per run: instance, parametrization (counted from 1), seconds, steps, solved (1 or 0). Lines are added as runs
finish, so that an interrupted measurement can be resumed; an unfinished last line is dropped.
"""

import csv
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from preselect.arguments import integer, number
from preselect.errors import InputError
from preselect.files import explain_writing, is_compressed, read_text
from preselect.sat.dimacs import read_formula
from preselect.sat.saps import Parameters, solve

_COLUMNS = ("instance", "parametrization", "seconds", "steps", "solved")
_HEADER = ",".join(_COLUMNS)


class RunTime(NamedTuple):
    """A line of the table.

    Parameters
    ----------
    instance : str
        The name of the formula's file, without folders.
    parametrization : int
        The number of the parametrization, from 1.
    seconds : float
        The processor time of the run, at most the cutoff.
    steps : int
        The steps that SAPS took.
    solved : bool
        Whether a model was found before the cutoff.
    """

    instance: str
    parametrization: int
    seconds: float
    steps: int
    solved: bool


def read_runtimes(path: Path) -> list[RunTime]:
    """Read a table of run times.

    Parameters
    ----------
    path : path
        The file, plain or compressed by gzip or xz.
    """
    return _parse_table(read_text(path), path)


def _parse_table(text: str, path: Path) -> list[RunTime]:
    rows = csv.reader(text.splitlines())
    if tuple(next(rows, ())) != _COLUMNS:
        raise InputError(f"{path} is not a table of run times: its first line is not {_HEADER}")
    return [_parse_row(path, line, row) for line, row in enumerate(rows, start=2)]


def _parse_row(path: Path, line: int, row: list[str]) -> RunTime:
    try:
        instance, parametrization, seconds, steps, solved = row
        return RunTime(instance, int(parametrization), float(seconds), int(steps), {"1": True, "0": False}[solved])
    except (KeyError, ValueError):
        found = ",".join(row)
        raise InputError(f"{path}, line {line}: expected {_HEADER}, found {found!r:.80}") from None


def measure_runtimes(
    files: Sequence[Path],
    parametrizations: Sequence[Parameters],
    out: Path,
    *,
    cutoff: float,
    seed: int = 0,
    workers: int = -1,
    report: Callable[[str], object] = str,
) -> list[RunTime]:
    """Run every parametrization on every formula, and return the whole table.

    Runs that the table holds already are not repeated. Formulas that cannot be read are named in an error at the end,
    after all others have been run.

    Parameters
    ----------
    files : sequence of paths
        DIMACS CNF files; their names, without folders, differ.
    parametrizations : sequence of Parameters
        The parameters to run.
    out : path
        The table, a new file or a table that is to be completed; any other file is left alone.
    cutoff : float
        Seconds of processor time after which a run is stopped.
    seed : int, default 0
        Steps depend only on the seed, the name of the instance and the number of the parametrization.
    workers : int, default -1
        The number of processes; -1 means one per core.
    report : callable, optional
        Called with the name of each instance when it is done.
    """
    _check_arguments(files, parametrizations, cutoff, seed, workers)
    done = {(line.instance, line.parametrization) for line in _open_table(out)}
    every = range(1, len(parametrizations) + 1)
    tasks = [(path, missing) for path in files if (missing := [i for i in every if (path.name, i) not in done])]
    for _ in range(len(files) - len(tasks)):
        report("")
    unreadable = []
    for path, found in _run_all(tasks, parametrizations, cutoff, seed, workers):
        if isinstance(found, InputError):
            unreadable.append(str(found))
        else:
            _append_runs(out, found)
        report(path.name)
    if unreadable:
        counted = f"{len(unreadable)} of {len(files)} formulas cannot be run, all other runs are in {out}"
        raise InputError(f"{counted}: {'; '.join(sorted(unreadable))}")
    return read_runtimes(out)


def _check_arguments(
    files: Sequence[Path], parametrizations: Sequence[Parameters], cutoff: float, seed: int, workers: int
) -> None:
    number(cutoff, "cutoff", above=0.0)
    integer(seed, "seed", 0)
    if integer(workers, "workers", -1) == 0:
        raise InputError("workers is 0; use a positive number, or -1 for one per core")
    if not parametrizations:
        raise InputError("there are no parametrizations to run")
    twice = [name for name, times in Counter(path.name for path in files).items() if times > 1]
    if twice:
        raise InputError(f"several files are called {', '.join(twice)}; the table needs different names")
    for path in files:
        if not path.name.isprintable():  # a line break, or bytes that are not text
            raise InputError(f"rename {path.name!r}: it cannot be written to the table")


def _open_table(out: Path) -> list[RunTime]:
    """The runs that the file holds; afterwards it begins with the header and ends with a whole line."""
    if out.suffix in (".gz", ".xz"):
        raise InputError(f"the table grows line by line and cannot be compressed; name it {out.with_suffix('')}")
    if out.exists() and not out.is_file():
        raise InputError(f"cannot write the table to {out}, which is not a file")
    if out.exists() and is_compressed(out):
        raise InputError(f"{out} is compressed, and the table grows line by line; decompress it, or name another file")
    text = read_text(out) if out.exists() else ""
    if (_HEADER + "\n").startswith(text):  # a new file, or one that was cut off within the header
        with explain_writing(out):
            out.write_text(_HEADER + "\n")
        return []
    whole = text[: text.rfind("\n") + 1]
    lines = _parse_table(whole, out)  # before anything is changed: it may be another kind of file
    with explain_writing(out):
        os.truncate(out, len(whole.encode()))
    return lines


def _append_runs(out: Path, lines: list[RunTime]) -> None:
    with explain_writing(out), out.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([*line[:-1], int(line.solved)] for line in lines)


def _run_all(
    tasks: list[tuple[Path, list[int]]],
    parametrizations: Sequence[Parameters],
    cutoff: float,
    seed: int,
    workers: int,
) -> Iterator[tuple[Path, list[RunTime] | InputError]]:
    import joblib

    workers = min(joblib.effective_n_jobs(workers), max(len(tasks), 1))
    parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    yield from parallel(
        joblib.delayed(_run_instance)(path, {i: parametrizations[i - 1] for i in missing}, cutoff, seed)
        for path, missing in tasks
    )


def _run_instance(
    path: Path, parametrizations: dict[int, Parameters], cutoff: float, seed: int
) -> tuple[Path, list[RunTime] | InputError]:
    """The runs on one instance, or why it cannot be read."""
    try:
        formula = read_formula(path)
    except InputError as error:
        return path, error
    solve(formula, steps=1)  # compile, or load compiled code, before time is measured
    lines = []
    for i, parameters in parametrizations.items():
        own_seed = np.random.SeedSequence((seed, zlib.crc32(path.name.encode()), i)).generate_state(1)[0]
        found = solve(formula, parameters, seed=int(own_seed), seconds=cutoff)
        lines.append(RunTime(path.name, i, round(min(found.seconds, cutoff), 5), found.steps, found.solved))
    return path, lines
