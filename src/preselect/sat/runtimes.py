"""The run-time table: every parametrization of SAPS on every instance, censored at a cutoff, one CSV file.

One line per run: instance, parametrization (counted from 1), seconds, steps, solved (1 or 0). Lines are added as runs
finish, so that a table can be gone on with; an unfinished last line is dropped.
"""

import csv
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from preselect.arguments import number
from preselect.errors import InputError
from preselect.files import read_text
from preselect.sat.dimacs import read_formula
from preselect.sat.saps import Parameters, solve

HEADER = ("instance", "parametrization", "seconds", "steps", "solved")


class RunTime(NamedTuple):
    """One run."""

    instance: str
    parametrization: int
    seconds: float
    steps: int
    solved: bool


def read_runtimes(path: Path) -> list[RunTime]:
    """The runs in a table."""
    rows = csv.reader(read_text(path).splitlines())
    if tuple(next(rows, ())) != HEADER:
        raise InputError(f"{path}, line 1: the header must be {','.join(HEADER)}")
    return [_line(path, place, row) for place, row in enumerate(rows, start=2)]


def _line(path: Path, place: int, row: list[str]) -> RunTime:
    try:
        instance, parametrization, seconds, steps, solved = row
        return RunTime(instance, int(parametrization), float(seconds), int(steps), {"1": True, "0": False}[solved])
    except (KeyError, ValueError):
        raise InputError(f"{path}, line {place}: a run must be {','.join(HEADER)}, got {','.join(row)!r:.80}") from None


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
    """Run what is missing in the table, add it line by line, and answer the whole; `report` hears of each instance."""
    number(cutoff, "cutoff", above=0.0)
    twice = [name for name, times in Counter(path.name for path in files).items() if times > 1]
    if twice:
        raise InputError(f"files must have distinct names, got {', '.join(twice)} more than once")
    done = {(line.instance, line.parametrization) for line in _kept(out)}
    tasks = [
        (path, missing)
        for path in files
        if (missing := [i for i in range(1, len(parametrizations) + 1) if (path.name, i) not in done])
    ]
    for _ in range(len(files) - len(tasks)):
        report("")
    with out.open("a", newline="") as file:
        for lines in _runs(tasks, parametrizations, cutoff, seed, workers):
            csv.writer(file, lineterminator="\n").writerows([*line[:-1], int(line.solved)] for line in lines)
            file.flush()
            report(lines[0].instance)
    return read_runtimes(out)


def _kept(out: Path) -> list[RunTime]:
    """The runs that are there already; the file begins with a header and ends with a whole line afterwards."""
    text = out.read_text() if out.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text or not whole:
        out.write_text(whole or ",".join(HEADER) + "\n")
    return read_runtimes(out)


def _runs(
    tasks: list[tuple[Path, list[int]]],
    parametrizations: Sequence[Parameters],
    cutoff: float,
    seed: int,
    workers: int,
) -> Iterator[list[RunTime]]:
    import joblib

    workers = min(joblib.effective_n_jobs(workers), max(len(tasks), 1))
    parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    yield from parallel(
        joblib.delayed(_run_instance)(path, {i: parametrizations[i - 1] for i in missing}, cutoff, seed)
        for path, missing in tasks
    )


def _run_instance(path: Path, parametrizations: dict[int, Parameters], cutoff: float, seed: int) -> list[RunTime]:
    """Some parametrizations on one instance; what comes out, times apart, depends on its name and the seed alone."""
    formula = read_formula(path)
    solve(formula, steps=1)  # compile, or load what was compiled, before the clock runs
    lines = []
    for i, parameters in parametrizations.items():
        own = np.random.SeedSequence((seed, zlib.crc32(path.name.encode()), i)).generate_state(1)[0]
        found = solve(formula, parameters, seed=int(own), seconds=cutoff)
        lines.append(RunTime(path.name, i, round(min(found.seconds, cutoff), 5), found.steps, found.solved))
    return lines
