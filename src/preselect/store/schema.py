"""The tables of an SQLite file with journals: create them, recognise them, and upgrade them from format 1."""

import sqlite3
from pathlib import Path

from preselect.errors import JournalError

VERSION = 2
_APPLICATION = int.from_bytes(b"PSEL", "big")  # marks an SQLite file as one of this program

# Events are found by one integer, which is also their order on disk: the journal's id times this, plus the number.
SPAN = 1 << 40

_TABLES = (
    """CREATE TABLE journals (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        created REAL NOT NULL,
        genesis BLOB NOT NULL,
        description TEXT NOT NULL,
        software TEXT NOT NULL
    )""",
    f"""CREATE TABLE events (
        id INTEGER PRIMARY KEY CHECK (id = journal * {SPAN} + number AND number BETWEEN 1 AND {SPAN - 1}),
        journal INTEGER NOT NULL REFERENCES journals,
        number INTEGER NOT NULL,
        at NOT NULL, -- not REAL, which would lose the sign of 0
        kind TEXT NOT NULL,
        decision INTEGER CHECK ((decision IS NOT NULL) = (kind IN ('outcome', 'expired'))),
        key TEXT,
        request TEXT CHECK (request IS NULL OR kind = 'decision'),
        body TEXT NOT NULL,
        numbers BLOB,
        digest BLOB NOT NULL
    )""",
    """CREATE TABLE snapshots (
        journal INTEGER NOT NULL REFERENCES journals,
        after INTEGER NOT NULL,
        state BLOB NOT NULL,
        digest BLOB,
        UNIQUE (journal, after)
    )""",
    "CREATE TABLE writer (is_open INTEGER NOT NULL)",  # 1 while a process has the file open for writing
    "INSERT INTO writer VALUES (0)",
)

_GUARDS = (
    "CREATE INDEX decisions ON events (journal, number) WHERE kind = 'decision'",
    "CREATE UNIQUE INDEX endings ON events (journal, decision) WHERE decision IS NOT NULL",
    "CREATE UNIQUE INDEX keys ON events (key) WHERE kind = 'decision' AND key IS NOT NULL",
    "CREATE UNIQUE INDEX requests ON events (journal, request) WHERE request IS NOT NULL",
    # constraints are not enough: INSERT OR REPLACE deletes what violates them
    """CREATE TRIGGER events_follow BEFORE INSERT ON events BEGIN SELECT CASE
        WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
        OR (NEW.number > 1 AND NOT EXISTS (SELECT 1 FROM events WHERE id = NEW.id - 1))
        THEN RAISE(ABORT, 'events are numbered one after another')
        END; END""",
    f"""CREATE TRIGGER endings_follow_decisions BEFORE INSERT ON events WHEN NEW.decision IS NOT NULL
        BEGIN SELECT CASE
        WHEN NOT EXISTS (
            SELECT 1 FROM events WHERE id = NEW.journal * {SPAN} + NEW.decision AND kind = 'decision'
        ) THEN RAISE(ABORT, 'an outcome belongs to a decision')
        WHEN EXISTS (SELECT 1 FROM events WHERE journal = NEW.journal AND decision = NEW.decision)
        THEN RAISE(ABORT, 'a decision has only one outcome')
        END; END""",
    """CREATE TRIGGER decisions_differ BEFORE INSERT ON events
        WHEN NEW.kind = 'decision' AND coalesce(NEW.key, NEW.request) IS NOT NULL
        BEGIN SELECT CASE
        WHEN EXISTS (SELECT 1 FROM events WHERE key = NEW.key AND kind = 'decision')
        THEN RAISE(ABORT, 'there is a decision with this key')
        WHEN EXISTS (SELECT 1 FROM events WHERE journal = NEW.journal AND request = NEW.request)
        THEN RAISE(ABORT, 'there is a decision for this request')
        END; END""",
    *(
        f"CREATE TRIGGER {table}_refuses_{change.lower()} BEFORE {change} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'events of a journal are never changed or deleted'); END"
        for table in ("journals", "events")
        for change in ("UPDATE", "DELETE")
    ),
)

_UPGRADE = (
    "INSERT INTO journals SELECT 1, 'main', "
    + ", ".join(
        f"(SELECT value FROM about WHERE name = '{name}')" for name in ("created", "genesis", "description", "software")
    ),
    f"INSERT INTO events SELECT {SPAN} + number, 1, number, at, kind, decision, NULL, NULL, body, numbers, digest "
    "FROM events_1 ORDER BY number",
    "INSERT INTO snapshots SELECT 1, after, state, NULL FROM snapshots_1",
    *(f"DROP TABLE {table}" for table in ("about", "events_1", "snapshots_1")),
)

# show the tables of format 1 under the names that queries use
_VIEWS = (
    "CREATE TEMP VIEW journals AS SELECT 1 AS id, 'main' AS name, "
    + ", ".join(
        f"(SELECT value FROM main.about WHERE name = '{name}') AS {name}"
        for name in ("created", "genesis", "description", "software")
    ),
    "CREATE TEMP VIEW events AS SELECT number AS id, 1 AS journal, number, at, kind, decision, NULL AS key, "
    "NULL AS request, body, numbers, digest FROM main.events",
    "CREATE TEMP VIEW snapshots AS SELECT 1 AS journal, after, state, NULL AS digest FROM main.snapshots",
    "CREATE TEMP VIEW writer AS SELECT 0 AS is_open",
)


def find_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables, 0 if the file is empty; raise a JournalError if it does not hold journals."""
    application, version, tables = (
        int(connection.execute(query).fetchone()[0])
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if application != _APPLICATION and (application or version or tables):
        raise JournalError(f"{path} is not a journal but another program's database; name another file")
    if version > VERSION:
        raise JournalError(f"{path} has version {version}, and this preselect reads up to {VERSION}; update preselect")
    return version if application == _APPLICATION else 0


def make_tables(connection: sqlite3.Connection, version: int) -> None:
    """Create the tables, or upgrade those of format 1, within the caller's transaction."""
    old = ("events", "snapshots") if version == 1 else ()
    for table in old:
        connection.execute(f"ALTER TABLE {table} RENAME TO {table}_1")
    for statement in (*_TABLES, *(_UPGRADE if old else ()), *_GUARDS):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def make_views(connection: sqlite3.Connection) -> None:
    """Let a file of format 1 be read by the queries for the present tables."""
    for statement in _VIEWS:
        connection.execute(statement)
