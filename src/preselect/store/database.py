"""The SQLite file of a journal: its tables, and how it is created, opened and recognised."""

import json
import os
import platform
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

import preselect
from preselect.errors import InputError, JournalError
from preselect.store.lock import lock

_FORMAT = "preselect-journal"
VERSION = 1
_APPLICATION = int.from_bytes(b"PSEL", "big")  # how SQLite files of one program are recognised

_COMPANIONS = ("", "-wal", "-shm", "-journal", ".lock", ".running")  # suffixes of a journal and of files beside it

_SMALLEST = 512  # bytes; SQLite takes a smaller file for an empty database and would overwrite it
_PATIENCE = 60.0  # seconds to wait for readers, which rarely block

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
    # constraints are not enough: INSERT OR REPLACE deletes what violates them
    """CREATE TRIGGER events_follow BEFORE INSERT ON events
        WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM events)
        BEGIN SELECT RAISE(ABORT, 'events are numbered one after another'); END""",
    """CREATE TRIGGER outcomes_follow_decisions BEFORE INSERT ON events
        WHEN NEW.kind = 'outcome'
        AND NOT EXISTS (SELECT 1 FROM events WHERE number = NEW.decision AND kind = 'decision')
        BEGIN SELECT RAISE(ABORT, 'an outcome belongs to a decision'); END""",
    """CREATE TRIGGER outcomes_come_once BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE decision = NEW.decision)
        BEGIN SELECT RAISE(ABORT, 'a decision has only one outcome'); END""",
    *(
        f"CREATE TRIGGER {table}_refuses_{change.lower()} BEFORE {change} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'events of a journal are never changed or deleted'); END"
        for table in ("about", "events")
        for change in ("UPDATE", "DELETE")
    ),
)

_REASONS = {  # keyed by the prefix of SQLite's error name
    "SQLITE_NOTADB": "is not a journal but some other file; name another",
    "SQLITE_CORRUPT": "is damaged; use a copy of it, or name another file",
    "SQLITE_FULL": "cannot be written because the disk is full; make room and open it again",
    "SQLITE_READONLY": "cannot be written; check the permissions of the file and its folder, or name another file",
    "SQLITE_CANTOPEN": "cannot be opened; check that its folder exists and can be written",
    "SQLITE_BUSY": "is locked by another program; end that and try again",
}


def locate(path: str | os.PathLike[str]) -> Path:
    """Resolve the path of a journal, so that every name of the file leads to the same lock."""
    real = Path(os.path.realpath(path))
    with explain_errors(real):
        if real.exists() and not real.is_file():
            raise JournalError(f"{real} is a folder or a device, not a journal; name a file")
        if real.exists() and 0 < real.stat().st_size < _SMALLEST:
            raise JournalError(f"{real} {_REASONS['SQLITE_NOTADB']}")
    return real


def open_writer(path: Path, resources: ExitStack, genesis: Callable[[], bytes], description: str) -> sqlite3.Connection:
    """Lock a journal, begin it if it is new, and open a connection whose commits are on disk when they return."""
    with explain_errors(path):
        resources.enter_context(lock(path))
        is_new = not (path.exists() and _has_begun(path))
    content = genesis() if is_new else b""  # before the file is created, because it may fail
    with explain_errors(path):
        connection = resources.enter_context(_connect(path, "mode=rwc"))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        with transaction(connection):
            if is_new:
                _begin(connection, content, description)
            # always written: otherwise SQLite would open a read-only file without an error
            connection.execute(f"PRAGMA user_version = {VERSION}")
    return connection


def _has_begun(path: Path) -> bool:
    with _connect(path, "mode=rw") as connection:
        return _is_begun(connection, path)


def _begin(connection: sqlite3.Connection, genesis: bytes, description: str) -> None:
    """Turn an empty file into a journal, except for its version, within the caller's transaction."""
    for statement in _SCHEMA:
        connection.execute(statement)
    about = {
        "format": _FORMAT,
        "created": time.time(),
        "genesis": zlib.compress(genesis),
        "description": description,
        "software": json.dumps(list_versions()),
    }
    connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")


def open_reader(path: Path, resources: ExitStack) -> sqlite3.Connection:
    """Open a connection that keeps seeing the journal as it is now."""
    with explain_errors(path):
        if not path.exists():
            raise JournalError(f"there is no journal {path}")
        connection = _freeze(path, resources)
        if not _is_begun(connection, path):
            raise JournalError(f"{path} is empty, not a journal; name another file")
    return connection


def _freeze(path: Path, resources: ExitStack) -> sqlite3.Connection:
    """Open a connection that sees no later changes; without write permission the file is taken as immutable."""
    with ExitStack() as attempt:
        # not mode=ro, which leaves files behind that it may not remove
        connection = attempt.enter_context(_connect(path, "mode=rw"))
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            _require_nothing_pending(path)
        else:
            resources.enter_context(attempt.pop_all())
            return connection
    return resources.enter_context(_connect(path, "mode=ro&immutable=1"))


def require_apart(out: Path, journal: Path) -> None:
    """Raise an InputError if a file that is about to be written is the journal, or belongs to it."""
    kept = [
        os.path.realpath(f"{name}{suffix}") for name in (journal, os.path.realpath(journal)) for suffix in _COMPANIONS
    ]
    if os.path.realpath(out) in kept:
        raise InputError(f"cannot write {str(out)!r}: it belongs to the journal; name another file")


def _require_nothing_pending(path: Path) -> None:
    """In a folder that cannot be written only the main file can be read, so it must be complete."""
    pending = Path(f"{path}-wal")
    if pending.exists() and pending.stat().st_size:
        raise JournalError(
            f"{path} cannot be read in a read-only folder, because {pending.name} holds a part of it; "
            "copy both to another folder"
        )


def _is_begun(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a journal; an empty file is not one yet, and anything else is an error."""
    application, version, tables = (
        int(connection.execute(query).fetchone()[0])
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if application != _APPLICATION and (application or version or tables):
        raise JournalError(f"{path} is not a journal but another program's database; name another file")
    if version > VERSION:
        raise JournalError(f"{path} has version {version}, and this preselect reads up to {VERSION}; update preselect")
    return application == _APPLICATION


@contextmanager
def _connect(path: Path, options: str) -> Iterator[sqlite3.Connection]:
    """Connect to a file; each statement is committed by itself, except in a `transaction`."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?{options}", uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commit everything that is done inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def list_versions() -> dict[str, str]:
    """List the versions on which the last bits of numbers may depend."""
    return {"preselect": preselect.__version__, "numpy": np.__version__, "machine": platform.machine()}


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        reason = next((text for start, text in _REASONS.items() if name.startswith(start)), None)
        raise JournalError(f"{path} {reason or f'cannot be used as a journal: {error}'}") from None
    except OSError as error:
        raise JournalError(f"{path} {_REASONS['SQLITE_CANTOPEN']} ({error.strerror or error})") from None
