"""The table of all pages of the dashboard: path, role, and the function that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from preselect.serve.dashboard import arm_pages, pages
from preselect.serve.dashboard.pages import Desk
from preselect.serve.dashboard.visitors import Visitor
from preselect.serve.keys import Role

_Answer = Callable[[Desk, Request, Visitor], Awaitable[Response]]
_PRESELECTOR = "/preselectors/{name}"


class Page(NamedTuple):
    """A page, or the action of a form on a page.

    Parameters
    ----------
    method : str
        GET or POST.
    path : str
        Its path.
    role : str
        The least role that may ask for it.
    answer : callable
        Makes the answer.
    """

    method: str
    path: str
    role: Role
    answer: _Answer


PAGES = (
    Page("GET", "/", "reader", pages.show_home),
    Page("GET", _PRESELECTOR, "reader", pages.show_preselector),
    Page("GET", _PRESELECTOR + "/series", "reader", pages.send_series),
    Page("GET", _PRESELECTOR + "/live", "reader", pages.send_live),
    Page("GET", _PRESELECTOR + "/decisions/{id}", "reader", pages.show_decision),
    Page("GET", _PRESELECTOR + "/arms", "reader", arm_pages.show_arms),
    Page("POST", _PRESELECTOR + "/arms", "admin", arm_pages.add_arm),
    Page("GET", _PRESELECTOR + "/retire", "admin", arm_pages.ask_about_arm),
    Page("POST", _PRESELECTOR + "/retire", "admin", arm_pages.retire_arm),
)
