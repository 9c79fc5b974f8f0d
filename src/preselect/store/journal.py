"""The journal: arms, decisions and outcomes in the order in which they happened, in one SQLite file.

Events are on disk before they count, and are never changed: the file itself refuses it, and each event carries a digest
of itself and of the one before, so that any other change is detected. Snapshots of the state are a cache beside them.

One process at a time writes, protected by a lock; any number of processes may read meanwhile. Within a process an open
journal is for one thread at a time, and after a fork for the parent only.
"""

from __future__ import annotations

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
    """One event of the journal: an arm that was added, a decision, or the outcome of a decision.

    Parameters
    ----------
    number : int
        Events are numbered from 1 without gaps.
    at : float
        When it was recorded, in seconds since 1970.
    kind : str
        "arm", "decision" or "outcome".
    decision : int or None
        The number of the decision that an outcome belongs to.
    text : str
        What happened, as JSON; `body` has it decoded.
    block : bytes or None
        The numbers of a decision, compressed; `numbers` has them inflated.
    digest : bytes
        SHA-256 of this event and of the digest before.
    """

    number: int
    at: float
    kind: str
    decision: int | None
    text: str
    block: bytes | None
    digest: bytes

    @cached_property
    def body(self) -> dict[str, Any]:
        """What happened, decoded."""
        try:
            found = decode(self.text)
        except (TypeError, ValueError):
            found = None
        if not isinstance(found, dict) or not _PARTS[self.kind] <= set(found):
            raise self.report_damage(f"its body does not fit an event of kind {self.kind}")
        return found

    @cached_property
    def numbers(self) -> bytes:
        """The block of numbers of a decision."""
        return _inflate(self.block, self.report_damage("its numbers cannot be read"))

    def report_damage(self, problem: str) -> JournalError:
        """Make the error that says what is wrong with this event.

        Parameters
        ----------
        problem : str
            What is wrong, as a clause.
        """
        return JournalError(f"event {self.number} is damaged: {problem}")

    def follows(self, digest: bytes) -> bool:
        """Whether this event is unchanged and was written after the one with the given digest.

        Parameters
        ----------
        digest : bytes
            The digest of the event before, or of the beginning.
        """
        return self.digest == _digest(digest, self.number, self.at, self.kind, self.decision, self.text, self.block)


@dataclass(frozen=True)
class Snapshot:
    """The state after an event, kept so that opening a journal need not replay all events."""

    after: int
    block: bytes

    @property
    def state(self) -> bytes:
        """The state, as Preselector.to_bytes gives it."""
        return _inflate(self.block, StateFileError(f"the snapshot after event {self.after} cannot be read"))


@dataclass(frozen=True)
class _About:
    """What a journal begins with: the state before any event, a description, and the software that wrote it."""

    created: float
    genesis: bytes
    description: dict[str, Any]
    software: dict[str, str]

    @property
    def digest(self) -> bytes:
        """The digest that the first event follows."""
        return hashlib.sha256(self.genesis).digest()


class Journal:
    """An open journal, from `Journal.read` or `Journal.write`. A reader sees it as it was when it was opened.

    Parameters
    ----------
    path : Path
        The file.
    connection : sqlite3.Connection
        An open connection to it.
    resources : ExitStack
        What to close with the journal: the connection, and the writer's lock.
    """

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
        """Open a journal as its only writer, or begin one.

        Parameters
        ----------
        path : str or path
            The file. It is created if it does not exist.
        genesis : callable
            Returns the state before any event, as bytes. Called for a new journal only.
        description : mapping, optional
            What a new journal is about; anything that JSON can hold.
        """
        real, about = database.locate(path), encode(description or {}, "description")
        with ExitStack() as resources:
            journal = cls(real, database.open_writer(real, resources, genesis, about), resources)
            journal._resources = resources.pop_all()
        return journal

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Open a journal for reading, even while another process writes it.

        Parameters
        ----------
        path : str or path
            The file. It is never created.
        """
        real = database.locate(path)
        with ExitStack() as resources:
            journal = cls(real, database.open_reader(real, resources), resources)
            journal._resources = resources.pop_all()
        return journal

    def append(
        self, kind: str, body: Mapping[str, Any], *, decision: int | None = None, numbers: bytes | None = None
    ) -> int:
        """Add an event and return its number. It is on disk when this returns.

        Parameters
        ----------
        kind : str
            "arm", "decision" or "outcome".
        body : mapping
            What happened; anything that JSON can hold.
        decision : int, optional
            For an outcome: the number of its decision.
        numbers : bytes, optional
            For a decision: its block of numbers.
        """
        number, at, text = self.last + 1, time.time(), encode(body, kind)
        block = None if numbers is None else zlib.compress(numbers)
        digest = _digest(self._digest, number, at, kind, decision, text, block)
        with explain_errors(self.path), transaction(self._connection) as connection:
            row = (number, at, kind, decision, text, block, digest)
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self.last, self._digest = number, digest
        return number

    def events(self, after: int = 0) -> Iterator[Event]:
        """The events in order.

        Parameters
        ----------
        after : int, default 0
            Only events with a greater number.
        """
        with explain_errors(self.path):
            for row in self._connection.execute(f"{_EVENT} WHERE number > ? ORDER BY number", (after,)):
                yield Event(*row)

    def event(self, number: int) -> Event | None:
        """The event with a number, None if there is none.

        Parameters
        ----------
        number : int
            The number of the event.
        """
        return self._first("WHERE number = ?", number)

    def outcome_of(self, decision: int) -> Event | None:
        """The outcome of a decision, None if there is none yet.

        Parameters
        ----------
        decision : int
            The number of the decision.
        """
        return self._first("WHERE decision = ?", decision)

    def unfinished(self) -> list[Event]:
        """The decisions that have no outcome yet."""
        return [decision for decision, _ in self._pairs("AND ended.number IS NULL ORDER BY made.number")]

    def rounds(self) -> Iterator[tuple[Event, Event | None]]:
        """The decisions in order, each with its outcome or None."""
        return self._pairs("ORDER BY made.number")

    def last_rounds(self, count: int) -> list[tuple[Event, Event | None]]:
        """The last rounds, in order.

        Parameters
        ----------
        count : int
            How many.
        """
        return list(self._pairs("ORDER BY made.number DESC LIMIT ?", count))[::-1]

    def keep_snapshot(self, state: bytes) -> None:
        """Keep a snapshot of the state after the last event. Only the two newest snapshots are kept.

        Parameters
        ----------
        state : bytes
            The state, as Preselector.to_bytes gives it.
        """
        block = zlib.compress(state, 1)
        with explain_errors(self.path), transaction(self._connection) as connection:
            connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", (self.last, block))
            newest = "SELECT after FROM snapshots ORDER BY after DESC LIMIT ?"
            connection.execute(f"DELETE FROM snapshots WHERE after NOT IN ({newest})", (_SNAPSHOTS_KEPT,))

    def snapshots(self) -> list[Snapshot]:
        """The snapshots, newest first."""
        with explain_errors(self.path):
            rows = self._connection.execute("SELECT after, state FROM snapshots ORDER BY after DESC")
            return [Snapshot(*row) for row in rows]

    def find_damage(self) -> str | None:
        """Return what SQLite finds wrong with the file; None if it is intact."""
        with explain_errors(self.path):
            found = str(self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return None if found == "ok" else found

    def close(self) -> None:
        """Close the file and release the lock."""
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
        columns = ", ".join(f"{side}.{name}" for side in ("made", "ended") for name in _COLUMNS)
        pairs = "events made LEFT JOIN events ended ON ended.decision = made.number"
        with explain_errors(self.path):
            query = f"SELECT {columns} FROM {pairs} WHERE made.kind = 'decision' {which}"
            for row in self._connection.execute(query, values):
                made, ended = row[: len(_COLUMNS)], row[len(_COLUMNS) :]
                yield Event(*made), None if ended[0] is None else Event(*ended)

    def _about(self) -> _About:
        with explain_errors(self.path):
            found = dict(self._connection.execute("SELECT name, value FROM about").fetchall())
        try:
            description, software = decode(found["description"]), decode(found["software"])
            return _About(float(found["created"]), zlib.decompress(found["genesis"]), description, software)
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise JournalError(f"{self.path} is damaged: its beginning cannot be read ({error!r})") from None


def _digest(
    previous: bytes, number: int, at: float, kind: str, decision: int | None, text: str, block: bytes | None
) -> bytes:
    written = json.dumps([number, at, kind, decision, text], default=repr).encode()
    return hashlib.sha256(previous + written + (block or b"")).digest()


def _inflate(block: bytes | None, problem: Exception) -> bytes:
    try:
        return zlib.decompress(block or b"")
    except (TypeError, zlib.error):
        raise problem from None
