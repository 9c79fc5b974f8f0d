"""The pool file of `preselect race`: which commands may race, how many at a time, and what counts as an answer.

It is TOML; `[arms.NAME]` with a `command` is all that must be there, the rest has defaults:

    k = 2                          # racers per instance
    policy = "newton(outside=True)"  # `preselect policies` lists them
    seed = 0
    journal = "pool.journal"       # beside the pool file
    [limits]
    seconds = 60                   # per race
    memory = 4000                  # MB per racer; leave it out for no limit
    output = 64                    # MB of output kept per racer
    [features]                     # of an instance: "sat", "command", "csv" or "none"
    from = "sat"                   # clause_graph = true adds the costly group
    seconds = 10                   # to compute them
    [success]                      # an arm may say its own in [arms.NAME.success]
    exit_codes = [10, 20]          # or: pattern = "^s (UN)?SATISFIABLE"
    verifier = "model"             # or "none", or a command such as ["drat-check", "{instance}", "{output}"]
    [arms.cadical]
    command = ["cadical", "-q", "--seed={seed}", "{instance}"]
    features = { cdcl = 1, local_search = 0 }
    environment = { OMP_NUM_THREADS = "1" }

`{instance}`, `{seed}` and `{timeout}` (whole seconds, rounded up) are replaced inside an argument and never split it:
no shell is involved. The journal, a CSV file and programs written with a slash are meant relative to the pool file.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from preselect.arguments import integer, number, one_of
from preselect.errors import InputError
from preselect.policies import registry
from preselect.race.commands import PLACEHOLDERS, command_of, fill
from preselect.race.supervision import Racer
from preselect.race.tables import (
    exit_codes_of,
    flag_of,
    integer_of,
    parse,
    pattern_of,
    positive_of,
    require_known,
    table_of,
    text_of,
    variable_of,
)

_POOL_KEYS = ("k", "policy", "seed", "journal", "limits", "features", "success", "arms")
_ARM_KEYS = ("command", "features", "environment", "success")
_SUCCESS_KEYS = ("exit_codes", "pattern", "verifier")
_SOURCES = {"sat": ("clause_graph",), "command": ("command",), "csv": ("file",), "none": ()}  # and their own keys


@dataclass(frozen=True)
class Limits:
    """What a race may use: seconds, MB of memory per racer (None: any), MB of output kept per racer."""

    seconds: float = 60.0
    memory: float | None = None
    output: float = 64.0


@dataclass(frozen=True)
class FeatureSource:
    """Where an instance's features come from: "sat" (built in), "command", "csv" or "none"."""

    kind: str = "none"
    clause_graph: bool = False
    command: tuple[str, ...] = ()
    file: Path | None = None
    seconds: float = 10.0


@dataclass(frozen=True)
class Success:
    """What counts as an answer: an exit code, or a pattern in the output; and who verifies it.

    The verifier is "model" (the built-in check of `preselect.race.answers`), "none", or a command.
    """

    exit_codes: tuple[int, ...] = (10, 20)
    pattern: str | None = None
    verifier: str | tuple[str, ...] = "none"


@dataclass(frozen=True)
class Arm:
    """A command that may race, with what is known of it beforehand."""

    name: str
    command: tuple[str, ...]
    features: Mapping[str, float]
    environment: Mapping[str, str]
    success: Success


@dataclass(frozen=True)
class Pool:
    """What a pool file says."""

    path: Path
    arms: Mapping[str, Arm]
    k: int
    policy: str
    seed: int
    journal: Path
    limits: Limits
    features: FeatureSource

    def changed(self, *, k: int | None = None, seconds: float | None = None) -> "Pool":
        """The same pool with another number of racers, or another limit, where one is given."""
        limits = self.limits if seconds is None else replace(self.limits, seconds=positive_of(seconds, "seconds"))
        return replace(self, k=self.k if k is None else read_k(k, len(self.arms)), limits=limits)

    def limited(self, seconds: float) -> "Pool":
        """The same pool with at most so many seconds per race."""
        return replace(self, limits=replace(self.limits, seconds=min(seconds, self.limits.seconds)))

    def racer(self, arm: str, instance: str | PathLike[str], seed: int) -> Racer:
        """What an arm runs on an instance."""
        if arm not in self.arms:
            raise InputError(f"arm must be one of {', '.join(self.arms)}, got {arm!r:.80}")
        entrant = self.arms[arm]
        place, timeout = fspath(Path(instance).absolute()), str(math.ceil(self.limits.seconds))
        values = {"instance": place, "seed": str(integer(seed, "seed", 0)), "timeout": timeout}
        verifier = entrant.success.verifier
        if isinstance(verifier, tuple) and "{output}" in place:  # it would be replaced there too, by the supervisor
            raise InputError(f"instance must not have {{output}} in its path, got {place!r}; rename it")
        return Racer(
            name=arm,
            command=fill(entrant.command, values),
            environment=entrant.environment,
            answers=entrant.success.exit_codes,
            pattern=entrant.success.pattern,
            verifier=fill(verifier, values) if isinstance(verifier, tuple) else None,
        )


def read_pool(path: str | PathLike[str]) -> Pool:
    """Read a pool file; whatever in it is not as it must be is an error that says where."""
    source = Path(path)
    content = parse(source)
    try:
        return _build_pool(source, content)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _build_pool(path: Path, content: dict[str, Any]) -> Pool:
    require_known(content, "", _POOL_KEYS)
    folder = path.absolute().parent
    features = _read_features(table_of(content, "features"), folder)
    usual = Success(verifier="model" if features.kind == "sat" else "none")
    success = _read_success(table_of(content, "success"), "success", usual, folder)
    arms = _read_arms(table_of(content, "arms"), success, folder)
    policy = text_of(content.get("policy", registry.RACING), "policy")
    registry.parse(policy)
    return Pool(
        path=path,
        arms=arms,
        k=read_k(content.get("k", min(2, len(arms))), len(arms)),
        policy=policy,
        seed=integer_of(content.get("seed", 0), "seed", 0),
        journal=folder / text_of(content.get("journal", path.with_suffix(".journal").name), "journal"),
        limits=_read_limits(table_of(content, "limits")),
        features=features,
    )


def read_k(value: Any, arms: int) -> int:
    """How many may race, of so many arms."""
    k = integer_of(value, "k", 1)
    if k > arms:
        raise InputError(f"k must be at most the number of arms, {arms}, got {k}")
    return k


def _read_limits(table: dict[str, Any]) -> Limits:
    require_known(table, "limits", ("seconds", "memory", "output"))
    return Limits(**{key: positive_of(value, f"limits.{key}") for key, value in table.items()})


def _read_features(table: dict[str, Any], folder: Path) -> FeatureSource:
    own = [key for keys in _SOURCES.values() for key in keys]
    require_known(table, "features", ("from", "seconds", *own))
    kind = one_of(table.get("from", None if table else "none"), "features.from", tuple(_SOURCES))
    for key in table:
        if key in own and key not in _SOURCES[kind]:
            owner = next(source for source, keys in _SOURCES.items() if key in keys)
            raise InputError(f'features.{key} must be left out unless from = "{owner}", got from = "{kind}"')
    for key in _SOURCES[kind]:
        if key not in table and key != "clause_graph":
            raise InputError(f'features.{key} must be given with from = "{kind}", got none')
    command = command_of(table["command"], "features.command", folder, ("instance",)) if kind == "command" else ()
    return FeatureSource(
        kind=kind,
        clause_graph=flag_of(table.get("clause_graph", False), "features.clause_graph"),
        command=command,
        file=folder / text_of(table["file"], "features.file") if kind == "csv" else None,
        seconds=positive_of(table.get("seconds", FeatureSource.seconds), "features.seconds"),
    )


def _read_success(table: dict[str, Any], name: str, usual: Success, folder: Path) -> Success:
    """What a table says, and what is usual where it says nothing."""
    require_known(table, name, _SUCCESS_KEYS)
    if "exit_codes" in table and "pattern" in table:
        raise InputError(f"{name} must have exit_codes or a pattern, got both; leave one out")
    found = usual
    if "exit_codes" in table:
        found = replace(found, exit_codes=exit_codes_of(table["exit_codes"], f"{name}.exit_codes"), pattern=None)
    if "pattern" in table:
        found = replace(found, pattern=pattern_of(table["pattern"], f"{name}.pattern"))
    if "verifier" in table:
        found = replace(found, verifier=_verifier(table["verifier"], f"{name}.verifier", folder))
    return found


def _read_arms(table: dict[str, Any], success: Success, folder: Path) -> dict[str, Arm]:
    if not table:
        raise InputError("arms must have at least one, got none; add [arms.NAME] with a command")
    strange = [name for name in table if not (name and name.isprintable())]
    if strange:
        raise InputError(f"arms must have names of printable characters, got {strange[0]!r:.80}")
    return {name: _read_arm(table_of(table, name, "arms."), name, success, folder) for name in table}


def _read_arm(table: dict[str, Any], name: str, success: Success, folder: Path) -> Arm:
    where = f"arms.{name}"
    require_known(table, where, _ARM_KEYS)
    if "command" not in table:
        raise InputError(f'{where} must have a command, got none; add command = ["program", "{{instance}}"]')
    features = table_of(table, "features", f"{where}.")
    environment = table_of(table, "environment", f"{where}.")
    return Arm(
        name=name,
        command=command_of(table["command"], f"{where}.command", folder, PLACEHOLDERS),
        features={key: number(value, f"{where}.features.{key}") for key, value in features.items()},
        environment={key: variable_of(key, value, f"{where}.environment") for key, value in environment.items()},
        success=_read_success(table_of(table, "success", f"{where}."), f"{where}.success", success, folder),
    )


def _verifier(value: Any, name: str, folder: Path) -> str | tuple[str, ...]:
    if not isinstance(value, str):
        return command_of(value, name, folder, (*PLACEHOLDERS, "output"), needed="output")
    if value not in ("model", "none"):
        raise InputError(f'{name} must be "model", "none" or a list of a program and its arguments, got {value!r:.80}')
    return value
