"""Pages of the dashboard: each reads what it needs from the backend, and fills in a template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from preselect.serve import schemas
from preselect.serve.backend import Backend
from preselect.serve.dashboard import views
from preselect.serve.dashboard.live import Live
from preselect.serve.dashboard.templates import respond
from preselect.serve.dashboard.visitors import Visitor
from preselect.serve.dashboard.watch import Watches
from preselect.serve.stream import Streams

_HEADER = " -H 'Authorization: Bearer KEY'"


@dataclass(frozen=True)
class Desk:
    """The objects that pages need.

    Parameters
    ----------
    backend : Backend
        Keeps the preselectors.
    watches : Watches
        Follow the preselectors that someone is watching.
    live : Live
        Renders the parts of pages that change.
    streams : Streams
        Sends them.
    has_keys : bool
        Whether calls need a key.
    """

    backend: Backend
    watches: Watches
    live: Live
    streams: Streams
    has_keys: bool

    @property
    def can_change(self) -> bool:
        """Whether arms can be added and retired here: not if a journal is only read."""
        return not self.backend.is_read_only


async def show_home(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Show all preselectors with their vital signs."""
    found = [one for one in await desk.backend.describe_all() if visitor.preselector in (None, one.name)]
    address, header = str(request.base_url).rstrip("/"), _HEADER if desk.has_keys else ""
    return respond("home.html", visitor=visitor, rows=found, address=address, header=header)


async def show_preselector(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Show what a preselector does."""
    name = request.path_params["name"]
    watch = await desk.watches.find(name)
    parts = await desk.live.render_parts(watch)
    described = await desk.backend.describe(name)
    features = f"context features {', '.join(described.context)}" if described.context else "no context features"
    return respond(
        "preselector.html", visitor=visitor, name=name, parts=parts, policy=described.policy, context=features
    )


async def send_series(desk: Desk, request: Request, _: Visitor) -> Response:
    """Send the curves of a preselector's charts."""
    watch = await desk.watches.find(request.path_params["name"])
    content = msgspec.json.encode(watch.read_series())
    return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})


async def send_live(desk: Desk, request: Request, _: Visitor) -> Response:
    """Send the parts of a preselector's page whenever they change."""
    name = request.path_params["name"]
    await desk.watches.find(name)
    return _Stream(desk, name)


class _Stream(Response):
    """Server-sent events, for as long as the browser reads."""

    def __init__(self, desk: Desk, name: str) -> None:
        self._desk, self._name = desk, name

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        await self._desk.streams.send(self._desk.live.follow(self._name), receive, send)


async def show_decision(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Explain a decision."""
    name = request.path_params["name"]
    made = await desk.backend.find_decision(request.path_params["id"], name, True)
    return respond("decision.html", visitor=visitor, name=name, made=made, **_describe(made))


def _describe(made: schemas.Decision) -> dict[str, Any]:
    outcome, explained = made.outcome, made.explanation.arms if made.explanation else []
    rows = [views.ArmRow(arm.name, arm.utility, arm.standard_error, arm.chance, 0, 0) for arm in explained]
    first = outcome.names[0] if outcome and outcome.names else []
    return {
        "scores": [*zip(made.names, made.scores, strict=True)],
        "arms": [*zip(explained, views.draw_intervals(rows), strict=True)],
        "contributions": views.list_contributions(explained),
        "winners": [first] if isinstance(first, str) else first,
        "outcome": "" if outcome is None else views.say_places(outcome.kind, outcome.names),
        "delay": "" if outcome is None else views.say_seconds(max(outcome.at - made.decided, 0.0)),
        "details": "" if outcome is None else views.say_details(outcome.details),
    }
