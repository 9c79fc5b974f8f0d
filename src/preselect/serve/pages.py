"""Answer requests that are not calls: health, figures, the OpenAPI document, and the dashboard."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from preselect.errors import OverloadedError, PreselectError, RequestError
from preselect.serve.access import Access
from preselect.serve.backend import Backend
from preselect.serve.dashboard.app import make_routes
from preselect.serve.dashboard.templates import respond
from preselect.serve.dashboard.visitors import NOBODY
from preselect.serve.log import log
from preselect.serve.metrics import Metrics
from preselect.serve.openapi import make_document
from preselect.serve.problems import describe_error
from preselect.serve.schemas import PROBLEM
from preselect.serve.stream import Streams

_FIGURES = "text/plain; version=0.0.4; charset=utf-8"


def make_pages(
    backend: Backend, metrics: Metrics, access: Access, streams: Streams, routes: Sequence[BaseRoute]
) -> ASGIApp:
    """Return the application that answers requests which are not calls; `routes` are further pages."""
    document = make_document()

    async def tell_health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def tell_readiness(_: Request) -> Response:
        if await backend.is_ready():
            return JSONResponse({"status": "ready"})
        return _refuse(OverloadedError("the service is not ready: it is replaying, or cannot write to its storage"))

    async def write_figures(_: Request) -> Response:
        return Response(metrics.write(), media_type=_FIGURES)

    async def write_document(_: Request) -> Response:
        return JSONResponse(document)

    return Starlette(
        routes=[
            Route("/healthz", tell_health),
            Route("/readyz", tell_readiness),
            Route("/metrics", write_figures),
            Route("/openapi.json", write_document),
            *routes,
            *make_routes(backend, access, streams),
        ],
        exception_handlers={HTTPException: _explain, PreselectError: _explain, Exception: _explain},
    )


async def _explain(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        detail = "there is nothing at this path; /openapi.json lists all calls" if error.status_code == 404 else ""
        error = RequestError(error.status_code, detail or error.detail, dict(error.headers or {}))
    if not isinstance(error, PreselectError):
        log(logging.ERROR, "a page failed", error=error, path=request.url.path)
    if "text/html" not in request.headers.get("accept", ""):
        return _refuse(error)
    problem, _ = describe_error(error)
    return respond("error.html", problem.status, visitor=NOBODY, problem=problem)


def _refuse(error: Exception) -> Response:
    problem, headers = describe_error(error)
    return Response(msgspec.json.encode(problem), problem.status, headers, media_type=PROBLEM)
