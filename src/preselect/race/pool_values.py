"""Check single values of a pool file; an error names the key and says what to write."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from preselect.arguments import integer, number
from preselect.errors import InputError

Table = dict[str, Any]

PLACEHOLDERS = ("instance", "seed", "timeout")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


def check_keys(table: Iterable[str], prefix: str, known: tuple[str, ...]) -> None:
    """Refuse keys that are not known, and suggest a similar one."""
    for key in table:
        if key not in known:
            similar = get_close_matches(key, known, 1, cutoff=0.5)
            hint = f"did you mean {prefix + similar[0]!r}?" if similar else f"the keys here are {', '.join(known)}"
            raise InputError(f"unknown key {prefix + key!r:.80}; {hint}")


def get_table(content: Table, key: str, prefix: str = "") -> Table:
    """Return a table within a table; empty if it is not there."""
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise InputError(f"{prefix}{key} is {found!r:.80}; use a table, [{prefix}{key}]")
    return found


def read_string(value: Any, name: str) -> str:
    """Return a string that is not empty."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"{name} is {value!r:.80}; use a string that is not empty")
    return value


def read_boolean(value: Any, name: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{name} is {value!r:.80}; use true or false")
    return value


def read_integer(value: Any, name: str, least: int) -> int:
    """Return an integer of at least `least`."""
    if isinstance(value, bool):
        raise InputError(f"{name} is {value}; use an integer of at least {least}")
    return integer(value, name, least)


def read_positive(value: Any, name: str) -> float:
    """Return a number above 0."""
    if isinstance(value, bool):
        raise InputError(f"{name} is {value}; use a number above 0")
    return number(value, name, above=0.0)


def _read_list(value: Any, name: str, what: str, fits: Callable[[Any], bool]) -> list[Any]:
    if not isinstance(value, list) or not value or not all(map(fits, value)):
        raise InputError(f"{name} is {value!r:.80}; use a list of {what}")
    return value


def read_exit_codes(value: Any, name: str) -> tuple[int, ...]:
    """Return a list of distinct exit codes."""

    def fits(code: Any) -> bool:
        return type(code) is int and 0 <= code <= 255

    return tuple(dict.fromkeys(_read_list(value, name, "exit codes from 0 to 255", fits)))


def read_pattern(value: Any, name: str) -> str:
    """Return a regular expression."""
    try:
        return re.compile(read_string(value, name), re.MULTILINE).pattern
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"{name} is {value!r:.80}, which is not a regular expression: {error}") from None


def read_variable(key: str, value: Any, name: str) -> str:
    """Return the value of an environment variable."""
    if not key or "=" in key or "\0" in key:
        raise InputError(f"{name} has a variable {key!r:.80}; the name of a variable has no = and is not empty")
    if not isinstance(value, str) or "\0" in value:
        raise InputError(f"{name}.{key} is {value!r:.80}; use a string, in quotes")
    return value


def read_verifier(value: Any, name: str, folder: Path) -> str | tuple[str, ...]:
    """Return "model", "none", or a command with the placeholder {output}."""
    if isinstance(value, str) and value not in ("model", "none"):
        raise InputError(f'{name} is {value!r:.80}; use "model", "none", or a list of a program and its arguments')
    if isinstance(value, str):
        return value
    return read_command(value, name, folder, (*PLACEHOLDERS, "output"), required="output")


def read_value(value: Any, name: str, folder: Path) -> str | tuple[str, ...]:
    """Return a regular expression with one group, or a command with the placeholder {output}."""
    if not isinstance(value, str):
        return read_command(value, name, folder, (*PLACEHOLDERS, "output"), required="output")
    pattern = read_pattern(value, name)
    if re.compile(pattern).groups != 1:
        raise InputError(f"{name} is {value!r:.80}; use one group, in parentheses, around the number")
    return pattern


def read_command(
    value: Any, name: str, folder: Path, known: tuple[str, ...], *, required: str = "instance"
) -> tuple[str, ...]:
    """Read a program and its arguments; the path of a program with a slash is relative to `folder`."""
    program, *arguments = _read_list(value, name, "strings: a program and its arguments", lambda x: isinstance(x, str))
    if not program or any("\0" in word for word in (program, *arguments)):
        raise InputError(f"{name} is {value!r:.80}; the program is missing, or there is a null character")
    _check_placeholders(_find_placeholders((program, *arguments)), name, known, required)
    return (str(folder / program) if "/" in program else program, *arguments)


def _check_placeholders(found: list[str], name: str, known: tuple[str, ...], required: str) -> None:
    for placeholder in found:
        if placeholder not in known:
            listed = ", ".join(f"{{{each}}}" for each in known)
            raise InputError(f"{name} has an unknown placeholder {{{placeholder}}}; use {listed}")
    if required not in found:
        raise InputError(f"{name} has no {{{required}}}; write it where the path of the {required} belongs")


def fill(command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Replace the placeholders in a command; placeholders inside the values stay as they are.

    >>> fill(["solve", "--seed={seed}", "{instance}"], {"seed": "1", "instance": "a {seed}.cnf"})
    ('solve', '--seed=1', 'a {seed}.cnf')
    """
    return tuple(_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), argument) for argument in command)


def _find_placeholders(command: Sequence[str]) -> list[str]:
    """Find the names of all placeholders in a command.

    >>> _find_placeholders(["solve", "--seed={seed}", "{instance}"])
    ['seed', 'instance']
    """
    return [name for argument in command for name in _PLACEHOLDER.findall(argument)]
