"""A pool to begin with: the SAT solvers that are installed here, and SAPS.

`find_solvers` looks for solvers known by name, and `write_pool` writes a pool file of them with comments.
"""

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from preselect.errors import InputError
from preselect.race.tables import positive_of
from preselect.sat.parametrizations import EFFECTIVE, PARAMETER_NAMES
from preselect.sat.saps import DEFAULT, Parameters

# --- solvers known by name --------------------------------------------------------------------------------------------


class Solver(NamedTuple):
    """A solver as an arm of a pool; `success` is its own table there, empty if it answers as all do."""

    name: str
    command: tuple[str, ...]
    features: Mapping[str, float]
    success: Mapping[str, str] = {}
    note: str = ""


def _learning(*command: str, inprocessing: int, success: Mapping[str, str] | None = None, note: str = "") -> Solver:
    features = {"cdcl": 1, "local_search": 0, "inprocessing": inprocessing}
    return Solver(command[0], command, features, success or {}, note)


KNOWN = (
    _learning("cadical", "-q", "--seed={seed}", "{instance}", inprocessing=1),
    _learning("clasp", "--verbose=0", "--seed={seed}", "{instance}", inprocessing=0, note="Reads no compressed files."),
    _learning("cryptominisat5", "--verb", "0", "--random", "{seed}", "{instance}", inprocessing=1),
    _learning("kissat", "-q", "--seed={seed}", "{instance}", inprocessing=1),
    _learning(
        "minisat",
        "-verb=0",
        "{instance}",
        inprocessing=0,
        success={"verifier": "none"},
        note="Prints no model where a verifier could read it, so its exit code is taken on its word.",
    ),
    _learning("picosat", "-s", "{seed}", "{instance}", inprocessing=0),
    _learning(
        "z3",
        "-dimacs",
        "sat.random_seed={seed}",
        "{instance}",
        inprocessing=1,
        success={"pattern": r"^s (UN)?SATISFIABLE"},
        note="Ends with exit code 0 whatever it finds. Reads no compressed files.",
    ),
)

_COVERING = (2, 9, 13)  # of the paper's parametrizations: together they are fastest on the colouring instances


def _saps(name: str, parameters: Parameters) -> Solver:
    values = {key: getattr(parameters, key) for key in PARAMETER_NAMES}
    options = [word for key, value in values.items() for word in (f"--{key}", f"{value:g}")]
    limits = ("--seed", "{seed}", "--seconds", "{timeout}")
    command = (sys.executable, "-m", "preselect", "sat", "solve", "{instance}", *options, *limits)
    return Solver(name, command, {"cdcl": 0, "local_search": 1, "inprocessing": 0, **values})


def find_solvers(path: str | None = None) -> list[Solver]:
    """The known solvers that are in the search path, PATH if none is given, and SAPS in four parametrizations."""
    found = [solver for solver in KNOWN if shutil.which(solver.command[0], path=path)]
    numbered = [_saps(f"saps-{number}", EFFECTIVE[number - 1]) for number in _COVERING]
    return [*found, _saps("saps", DEFAULT), *numbered]


# --- the pool file ----------------------------------------------------------------------------------------------------

_BEGINNING = """\
# A pool of solvers: `preselect race POOL FILE...` races k of them per instance and learns which.
# Try every arm with `preselect race check POOL`.

k = {k}                          # racers per instance; no more than there are idle cores
policy = "newton(outside=True)"  # how to choose them: `preselect policies` lists what there is
seed = 0
journal = {journal}       # what was decided and who won; it is in this file's folder

[limits]
seconds = {seconds:g}                   # per race
# memory = 4000                # MB per racer; without it there is no limit
output = 64                    # MB of output kept per racer

[features]                     # what is known of an instance before a race; one of
from = "sat"                   # SATzilla's features of a formula in DIMACS CNF
clause_graph = false           # with the costly ones among them
seconds = 10                   # to compute them
# from = "command"             # numbers in a JSON object, null if missing, printed by
# command = ["my-features", "{{instance}}"]
# from = "csv"                 # columns of a table, of which the first is the instance's file name
# file = "features.csv"
# from = "none"

[success]                      # what counts as an answer; an arm may say its own in [arms.NAME.success]
exit_codes = [10, 20]          # or, in its place: pattern = "^s (UN)?SATISFIABLE"
verifier = "model"             # the v lines must satisfy the formula; or "none"; or a command, exit code 0 means right:
# verifier = ["my-checker", "{{instance}}", "{{output}}"]

# {{instance}}, {{seed}} and {{timeout}} (seconds) are replaced in commands. Features of arms help to learn about one
# from another; those that an arm does not give are missing. A program may be several arms, under other names:
#
# [arms.cadical-sat]
# command = ["cadical", "-q", "--sat", "{{instance}}"]
# features = {{ cdcl = 1, local_search = 0, inprocessing = 1 }}
# environment = {{ OMP_NUM_THREADS = "1" }}
"""


def write_pool(
    path: str | PathLike[str], found: Sequence[Solver], *, k: int | None = None, seconds: float = 60.0
) -> None:
    """Write a pool file with comments, of 2 racers per race if k is not given; a file that is there stays as it is."""
    target = Path(path)
    if not found:
        raise InputError("found must have at least one solver, got none")
    positive_of(seconds, "seconds")
    racers = min(2, len(found)) if k is None else k
    if not 1 <= racers <= len(found):
        raise InputError(f"k must be from 1 to {len(found)}, the number of solvers, got {racers}")
    journal = _quoted(target.with_suffix(".journal").name)
    text = _BEGINNING.format(k=racers, journal=journal, seconds=seconds) + "".join(map(_arm_text, found))
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"path must be a new file, got {target}, which is there; give another, or move it") from None


def _arm_text(solver: Solver) -> str:
    lines = ["", *([f"# {solver.note}"] if solver.note else []), f"[arms.{_key(solver.name)}]"]
    lines.append(f"command = [{', '.join(map(_quoted, solver.command))}]")
    lines.append(f"features = {{ {', '.join(f'{key} = {value:g}' for key, value in solver.features.items())} }}")
    if solver.success:
        own = ", ".join(f"{key} = {_quoted(value)}" for key, value in solver.success.items())
        lines.append(f"success = {{ {own} }}")
    return "\n".join(lines) + "\n"


def _key(text: str) -> str:
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _quoted(text)


def _quoted(text: str) -> str:
    """A TOML string: as JSON writes it, but for one character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
