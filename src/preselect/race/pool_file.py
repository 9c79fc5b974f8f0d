"""Reading the pool file of `preselect race`. It is TOML; only `[arms.NAME]` with a `command` is required:

    k = 2                            # racers per instance
    policy = "newton(outside=True)"  # how to choose them; see `preselect policies`
    seed = 0
    journal = "pool.journal"         # in the folder of the pool file

    [limits]
    seconds = 60                     # per race
    memory = 4000                    # MB per racer; unlimited if left out
    output = 64                      # MB of output per racer

    [features]
    from = "sat"                     # features of an instance: "sat", "command", "csv" or "none"
    clause_graph = false             # true adds costly SAT features
    seconds = 10                     # time to compute the features

    [success]                        # what counts as an answer; [arms.NAME.success] overrides it for one arm
    exit_codes = [10, 20]            # or: pattern = "^s (UN)?SATISFIABLE"
    verifier = "model"               # or "none", or a command such as ["drat-check", "{instance}", "{output}"]

    [arms.cadical]
    command = ["cadical", "-q", "--seed={seed}", "{instance}"]
    features = { cdcl = 1, local_search = 0 }
    environment = { OMP_NUM_THREADS = "1" }

`{instance}`, `{seed}` and `{timeout}` (the time limit in whole seconds, rounded up) are replaced within an argument. No
shell is involved, so an argument is never split. The paths of the journal, of a CSV file and of programs with a slash
are relative to the pool file. Error messages name the file, the key and what to write.
"""

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from preselect.arguments import integer, number, one_of
from preselect.errors import InputError
from preselect.files import read_text
from preselect.policies import registry
from preselect.race.pool import PLACEHOLDERS, Arm, FeatureSource, Pool, Success, check_k, find_placeholders
from preselect.race.supervision import Limits

_POOL_KEYS = ("k", "policy", "seed", "journal", "limits", "features", "success", "arms")
_LIMIT_KEYS = ("seconds", "memory", "output")
_SUCCESS_KEYS = ("exit_codes", "pattern", "verifier")
_ARM_KEYS = ("command", "features", "environment", "success")
_KEYS_OF_SOURCE = {"sat": ("clause_graph",), "command": ("command",), "csv": ("file",), "none": ()}

_Table = dict[str, Any]


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


def _parse(path: Path) -> _Table:
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        line = re.match(r"line (\d+)", place)
        line_number = line[1] if line else text.count("\n") + 1
        raise InputError(f"{path}, line {line_number}: not valid TOML: {message or error}") from None
    except RecursionError:
        raise InputError(f"{path}: values are nested too deeply") from None


# --- the tables of the file -------------------------------------------------------------------------------------------


def _read_pool(path: Path, content: _Table) -> Pool:
    _check_keys(content, "", _POOL_KEYS)
    folder = path.absolute().parent
    features = _read_features(_get_table(content, "features"), folder)
    default = Success(verifier="model" if features.kind == "sat" else "none")
    success = _read_success(_get_table(content, "success"), "success", default, folder)
    arms = _read_arms(_get_table(content, "arms"), success, folder)
    policy = _read_string(content.get("policy", registry.RACING), "policy")
    registry.parse(policy)
    return Pool(
        path=path,
        arms=arms,
        k=check_k(_read_integer(content.get("k", min(2, len(arms))), "k", 1), len(arms)),
        policy=policy,
        seed=_read_integer(content.get("seed", 0), "seed", 0),
        journal=folder / _read_string(content.get("journal", path.with_suffix(".journal").name), "journal"),
        limits=_read_limits(_get_table(content, "limits")),
        features=features,
    )


def _read_limits(table: _Table) -> Limits:
    _check_keys(table, "limits.", _LIMIT_KEYS)
    return Limits(**{key: _read_positive(value, f"limits.{key}") for key, value in table.items()})


def _read_features(table: _Table, folder: Path) -> FeatureSource:
    if not table:
        return FeatureSource()
    _check_keys(table, "features.", ("from", "seconds", *(key for keys in _KEYS_OF_SOURCE.values() for key in keys)))
    kind = _read_kind(table)
    _check_keys_of_source(table, kind)
    return FeatureSource(
        kind=kind,
        clause_graph=_read_boolean(table.get("clause_graph", False), "features.clause_graph"),
        command=_read_command(table["command"], "features.command", folder, ("instance",)) if kind == "command" else (),
        file=folder / _read_string(table["file"], "features.file") if kind == "csv" else None,
        seconds=_read_positive(table.get("seconds", FeatureSource.seconds), "features.seconds"),
    )


def _read_kind(table: _Table) -> str:
    if "from" not in table:
        raise InputError(f"features.from is missing; use {' or '.join(map(repr, _KEYS_OF_SOURCE))}")
    return one_of(table["from"], "features.from", tuple(_KEYS_OF_SOURCE))


def _check_keys_of_source(table: _Table, kind: str) -> None:
    for owner, keys in _KEYS_OF_SOURCE.items():
        for key in keys:
            if key in table and owner != kind:
                raise InputError(f'features.{key} is for from = "{owner}", but from = "{kind}"; remove it')
            if key not in table and owner == kind and key != "clause_graph":
                raise InputError(f'features.{key} is missing; from = "{kind}" needs it')


def _read_success(table: _Table, name: str, default: Success, folder: Path) -> Success:
    _check_keys(table, f"{name}.", _SUCCESS_KEYS)
    if "exit_codes" in table and "pattern" in table:
        raise InputError(f"{name} has both exit_codes and pattern; remove one of them")
    found = default
    if "exit_codes" in table:
        found = replace(found, exit_codes=_read_exit_codes(table["exit_codes"], f"{name}.exit_codes"), pattern=None)
    if "pattern" in table:
        found = replace(found, pattern=_read_pattern(table["pattern"], f"{name}.pattern"))
    if "verifier" in table:
        found = replace(found, verifier=_read_verifier(table["verifier"], f"{name}.verifier", folder))
    return found


def _read_arms(table: _Table, success: Success, folder: Path) -> dict[str, Arm]:
    if not table:
        raise InputError("there are no arms; add a table [arms.NAME] with a command")
    for name in table:
        if not (name and name.isprintable()):
            raise InputError(f"the arm name {name!r:.80} is empty or has unprintable characters; choose another")
    return {name: _read_arm(_get_table(table, name, "arms."), name, success, folder) for name in table}


def _read_arm(table: _Table, name: str, success: Success, folder: Path) -> Arm:
    prefix = f"arms.{name}."
    _check_keys(table, prefix, _ARM_KEYS)
    if "command" not in table:
        raise InputError(f'{prefix}command is missing; add command = ["program", "{{instance}}"]')
    features, environment = _get_table(table, "features", prefix), _get_table(table, "environment", prefix)
    return Arm(
        name=name,
        command=_read_command(table["command"], f"{prefix}command", folder, PLACEHOLDERS),
        features={key: number(value, f"{prefix}features.{key}") for key, value in features.items()},
        environment={key: _read_variable(key, value, f"{prefix}environment") for key, value in environment.items()},
        success=_read_success(_get_table(table, "success", prefix), f"{prefix}success", success, folder),
    )


def _check_keys(table: Iterable[str], prefix: str, known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            similar = get_close_matches(key, known, 1, cutoff=0.5)
            hint = f"did you mean {prefix + similar[0]!r}?" if similar else f"the keys here are {', '.join(known)}"
            raise InputError(f"unknown key {prefix + key!r:.80}; {hint}")


# --- single values ----------------------------------------------------------------------------------------------------


def _get_table(content: _Table, key: str, prefix: str = "") -> _Table:
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise InputError(f"{prefix}{key} is {found!r:.80}; use a table, [{prefix}{key}]")
    return found


def _read_string(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"{name} is {value!r:.80}; use a string that is not empty")
    return value


def _read_boolean(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{name} is {value!r:.80}; use true or false")
    return value


def _read_integer(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool):
        raise InputError(f"{name} is {value}; use an integer of at least {least}")
    return integer(value, name, least)


def _read_positive(value: Any, name: str) -> float:
    if isinstance(value, bool):
        raise InputError(f"{name} is {value}; use a number above 0")
    return number(value, name, above=0.0)


def _read_list(value: Any, name: str, what: str, fits: Callable[[Any], bool]) -> list[Any]:
    if not isinstance(value, list) or not value or not all(map(fits, value)):
        raise InputError(f"{name} is {value!r:.80}; use a list of {what}")
    return value


def _read_exit_codes(value: Any, name: str) -> tuple[int, ...]:
    def fits(code: Any) -> bool:
        return type(code) is int and 0 <= code <= 255

    return tuple(dict.fromkeys(_read_list(value, name, "exit codes from 0 to 255", fits)))


def _read_pattern(value: Any, name: str) -> str:
    try:
        return re.compile(_read_string(value, name), re.MULTILINE).pattern
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"{name} is {value!r:.80}, which is not a regular expression: {error}") from None


def _read_variable(key: str, value: Any, name: str) -> str:
    if not key or "=" in key or "\0" in key:
        raise InputError(f"{name} has a variable {key!r:.80}; the name of a variable has no = and is not empty")
    if not isinstance(value, str) or "\0" in value:
        raise InputError(f"{name}.{key} is {value!r:.80}; use a string, in quotes")
    return value


def _read_verifier(value: Any, name: str, folder: Path) -> str | tuple[str, ...]:
    if isinstance(value, str) and value not in ("model", "none"):
        raise InputError(f'{name} is {value!r:.80}; use "model", "none", or a list of a program and its arguments')
    if isinstance(value, str):
        return value
    return _read_command(value, name, folder, (*PLACEHOLDERS, "output"), required="output")


def _read_command(
    value: Any, name: str, folder: Path, known: tuple[str, ...], *, required: str = "instance"
) -> tuple[str, ...]:
    """Read a program and its arguments; the path of a program with a slash is relative to `folder`."""
    program, *arguments = _read_list(value, name, "strings: a program and its arguments", lambda x: isinstance(x, str))
    if not program or any("\0" in word for word in (program, *arguments)):
        raise InputError(f"{name} is {value!r:.80}; the program is missing, or there is a null character")
    _check_placeholders(find_placeholders((program, *arguments)), name, known, required)
    return (str(folder / program) if "/" in program else program, *arguments)


def _check_placeholders(found: list[str], name: str, known: tuple[str, ...], required: str) -> None:
    for placeholder in found:
        if placeholder not in known:
            listed = ", ".join(f"{{{each}}}" for each in known)
            raise InputError(f"{name} has an unknown placeholder {{{placeholder}}}; use {listed}")
    if required not in found:
        raise InputError(f"{name} has no {{{required}}}; write it where the path of the {required} belongs")
