"""The picking page and its posters, as routes of the service."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from preselect.serve.dashboard.templates import respond
from preselect.serve.dashboard.visitors import NOBODY
from preselect.serve.picking.catalogue import make_catalogue
from preselect.serve.picking.drawing import draw
from preselect.serve.picking.posters import list_posters

_HEADERS = {"Cache-Control": "max-age=3600", "X-Content-Type-Options": "nosniff"}


def make_picking_routes() -> list[BaseRoute]:
    """Return the routes of the page."""
    return [
        Route("/pick", _show_page),
        Route("/pick/posters.json", _list_posters),
        Route("/pick/posters/{name}.svg", _show_poster),
    ]


async def _show_page(_: Request) -> Response:
    return respond("pick.html", visitor=NOBODY, posters=len(list_posters()))


async def _list_posters(_: Request) -> Response:
    return JSONResponse(make_catalogue(), headers=_HEADERS)


async def _show_poster(request: Request) -> Response:
    poster = next((one for one in list_posters() if one.name == request.path_params["name"]), None)
    if poster is None:
        raise HTTPException(404)
    return Response(draw(poster), media_type="image/svg+xml", headers=_HEADERS)
