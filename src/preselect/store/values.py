"""Values in the journal: JSON in the strict sense, which other programs can read, with nothing lost."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from preselect.errors import InputError

_NOT_FINITE = "$number"


def encode(value: Any, argument: str) -> str:
    """A value as JSON; numbers that are not finite become {"$number": "inf"} and the like.

    >>> encode({"seconds": float("inf"), "status": None}, "details")
    '{"seconds": {"$number": "inf"}, "status": null}'
    """
    return json.dumps(_plain(value, argument), allow_nan=False)


def decode(text: str) -> Any:
    """What `encode` was given.

    >>> decode('{"seconds": {"$number": "inf"}, "status": null}')
    {'seconds': inf, 'status': None}
    """
    return json.loads(text, object_hook=_restore)


def _restore(found: dict[str, Any]) -> Any:
    return float(found[_NOT_FINITE]) if set(found) == {_NOT_FINITE} else found


def _plain(value: Any, argument: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(one, f"{argument}[{place}]") for place, one in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value) and set(value) != {_NOT_FINITE}:
        return {name: _plain(one, f"{argument}[{name!r}]") for name, one in value.items()}
    raise InputError(f"{argument} must be what JSON can hold: texts, numbers, lists, maps by name; got {value!r:.80}")
