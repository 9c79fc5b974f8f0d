"""The user's own policies and environments, written as module:Class or module:Class(parameter=value, ...)."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from preselect.arguments import show
from preselect.errors import InputError


def parse_call(text: str, kind: str) -> tuple[str, dict[str, Any]]:
    """Split a text into a name and parameters; `kind`, such as "policy", is what messages call it.

    >>> parse_call("mine:Mine(n=3)", "policy")
    ('mine:Mine', {'n': 3})
    """
    name, bracket, inside = text.strip().partition("(")
    return name, _parse_parameters(text, inside, kind) if bracket else {}


def _parse_parameters(text: str, inside: str, kind: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"f({inside}", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
            raise ValueError
        if any(keyword.arg is None for keyword in call.keywords):
            raise ValueError
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # the last three if nested too deeply
        raise InputError(f"cannot read the {kind} {show(text)}; write name or name(parameter=value, ...)") from None


def check_parameters(name: str, known: type[Any], parameters: dict[str, Any]) -> None:
    """Refuse parameters that a class does not have."""
    signature = inspect.signature(known).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.values()):
        return
    strange = [parameter for parameter in parameters if parameter not in signature]
    if strange:
        raise InputError(f"{name} has no parameter {', '.join(strange)}; it has {', '.join(signature)}")


def import_class(name: str, kind: str) -> Any:
    """Return what module:Class names; a module in the current folder is found, as with python -m."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # importing a module may raise anything
        raise InputError(f"cannot import the {kind} {show(name)}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove("")


def name_class(known: type[Any]) -> str:
    """Return a class as module:Class."""
    if "." in known.__qualname__:
        raise InputError(f"{known.__qualname__} is defined in a function or a class; define it at the top of a module")
    return f"{known.__module__}:{known.__name__}"


def digest_class(known: type[Any]) -> str:
    """Return a digest of a class's source file, or of its code if there is no file, as in a notebook."""
    try:
        content = Path(inspect.getsourcefile(known) or "").read_bytes()
    except (OSError, TypeError):
        members = ((name, value) for name, value in vars(known).items() if not name.startswith("__") or callable(value))
        content = repr([(name, *_list_content(value)) for name, value in members]).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _list_content(value: object) -> Iterator[object]:
    """Yield what a member of a class is: the code of a function, or a plain value."""
    if inspect.isfunction(value):
        yield from _list_code(value.__code__)
    elif isinstance(value, int | float | str | bytes | tuple | list | dict):
        yield value


def _list_code(code: CodeType) -> Iterator[object]:
    """Yield what a function and the functions inside it do, in a form that is the same in every process."""
    yield code.co_code, code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_code(constant)
        else:
            yield sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
