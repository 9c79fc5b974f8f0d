"""The journal: arms, decisions and outcomes in the order in which they came, in one SQLite file, on disk at once.

Events are added and never changed; the file itself refuses it. Each carries a digest of itself and of the one before,
so that a change by other means is found. Snapshots of the state are a cache beside them. One process writes, which a
lock says; any number read meanwhile. Inside a process one thread at a time may use an open journal, and after a fork
only the parent.
"""

import hashlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from preselect.errors import JournalError, StateFileError
from preselect.store import database
from preselect.store.database import explain_errors, transaction
from preselect.store.lock import lock
from preselect.store.values import decode, encode

_COLUMNS = ("number", "at", "kind", "decision", "body", "numbers", "digest")
_EVENT = f"SELECT {', '.join(_COLUMNS)} FROM events"
_SNAPSHOTS_KEPT = 2

_CHOICE = {"chosen", "arms", "scores", "widths", "round", "d"}
_PARTS = {  # of the body, by kind of event
    "arm": {"name", "features"},
    "decision": {"label", "context", "k", "eligible"} | _CHOICE,
    "outcome": {"kind", "names", "details"},
}


@dataclass(frozen=True)
class Event:
    """One line of the journal: an arm that joined, a decision, or the outcome of a decision."""

    number: int
    at: float
    kind: str
    decision: int | None
    text: str
    packed: bytes | None
    digest: bytes

    @cached_property
    def body(self) -> dict[str, Any]:
        """What happened."""
        try:
            found = decode(self.text)
        except (TypeError, ValueError):
            found = None
        if not isinstance(found, dict) or not _PARTS[self.kind] <= set(found):
            raise JournalError(f"event {self.number} is damaged: its body is not that of an event of kind {self.kind}")
        return found

    @cached_property
    def numbers(self) -> bytes:
        """The block of numbers of a decision."""
        return _inflate(self.packed, JournalError(f"event {self.number} is damaged: its numbers cannot be read"))

    def follows(self, digest: bytes) -> bool:
        """Whether this is what was written after the event with the digest."""
        return self.digest == _digest(digest, self.number, self.at, self.kind, self.decision, self.text, self.packed)


@dataclass(frozen=True)
class Snapshot:
    """The state after an event, kept so that not all events have to be taken in again."""

    after: int
    packed: bytes

    @property
    def state(self) -> bytes:
        """What Preselector.to_bytes gave."""
        return _inflate(self.packed, StateFileError(f"the snapshot after event {self.after} cannot be read"))


@dataclass(frozen=True)
class About:
    """What a journal begins with: the state before any event, and what it was written for and with."""

    created: float
    genesis: bytes
    description: dict[str, Any]
    software: dict[str, str]

    @property
    def digest(self) -> bytes:
        """What the first event follows."""
        return hashlib.sha256(self.genesis).digest()


class Journal:
    """An open journal. A reader sees it as it was when it was opened."""

    def __init__(self, path: Path, connection: sqlite3.Connection, resources: ExitStack) -> None:
        self.path = path
        self._connection, self._resources = connection, resources
        self.about = self._about()
        last = self._first("ORDER BY number DESC LIMIT 1")
        self.last, self._digest = (last.number, last.digest) if last else (0, self.about.digest)

    @classmethod
    def write(
        cls, path: str | os.PathLike[str], *, genesis: Callable[[], bytes], description: Mapping[str, Any] | None = None
    ) -> Self:
        """Open the journal as its only writer; one that is not there begins with what `genesis` gives."""
        place, about = database.locate(path), encode(description or {}, "description")
        with ExitStack() as resources:
            with explain_errors(place):
                resources.enter_context(lock(place))
                begun = _is_begun(place)
            content = b"" if begun else genesis()  # before there is a file, because it may refuse
            with explain_errors(place):
                connection = database.open_writer(place, resources)
                with transaction(connection):
                    if not begun:
                        database.begin(connection, content, about)
                    # written in any case, because SQLite opens a file that may not be written without a word
                    connection.execute(f"PRAGMA user_version = {database.VERSION}")
            journal = cls(place, connection, resources)
            journal._resources = resources.pop_all()
        return journal

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Open the journal for reading, whether or not somebody is writing; nothing is created."""
        place = database.locate(path)
        with ExitStack() as resources:
            with explain_errors(place):
                if not place.exists():
                    raise JournalError(f"there is no journal {place}")
                connection = database.open_reader(place, resources)
                if not database.is_begun(connection, place):
                    raise JournalError(f"{place} is not a journal, it is empty; name another file")
            journal = cls(place, connection, resources)
            journal._resources = resources.pop_all()
        return journal

    def append(
        self, kind: str, body: Mapping[str, Any], *, decision: int | None = None, numbers: bytes | None = None
    ) -> int:
        """Add an event, which is on disk when this returns its number."""
        number, at, text = self.last + 1, time.time(), encode(body, kind)
        packed = None if numbers is None else zlib.compress(numbers)
        digest = _digest(self._digest, number, at, kind, decision, text, packed)
        with explain_errors(self.path), transaction(self._connection) as connection:
            row = (number, at, kind, decision, text, packed, digest)
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self.last, self._digest = number, digest
        return number

    def events(self, after: int = 0) -> Iterator[Event]:
        """The events after one, in order."""
        with explain_errors(self.path):
            for row in self._connection.execute(f"{_EVENT} WHERE number > ? ORDER BY number", (after,)):
                yield Event(*row)

    def event(self, number: int) -> Event | None:
        """The event with this number."""
        return self._first("WHERE number = ?", number)

    def outcome_of(self, decision: int) -> Event | None:
        """The outcome of a decision, if there is one yet."""
        return self._first("WHERE decision = ?", decision)

    def unfinished(self) -> list[Event]:
        """The decisions without an outcome."""
        return [decision for decision, _ in self._pairs("AND told.number IS NULL ORDER BY made.number")]

    def rounds(self) -> Iterator[tuple[Event, Event | None]]:
        """The decisions with their outcomes, in order."""
        return self._pairs("ORDER BY made.number")

    def last_rounds(self, count: int) -> list[tuple[Event, Event | None]]:
        """The last so many of them, in order."""
        return list(self._pairs("ORDER BY made.number DESC LIMIT ?", count))[::-1]

    def keep_snapshot(self, state: bytes) -> None:
        """Keep a snapshot of the state after the last event; only the newest ones stay."""
        packed = zlib.compress(state, 1)
        with explain_errors(self.path), transaction(self._connection) as connection:
            connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", (self.last, packed))
            newest = "SELECT after FROM snapshots ORDER BY after DESC LIMIT ?"
            connection.execute(f"DELETE FROM snapshots WHERE after NOT IN ({newest})", (_SNAPSHOTS_KEPT,))

    def snapshots(self) -> list[Snapshot]:
        """The snapshots that are kept, newest first."""
        with explain_errors(self.path):
            rows = self._connection.execute("SELECT after, state FROM snapshots ORDER BY after DESC")
            return [Snapshot(*row) for row in rows]

    def find_damage(self) -> str | None:
        """What SQLite finds wrong with the file, also in parts that are not read otherwise."""
        with explain_errors(self.path):
            found = str(self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return None if found == "ok" else found

    def close(self) -> None:
        """Let the journal go; another process may write it."""
        with explain_errors(self.path):
            self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _first(self, which: str, *values: int) -> Event | None:
        with explain_errors(self.path):
            row = self._connection.execute(f"{_EVENT} {which}", values).fetchone()
        return None if row is None else Event(*row)

    def _pairs(self, which: str, *values: int) -> Iterator[tuple[Event, Event | None]]:
        columns = ", ".join(f"{side}.{name}" for side in ("made", "told") for name in _COLUMNS)
        pairs = "events made LEFT JOIN events told ON told.decision = made.number"
        with explain_errors(self.path):
            query = f"SELECT {columns} FROM {pairs} WHERE made.kind = 'decision' {which}"
            for row in self._connection.execute(query, values):
                made, told = row[: len(_COLUMNS)], row[len(_COLUMNS) :]
                yield Event(*made), None if told[0] is None else Event(*told)

    def _about(self) -> About:
        with explain_errors(self.path):
            found = dict(self._connection.execute("SELECT name, value FROM about").fetchall())
        try:
            description, software = decode(found["description"]), decode(found["software"])
            return About(float(found["created"]), zlib.decompress(found["genesis"]), description, software)
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise JournalError(f"{self.path} is damaged, it does not say what it is about: {error!r}") from None


def _is_begun(place: Path) -> bool:
    if not place.exists():
        return False
    with database.connect(place, "mode=rw") as connection:
        return database.is_begun(connection, place)


def _digest(
    previous: bytes, number: int, at: float, kind: str, decision: int | None, text: str, packed: bytes | None
) -> bytes:
    written = json.dumps([number, at, kind, decision, text], default=repr).encode()
    return hashlib.sha256(previous + written + (packed or b"")).digest()


def _inflate(packed: bytes | None, problem: Exception) -> bytes:
    try:
        return zlib.decompress(packed or b"")
    except (TypeError, zlib.error):
        raise problem from None
