"""Keys: bearer tokens with a role; only their digests are stored."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from preselect.errors import InputError

Role = Literal["reader", "client", "admin"]

_ROLES: tuple[Role, ...] = ("reader", "client", "admin")  # each role may also do what the roles before it may

_DIGEST_OF_NOTHING = "0" * 64


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key, as stored in the file of keys: one JSON object on each line.

    Parameters
    ----------
    id : str
        The public part, with which every token begins.
    role : "reader", "client" or "admin"
        What its owner may do.
    sha256 : str
        The digest of the whole token, in hexadecimal.
    preselector : str or None
        The only preselector that it is for; None for all.
    created : float
        When it was made, in seconds since 1970.
    """

    id: str
    role: Role
    sha256: str
    preselector: str | None = None
    created: float = 0.0

    def may(self, role: Role) -> bool:
        """Whether its owner may do what this role allows.

        Parameters
        ----------
        role : str
            The least role that is needed.
        """
        return _ROLES.index(self.role) >= _ROLES.index(role)


class Keys:
    """Keys by their public parts.

    Parameters
    ----------
    keys : iterable of Key
        All keys.
    """

    def __init__(self, keys: Iterable[Key]) -> None:
        self._by_id: Mapping[str, Key] = {key.id: key for key in keys}

    def __len__(self) -> int:
        return len(self._by_id)

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a file of keys.

        Parameters
        ----------
        path : Path
            The file, as `add_key` writes it.
        """
        if not path.exists():
            raise InputError(f"there are no keys in {path}; make one: preselect serve key --role client --keys {path}")
        lines = enumerate(path.read_bytes().splitlines(), 1)
        return cls(_read_line(path, number, line) for number, line in lines if line.strip())

    def find(self, token: str) -> Key | None:
        """Find the key of a token; the time that this takes does not reveal how much of the token was right.

        Parameters
        ----------
        token : str
            What the caller sent.
        """
        key = self._by_id.get(token.partition(".")[0])
        digest = hashlib.sha256(token.encode(errors="replace")).hexdigest()
        is_right = hmac.compare_digest(digest, _DIGEST_OF_NOTHING if key is None else key.sha256)
        return key if is_right else None


def make_key(role: Role, preselector: str | None = None) -> tuple[Key, str]:
    """Make a key; return it with its token, which is not kept anywhere."""
    public = secrets.token_hex(6)
    token = f"{public}.{secrets.token_urlsafe(32)}"
    return Key(public, role, hashlib.sha256(token.encode()).hexdigest(), preselector, time.time()), token


def add_key(path: Path, key: Key) -> None:
    """Append a key to a file that only its owner may read."""
    if path.exists():
        Keys.read(path)  # raises an error if it is another kind of file
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(descriptor, "ab") as file:
        file.write(msgspec.json.encode(key) + b"\n")


def _read_line(path: Path, number: int, line: bytes) -> Key:
    try:
        key = msgspec.json.decode(line, type=Key)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"line {number} of {path} is not a key: {error}; make keys with preselect serve key") from None
    if not re.fullmatch("[0-9a-f]{64}", key.sha256) or not key.id:
        raise InputError(f"line {number} of {path} is not a key: its digest has to have 64 hexadecimal digits")
    return key
