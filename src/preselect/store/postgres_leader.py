"""The process that leads journals in PostgreSQL: its connection, its locks and all its writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from preselect.errors import JournalError
from preselect.store.postgres_connection import Connection, connect, explain_errors
from preselect.store.storage import Row, Snapshot

COLUMNS = ", ".join(Row._fields)
_TYPES = ("text", "bigint", "float8", "text", "bigint", "text", "text", "text", "bytea", "bytea")
NEW = f"unnest({', '.join(f'%s::{one}[]' for one in _TYPES)}) WITH ORDINALITY AS new ({COLUMNS}, place)"
ENDINGS = ("outcome", "expired")

_INSERT = f"INSERT INTO preselect.events ({COLUMNS}) SELECT {COLUMNS} FROM {NEW} ORDER BY place"
_NUMBER = """
    UPDATE preselect.events AS event SET number = new.number, decision = new.decision, digest = new.digest
    FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bytea[])
        AS new (key, kind, number, decision, digest)
    WHERE event.key = new.key AND (event.kind = 'decision') = (new.kind = 'decision') AND event.number IS NULL
"""
_REFUSE = """
    DELETE FROM preselect.events AS event USING unnest(%s::text[], %s::text[]) AS old (key, kind)
    WHERE event.key = old.key AND (event.kind = 'decision') = (old.kind = 'decision') AND event.number IS NULL
"""
_LEAD = """
    SELECT pg_try_advisory_lock('preselect.events'::regclass::oid::integer, id)
    FROM preselect.journals WHERE journal = %s
"""


class Leader:
    """The connection that holds the locks of the journals that this process leads, and makes all its writes."""

    def __init__(self, url: str, source: str) -> None:
        self._url, self._source = url, source
        self._connection: Connection | None = None
        self._journals: set[str] = set()
        self._patience: float | None = None

    def lead(self, journal: str, patience: float | None) -> bool:
        """Try to become, or to remain, the process that writes a journal; return whether it is."""
        self._patience = patience or self._patience
        connection = self._connect()
        if journal in self._journals:
            connection.execute("SELECT 1")  # tells the server that this process is alive; fails if the lock is lost
            return True
        found = connection.execute(_LEAD, (journal,)).fetchone()
        if found is None:
            raise JournalError(f"there is no journal {journal!r} in {self._source}")
        if found[0]:
            self._journals.add(journal)
        return bool(found[0])

    def append(self, rows: Sequence[Row]) -> None:
        """Insert rows that have numbers: all or none."""
        with self._transaction(rows) as connection:
            connection.execute(_INSERT, transpose(rows))

    def number(self, rows: Sequence[Row], refused: Sequence[Row]) -> None:
        """Number waiting rows, and remove the refused ones: all or nothing."""
        with self._transaction(rows, refused) as connection:
            columns = [[getattr(row, name) for row in rows] for name in ("key", "kind", "number", "decision", "digest")]
            changed = connection.execute(_NUMBER, columns).rowcount if rows else 0
            if changed != len(rows):
                raise JournalError(f"{len(rows) - changed} rows of {self._source} do not wait for a number")
            if refused:
                connection.execute(_REFUSE, [[row.key for row in refused], [row.kind for row in refused]])

    def keep_snapshot(self, snapshot: Snapshot, keep: int) -> None:
        """Keep a snapshot, and of its journal only the newest ones."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO preselect.snapshots VALUES (%s, %s, %s, %s) "
                "ON CONFLICT (journal, after) DO UPDATE SET state = excluded.state, digest = excluded.digest",
                snapshot,
            )
            connection.execute(
                "DELETE FROM preselect.snapshots WHERE journal = %s AND after NOT IN "
                "(SELECT after FROM preselect.snapshots WHERE journal = %s ORDER BY after DESC LIMIT %s)",
                (snapshot.journal, snapshot.journal, keep),
            )

    @contextmanager
    def _transaction(self, rows: Sequence[Row] = (), others: Sequence[Row] = ()) -> Iterator[Connection]:
        """Commit everything done in the block, or nothing; raise an error if a lock was lost with its connection."""
        connection = self._connection
        if connection is None or connection.closed or not {row.journal for row in (*rows, *others)} <= self._journals:
            raise JournalError(f"{self._source}: this process no longer leads the journal; try again")
        with connection.transaction():
            _require_order(connection, rows)
            yield connection

    def close(self) -> None:
        """Give up all locks; when this returns, other processes can have them."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.execute("SELECT pg_advisory_unlock_all()")
            self._connection.close()

    def _connect(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._journals.clear()  # the locks were lost with the connection
            self._connection = connect(self._url)
            limits = dict.fromkeys(("idle_session_timeout", "idle_in_transaction_session_timeout"), self._patience)
            limits |= {"tcp_keepalives_idle": 1, "tcp_keepalives_interval": 1, "tcp_keepalives_count": 2}
            for name, seconds in limits.items():
                if seconds is not None:
                    self._connection.execute("SELECT set_config(%s, %s, false)", (name, _write_limit(name, seconds)))
        return self._connection


def _write_limit(name: str, value: float) -> str:
    return f"{value * 1000:.0f}ms" if name.startswith("idle") else f"{value:.0f}"


class PostgresListener:
    """Waits for notifications on a connection of its own."""

    def __init__(self, url: str, source: str) -> None:
        self._url, self._source = url, source
        self._connection: Connection | None = None

    def wait(self, seconds: float) -> bool:
        """Wait for news from other processes, at most `seconds`; return whether there is any."""
        with explain_errors(self._source):
            if self._connection is None or self._connection.closed:
                self._connection = connect(self._url)
                self._connection.execute("LISTEN preselect")
                return True  # earlier notifications were missed
            return len(list(self._connection.notifies(timeout=seconds, stop_after=1))) > 0

    def close(self) -> None:
        """Stop listening."""
        if self._connection is not None:
            self._connection.close()


def transpose(rows: Sequence[Row]) -> list[list[Any]]:
    """Return rows as columns, so that one statement takes any number of them."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in Row._fields]


def _require_order(connection: Connection, rows: Sequence[Row]) -> None:
    """Require that rows continue where their journals end, and that endings belong to decisions."""
    found = connection.execute(
        "SELECT j.journal, (SELECT max(number) FROM preselect.events AS e WHERE e.journal = j.journal) "
        "FROM preselect.journals AS j WHERE j.journal = ANY(%s)",
        ([row.journal for row in rows],),
    )
    last = {journal: number or 0 for journal, number in found}
    for row in rows:
        if row.journal not in last:
            raise JournalError(f"there is no journal {row.journal!r}; begin it first")
        if row.number != last[row.journal] + 1 or row.digest is None:
            where = f"event {row.number} of journal {row.journal!r}"
            raise JournalError(f"{where} does not follow {last[row.journal]}: has another process written?")
        last[row.journal] = row.number
    _require_decisions(connection, rows)


def _require_decisions(connection: Connection, rows: Sequence[Row]) -> None:
    own = {(row.journal, row.number) for row in rows if row.kind == "decision"}
    wanted = [row for row in rows if row.kind in ENDINGS and (row.journal, row.decision) not in own]
    if not wanted:
        return
    query = """
        SELECT journal, decision FROM unnest(%s::text[], %s::bigint[]) AS new (journal, decision)
        WHERE NOT EXISTS (
            SELECT FROM preselect.events AS e
            WHERE e.journal = new.journal AND e.number = new.decision AND e.kind = 'decision'
        )
    """
    lost = connection.execute(query, ([row.journal for row in wanted], [row.decision for row in wanted])).fetchone()
    if lost is not None:
        raise JournalError(f"event {lost[1]} of journal {lost[0]!r} is not a decision, so nothing can end it")
