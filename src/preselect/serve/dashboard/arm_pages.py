"""Pages about arms: the list, with search and sorting, and forms with which an admin adds and retires arms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from preselect.errors import InputError
from preselect.serve.dashboard import views
from preselect.serve.dashboard.pages import Desk
from preselect.serve.dashboard.templates import respond
from preselect.serve.dashboard.views import ArmRow
from preselect.serve.dashboard.visitors import Visitor, read_form
from preselect.serve.parameters import read_number
from preselect.serve.schemas import ArmTerms

_ON_A_PAGE = 50

_SORTS: dict[str, Callable[[ArmRow], Any]] = {
    "utility": lambda row: -_none_to_least(row.utility),
    "name": lambda row: row.name.lower(),
    "chance": lambda row: -_none_to_least(row.chance),
    "plays": lambda row: -row.plays,
    "wins": lambda row: -row.wins,
    "share": lambda row: -_none_to_least(row.share),
}


def _none_to_least(value: float | None) -> float:
    return -math.inf if value is None else value


async def show_arms(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Show a page of arms."""
    name, query = request.path_params["name"], request.query_params
    watch = await desk.watches.find(name)
    search, sort = query.get("search", "")[:200], query.get("sort", "utility")
    rows = views.list_arms(await desk.live.read_belief(name), watch.aggregate)
    found = [row for row in rows if search.lower() in row.name.lower()]
    found.sort(key=_SORTS.get(sort, _SORTS["utility"]))
    pages = max(-(-len(found) // _ON_A_PAGE), 1)
    page = min(read_number(query, "page", 1, 1, 10**6), pages)
    return respond(
        "arms.html",
        visitor=visitor,
        name=name,
        rows=found[(page - 1) * _ON_A_PAGE : page * _ON_A_PAGE],
        in_all=len(found),
        page=page,
        pages=pages,
        search=search,
        sort=sort if sort in _SORTS else "utility",
        features=await desk.backend.inspect(name, lambda preselector: preselector.features),
        can_change=visitor.may_change and desk.can_change,
        message=query.get("message", "")[:300],
    )


async def add_arm(desk: Desk, request: Request, _: Visitor) -> Response:
    """Add the arm that a form describes, or change it."""
    name, form = request.path_params["name"], await read_form(request)
    arm = form.get("arm", "")
    if not 0 < len(arm) <= 200:
        raise InputError("an arm needs a name of at most 200 characters; go back and give it one")
    known = await desk.backend.inspect(name, lambda preselector: preselector.features)
    given = {feature: form.get(f"feature-{place}") for place, feature in enumerate(known)}
    features: dict[str, float | None] = {
        feature: _read_number(feature, text) for feature, text in given.items() if text is not None
    }
    price = _read_number("price", form["price"]) if "price" in form else None
    is_new = (await desk.backend.put_arm(name, arm, ArmTerms(features, form.get("group"), price)))[1]
    desk.live.forget(name)
    return _go_back(name, f"{arm} has {'joined' if is_new else 'changed'}.")


def _read_number(what: str, text: str) -> float:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{what} is {text!r:.40}; go back and give a number")
    return value


async def ask_about_arm(desk: Desk, request: Request, visitor: Visitor) -> Response:
    """Ask whether an arm should really leave."""
    name = request.path_params["name"]
    await desk.backend.inspect(name, lambda preselector: preselector.version)
    return respond("retire.html", visitor=visitor, name=name, arm=request.query_params.get("arm", ""))


async def retire_arm(desk: Desk, request: Request, _: Visitor) -> Response:
    """Retire an arm."""
    name, form = request.path_params["name"], await read_form(request)
    arm = form.get("arm", "")
    await desk.backend.retire_arm(name, arm)
    desk.live.forget(name)
    return _go_back(name, f"{arm} has left.")


def _go_back(name: str, message: str) -> Response:
    return RedirectResponse(f"/preselectors/{quote(name)}/arms?{urlencode({'message': message})}", 303)
