"""Checks of single arguments: what comes out is a plain Python number, what does not fit is a sentence."""

import math
import operator
from typing import Any

import numpy as np

from preselect.errors import InputError


def integer(value: Any, argument: str, least: int) -> int:
    """A whole number of at least `least`.

    >>> integer(3, "k", 1)
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{argument} must be an integer, got {value!r:.80}") from None
    if number < least:
        raise InputError(f"{argument} must be at least {least}, got {number}")
    return number


def number(
    value: Any,
    argument: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """A finite number within limits: from `least` to `most`, and strictly between `above` and `below`.

    >>> number(0.5, "omega", least=0.0)
    0.5
    """
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise InputError(f"{argument} must be a number, got {value!r:.80}")
    found = float(value)
    if math.isfinite(found) and least <= found <= most and above < found < below:
        return found
    limits = {"of at least": least, "above": above, "of at most": most, "below": below}
    said = " and ".join(f"{words} {limit}" for words, limit in limits.items() if math.isfinite(limit))
    raise InputError(f"{argument} must be a finite number {said}".rstrip() + f", got {found}")


def one_of(value: Any, argument: str, names: tuple[str, ...]) -> str:
    """One of several names.

    >>> one_of("best", "choose", ("best", "cover"))
    'best'
    """
    if value not in names:
        raise InputError(f"{argument} must be {' or '.join(map(repr, names))}, got {value!r:.80}")
    return str(value)


def boolean(value: Any, argument: str) -> bool:
    """True or False, and nothing that merely counts as one of them.

    >>> boolean(True, "outside")
    True
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{argument} must be True or False, got {value!r:.80}")
    return bool(value)
