"""Records of a journal: rows in a chain of digests, which reveals any later change."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from types import NoneType
from typing import Any, Self

from preselect.errors import JournalError
from preselect.store.codec import decode_event
from preselect.store.events import Event
from preselect.store.storage import About, Row
from preselect.store.values import decode

_write = json.JSONEncoder(default=repr).encode
_quote = json.dumps  # quotes a text, fast
_PLAIN = (int, NoneType)


class Record:
    """An event of a journal.

    Parameters
    ----------
    row : Row
        As it is stored.
    event : Event, optional
        What happened. By default it is read from the row when it is needed.
    """

    __slots__ = ("_event", "row")

    def __init__(self, row: Row, event: Event | None = None) -> None:
        self.row, self._event = row, event

    @property
    def number(self) -> int:
        """The number of the event, from 1 without gaps."""
        return self.row.number or 0

    @property
    def at(self) -> float:
        """When it was recorded, in seconds since 1970."""
        return self.row.at

    @property
    def kind(self) -> str:
        """The kind of event, as in `preselect.store.events`."""
        return self.row.kind

    @property
    def event(self) -> Event:
        """What happened. Raises a JournalError if the row is damaged."""
        if self._event is None:
            self._event = decode_event(self.row)
        return self._event

    def follows(self, digest: bytes) -> bool:
        """Whether this event is unchanged and was written after the one with the given digest.

        Parameters
        ----------
        digest : bytes
            The digest of the event before, or of the beginning.
        """
        return self.row.digest == make_digest(digest, self.row)

    def __repr__(self) -> str:
        return f"Record({self.number}, {self.event})"


@dataclass(frozen=True)
class Beginning:
    """How a journal begins.

    Parameters
    ----------
    created : float
        When it was begun, in seconds since 1970.
    genesis : bytes
        The state before any event, as `Preselector.to_bytes` gives it.
    description : mapping
        What the journal is about.
    software : mapping of str to str
        The versions of the software that began it.
    """

    created: float
    genesis: bytes
    description: dict[str, Any]
    software: dict[str, str]

    @classmethod
    def of(cls, about: About, source: str) -> Self:
        """Read what a storage keeps; if it is damaged, raise a JournalError that names the source.

        Parameters
        ----------
        about : About
            As it is stored.
        source : str
            What to call the journal.
        """
        try:
            description, software = decode(about.description), decode(about.software)
            return cls(float(about.created), zlib.decompress(about.genesis), dict(description), dict(software))
        except (TypeError, ValueError, RecursionError, zlib.error) as error:
            raise JournalError(f"{source} is damaged: its beginning cannot be read ({error!r:.80})") from None

    @property
    def digest(self) -> bytes:
        """The digest that the first event follows."""
        return hashlib.sha256(self.genesis).digest()


def make_digest(previous: bytes, row: Sequence[Any]) -> bytes:
    """Return the SHA-256 of a row, written as JSON, and the digest of the row before it.

    The last field of the row, its own digest, may be missing.
    """
    number, at, kind, decision, text = row[1], row[2], row[3], row[4], row[7]
    if type(number) is int and type(at) is float and isfinite(at) and type(text) is str and type(decision) in _PLAIN:
        ended = "null" if decision is None else decision
        written = f"[{number}, {at!r}, {_quote(kind)}, {ended}, {_quote(text)}]"  # the same JSON, three times as fast
    else:
        written = _write([number, at, kind, decision, text])
    return hashlib.sha256(b"".join((previous, written.encode(), row[8] or b""))).digest()
