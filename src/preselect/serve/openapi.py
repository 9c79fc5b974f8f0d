"""The OpenAPI 3.1 document of the service, made from its calls and schemas."""

from __future__ import annotations

import json
import re
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

import preselect
from preselect.serve.calls import CALLS, Call
from preselect.serve.schemas import PROBLEM, Mistake, Problem, ToldOutcome

_ALWAYS = (400, 401, 403, 429, 500, 503)  # any call may be refused like this
_WITH_BODY = (413, 415)

_DETAILS = {
    200: "OK, or nothing new",
    201: "Created",
    204: "Done",
    400: "Malformed",
    401: "No key, or an unknown one",
    403: "The key may not do this",
    404: "Unknown",
    409: "Something else is there already",
    410: "The decision has expired",
    413: "Too large",
    415: "Not JSON",
    422: "Not valid; errors has JSON pointers",
    429: "Too many requests with this key",
    500: "A mistake of the service",
    503: "Overloaded, replaying, or the storage fails; try again",
}

_PARAMETERS = {
    "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"},
    "arm": {"type": "string", "minLength": 1, "maxLength": 200},
    "id": {"type": "string", "minLength": 1, "maxLength": 200},
}


def make_document() -> dict[str, Any]:
    """Return the document as plain values."""
    types = {one for call in CALLS for one in (call.body, *call.answers.values()) if one is not None} | {
        Mistake,
        Problem,
        ToldOutcome,
    }
    ordered = sorted(types, key=lambda one: one.__name__)
    references, schemas = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    reference_of = dict(zip(ordered, references, strict=True))
    paths: dict[str, Any] = {}
    for call in CALLS:
        paths.setdefault(call.path, {})[call.method.lower()] = _describe(call, reference_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "preselect",
            "version": preselect.__version__,
            "summary": "Choose k of n, see which one wins, choose better",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(sorted(schemas.items())),
        },
    }


def _describe(call: Call, reference_of: dict[type[Any], Any]) -> dict[str, Any]:
    refusals = sorted({*_ALWAYS, *call.refusals, *(_WITH_BODY if call.body else ())})
    answers = {
        str(status): _describe_answer(status, reference_of[kind] if kind else None, call.media)
        for status, kind in call.answers.items()
    }
    refused = {str(status): _describe_answer(status, reference_of[Problem], PROBLEM) for status in refusals}
    described: dict[str, Any] = {
        "operationId": call.name,
        "summary": call.summary,
        "description": f"For keys of the role {call.role} and above.",
        "parameters": _list_parameters(call),
        "responses": answers | refused,
    }
    if call.body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": reference_of[call.body]}},
        }
    return described


def _describe_answer(status: int, reference: Any, media: str) -> dict[str, Any]:
    described: dict[str, Any] = {"description": _DETAILS[status]}
    if reference is not None:
        described["content"] = {media: {"schema": {"type": "string"} if "stream" in media else reference}}
    return described


def _list_parameters(call: Call) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": _PARAMETERS[name]}
        for name in re.findall(r"\{(\w+)\}", call.path)
    ]
    in_query = [
        {"name": one.name, "in": "query", "description": one.description, "schema": one.schema} for one in call.queries
    ]
    return in_path + in_query


def write_document(path: str | PathLike[str]) -> None:
    """Write the document to a file.

    Parameters
    ----------
    path : str or path
        The file.
    """
    Path(path).write_text(json.dumps(make_document(), indent=1) + "\n")
