"""Turn values of features, given by name or in order, into rows of numbers in one order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import as_name, join_names, number, show
from preselect.arguments import names as check_names
from preselect.context import Floats
from preselect.errors import InputError

Features: TypeAlias = Mapping[str, float | None]  # by name; a value that is None, NaN or left out is unknown
Vector: TypeAlias = Sequence[float | None] | NDArray[Any]  # in the order of their names
Values: TypeAlias = Features | Vector

_FLOATS = {float}


def read_context(context: Values | None, names: list[str]) -> Floats:
    """Return the values of a context in the order of the names; NaN where they are not known."""
    given = () if context is None else context
    if isinstance(given, Mapping):
        _check_names(given, names)
        given = [given[name] for name in names]
    elif not _is_sequence(given):
        raise InputError(f"context is {show(given)}; give values by name, or a list of them")
    if len(given) != len(names):
        raise InputError(f"context has length {len(given)}, but its features are {join_names(names)}")
    return _as_row(given, names)


def _as_row(values: Vector, names: Iterable[str]) -> Floats:
    """Return values of these names as numbers; NaN where they are not known."""
    if type(values) is np.ndarray or set(map(type, values)) == _FLOATS:  # usually; other values are read one by one
        row = np.array(values)
        if row.dtype == np.float64 and not np.count_nonzero(np.isinf(row)):
            return row
    return np.array([_as_value(value, name) for value, name in zip(values, names, strict=True)])


def _check_names(context: Features, names: list[str]) -> None:
    missing = [name for name in names if name not in context]
    if missing:
        raise InputError(f"the context lacks {join_names(missing)}; give None for a value that is not known")
    unknown = [str(name) for name in context if name not in names]
    if unknown:
        raise InputError(
            f"the context has {join_names(unknown)}, but only these features are known: {join_names(names)}"
        )


def _as_value(value: float | None, name: str) -> float:
    """Return a value of this name as a number; NaN if it is not known."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return float("nan")
    return number(value, name)


def _check_features(name: str, features: Any) -> None:
    """Raise an InputError unless these are features of an arm, by name or in order.

    >>> _check_features("a", None)
    Traceback (most recent call last):
    preselect.errors.InputError: the features of arm 'a' are None; give numbers by name, such as {'x': 1.0}, or a list
    """
    if not (isinstance(features, Mapping) or _is_sequence(features)):
        raise InputError(
            f"the features of arm {show(name)} are {show(features)}; give numbers by name, such as {{'x': 1.0}}, or a "
            "list"
        )


def list_features(features_of: Mapping[str, Any]) -> list[str]:
    """Return the names of all features that some arm has, in order; elements of vectors are called x0, x1 and so on.

    >>> list_features({"a": {"x": 1.0}, "b": {"y": 2.0, "x": 3.0}})
    ['x', 'y']
    >>> list_features({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    ['x0', 'x1']
    """
    for name, features in features_of.items():
        _check_features(as_name(name, "arms"), features)
    lengths = {len(features) for features in features_of.values() if not isinstance(features, Mapping)}
    if not lengths:
        every = dict.fromkeys(feature for features in features_of.values() for feature in features)
        return check_names(every, "the features of arms")
    if len(lengths) > 1 or any(isinstance(features, Mapping) for features in features_of.values()):
        raise InputError(
            "some arms have features by name and others in order, or not equally many; use one form for all arms"
        )
    return [f"x{place}" for place in range(lengths.pop())]


def read_features(name: str, features: Features | Vector | None, known: list[str]) -> Floats:
    """Return the values of an arm's features in the order of their names; NaN where they are not known."""
    given = {} if features is None else features
    _check_features(name, given)
    if isinstance(given, Mapping):
        unknown = [str(feature) for feature in given if feature not in known]
        if unknown:
            raise InputError(
                f"{name!r:.40} has {join_names(unknown)}, but the features of arms are {join_names(known)}"
            )
        given = [given.get(feature) for feature in known]
    if len(given) != len(known):
        raise InputError(
            f"{name!r:.40} has {len(given)} features in order; the features of arms are {join_names(known)}"
        )
    return _as_row(given, (f"{feature} of {name}" for feature in known))


def _is_sequence(values: Any) -> bool:
    """Return whether these are values in order, and not a text.

    >>> _is_sequence([1.0, 2.0]), _is_sequence("12")
    (True, False)
    """
    if isinstance(values, np.ndarray):
        return values.ndim == 1
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes))
