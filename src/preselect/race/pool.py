r"""A pool: the arms that may race, how many at a time, their limits, and what counts as an answer.

An `Arm` is a command with placeholders; on an instance it becomes a `Racer`, a command that is ready to run.

`read_pool` reads a pool from its file. It is TOML; only `[arms.NAME]` with a `command` is required:

    k = 2                            # racers per instance
    policy = "nearby(outside=True)"  # how to choose them; see `preselect policies`
    seed = 0
    journal = "pool.journal"         # in the folder of the pool file

    [limits]
    seconds = 60                     # per race
    memory = 4000                    # MB per racer; unlimited if left out
    output = 64                      # MB of output per racer

    [features]
    from = "sat"                     # features of an instance: "sat", "file", "command", "csv" or "none"
    clause_graph = false             # true adds costly SAT features
    seconds = 10                     # time to compute the features

    [success]                        # what counts as an answer; [arms.NAME.success] overrides it for one arm
    exit_codes = [10, 20]            # or: pattern = "^s (UN)?SATISFIABLE"
    verifier = "model"               # or "none", or a command such as ["drat-check", "{instance}", "{output}"]
    # value = '^objective: (\S+)'     # the best value wins, not the first answer: the last match in the output, or
    # better = "smaller"             # what a command prints, such as ["stat", "--format=%s", "{output}"]

    [learning]                       # after-races: arms that were not chosen run when the answer is out
    budget = 0.5                     # at most half as much core time again as the races take; 0 by default
    priority = 19                    # their nice value
    wait = false                     # whether the next instance of a list waits for them

    [arms.cadical]
    command = ["cadical", "-q", "--seed={seed}", "{instance}"]
    features = { cdcl = 1, local_search = 0 }
    environment = { OMP_NUM_THREADS = "1" }

`{instance}`, `{seed}` and `{timeout}` (the time limit in whole seconds, rounded up) are replaced within an argument. No
shell is involved, so an argument is never split. The paths of the journal, of a CSV file and of programs with a slash
are relative to the pool file. Error messages name the file, the key and what to write.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path

from preselect.arguments import integer, number, one_of
from preselect.errors import InputError
from preselect.files import read_text
from preselect.policies import registry
from preselect.race.pool_values import (
    PLACEHOLDERS,
    Table,
    check_keys,
    fill,
    get_table,
    read_boolean,
    read_command,
    read_integer,
    read_positive,
    read_string,
    read_variable,
)
from preselect.race.success import Success, read_pool_success, read_success
from preselect.race.supervision import Limits, Racer

_POOL_KEYS = ("k", "policy", "seed", "journal", "limits", "features", "success", "learning", "arms")
_LIMIT_KEYS = ("seconds", "memory", "output")
_LEARNING_KEYS = ("budget", "priority", "wait")
_ARM_KEYS = ("command", "features", "environment", "success")
_KEYS_OF_SOURCE = {"sat": ("clause_graph",), "file": (), "command": ("command",), "csv": ("file",), "none": ()}


@dataclass(frozen=True)
class FeatureSource:
    """Where the features of an instance come from.

    Parameters
    ----------
    kind : str, default "none"
        "sat" computes the SATzilla features of a formula, "file" describes the bytes of any file (see
        `preselect.race.file_features`), "command" runs a program, "csv" reads a table, "none" has no features.
    clause_graph : bool, default False
        Whether "sat" includes the costly features of the clause graph.
    command : tuple of str
        The program of "command" and its arguments, with the placeholder {instance}.
    file : Path, optional
        The table of "csv".
    seconds : float, default 10
        The time that computing the features of one instance may take.
    memory : float, optional
        MB that a program that computes them may use, as limits.memory says.
    """

    kind: str = "none"
    clause_graph: bool = False
    command: tuple[str, ...] = ()
    file: Path | None = None
    seconds: float = 10.0
    memory: float | None = None


@dataclass(frozen=True)
class Learning:
    """How much time after-races may use, and at which priority.

    Parameters
    ----------
    budget : float, default 0
        How much core time they may take, as a share of what the races of a session take; 0 for no after-races.
    priority : int, default 19
        The nice value of their processes, from 0 to 19: the higher, the more they yield to others.
    wait : bool, default False
        Whether the next instance of a list waits until the after-race has ended.
    """

    budget: float = 0.0
    priority: int = 19
    wait: bool = False


@dataclass(frozen=True)
class Arm:
    """A command that may race, as the pool file describes it.

    Parameters
    ----------
    name : str
        The arm's name.
    command : tuple of str
        The program and its arguments, with the placeholders {instance}, {seed} and {timeout}.
    features : mapping of str to float
        Numbers that describe the arm, so that what is learnt about one arm helps with similar ones.
    environment : mapping of str to str
        Environment variables to set for the command.
    success : Success
        What counts as its answer.
    """

    name: str
    command: tuple[str, ...]
    features: Mapping[str, float]
    environment: Mapping[str, str]
    success: Success


@dataclass(frozen=True)
class Pool:
    """What a pool file says.

    Parameters
    ----------
    path : Path
        The pool file.
    arms : mapping of str to Arm
        The arms by name.
    k : int
        How many arms race on an instance.
    policy : str
        How to choose them, for instance "cppl(omega=0.5)".
    seed : int
        Seeds the policy and the racers.
    journal : Path
        Where decisions and outcomes are kept.
    limits : Limits
        Time, memory and output of a race.
    features : FeatureSource
        Where the features of instances come from.
    learning : Learning, default Learning()
        How much time after-races may use, and at which priority.
    """

    path: Path
    arms: Mapping[str, Arm]
    k: int
    policy: str
    seed: int
    journal: Path
    limits: Limits
    features: FeatureSource
    learning: Learning = field(default_factory=Learning)

    @property
    def better(self) -> str | None:
        """Which values are better, "smaller" or "larger"; None if the first answer wins."""
        return next(iter(self.arms.values())).success.better

    @property
    def is_for_sat(self) -> bool:
        """Whether its arms answer as SAT solvers do."""
        successes = [arm.success for arm in self.arms.values()]
        by_code = any(one.pattern is None and one.exit_codes == (10, 20) for one in successes)
        by_model = any(one.verifier == "model" for one in successes)
        return self.better is None and (self.features.kind == "sat" or by_code or by_model)

    def override(self, *, k: int | None = None, seconds: float | None = None) -> "Pool":
        """Return the pool with another number of racers or another time limit, if one is given."""
        chosen = self.k if k is None else _check_k(integer(k, "k", 1), len(self.arms))
        return replace(self, k=chosen, limits=self._limit(self.limits.seconds if seconds is None else seconds))

    def shorten(self, seconds: float) -> "Pool":
        """Return the pool with a time limit of at most `seconds`."""
        return replace(self, limits=self._limit(min(seconds, self.limits.seconds)))

    def _limit(self, seconds: float) -> Limits:
        return Limits(number(seconds, "seconds", above=0.0), self.limits.memory, self.limits.output)

    def make_racer(self, arm: str, instance: str | PathLike[str], seed: int) -> Racer:
        """Make the command that an arm runs on an instance."""
        if arm not in self.arms:
            raise InputError(f"there is no arm {arm!r:.80} in {self.path}; its arms are {', '.join(self.arms)}")
        path, timeout = fspath(Path(instance).absolute()), str(math.ceil(self.limits.seconds))
        values = {"instance": path, "seed": str(integer(seed, "seed", 0)), "timeout": timeout}
        command, success = self.arms[arm].command, self.arms[arm].success
        verifier = success.verifier if isinstance(success.verifier, tuple) and self.better is None else None
        if verifier and "{output}" in path:  # the supervisor would replace it in the path, too
            raise InputError(f"the path {path!r} contains {{output}}, which is a placeholder; rename it")
        return Racer(
            name=arm,
            command=fill(command, values),
            environment=self.arms[arm].environment,
            exit_codes=success.exit_codes,
            pattern=success.pattern,
            verifier=verifier and fill(verifier, values),
        )


def read_pool(path: str | PathLike[str]) -> Pool:
    """Read a pool file.

    Parameters
    ----------
    path : str or path
        A TOML file. Anything wrong in it is an InputError that names the file, the key and what to write.
    """
    source = Path(path)
    content = _parse(source)
    try:
        return _read_pool(source, content)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _parse(path: Path) -> Table:
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, where = str(error).rpartition(" (at ")
        line = re.match(r"line (\d+)", where)
        line_number = line[1] if line else text.count("\n") + 1
        raise InputError(f"{path}, line {line_number}: not valid TOML: {message or error}") from None
    except RecursionError:
        raise InputError(f"{path}: values are nested too deeply") from None


# --- the tables of the file -------------------------------------------------------------------------------------------


def _read_pool(path: Path, content: Table) -> Pool:
    check_keys(content, "", _POOL_KEYS)
    folder = path.absolute().parent
    features = _read_features(get_table(content, "features"), folder)
    success = read_pool_success(get_table(content, "success"), folder, is_for_sat=features.kind == "sat")
    arms = _read_arms(get_table(content, "arms"), success, folder)
    default = registry.RACING if success.better is None else registry.COMPARING
    policy = read_string(content.get("policy", default), "policy")
    registry.parse(policy)
    limits = _read_limits(get_table(content, "limits"))
    return Pool(
        path=path,
        arms=arms,
        k=_check_k(read_integer(content.get("k", min(2, len(arms))), "k", 1), len(arms)),
        policy=policy,
        seed=read_integer(content.get("seed", 0), "seed", 0),
        journal=folder / read_string(content.get("journal", path.with_suffix(".journal").name), "journal"),
        limits=limits,
        features=replace(features, memory=limits.memory),
        learning=_read_learning(get_table(content, "learning")),
    )


def _read_limits(table: Table) -> Limits:
    check_keys(table, "limits.", _LIMIT_KEYS)
    return Limits(**{key: read_positive(value, f"limits.{key}") for key, value in table.items()})


def _read_learning(table: Table) -> Learning:
    """Read the table `[learning]`."""
    check_keys(table, "learning.", _LEARNING_KEYS)
    budget = table.get("budget", Learning.budget)
    if isinstance(budget, bool):
        raise InputError(f"learning.budget is {budget}; use a number of at least 0")
    priority = read_integer(table.get("priority", Learning.priority), "learning.priority", 0)
    if priority > 19:
        raise InputError(f"learning.priority is {priority}; use an integer from 0 to 19")
    return Learning(
        number(budget, "learning.budget", least=0.0),
        priority,
        read_boolean(table.get("wait", Learning.wait), "learning.wait"),
    )


def _read_features(table: Table, folder: Path) -> FeatureSource:
    if not table:
        return FeatureSource()
    check_keys(table, "features.", ("from", "seconds", *(key for keys in _KEYS_OF_SOURCE.values() for key in keys)))
    kind = _read_kind(table)
    _check_keys_of_source(table, kind)
    return FeatureSource(
        kind=kind,
        clause_graph=read_boolean(table.get("clause_graph", False), "features.clause_graph"),
        command=read_command(table["command"], "features.command", folder, ("instance",)) if kind == "command" else (),
        file=folder / read_string(table["file"], "features.file") if kind == "csv" else None,
        seconds=read_positive(table.get("seconds", FeatureSource.seconds), "features.seconds"),
    )


def _read_kind(table: Table) -> str:
    if "from" not in table:
        raise InputError(f"features.from is missing; use {' or '.join(map(repr, _KEYS_OF_SOURCE))}")
    return one_of(table["from"], "features.from", tuple(_KEYS_OF_SOURCE))


def _check_keys_of_source(table: Table, kind: str) -> None:
    for owner, keys in _KEYS_OF_SOURCE.items():
        for key in keys:
            if key in table and owner != kind:
                raise InputError(f'features.{key} is for from = "{owner}", but from = "{kind}"; remove it')
            if key not in table and owner == kind and key != "clause_graph":
                raise InputError(f'features.{key} is missing; from = "{kind}" needs it')


def _read_arms(table: Table, success: Success, folder: Path) -> dict[str, Arm]:
    if not table:
        raise InputError("there are no arms; add a table [arms.NAME] with a command")
    for name in table:
        if not (name and name.isprintable()):
            raise InputError(f"the arm name {name!r:.80} is empty or has unprintable characters; choose another")
    return {name: _read_arm(get_table(table, name, "arms."), name, success, folder) for name in table}


def _read_arm(table: Table, name: str, success: Success, folder: Path) -> Arm:
    prefix = f"arms.{name}."
    check_keys(table, prefix, _ARM_KEYS)
    if "command" not in table:
        raise InputError(f'{prefix}command is missing; add command = ["program", "{{instance}}"]')
    features, environment, own = (get_table(table, key, prefix) for key in ("features", "environment", "success"))
    return Arm(
        name=name,
        command=read_command(table["command"], f"{prefix}command", folder, PLACEHOLDERS),
        features={key: number(value, f"{prefix}features.{key}") for key, value in features.items()},
        environment={key: read_variable(key, value, f"{prefix}environment") for key, value in environment.items()},
        success=_require_value(prefix, read_success(own, f"{prefix}success", success, folder)),
    )


def _require_value(prefix: str, success: Success) -> Success:
    if success.better is not None and success.value is None:
        raise InputError(f"{prefix}success.value is missing; write it there, or into [success] for all arms")
    return success


def _check_k(k: int, arms: int) -> int:
    """Return k if there are that many arms."""
    if k > arms:
        raise InputError(f"k={k}, but there {'is only 1 arm' if arms == 1 else f'are only {arms} arms'}")
    return k
