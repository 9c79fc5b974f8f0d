"""A first pool: `find_solvers` finds the SAT solvers on this machine, `write_pool` writes a commented pool file."""

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from preselect.arguments import number
from preselect.errors import InputError
from preselect.files import write_new
from preselect.sat.parametrizations import EFFECTIVE, PARAMETER_NAMES
from preselect.sat.saps import DEFAULT, Parameters

# --- solvers known by name --------------------------------------------------------------------------------------------


class Solver(NamedTuple):
    """A solver as an arm of a pool file.

    Parameters
    ----------
    name : str
        The arm's name.
    command : tuple of str
        The program and its arguments, with placeholders.
    features : mapping of str to float
        Numbers that describe the arm.
    success : mapping of str to str
        What counts as an answer, where it differs from the pool's [success].
    note : str, default ""
        A comment for the pool file.
    """

    name: str
    command: tuple[str, ...]
    features: Mapping[str, float]
    success: Mapping[str, str] = {}
    note: str = ""


def _make_cdcl(*command: str, inprocessing: int, success: Mapping[str, str] | None = None, note: str = "") -> Solver:
    features = {"cdcl": 1, "local_search": 0, "inprocessing": inprocessing}
    return Solver(command[0], command, features, success or {}, note)


_KNOWN = (
    _make_cdcl("cadical", "-q", "--seed={seed}", "{instance}", inprocessing=1),
    _make_cdcl(
        "clasp", "--verbose=0", "--seed={seed}", "{instance}", inprocessing=0, note="Reads no compressed files."
    ),
    _make_cdcl("cryptominisat5", "--verb", "0", "--random", "{seed}", "{instance}", inprocessing=1),
    _make_cdcl("kissat", "-q", "--seed={seed}", "{instance}", inprocessing=1),
    _make_cdcl(
        "minisat",
        "-verb=0",
        "{instance}",
        inprocessing=0,
        success={"verifier": "none"},
        note="Prints no model that a verifier could read, so its exit code is trusted.",
    ),
    _make_cdcl("picosat", "-s", "{seed}", "{instance}", inprocessing=0),
    _make_cdcl(
        "z3",
        "-dimacs",
        "sat.random_seed={seed}",
        "{instance}",
        inprocessing=1,
        success={"pattern": r"^s (UN)?SATISFIABLE"},
        note="Exits with 0 whatever it finds. Reads no compressed files.",
    ),
)

_COMPLEMENTARY = (2, 9, 13)  # the three parametrizations of the paper that are fastest together on colouring instances


def _make_saps(name: str, parameters: Parameters) -> Solver:
    values = {key: getattr(parameters, key) for key in PARAMETER_NAMES}
    options = [word for key, value in values.items() for word in (f"--{key}", f"{value:g}")]
    limits = ("--seed", "{seed}", "--seconds", "{timeout}")
    command = (sys.executable, "-m", "preselect", "sat", "solve", "{instance}", *options, *limits)
    return Solver(name, command, {"cdcl": 0, "local_search": 1, "inprocessing": 0, **values})


def find_solvers(path: str | None = None) -> list[Solver]:
    """Find the SAT solvers of this machine, and add the built-in SAPS in four parametrizations.

    Parameters
    ----------
    path : str, optional
        The folders to search, as in the environment variable PATH, which is the default.
    """
    found = [solver for solver in _KNOWN if shutil.which(solver.command[0], path=path)]
    complementary = [_make_saps(f"saps-{rank}", EFFECTIVE[rank - 1]) for rank in _COMPLEMENTARY]
    return [*found, _make_saps("saps", DEFAULT), *complementary]


# --- the pool file ----------------------------------------------------------------------------------------------------

_TEMPLATE = """\
# A pool of solvers. `preselect race POOL FILE...` races k of them on each instance and learns which to choose.
# `preselect race check POOL` tests every arm.

k = {k}                            # racers per instance; at most the number of idle cores
policy = "nearby(outside=True)"  # how to choose them; see `preselect policies`
seed = 0
journal = {journal}         # decisions and outcomes; in the folder of this file

[limits]
seconds = {seconds:g}                     # per race
# memory = 4000                  # MB per racer; unlimited if left out
output = 64                      # MB of output per racer

[features]                       # what is known about an instance before the race
from = "sat"                     # SATzilla features of a formula in DIMACS CNF
clause_graph = false             # true adds the costly features of the clause graph
seconds = 10                     # time to compute the features
# from = "command"               # a program that prints a JSON object of numbers; null for a missing one
# command = ["my-features", "{{instance}}"]
# from = "csv"                   # a table whose first column has the instances' file names
# file = "features.csv"
# from = "none"                  # no features

[success]                        # what counts as an answer; [arms.NAME.success] overrides it for one arm
exit_codes = [10, 20]            # or: pattern = "^s (UN)?SATISFIABLE"
verifier = "model"               # the v lines must satisfy the formula; "none" trusts every answer
# verifier = ["my-checker", "{{instance}}", "{{output}}"]  # a program that exits with 0 if the answer is right

# {{instance}}, {{seed}} and {{timeout}} (in seconds) are replaced in commands. The features of arms let what is learnt
# about one arm help with similar ones; features that an arm does not have are missing. One program can be several arms:
#
# [arms.cadical-sat]
# command = ["cadical", "-q", "--sat", "{{instance}}"]
# features = {{ cdcl = 1, local_search = 0, inprocessing = 1 }}
# environment = {{ OMP_NUM_THREADS = "1" }}
"""


def write_pool(
    path: str | PathLike[str],
    solvers: Sequence[Solver],
    *,
    k: int | None = None,
    seconds: float = 60.0,
    template: str = _TEMPLATE,
) -> None:
    """Write a new pool file of some solvers, with comments; an existing file is never overwritten.

    Parameters
    ----------
    path : str or path
        The file to write.
    solvers : sequence of Solver
        The arms of the pool.
    k : int, optional
        Racers per instance; by default 2, or 1 if there is only one solver.
    seconds : float, default 60
        The time limit of a race.
    template : str, optional
        The file above the arms, with the fields k, journal and seconds; by default that of a pool of SAT solvers.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file to write, such as {target / 'pool.toml'}")
    if target.name.encode(errors="ignore").decode() != target.name:
        raise InputError(f"the name {target.name!r} holds bytes that are not text; choose another one for the pool")
    if not solvers:
        raise InputError("there are no solvers to write into a pool; give at least one")
    racers = min(2, len(solvers)) if k is None else k
    if not 1 <= racers <= len(solvers):
        raise InputError(f"k={racers}, but there are {len(solvers)} solvers; use a k from 1 to {len(solvers)}")
    limit, journal = number(seconds, "seconds", above=0.0), _quote(target.with_suffix(".journal").name)
    head = template.format(k=racers, journal=journal, seconds=limit)
    write_new(target, head + "".join(map(_format_arm, solvers)))


def _format_arm(solver: Solver) -> str:
    lines = ["", *([f"# {solver.note}"] if solver.note else []), f"[arms.{_format_key(solver.name)}]"]
    lines.append(f"command = [{', '.join(map(_quote, solver.command))}]")
    if solver.features:
        lines.append(f"features = {{ {', '.join(f'{key} = {value:g}' for key, value in solver.features.items())} }}")
    if solver.success:
        own = ", ".join(f"{key} = {_quote(value)}" for key, value in solver.success.items())
        lines.append(f"success = {{ {own} }}")
    return "\n".join(lines) + "\n"


def _format_key(text: str) -> str:
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _quote(text)


def _quote(text: str) -> str:
    """Quote a TOML string: as in JSON, but TOML also wants the character 7F escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
