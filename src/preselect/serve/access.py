"""Decide whether a request is allowed: by its key, the key's rate, and whether it asks for a local name."""

from __future__ import annotations

import re

from preselect.errors import RequestError
from preselect.serve.http import find_header
from preselect.serve.keys import Key, Keys, Role
from preselect.serve.limits import Rates
from preselect.serve.stream import Message

_LOCAL = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?", re.IGNORECASE)
_EVERYONE = Key("", "admin", "")

_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class Access:
    """Admits or refuses requests.

    Parameters
    ----------
    keys : Keys or None
        All keys. With None anyone may do anything, provided that the request names a local host.
    rates : Rates
        How fast keys may make requests.
    """

    def __init__(self, keys: Keys | None, rates: Rates) -> None:
        self.keys, self._rates = keys, rates

    def authorise(self, scope: Message, role: Role, name: str | None, token: str | None = None) -> Key:
        """Return the key of a request; raise a RequestError if it does not allow this.

        Parameters
        ----------
        scope : mapping
            The request.
        role : str
            The least role that is needed.
        name : str or None
            The preselector that is asked for, if one is.
        token : str, optional
            The key, if it did not come in the header Authorization.
        """
        if self.keys is None:
            _require_local(scope)
            return _EVERYONE
        key = self.keys.find(_read_token(scope) if token is None else token)
        if key is None:
            raise RequestError(401, "this key is not known; check it", _CHALLENGE)
        self._rates.take(key.id)
        if not key.may(role):
            raise RequestError(403, f"this needs a key of the role {role}; yours is of the role {key.role}")
        if key.preselector is not None and name not in (None, key.preselector):
            raise RequestError(403, f"this key is for the preselector {key.preselector} only")
        return key


def _read_token(scope: Message) -> str:
    scheme, _, token = (find_header(scope, b"authorization") or b"").strip().partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise RequestError(401, "this needs a key; send it as 'Authorization: Bearer KEY'", _CHALLENGE)
    return token.strip().decode("latin-1")


def _require_local(scope: Message) -> None:
    """Refuse host names that are not local: a web page could make a browser send requests to them."""
    host = find_header(scope, b"host")
    if host is not None and not _LOCAL.fullmatch(host):
        raise RequestError(403, "without keys the service answers to localhost only; start it with --keys")
