"""Tables of a TOML file: reading them, and what their values must be; errors name the place."""

import re
import tomllib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from preselect.arguments import integer, number
from preselect.errors import InputError
from preselect.files import read_text

_PLACE_OF_ERROR = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)


def parse(path: Path) -> dict[str, Any]:
    """What a TOML file holds; an error that names the line if it is none."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE_OF_ERROR.fullmatch(str(error))
        said, line = (found[1], found[2]) if found else (str(error), None)
        place = line or text.count("\n") + 1
        raise InputError(f"{path}, line {place}: the file must be TOML, got an error there: {said}") from None
    except RecursionError:
        raise InputError(f"{path}: the file must be TOML, got values nested too deeply") from None


def require_known(table: Iterable[str], name: str, known: tuple[str, ...]) -> None:
    """Refuse keys that nobody would look at."""
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, 1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else "take it out"
            raise InputError(
                f"{name or 'the file'} must have only the keys {', '.join(known)}, got {key!r:.80}; {hint}"
            )


def table_of(content: dict[str, Any], key: str, prefix: str = "") -> dict[str, Any]:
    """A table within a table, empty if it is not there."""
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise InputError(f"{prefix}{key} must be a table, as in [{prefix}{key}], got {found!r:.80}")
    return found


def text_of(value: Any, name: str) -> str:
    """A text, not empty."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"{name} must be a text that is not empty, got {value!r:.80}")
    return value


def flag_of(value: Any, name: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, got {value!r:.80}")
    return value


def integer_of(value: Any, name: str, least: int) -> int:
    """An integer, at least so much; true and false are none here."""
    if isinstance(value, bool):
        raise InputError(f"{name} is {value}; use an integer of at least {least}")
    return integer(value, name, least)


def positive_of(value: Any, name: str) -> float:
    """A number above 0; true and false are none here."""
    if isinstance(value, bool):
        raise InputError(f"{name} is {value}; use a number above 0")
    return number(value, name, above=0.0)


def list_of(value: Any, name: str, what: str, fits: Callable[[Any], bool]) -> list[Any]:
    """A list of such values, not empty."""
    if not isinstance(value, list) or not value or not all(map(fits, value)):
        raise InputError(f"{name} must be a list of {what}, got {value!r:.80}")
    return value


def exit_codes_of(value: Any, name: str) -> tuple[int, ...]:
    """Exit codes without repetitions."""

    def fits(code: Any) -> bool:
        return type(code) is int and 0 <= code <= 255

    return tuple(dict.fromkeys(list_of(value, name, "exit codes from 0 to 255", fits)))


def pattern_of(value: Any, name: str) -> str:
    """A regular expression."""
    try:
        return re.compile(text_of(value, name), re.MULTILINE).pattern
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"{name} must be a regular expression, got {value!r:.80}: {error}") from None


def variable_of(key: str, value: Any, name: str) -> str:
    """The value of an environment variable; its name is checked too."""
    if not key or "=" in key or "\0" in key:
        raise InputError(f"{name} must have names without = or zero bytes, got {key!r:.80}")
    if not isinstance(value, str) or "\0" in value:
        raise InputError(f"{name}.{key} must be a text, got {value!r:.80}; write it in quotes")
    return value
