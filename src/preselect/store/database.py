"""The SQLite file of a journal: its tables, how it is created whole or not at all, opened, and recognised."""

import json
import os
import platform
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

import preselect
from preselect.errors import JournalError

FORMAT = "preselect-journal"
VERSION = 1
APPLICATION = int.from_bytes(b"PSEL", "big")  # what SQLite keeps in a file to know its format by

_SMALLEST = 512  # bytes; SQLite takes a file of a few bytes for an empty database and would write over it
_PATIENCE = 60.0  # seconds to wait for readers at the few moments when they are in the way

_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
    """CREATE TABLE events (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('arm', 'decision', 'outcome')),
        decision INTEGER UNIQUE CHECK ((decision IS NOT NULL) = (kind = 'outcome')),
        body TEXT NOT NULL,
        numbers BLOB CHECK ((numbers IS NOT NULL) = (kind = 'decision')),
        digest BLOB NOT NULL
    )""",
    "CREATE TABLE snapshots (after INTEGER PRIMARY KEY, state BLOB NOT NULL)",
    # not left to the constraints alone: INSERT OR REPLACE would delete what stands in its way
    """CREATE TRIGGER events_follow BEFORE INSERT ON events
        WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM events)
        BEGIN SELECT RAISE(ABORT, 'an event must have the number after the last one'); END""",
    """CREATE TRIGGER outcomes_follow_decisions BEFORE INSERT ON events
        WHEN NEW.kind = 'outcome'
        AND NOT EXISTS (SELECT 1 FROM events WHERE number = NEW.decision AND kind = 'decision')
        BEGIN SELECT RAISE(ABORT, 'an outcome must be that of a decision'); END""",
    """CREATE TRIGGER outcomes_come_once BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE decision = NEW.decision)
        BEGIN SELECT RAISE(ABORT, 'a decision has one outcome'); END""",
    *(
        f"CREATE TRIGGER {table}_refuses_{change.lower()} BEFORE {change} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'a journal is only ever added to'); END"
        for table in ("about", "events")
        for change in ("UPDATE", "DELETE")
    ),
)

_REASONS = {  # by how the names of SQLite's errors begin
    "SQLITE_NOTADB": "is not a journal, it is no SQLite database; name another file",
    "SQLITE_CORRUPT": "is damaged, its content does not fit together; go on from a copy, or name another file",
    "SQLITE_FULL": "cannot be written, the disk is full; make room and open it again",
    "SQLITE_READONLY": "cannot be written; allow it for the file and its folder, or name another file",
    "SQLITE_CANTOPEN": "cannot be opened; it must be a file in a folder in which files can be written",
    "SQLITE_BUSY": "is held by another program; end that one and try again",
}


def locate(path: str | os.PathLike[str]) -> Path:
    """Where a journal is, links followed, so that its lock is the same by every name."""
    place = Path(os.path.realpath(path))
    with explain_errors(place):
        if place.exists() and not place.is_file():
            raise JournalError(f"{place} must be a file to be a journal, got a folder or a device; name another")
        if place.exists() and 0 < place.stat().st_size < _SMALLEST:
            raise JournalError(f"{place} {_REASONS['SQLITE_NOTADB']}")
    return place


@contextmanager
def connect(place: Path, options: str) -> Iterator[sqlite3.Connection]:
    """A connection; statements are committed one by one except in a `transaction`."""
    connection = sqlite3.connect(
        f"{place.as_uri()}?{options}", uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        yield connection
    finally:
        connection.close()


def open_reader(place: Path, resources: ExitStack) -> sqlite3.Connection:
    """A connection that sees the file as it is now, and goes on seeing it so."""
    with ExitStack() as attempt:
        # not mode=ro, which leaves files behind that it has no right to take away
        connection = attempt.enter_context(connect(place, "mode=rw"))
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            _require_nothing_pending(place)
        else:
            resources.enter_context(attempt.pop_all())
            return connection
    return resources.enter_context(connect(place, "mode=ro&immutable=1"))


def _require_nothing_pending(place: Path) -> None:
    """In a folder that cannot be written the file can be read by itself only, without what lies beside it."""
    pending = Path(f"{place}-wal")
    if pending.exists() and pending.stat().st_size:
        raise JournalError(
            f"{place} must be in a folder that can be written, because {pending.name} holds a part of it; copy both"
        )


def open_writer(place: Path, resources: ExitStack) -> sqlite3.Connection:
    """A connection whose commits are on disk when they return."""
    connection = resources.enter_context(connect(place, "mode=rwc"))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All that is done inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_begun(connection: sqlite3.Connection, place: Path) -> bool:
    """Whether it is a journal; not if nothing was ever committed to it; anything else is refused."""
    application, version, tables = (
        int(connection.execute(query).fetchone()[0])
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if application != APPLICATION and (application or version or tables):
        raise JournalError(f"{place} is not a journal, it is another program's SQLite database; name another file")
    if version > VERSION:
        raise JournalError(f"{place} has version {version}, this preselect reads up to {VERSION}; update preselect")
    return application == APPLICATION


def begin(connection: sqlite3.Connection, genesis: bytes, description: str) -> None:
    """Make the file a journal, but for its version, within the caller's transaction."""
    for statement in _SCHEMA:
        connection.execute(statement)
    about = {
        "format": FORMAT,
        "created": time.time(),
        "genesis": zlib.compress(genesis),
        "description": description,
        "software": json.dumps(list_versions()),
    }
    connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
    connection.execute(f"PRAGMA application_id = {APPLICATION}")


def list_versions() -> dict[str, str]:
    """What the last bits of numbers may depend on."""
    return {"preselect": preselect.__version__, "numpy": np.__version__, "machine": platform.machine()}


@contextmanager
def explain_errors(place: Path) -> Iterator[None]:
    """Turn what SQLite and the system say into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        reason = next((text for start, text in _REASONS.items() if name.startswith(start)), None)
        raise JournalError(f"{place} {reason or f'cannot be used as a journal: {error}'}") from None
    except OSError as error:
        raise JournalError(f"{place} {_REASONS['SQLITE_CANTOPEN']} ({error.strerror or error})") from None
