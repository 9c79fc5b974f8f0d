"""Locks for objects that several threads share: calls of one object run one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


class Guarded:
    """Base of classes that several threads may use: calls wait for each other, and copies are made between calls.

    A thread that holds the lock may take it again. The lock is not part of the state: a copy has its own.
    """

    _guard: threading.RLock

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made = super().__new__(cls)
        made._guard = threading.RLock()
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        with self._guard:
            vars(made).update(deepcopy(self._list_state(), memo))
        return made

    __copy__ = deepcopy  # a shallow copy would share some of what is learnt

    def __getstate__(self) -> dict[str, Any]:
        return deepcopy(self)._list_state()

    def _list_state(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_guard"}


_Self = TypeVar("_Self", bound=Guarded)


def serial(method: Callable[Concatenate[_Self, _P], _Result]) -> Callable[Concatenate[_Self, _P], _Result]:
    """Make a method of a guarded object wait while another thread runs one."""

    @wraps(method)
    def call(self: _Self, /, *given: _P.args, **options: _P.kwargs) -> _Result:
        with self._guard:
            return method(self, *given, **options)

    return call
