"""Read and check names in paths and parameters of queries."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from preselect.errors import InputError
from preselect.named.values import Values

_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_Context = dict[str, float | None] | list[float | None]


def check_name(name: str) -> None:
    """Refuse a name that a preselector cannot have."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r:.40} is not a valid name for a preselector; use up to 100 letters, digits, dots, dashes and "
            "underscores, the first a letter or a digit"
        )


def read_number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """Return a whole number of a query."""
    text = query.get(name, str(default))
    if not (re.fullmatch("[0-9]{1,16}", text) and least <= int(text) <= most):
        raise InputError(f"{name} is {text!r:.40}; use a whole number from {least} to {most}")
    return int(text)


def read_flag(query: Mapping[str, str], name: str, default: bool) -> bool:
    """Return a truth value of a query."""
    text = query.get(name)
    if text not in (None, "true", "false"):
        raise InputError(f"{name} is {text!r:.40}; use true or false")
    return default if text is None else text == "true"


def read_context(query: Mapping[str, str]) -> Values | None:
    """Return the context of a query, which is JSON."""
    text = query.get("context")
    if text is None:
        return None
    try:
        found: Values = msgspec.json.decode(text, type=_Context)
        return found
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(f'context cannot be read: {error}; give JSON, such as {{"size": 3}}') from None
