"""Templates and files of the pages: text is escaped, and a browser loads nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from preselect.serve.dashboard.views import say_outcome

_POLICY = "default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; object-src 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

_FILES: list[str | tuple[str, str]] = [("preselect.reports", "static"), ("preselect.serve.dashboard", "static")]


def respond(template: str, status: int = 200, **values: Any) -> Response:
    """Answer with a page.

    Parameters
    ----------
    template : str
        File name of the template, such as "home.html".
    status : int, default 200
        The status of the answer.
    **values : Any
        The variables of the template; `visitor` is among them.
    """
    return HTMLResponse(render(template, **values), status, _HEADERS)


def render(template: str, **values: Any) -> str:
    """Fill in a template; every value is escaped."""
    return _make_environment().get_template(template).render(**values)


@cache
def _make_environment() -> jinja2.Environment:
    """Return the Jinja2 environment, with the filters that templates use."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("preselect.serve.dashboard"),
        autoescape=True,
        auto_reload=False,  # files are not checked for changes at every rendering
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"spaced": _space, "date": _date, "say_outcome": say_outcome, "listed": _list}
    return environment


def _space(number: int) -> str:
    """Write a whole number with thin spaces between thousands.

    >>> _space(1234567)
    '1\u202f234\u202f567'
    """
    return f"{number:,}".replace(",", "\u202f")


def _list(names: Iterable[str]) -> Markup:
    """Write names after each other; one that changes the direction of text does so for itself only.

    >>> print(_list(["a", "<b>"]))
    <bdi>a</bdi>, <bdi>&lt;b&gt;</bdi>
    """
    return Markup(", ").join(Markup("<bdi>{}</bdi>").format(name) for name in names)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def mount_files() -> Mount:
    """Return the route of style sheets, scripts and pictures."""
    return Mount("/static", StaticFiles(packages=_FILES))
