"""Checks of single arguments: each returns a plain Python value, or raises an InputError that says what to use."""

import math
import operator
import os
import warnings
from collections import Counter
from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.errors import InputError

_DOUBLE = np.dtype(np.float64)
_MAX_SHOWN = 10  # names in a message
_MAX_INTEGER = 2**63 - 1  # as in arrays and databases


def integer(value: Any, argument: str, least: int, most: int = _MAX_INTEGER) -> int:
    """Return an integer from `least` to `most`.

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
    if found > most:
        raise InputError(f"{argument} is {show(value)}; use an integer of at most {_show_bound(most)}")
    if found < least:
        raise InputError(f"{argument} is {show(value)}; use an integer of at least {least}")
    return found


def _show_bound(most: int) -> str:
    return f"2**{most.bit_length()} - 1" if most & (most + 1) == 0 else str(most)


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
    raise InputError(f"{argument} is {show(value)}; use {kind} {'of ' * asked.startswith('at')}{asked}".rstrip())


def _as_float(value: Any) -> float:
    """Return the value as a float; NaN if it is not a number."""
    if isinstance(value, (str, bytes, np.ma.core.MaskedConstant)) or not hasattr(value, "__float__") or np.ndim(value):
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
        raise InputError(f"{argument} is {show(value)}; use {' or '.join(map(repr, names))}")
    return str(value)


def as_plain(value: Any, kind: type[Any], name: str) -> Any:
    """Return an integer, a number or a text as Python's own.

    >>> as_plain(np.int64(3), int, "k")
    3
    """
    if kind is int:
        try:
            return operator.index(value)
        except TypeError:
            raise InputError(f"{name} is {show(value)}; use an integer") from None
    if kind is float:
        return number(value, name)
    if isinstance(value, (str, PathLike)) and os.fspath(value):
        return os.fspath(value)
    raise InputError(f"{name} is {show(value)}; use a text or a path")


def boolean(value: Any, argument: str) -> bool:
    """Return True or False; values that merely count as true or false are refused.

    >>> boolean(True, "outside")
    True
    >>> boolean("no", "outside")
    Traceback (most recent call last):
    preselect.errors.InputError: outside is 'no'; use True or False
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{argument} is {show(value)}; use True or False")
    return bool(value)


def names(value: Any, argument: str) -> list[str]:
    """Return a list of names, which may come from any iterable but a single string.

    >>> names(("a", "b"), "ranking")
    ['a', 'b']
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise InputError(f"{argument} is {show(value)}; use a list of names")
    return [as_name(name, argument) for name in value]


def as_name(value: Any, argument: str) -> str:
    """Return a name: a string that is not empty.

    >>> as_name(7, "arms")
    Traceback (most recent call last):
    preselect.errors.InputError: arms has 7 as a name; use strings
    """
    if not isinstance(value, str):
        raise InputError(f"{argument} has {show(value)} as a name; use strings")
    if not value:
        raise InputError(f"{argument} has an empty name; use strings of at least one character")
    return str(value)


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


def as_floats(values: ArrayLike, argument: str, *ndims: int) -> NDArray[np.float64]:
    """Return a C-contiguous float64 array; it must have the given number of axes, or one of several numbers."""
    if type(values) is np.ndarray and values.dtype is _DOUBLE and values.ndim in ndims and values.flags.c_contiguous:
        return values  # nearly always
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf" or isinstance(values, np.ma.MaskedArray):
            raise ValueError
        floats = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{argument} is not an array of real numbers: {show(values)}") from None
    if array.ndim not in ndims:
        wanted = "a list of numbers" if ndims[0] == 1 else "a table with one row per arm"
        raise InputError(f"{argument} has shape {array.shape}, but {wanted} is needed")
    return floats


def as_integers(values: ArrayLike, argument: str, expectation: str) -> NDArray[np.int64]:
    """Return a one-dimensional int64 array; raise an InputError that says what was expected."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        array = np.empty((), dtype=object)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{argument} should be {expectation}, not {show(values)}")
    whole = array.astype(np.int64) if array.size else np.empty(0, dtype=np.int64)
    if not np.array_equal(whole, array):
        raise InputError(f"{argument} should be {expectation}, not {show(values)}")
    return whole


def require_finite(values: NDArray[Any], argument: str) -> None:
    """Raise an InputError that names the first entry which is NaN or infinite."""
    finite = np.isfinite(values)
    if not finite.all():
        place = tuple(np.argwhere(~finite)[0].tolist())
        raise InputError(f"{argument} is {values[place]} at {list(place)}; every entry has to be finite")


def join_names(names: Iterable[str]) -> str:
    """Join names for a message, in quotes; of many names only the first ones.

    >>> join_names(["a", "b"])
    "'a', 'b'"
    """
    every = list(names)
    more = f" and {len(every) - _MAX_SHOWN} more" if len(every) > _MAX_SHOWN else ""
    return ", ".join(f"{name!r:.40}" for name in every[:_MAX_SHOWN]) + more or "none"


def show(value: Any) -> str:
    """Return a value as text for a message, shortened if it is long.

    >>> show([1, 2])
    '[1, 2]'
    """
    try:
        return f"{value!r:.80}"
    except Exception:  # its class may raise anything
        # Python does not print integers of thousands of digits
        bits = f"an integer of {value.bit_length()} bits" if isinstance(value, int) else ""
        return bits or f"a {type(value).__name__} that cannot be shown"


def warn_about_single_arm() -> None:
    """Warn the caller's caller: a set of one arm without an outside option teaches nothing."""
    warnings.warn(
        "the winner of a set of one teaches nothing; choose k=2 or more, with a budget that allows it, "
        "or let the policy learn from failures (policy='newton(outside=True)') and report each of them as NoWinner()",
        stacklevel=4,  # above `serial`
    )
