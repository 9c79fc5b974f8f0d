"""Problem documents (RFC 9457): the answers to refused requests, and how errors become such answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from preselect.errors import (
    ConflictError,
    ExpiredError,
    InputError,
    JournalError,
    NotFoundError,
    OverloadedError,
    RequestError,
)
from preselect.serve.schemas import Mistake, Problem

_STATUSES: dict[type[Exception], int] = {
    NotFoundError: 404,
    ConflictError: 409,
    ExpiredError: 410,
    InputError: 422,
    OverloadedError: 503,
    JournalError: 503,
}

_RETRY_AFTER = "1"  # seconds


def find_status(error: Exception) -> int:
    """Return the HTTP status of an error; 500 for an unexpected one."""
    if isinstance(error, RequestError):
        return error.status
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)


def describe_error(error: Exception, body: Any = None) -> tuple[Problem, dict[str, str]]:
    """Return the problem document of an error and the headers that go with it.

    Of an unexpected error it says only that there was one; the log has the details.
    """
    status = find_status(error)
    detail = str(error) if status != 500 else "the service failed unexpectedly; see its log"
    headers = dict(error.headers) if isinstance(error, RequestError) else {}
    if status == 503:
        headers.setdefault("Retry-After", _RETRY_AFTER)
    pointer = error.pointer if isinstance(error, RequestError) else None
    if status == 422 and pointer is None and body is not None:
        pointer = _guess_pointer(detail, body)
    mistakes = [] if pointer is None else [Mistake(pointer, detail)]
    return Problem(HTTPStatus(status).phrase, status, detail, errors=mistakes), headers


def _guess_pointer(detail: str, body: Any) -> str:
    """Return a pointer to the field that a message mentions first; to the whole body if it mentions none."""
    given = msgspec.to_builtins(body) if isinstance(body, msgspec.Struct) else body
    names = [name for name in given if re.search(rf"\b{re.escape(name)}\b", detail)] if isinstance(given, dict) else []
    return f"/{_escape(min(names, key=detail.index))}" if names else ""


def read_mistake(error: msgspec.ValidationError, content: bytes, kind: type[Any]) -> Mistake:
    """Return what is wrong in a body that does not fit its schema, with a pointer to it.

    msgspec writes "Expected `int`, got `str` - at `$.context[...]`", without the keys of mappings: those are found by
    looking at one entry at a time.
    """
    found = re.fullmatch(r"(.*?)(?: - at `(key in )?(.*)`)?", str(error), re.DOTALL)
    text, in_key, path = found.groups() if found else (str(error), None, None)
    steps = re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", (path or "$")[1:])
    wanted = [field or (index if index == "..." else int(index)) for field, index in steps]
    pointer = _resolve(json.loads(content), wanted, kind)
    return Mistake("".join(f"/{_escape(str(step))}" for step in pointer), f"in a name: {text}" if in_key else text)


def _resolve(value: Any, steps: list[str | int], kind: type[Any]) -> list[str | int]:
    """Return the steps to a mistake, with the names of entries in place of "..."."""
    if "..." not in steps:
        return steps
    place = steps.index("...")
    inner = value
    for step in steps[:place]:
        inner = inner[step]
    for name in inner if isinstance(inner, dict) else ():
        steps_of_one = [*steps[:place], name, *steps[place + 1 :]]
        if not _fits(_keep_one(value, steps[:place], name), kind):
            return _resolve(value, steps_of_one, kind)
    return steps[:place]


def _keep_one(value: Any, steps: list[str | int], name: str) -> Any:
    """Return the value with only one entry of the mapping to which the steps lead."""
    if not steps:
        return {name: value[name]}
    first, *rest = steps
    changed: Any = dict(value) if isinstance(value, Mapping) else list(value)
    changed[first] = _keep_one(value[first], rest, name)
    return changed


def _fits(value: Any, kind: type[Any]) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
