"""Open connections to PostgreSQL, create the tables, and explain errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict

from preselect.errors import ConflictError, InputError, JournalError

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

_VERSION = 1

# A server or a network that has failed is noticed after seconds, not after the two hours of the system's defaults.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}

# One table for rows that have a number and for those that wait for one, because only an index over both can make sure
# that a decision has one ending. `id` orders the rows that wait. Never continue reading from it: ids become
# visible in another order than that of their values.
_SCHEMA = f"""
CREATE SCHEMA preselect;
CREATE TABLE preselect.format (version integer NOT NULL);
INSERT INTO preselect.format VALUES ({_VERSION});
CREATE TABLE preselect.journals (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    journal text COLLATE "C" NOT NULL UNIQUE,
    created double precision NOT NULL,
    genesis bytea NOT NULL,
    description text NOT NULL,
    software text NOT NULL
);
CREATE TABLE preselect.events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    journal text COLLATE "C" NOT NULL REFERENCES preselect.journals (journal),
    number bigint CHECK (number > 0),
    at double precision NOT NULL,
    kind text COLLATE "C" NOT NULL
        CHECK (kind IN ('arm', 'change', 'retire', 'context', 'decision', 'outcome', 'expired', 'note')),
    decision bigint CHECK (decision IS NULL OR kind IN ('outcome', 'expired')),
    key text COLLATE "C",
    request text COLLATE "C" CHECK (request IS NULL OR kind = 'decision'),
    text text COLLATE "C" NOT NULL,
    block bytea,
    digest bytea,
    CHECK ((number IS NULL) = (digest IS NULL)),
    CHECK (number IS NOT NULL OR key IS NOT NULL),
    CHECK (number IS NULL OR (decision IS NOT NULL) = (kind IN ('outcome', 'expired')))
);
CREATE UNIQUE INDEX events_number ON preselect.events (journal, number);
CREATE UNIQUE INDEX events_key ON preselect.events (key, (kind = 'decision')) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX events_ending ON preselect.events (journal, decision) WHERE decision IS NOT NULL;
CREATE UNIQUE INDEX events_request ON preselect.events (journal, request) WHERE request IS NOT NULL;
CREATE INDEX events_waiting ON preselect.events (journal, id) WHERE number IS NULL;
CREATE TABLE preselect.snapshots (
    journal text COLLATE "C" NOT NULL REFERENCES preselect.journals (journal),
    after bigint NOT NULL,
    state bytea NOT NULL,
    digest bytea,
    PRIMARY KEY (journal, after)
);
CREATE FUNCTION preselect.refuse() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''events of a journal are never changed or deleted''; END';
CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE ON preselect.events FOR EACH ROW
    WHEN (OLD.number IS NOT NULL) EXECUTE FUNCTION preselect.refuse();
CREATE TRIGGER events_are_not_emptied BEFORE TRUNCATE ON preselect.events EXECUTE FUNCTION preselect.refuse();
CREATE TRIGGER journals_stay BEFORE UPDATE OR DELETE ON preselect.journals FOR EACH ROW
    EXECUTE FUNCTION preselect.refuse();
"""

_REASONS: list[tuple[type[psycopg.Error], str]] = [
    (psycopg.errors.DiskFull, "cannot be written because the server's disk is full; make room and try again"),
    (psycopg.errors.InsufficientPrivilege, "does not allow this to its user; grant the rights, or name another user"),
    (psycopg.errors.ReadOnlySqlTransaction, "cannot be written: it was opened for reading, or the server only reads"),
    (psycopg.errors.RaiseException, "refuses it: events of a journal are never changed or deleted"),
]


def describe(url: str) -> str:
    """Return what messages call a database: its URL without the password."""
    found = _parse(url)
    user, port = (f"{found['user']}@" if "user" in found else ""), (f":{found['port']}" if "port" in found else "")
    return f"postgresql://{user}{found.get('host', '')}{port}/{found.get('dbname', '')}"


def _parse(url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.Error as error:
        said = str(error).strip()
        raise InputError(f"this is not the URL of a database: {said}; use postgresql://user@host/database") from None


def connect(url: str) -> Connection:
    """Open a connection on which each statement is committed by itself, durably, except in a transaction."""
    name = {"application_name": f"preselect {os.getpid()}"}
    connection = psycopg.connect(**_DEFAULTS | name | _parse(url), autocommit=True)
    # some servers turn it off for speed, but acknowledged rows must survive a crash
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )
    return connection


def prepare(connection: Connection, source: str, *, write: bool) -> None:
    """Create missing tables, check their version, and let readers see one moment only."""
    if write:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('preselect schema', 0))")
            if not _has_begun(connection):
                connection.execute(_SCHEMA)
    else:  # readers see one moment, so a broken connection cannot be replaced
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if not _has_begun(connection):
            raise JournalError(f"there is no journal in {source}")
    (version,) = _first(connection.execute("SELECT version FROM preselect.format"))
    if version > _VERSION:
        raise JournalError(
            f"{source} has version {version}, and this preselect reads up to {_VERSION}; update preselect"
        )


def _has_begun(connection: Connection) -> bool:
    return _first(connection.execute("SELECT to_regclass('preselect.format') IS NOT NULL"))[0] is True


def _first(cursor: psycopg.Cursor[tuple[Any, ...]]) -> tuple[Any, ...]:
    found = cursor.fetchone()
    assert found is not None  # the query always returns one row
    return found


@contextmanager
def explain_errors(source: str) -> Iterator[None]:
    """Turn errors of PostgreSQL into errors of one sentence."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"{source} has this already: {error.diag.message_detail}") from None
    except psycopg.DataError as error:
        raise InputError(f"{source} cannot hold this: {_shorten(error)}") from None
    except psycopg.Error as error:
        reason = next((text for known, text in _REASONS if isinstance(error, known)), None)
        raise JournalError(f"{source} {reason or f'failed: {_shorten(error)}'}") from error


def _shorten(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error).strip() or type(error).__name__).replace("\n", " ")
