"""Commands with placeholders, as a pool file has them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from preselect.errors import InputError
from preselect.race.tables import list_of, text_of

PLACEHOLDERS = ("instance", "seed", "timeout")

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


def fill(command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """A command with its placeholders replaced, in one pass: what is put in is not looked at again.

    >>> fill(["solve", "--seed={seed}", "{instance}"], {"seed": "1", "instance": "a {seed}.cnf"})
    ('solve', '--seed=1', 'a {seed}.cnf')
    """
    return tuple(_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), argument) for argument in command)


def command_of(
    value: Any, name: str, folder: Path, known: tuple[str, ...], *, needed: str = "instance"
) -> tuple[str, ...]:
    """A program and its arguments, checked; a program written with a slash is found from the pool file's folder."""
    words = list_of(value, name, "texts, a program and its arguments", lambda word: isinstance(word, str))
    text_of(words[0], f"the program of {name}")
    if any("\0" in word for word in words):
        raise InputError(f"{name} must not have zero bytes in its arguments, got {words!r:.80}")
    used = [placeholder for word in words for placeholder in _PLACEHOLDER.findall(word)]
    strange = [placeholder for placeholder in used if placeholder not in known]
    if strange:
        listed = ", ".join(f"{{{placeholder}}}" for placeholder in known)
        raise InputError(f"{name} must have no placeholders but {listed}, got {{{strange[0]}}}")
    if needed not in used:
        raise InputError(f"{name} must have {{{needed}}} where the path of the {needed} belongs, got {words!r:.80}")
    program = str(folder / words[0]) if "/" in words[0] else words[0]
    return (program, *words[1:])
