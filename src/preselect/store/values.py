"""Values in the journal: strict JSON, which any program can read, without loss."""

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
    return json.dumps(_simplify(value, argument), allow_nan=False)


def decode(text: str) -> Any:
    """Read what `encode` wrote.

    >>> decode('{"seconds": {"$number": "inf"}, "status": null}')
    {'seconds': inf, 'status': None}
    """
    return json.loads(text, object_hook=_restore)


def _restore(found: dict[str, Any]) -> Any:
    return float(found[_NOT_FINITE]) if set(found) == {_NOT_FINITE} else found


def _simplify(value: Any, argument: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_simplify(one, f"{argument}[{position}]") for position, one in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value) and set(value) != {_NOT_FINITE}:
        return {name: _simplify(one, f"{argument}[{name!r}]") for name, one in value.items()}
    raise InputError(f"{argument} is {value!r:.80}, which JSON cannot hold; use strings, numbers, lists and mappings")
