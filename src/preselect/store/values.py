"""Write values of a journal as strict JSON, which any program can read, without loss."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from preselect.errors import InputError

_NOT_FINITE = "$number"


def encode(value: Any, argument: str) -> str:
    """Write a value as JSON; numbers that are not finite become {"$number": "inf"} and the like.

    >>> encode({"seconds": float("inf"), "status": None}, "details")
    '{"seconds": {"$number": "inf"}, "status": null}'
    """
    return json.dumps(simplify(value, argument), allow_nan=False)


def decode(text: str) -> Any:
    """Read what `encode` wrote.

    >>> decode('{"seconds": {"$number": "inf"}, "status": null}')
    {'seconds': inf, 'status': None}
    """
    return json.loads(text, object_hook=_restore) if '"$' in text else json.loads(text)


def simplify(value: Any, argument: str) -> Any:
    """Return a value in the form that JSON can hold; raise an InputError that names the argument if there is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [simplify(one, f"{argument}[{position}]") for position, one in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return _escape({name: simplify(one, f"{argument}[{name!r}]") for name, one in value.items()})
    raise InputError(f"{argument} is {value!r:.80}, which JSON cannot hold; use strings, numbers, lists and mappings")


def _escape(found: dict[str, Any]) -> dict[str, Any]:
    """Add a $ to the name in a mapping that `decode` would otherwise take for a number."""
    name = next(iter(found)) if len(found) == 1 else ""
    return {f"${name}": found[name]} if _is_mark(name) else found


def _restore(found: dict[str, Any]) -> Any:
    name = next(iter(found)) if len(found) == 1 else ""
    if name == _NOT_FINITE:
        return float(found[name])
    return {name[1:]: found[name]} if _is_mark(name) else found


def _is_mark(name: str) -> bool:
    return name.endswith(_NOT_FINITE) and not name.strip("$").removesuffix("number")
