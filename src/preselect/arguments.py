"""Checks of single arguments: each returns a plain Python value, or raises an InputError that says what to use."""

import math
import operator
import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from preselect.errors import InputError

_MAX_SHOWN = 10  # names in a message


def integer(value: Any, argument: str, least: int) -> int:
    """Return an integer of at least `least`.

    >>> integer(3, "k", 1)
    3
    >>> integer(-1, "seed", 0)
    Traceback (most recent call last):
    preselect.errors.InputError: seed is -1; use an integer of at least 0
    """
    try:
        found = operator.index(value)
    except TypeError:
        found = least - 1
    if found < least:
        raise InputError(f"{argument} is {_show(value)}; use an integer of at least {least}")
    return found


def number(
    value: Any,
    argument: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Return a finite float from `least` to `most`, and strictly between `above` and `below`.

    >>> number(0.5, "omega", least=0.0)
    0.5
    >>> number(0.0, "gamma_1", above=0.0)
    Traceback (most recent call last):
    preselect.errors.InputError: gamma_1 is 0.0; use a number above 0
    """
    found = _as_float(value)
    if math.isfinite(found) and least <= found <= most and above < found < below:
        return found
    limits = {"at least": least, "above": above, "at most": most, "below": below}
    asked = " and ".join(f"{words} {limit:g}" for words, limit in limits.items() if math.isfinite(limit))
    kind = "a finite number" if not asked or math.isinf(found) else "a number"
    raise InputError(f"{argument} is {_show(value)}; use {kind} {'of ' * asked.startswith('at')}{asked}".rstrip())


def _as_float(value: Any) -> float:
    """Return the value as a float; NaN if it is not a number."""
    if isinstance(value, str) or not hasattr(value, "__float__") or np.ndim(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def one_of(value: Any, argument: str, names: tuple[str, ...]) -> str:
    """Return one of several names.

    >>> one_of("best", "choose", ("best", "cover"))
    'best'
    >>> one_of("worst", "choose", ("best", "cover"))
    Traceback (most recent call last):
    preselect.errors.InputError: choose is 'worst'; use 'best' or 'cover'
    """
    if not isinstance(value, str) or value not in names:
        raise InputError(f"{argument} is {_show(value)}; use {' or '.join(map(repr, names))}")
    return str(value)


def boolean(value: Any, argument: str) -> bool:
    """Return True or False; values that merely count as true or false are refused.

    >>> boolean(True, "outside")
    True
    >>> boolean("no", "outside")
    Traceback (most recent call last):
    preselect.errors.InputError: outside is 'no'; use True or False
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{argument} is {_show(value)}; use True or False")
    return bool(value)


def names(value: Any, argument: str) -> list[str]:
    """Return a list of names, which may come from any iterable but a single string.

    >>> names(("a", "b"), "ranking")
    ['a', 'b']
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{argument} is {_show(value)}; use a list of names")
    found = list(value)
    for name in found:
        if not isinstance(name, str):
            raise InputError(f"{argument} has {_show(name)} as a name; use strings")
    return found


def distinct_names(value: Any, argument: str) -> list[str]:
    """Return a list of names that are all different.

    >>> distinct_names(["a", "a"], "arms")
    Traceback (most recent call last):
    preselect.errors.InputError: arms has 'a' more than once; use distinct names
    """
    found = names(value, argument)
    for name, times in Counter(found).items():
        if times > 1:
            raise InputError(f"{argument} has {name!r:.80} more than once; use distinct names")
    return found


def join_names(names: Iterable[str]) -> str:
    """Join names for a message, in quotes; of many names only the first ones.

    >>> join_names(["a", "b"])
    "'a', 'b'"
    """
    every = list(names)
    more = f" and {len(every) - _MAX_SHOWN} more" if len(every) > _MAX_SHOWN else ""
    return ", ".join(f"{name!r:.40}" for name in every[:_MAX_SHOWN]) + more or "none"


def _show(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # Python does not print integers of thousands of digits
        return f"an integer of {value.bit_length()} bits"


def warn_about_one() -> None:
    """Warn the caller of the function that calls this one: a set of one arm, and no outside option to learn from."""
    warnings.warn(
        "k=1: who wins in a set of one teaches nothing; choose k=2 or more, or let the policy learn from failures "
        "(policy='newton(outside=True)') and report each of them as NoWinner()",
        stacklevel=3,
    )
