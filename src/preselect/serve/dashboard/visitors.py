"""Visitors of pages: the key that their browser keeps, logging in and out, and checking where a form comes from."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from preselect.errors import RequestError
from preselect.serve.access import Access
from preselect.serve.dashboard.templates import respond
from preselect.serve.keys import Role

_COOKIE = "preselect_key"
_MOST_BYTES = 1 << 16  # of a form


class Visitor(NamedTuple):
    """Whoever asks for a page.

    Parameters
    ----------
    role : str
        What they may do: "reader", "client" or "admin".
    has_key : bool
        Whether they have logged in with a key; False if the service has none.
    preselector : str or None
        The only preselector that they may see; None for all.
    may_change : bool
        Whether buttons that change something are shown.
    """

    role: str = ""
    has_key: bool = False
    preselector: str | None = None
    may_change: bool = False


NOBODY = Visitor()


def admit(access: Access, request: Request, role: Role, name: str | None) -> Visitor | None:
    """Return the visitor, or None if they have to log in first; raise an error if they may not see this.

    Parameters
    ----------
    access : Access
        Who may do what.
    request : Request
        The request, with a key in its cookie or in the header Authorization.
    role : str
        The least role that is needed.
    name : str or None
        The preselector that is asked for, if one is.
    """
    if request.method == "POST":
        _require_same_origin(request)
    token = None if "authorization" in request.headers else request.cookies.get(_COOKIE, "")
    if access.keys is not None and token is not None and access.keys.find(token) is None:
        return None
    key = access.authorise(request.scope, role, name, token)
    return Visitor(key.role, access.keys is not None, key.preselector or None, key.may("admin"))


def _require_same_origin(request: Request) -> None:
    """Refuse a form sent from another site: the browser says where it comes from."""
    origin = request.headers.get("origin")
    if origin is None or urlsplit(origin).netloc != request.headers.get("host"):
        raise RequestError(403, "this form was not sent by a page of this service; open the page and send it there")


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; those left empty are missing."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise RequestError(413, f"the form has more than {_MOST_BYTES} bytes; send less")
    try:
        return dict(parse_qsl(body.decode(), errors="strict", max_num_fields=2000))
    except ValueError:
        raise RequestError(400, "the form cannot be read; send it from the page") from None


def ask_for_key(request: Request) -> Response:
    """Redirect to the form that asks for a key, and from there back."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/login?next={quote(path)}", 303)


async def log_in(access: Access, request: Request) -> Response:
    """Show the form that asks for a key, or keep the key in a cookie that no script can read."""
    if request.method != "POST":
        return respond("login.html", visitor=NOBODY, mistake="", next=_read_next(request.query_params.get("next")))
    _require_same_origin(request)
    form = await read_form(request)
    token, target = form.get("key", "").strip(), _read_next(form.get("next"))
    if access.keys is None or access.keys.find(token) is None:
        return respond("login.html", 403, visitor=NOBODY, mistake="This key is not known; check it.", next=target)
    answer = RedirectResponse(target, 303)
    is_secure = request.headers.get("x-forwarded-proto") == "https"  # behind a proxy with TLS
    answer.set_cookie(_COOKIE, token, httponly=True, samesite="strict", secure=is_secure)
    return answer


def _read_next(path: str | None) -> str:
    """Return where to go after logging in, which is a page of this service.

    >>> _read_next("/preselectors/a"), _read_next("//example.org"), _read_next(None)
    ('/preselectors/a', '/', '/')
    """
    is_ours = path is not None and path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path or "/" if is_ours else "/"


async def log_out(request: Request) -> Response:
    """Forget the key."""
    _require_same_origin(request)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(_COOKIE, httponly=True, samesite="strict")
    return answer
