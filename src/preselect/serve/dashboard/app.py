"""The routes of the dashboard, with the key that each of them needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from preselect.serve.access import Access
from preselect.serve.backend import Backend
from preselect.serve.dashboard import visitors
from preselect.serve.dashboard.live import Live
from preselect.serve.dashboard.pages import Desk
from preselect.serve.dashboard.routes import PAGES, Page
from preselect.serve.dashboard.templates import mount_files
from preselect.serve.dashboard.watch import Watches
from preselect.serve.stream import Streams


def make_routes(backend: Backend, access: Access, streams: Streams) -> list[BaseRoute]:
    """Return all routes of the dashboard."""
    watches = Watches(backend, streams)
    desk = Desk(backend, watches, Live(backend, watches), streams, access.keys is not None)

    async def log_in(request: Request) -> Response:
        return await visitors.log_in(access, request)

    return [
        mount_files(),
        Route("/login", log_in, methods=["GET", "POST"]),
        Route("/logout", visitors.log_out, methods=["POST"]),
        *(Route(page.path, _guard(page, desk, access), methods=[page.method]) for page in PAGES),
    ]


def _guard(page: Page, desk: Desk, access: Access) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        visitor = visitors.admit(access, request, page.role, request.path_params.get("name"))
        if visitor is None:
            return visitors.ask_for_key(request)
        return await page.answer(desk, request, visitor)

    return answer
