"""Journals in PostgreSQL, which several processes may use at the same time.

Any process submits rows without numbers; they are durable, but not yet part of a journal. One process leads a
journal: it holds a session lock on a connection of its own, gives rows their numbers, and makes all its writes on that
connection, so that a process that has lost the lock cannot write. Readers who follow the numbers miss nothing, because
numbers become visible in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, Self

from preselect.errors import ConflictError, InputError, JournalError
from preselect.store.postgres_connection import Connection, connect, describe, explain_errors, prepare
from preselect.store.postgres_leader import COLUMNS, ENDINGS, NEW, Leader, PostgresListener, transpose
from preselect.store.storage import About, Listener, Rejection, Row, Snapshot

_EVENTS = f"SELECT {COLUMNS} FROM preselect.events"

_PAGE = 1000  # how many rows to read at once

_SUBMIT = f"""
    INSERT INTO preselect.events ({COLUMNS})
    SELECT {COLUMNS} FROM {NEW}
    WHERE kind NOT IN ('outcome', 'expired') OR EXISTS (
        SELECT FROM preselect.events AS known
        WHERE known.key = new.key AND known.kind = 'decision' AND known.journal = new.journal
    )
    ORDER BY place
    ON CONFLICT DO NOTHING
    RETURNING key, kind
"""
_ROUNDS = f"""
    SELECT {", ".join(f"d.{name}" for name in Row._fields)},
        {", ".join(f"e.{name}" for name in Row._fields)}
    FROM preselect.events AS d
    LEFT JOIN preselect.events AS e ON e.journal = d.journal AND e.decision = d.number
    WHERE d.journal = %s AND d.kind = 'decision'
"""


class PostgresStorage:
    """Journals in a PostgreSQL database, in its schema `preselect`; see `Storage` and `SharedStorage`.

    A connection that breaks is opened again by the next call. Do not use it through a connection pooler that lends
    sessions for single transactions, because locks belong to sessions.

    Parameters
    ----------
    url : str
        The database: postgresql://user:password@host:port/name.
    write : bool, default False
        Whether to write. Missing tables are created.
    """

    def __init__(self, url: str, *, write: bool = False) -> None:
        self.source = describe(url)
        self._url, self._write, self._closed = url, write, False
        self._connection: Connection | None = None
        self._leader = Leader(url, self.source)
        with explain_errors(self.source):
            self._connect()

    # --- journals -----------------------------------------------------------------------------------------------------

    def journals(self) -> list[str]:
        """Return the names of all journals, in alphabetical order."""
        return [name for (name,) in self._fetch("SELECT journal FROM preselect.journals ORDER BY journal")]

    def begin(self, about: About) -> bool:
        """Begin a journal, durably; False if there is one of this name already, which stays as it is."""
        query = """
            INSERT INTO preselect.journals (journal, created, genesis, description, software)
            VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING id
        """
        self._require()
        return len(self._fetch(query, *about)) > 0

    def about(self, journal: str) -> About | None:
        """Return what a journal began with; None if there is no journal with this name."""
        query = "SELECT journal, created, genesis, description, software FROM preselect.journals WHERE journal = %s"
        found = self._fetch(query, journal)
        return About(*found[0]) if found else None

    # --- rows ---------------------------------------------------------------------------------------------------------

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, each with its number and digest, to journals that nobody else leads: all or none."""
        self._require()
        for journal in sorted({row.journal for row in rows}):
            if not self.lead(journal):
                raise JournalError(f"journal {journal!r} of {self.source} is in use by another process; end that first")
        if rows:
            with explain_errors(self.source):
                self._leader.append(rows)

    def read(self, journal: str, after: int = 0, limit: int | None = None) -> Iterator[Row]:
        """Yield the rows with greater numbers than `after`, in order, at most `limit`. Rows that wait are left out."""
        query = f"{_EVENTS} WHERE journal = %s AND number > %s ORDER BY number LIMIT %s"
        while limit is None or limit > 0:
            page = self._rows(query, journal, after, _PAGE if limit is None else min(limit, _PAGE))
            yield from page
            if len(page) < _PAGE:
                return
            after, limit = page[-1].number or 0, None if limit is None else limit - len(page)

    def last(self, journal: str) -> Row | None:
        """Return the row with the greatest number; None if there is none yet."""
        query = f"{_EVENTS} WHERE journal = %s AND number IS NOT NULL ORDER BY number DESC LIMIT 1"
        return self._row(query, journal)

    def find_number(self, journal: str, number: int) -> Row | None:
        """Return the row with a number; None if there is none."""
        return self._row(f"{_EVENTS} WHERE journal = %s AND number = %s", journal, number)

    def find_key(self, key: str) -> Row | None:
        """Return the decision with a public id, in any journal, even one that waits; None if there is none."""
        return self._row(f"{_EVENTS} WHERE key = %s AND kind = 'decision'", key)

    def find_request(self, journal: str, request: str) -> Row | None:
        """Return the decision that a request of this name got, also one that waits; None if there is none."""
        return self._row(f"{_EVENTS} WHERE journal = %s AND request = %s", journal, request)

    def find_ending(self, decision: Row) -> Row | None:
        """Return the row that ends a decision, given as its row; also one that waits; None if there is none."""
        if decision.key is not None:
            return self._row(f"{_EVENTS} WHERE key = %s AND NOT (kind = 'decision')", decision.key)
        return self._row(f"{_EVENTS} WHERE journal = %s AND decision = %s", decision.journal, decision.number)

    def unfinished(self, journal: str) -> Iterator[Row]:
        """Yield the decisions that have no ending, in order."""
        yield from (decision for decision, ending in self._pair(f"{_ROUNDS} AND e.number IS NULL", journal))

    def count_unfinished(self, journal: str) -> int:
        """Count the decisions that have no ending."""
        counts = "count(*) FILTER (WHERE kind = 'decision') - count(*) FILTER (WHERE kind IN ('outcome', 'expired'))"
        query = f"SELECT {counts} FROM preselect.events WHERE journal = %s AND number IS NOT NULL"
        return int(self._fetch(query, journal)[0][0])

    def rounds(
        self, journal: str, after: int = 0, limit: int | None = None, *, newest_first: bool = False
    ) -> Iterator[tuple[Row, Row | None]]:
        """Yield the decisions with greater numbers than `after`, in order, each with its ending or None."""
        return self._pair(_ROUNDS, journal, after, limit, newest_first=newest_first)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def keep_snapshot(self, snapshot: Snapshot, keep: int = 2) -> None:
        """Keep a snapshot, and of its journal only the `keep` newest ones; only while leading."""
        self._require()
        if not self.lead(snapshot.journal):
            raise JournalError(f"journal {snapshot.journal!r} of {self.source} is in use by another process")
        with explain_errors(self.source):
            self._leader.keep_snapshot(snapshot, keep)

    def snapshots(self, journal: str) -> Iterator[Snapshot]:
        """Yield the snapshots of a journal, newest first."""
        query = "SELECT journal, after, state, digest FROM preselect.snapshots WHERE journal = %s ORDER BY after DESC"
        yield from (Snapshot(*found) for found in self._fetch(query, journal))

    def find_damage(self) -> str | None:
        """Return None: PostgreSQL checks its pages while it reads them."""
        self._fetch("SELECT 1")
        return None

    # --- sharing ------------------------------------------------------------------------------------------------------

    def submit(self, rows: Sequence[Row]) -> list[Rejection]:
        """Insert rows without numbers, durably; reject those whose request or ending exists already.

        Every row has a key. A decision and its ending share one; any other row has its own.
        """
        self._require()
        # Always in the same order, so that two processes with the same rows do not wait for each other. What has to
        # follow something else was submitted after that was durable.
        ordered = sorted(rows, key=lambda row: (row.kind == "decision", row.journal, row.request or "", row.key or ""))
        taken = {(key, kind == "decision") for key, kind in self._fetch(_SUBMIT, *transpose(ordered))}
        rejections = []
        for row in rows:
            place = row.key, row.kind == "decision"
            if place in taken:
                taken.remove(place)  # so that a second such row in this submission is rejected
            else:
                rejections.append(Rejection(row, self._find_existing(row)))
        return rejections

    def _find_existing(self, row: Row) -> Row:
        existing = self.find_request(row.journal, row.request) if row.request is not None else self.find_ending(row)
        if existing is None and row.kind in ENDINGS:
            raise InputError(f"there is no decision {row.key} in journal {row.journal!r} of {self.source}")
        if existing is None:
            raise ConflictError(f"{self.source} has another row with the key {row.key}")
        return existing

    def pending(self, journal: str, limit: int | None = None) -> list[Row]:
        """Return the rows that wait for the learner, in the order of submission, decisions before their endings."""
        return self._rows(f"{_EVENTS} WHERE journal = %s AND number IS NULL ORDER BY id LIMIT %s", journal, limit)

    def find_submitted(self, keys: Sequence[str]) -> dict[str, int | None]:
        """Return the numbers of rows that were submitted with these keys; None for those that wait.

        Rows that were refused are missing. For a decision that has ended, it is the number of either row.
        """
        query = "SELECT key, number FROM preselect.events WHERE key = ANY(%s)"
        return dict(self._fetch(query, list(keys)))

    def number(self, rows: Sequence[Row], refused: Sequence[Row] = ()) -> None:
        """Store the numbers and digests of waiting rows, and remove the refused ones: all or nothing.

        Only the leading process may do this; raises an error if another leads by now.
        """
        with explain_errors(self.source):
            self._leader.number(rows, refused)

    def lead(self, journal: str, *, patience: float | None = None) -> bool:
        """Try to become, or to remain, the process that writes a journal; return whether it is.

        With `patience`, the server ends the lead after that many seconds without a call of this and without a write, so
        that another process can take over from one that hangs.
        """
        self._require()
        with explain_errors(self.source):
            return self._leader.lead(journal, patience)

    def notify(self) -> None:
        """Wake up all listeners."""
        # in a transaction of its own, because commits that notify wait for each other
        self._fetch("SELECT pg_notify('preselect', '')")

    def listen(self) -> Listener:
        """Return a listener for notifications, with its own connection, for use in another thread."""
        return PostgresListener(self._url, self.source)

    # --- the connection -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the storage; another process may lead its journals then."""
        self._closed = True
        self._leader.close()
        if self._connection is not None:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require(self, *, write: bool = True) -> None:
        if self._closed:
            raise JournalError(f"{self.source} is closed; open it again")
        if write and not self._write:
            raise JournalError(f"{self.source} was opened for reading; open it for writing")

    def _connect(self) -> Connection:
        if self._connection is None or (self._connection.closed and self._write):
            with ExitStack() as attempt:
                connection = attempt.enter_context(closing(connect(self._url)))
                prepare(connection, self.source, write=self._write)
                attempt.pop_all()
                self._connection = connection
        return self._connection

    def _fetch(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        self._require(write=False)
        with explain_errors(self.source):
            return self._connect().execute(query, values).fetchall()

    def _rows(self, query: str, *values: Any) -> list[Row]:
        return [Row(*found) for found in self._fetch(query, *values)]

    def _row(self, query: str, *values: Any) -> Row | None:
        found = self._rows(query, *values)
        return found[0] if found else None

    def _pair(
        self, query: str, journal: str, after: int = 0, limit: int | None = None, *, newest_first: bool = False
    ) -> Iterator[tuple[Row, Row | None]]:
        """Yield pairs in pages, so that other calls may come between."""
        before, width = 2**63 - 1, len(Row._fields)
        order = "DESC" if newest_first else "ASC"
        query = f"{query} AND d.number > %s AND d.number < %s ORDER BY d.number {order} LIMIT %s"
        while limit is None or limit > 0:
            page = self._fetch(query, journal, after, before, _PAGE if limit is None else min(limit, _PAGE))
            for found in page:
                yield Row(*found[:width]), None if found[width] is None else Row(*found[width:])
            if len(page) < _PAGE:
                return
            before, after = (page[-1][1], after) if newest_first else (before, page[-1][1])
            limit = None if limit is None else limit - len(page)
