"""Journals in an SQLite file: one process writes it, protected by a lock, and any number of processes read it.

Commits are on disk when they return (WAL, synchronous=FULL). While a file has few events, they are soon moved from the
log (`-wal`) to the file itself. A missing log is noticed.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from preselect.errors import ConflictError, InputError, JournalError, PreselectError
from preselect.store import schema
from preselect.store.lock import Lock
from preselect.store.storage import About, Row, Snapshot

_log = logging.getLogger(__name__)

_COMPANIONS = ("", "-wal", "-shm", "-journal", ".lock", ".running")  # suffixes of a file and of those beside it

_SMALLEST = 512  # bytes; SQLite takes a smaller file for an empty database and would overwrite it
_PATIENCE = 60.0  # seconds to wait for readers, which rarely block
_YOUNG = 1024  # with fewer events, the log is emptied whenever their number has doubled

_EVENT = "number, at, kind, decision, key, request, body, numbers, digest"
_INSERT = f"INSERT INTO events (id, journal, {_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MADE, _ENDED = (", ".join(f"{side}.{name}" for name in _EVENT.split(", ")) for side in ("made", "ended"))
_PAIRS = "events made LEFT JOIN events ended ON ended.journal = made.journal AND ended.decision = made.number"
_DECISIONS = "made.journal = ? AND made.kind = 'decision'"
_UNFINISHED = f"""FROM events made WHERE {_DECISIONS} AND NOT EXISTS (
    SELECT 1 FROM events ended WHERE ended.journal = made.journal AND ended.decision = made.number)"""

_REASONS = {  # keyed by the prefix of SQLite's error name
    "SQLITE_NOTADB": "is not a journal but some other file; name another",
    "SQLITE_CORRUPT": "is damaged; use a copy of it, or name another file",
    "SQLITE_FULL": "cannot be written because the disk is full; make room and try again",
    "SQLITE_READONLY": "cannot be written; check the permissions of the file and its folder, or name another file",
    "SQLITE_CANTOPEN": "cannot be opened; check that its folder exists and can be written",
    "SQLITE_BUSY": "is locked by another program; end that and try again",
}


class SQLiteStorage:
    """An SQLite file with journals; see `preselect.store.storage.Storage` for what its methods do.

    Parameters
    ----------
    path : str or path
        The file.
    write : bool, default False
        Whether to write; then the file is created if it does not exist, and one of format 1 is upgraded. A file in
        which no journal was begun is removed when it is closed.
    """

    def __init__(self, path: str | os.PathLike[str], *, write: bool = False) -> None:
        self.path = _locate(path)
        self.source, self._version, self._total, self._is_ours = str(self.path), schema.VERSION, 0, False
        self._ids: dict[str, int] = {}
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()
        self._lock: Lock | None = None
        self._connection: sqlite3.Connection
        with ExitStack() as resources:
            (self._open_writer if write else self._open_reader)(resources)
            self._resources = resources.pop_all()

    def journals(self) -> list[str]:
        return [name for (name,) in self._fetch("SELECT name FROM journals ORDER BY name")]

    def begin(self, about: About) -> bool:
        with self._explain(), _transaction(self._connection) as connection:
            known = connection.execute("SELECT 1 FROM journals WHERE name = ?", (about.journal,)).fetchone()
            if known is None:
                columns = "name, created, genesis, description, software"
                connection.execute(f"INSERT INTO journals ({columns}) VALUES (?, ?, ?, ?, ?)", about)
        self._checkpoint()
        return known is None

    def about(self, journal: str) -> About | None:
        query = "SELECT name, created, genesis, description, software FROM journals WHERE name = ?"
        found = self._fetch_one(query, journal)
        return None if found is None else About(*found)

    def append(self, rows: Sequence[Row]) -> None:
        with self._explain(), _transaction(self._connection) as connection:
            if not rows:
                connection.execute("UPDATE writer SET is_open = 1")
            connection.executemany(_INSERT, [self._prepare(row) for row in rows])
        before, self._total = self._total, self._total + len(rows)
        if self._lock is not None:
            self._lock.note(self._total)
        if before < _YOUNG and before.bit_length() < self._total.bit_length():
            self._checkpoint()

    def read(self, journal: str, after: int = 0, limit: int | None = None) -> Iterator[Row]:
        first = self._place(journal, after)
        query = f"SELECT {_EVENT} FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT ?"
        return self._rows(journal, query, first, self._place(journal, schema.SPAN), _count(limit))

    def last(self, journal: str) -> Row | None:
        query = f"SELECT {_EVENT} FROM events WHERE id > ? AND id < ? ORDER BY id DESC LIMIT 1"
        return self._row(journal, query, self._place(journal, 0), self._place(journal, schema.SPAN))

    def find_number(self, journal: str, number: int) -> Row | None:
        if not 0 < number < schema.SPAN:
            return None
        query = f"SELECT {_EVENT} FROM events WHERE id = ?"
        return self._row(journal, query, self._place(journal, number))

    def find_key(self, key: str) -> Row | None:
        query = f"""SELECT (SELECT name FROM journals WHERE journals.id = events.journal), {_EVENT}
            FROM events WHERE key = ? AND kind = 'decision'"""
        found = self._fetch_one(query, key)
        return None if found is None else Row(*found)

    def find_request(self, journal: str, request: str) -> Row | None:
        query = f"SELECT {_EVENT} FROM events WHERE journal = ? AND request = ?"
        return self._row(journal, query, self._id(journal), request)

    def find_ending(self, decision: Row) -> Row | None:
        query = f"SELECT {_EVENT} FROM events WHERE journal = ? AND decision = ?"
        return self._row(decision.journal, query, self._id(decision.journal), decision.number)

    def unfinished(self, journal: str) -> Iterator[Row]:
        return self._rows(journal, f"SELECT {_MADE} {_UNFINISHED} ORDER BY made.number", self._id(journal))

    def count_unfinished(self, journal: str) -> int:
        return int(self._fetch_value(f"SELECT count(*) {_UNFINISHED}", self._id(journal)))

    def rounds(
        self, journal: str, after: int = 0, limit: int | None = None, *, newest_first: bool = False
    ) -> Iterator[tuple[Row, Row | None]]:
        order = "DESC" if newest_first else "ASC"
        query = f"""SELECT {_MADE}, {_ENDED} FROM {_PAIRS}
            WHERE {_DECISIONS} AND made.number > ? ORDER BY made.number {order} LIMIT ?"""
        for row in self._fetch(query, self._id(journal), after, _count(limit)):
            made, ended = row[: len(row) // 2], row[len(row) // 2 :]
            yield Row(journal, *made), None if ended[0] is None else Row(journal, *ended)

    def keep_snapshot(self, snapshot: Snapshot, keep: int = 2) -> None:
        own = self._id(snapshot.journal)
        with self._explain(), _transaction(self._connection) as connection:
            connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (own, *snapshot[1:]))
            newest = "SELECT after FROM snapshots WHERE journal = ? ORDER BY after DESC LIMIT ?"
            connection.execute(f"DELETE FROM snapshots WHERE journal = ? AND after NOT IN ({newest})", (own, own, keep))

    def snapshots(self, journal: str) -> Iterator[Snapshot]:
        query = "SELECT after, state, digest FROM snapshots WHERE journal = ? ORDER BY after DESC"
        return (Snapshot(journal, *row) for row in self._fetch(query, self._id(journal)))

    def find_damage(self) -> str | None:
        found = str(self._fetch_value("PRAGMA integrity_check(1)"))
        return None if found == "ok" else found

    def close(self) -> None:
        with self._explain():
            for cursor in list(self._cursors):  # an unfinished iterator would keep files open
                cursor.close()
            self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- opening ------------------------------------------------------------------------------------------------------

    def _open_writer(self, resources: ExitStack) -> None:
        with self._explain():
            self._lock = Lock(self.path)
            resources.push(self._release)
            self._is_ours, is_lost = not self.path.exists(), _lacks_log(self.path)
            self._connection = resources.enter_context(_connect(self.path, "mode=rwc"))
            version = schema.find_version(self._connection, self.path)
            if version == schema.VERSION:
                self._check_total()
                self._warn(is_lost)
            # the first write: without it SQLite would open a read-only file without an error
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            with _transaction(self._connection) as connection:
                if version < schema.VERSION:
                    schema.make_tables(connection, version)
                connection.execute("UPDATE writer SET is_open = 1")
            resources.callback(self._sign_off)
        self._total = self._count_events()
        self._checkpoint()

    def _open_reader(self, resources: ExitStack) -> None:
        with self._explain():
            if not self.path.exists():
                raise JournalError(f"there is no journal {self.path}")
            is_lost = _lacks_log(self.path)
            self._connection = _freeze(self.path, resources)
            self._version = schema.find_version(self._connection, self.path)
            if not self._version:
                raise JournalError(f"{self.path} is empty, not a journal; name another file")
            if self._version == 1:
                schema.make_views(self._connection)
            self._connection.execute("PRAGMA query_only = ON")
            self._warn(is_lost)

    def _warn(self, is_lost: bool) -> None:
        if is_lost and self._fetch_value("SELECT is_open FROM writer"):
            _log.warning(
                "%s was not closed by its last writer, and %s-wal is not beside it; if that was lost or left behind, "
                "the newest events are missing",
                self.path,
                self.path.name,
            )

    def _count_events(self) -> int:
        return sum(last.number or 0 for last in map(self.last, self.journals()) if last is not None)

    def _check_total(self) -> None:
        """Raise a JournalError if there are fewer events than a process acknowledged that did not close the file."""
        lock, found = self._lock, self._count_events()
        if lock is not None and found < lock.acknowledged:
            raise JournalError(
                f"{self.path} has {found} events, but {lock.acknowledged} were acknowledged, so its file "
                f"{self.path.name}-wal is lost; put it back, or remove {lock.path.name} to continue without them"
            )

    def _sign_off(self) -> None:
        """Mark the file as complete."""
        is_ours, self._is_ours = self._is_ours, False
        with suppress(sqlite3.Error, JournalError):
            self._connection.execute("UPDATE writer SET is_open = 0")
            self._is_ours = is_ours and not self.journals()
        self._checkpoint()

    def _release(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._lock is not None
        if self._is_ours:  # nothing was begun in it
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self._lock.release(keep=kind is not None and self._lock.acknowledged > 0)

    def _checkpoint(self) -> None:
        """Move events from the log to the file, as far as readers allow; this may fail without harm."""
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _id(self, journal: str) -> int:
        found = self._ids.get(journal)
        if found is None:
            found = self._fetch_value("SELECT id FROM journals WHERE name = ?", journal)
            if found is None:
                raise JournalError(f"{self.path} has no journal {journal!r:.80}; it has {self.journals()}")
            self._ids[journal] = found
        return found

    def _place(self, journal: str, number: int) -> int:
        found = self._id(journal)
        return number if self._version == 1 else found * schema.SPAN + number

    def _prepare(self, row: Row) -> tuple[Any, ...]:
        own = self._id(row.journal)
        return (own * schema.SPAN + (row.number or 0), own, *row[1:])

    def _rows(self, journal: str, query: str, *values: Any) -> Iterator[Row]:
        return (Row(journal, *row) for row in self._fetch(query, *values))

    def _row(self, journal: str, query: str, *values: Any) -> Row | None:
        found = self._fetch_one(query, *values)
        return None if found is None else Row(journal, *found)

    def _fetch(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        with self._explain():
            cursor = self._connection.execute(query, values)
            self._cursors.add(cursor)
            yield from iter(cursor.fetchone, None)  # not `yield from cursor`, which would close a cursor twice

    def _fetch_one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        with self._explain():
            found: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
        return found

    def _fetch_value(self, query: str, *values: Any) -> Any:
        found = self._fetch_one(query, *values)
        return None if found is None else found[0]

    @contextmanager
    def _explain(self) -> Iterator[None]:
        """Turn errors of SQLite and of the system into errors of one sentence."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise _explain_conflict(self.path, str(error)) from None
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            reason = next((text for start, text in _REASONS.items() if name.startswith(start)), None)
            raise JournalError(f"{self.path} {reason or f'cannot be used as a journal: {error}'}") from None
        except OSError as error:
            raise JournalError(f"{self.path} {_REASONS['SQLITE_CANTOPEN']} ({error.strerror or error})") from None


def require_apart(out: Path, journal: Path) -> None:
    """Raise an InputError if a file that is about to be written is the journal, or belongs to it."""
    kept = [
        os.path.realpath(f"{name}{suffix}") for name in (journal, os.path.realpath(journal)) for suffix in _COMPANIONS
    ]
    if os.path.realpath(out) in kept:
        raise InputError(f"cannot write {str(out)!r}: it belongs to the journal; name another file")


def _explain_conflict(path: Path, problem: str) -> PreselectError:
    is_conflict = problem.startswith(("a decision has", "there is a decision", "UNIQUE"))
    return (ConflictError if is_conflict else JournalError)(f"{path} refuses to record this: {problem}")


def _locate(path: str | os.PathLike[str]) -> Path:
    """Resolve the path of a file, so that every name of it leads to the same lock."""
    real = Path(os.path.realpath(path))
    try:
        if real.exists() and not real.is_file():
            raise JournalError(f"{real} is a folder or a device, not a journal; name a file")
        if real.exists() and 0 < real.stat().st_size < _SMALLEST:
            raise JournalError(f"{real} {_REASONS['SQLITE_NOTADB']}")
    except OSError as error:
        raise JournalError(f"{real} {_REASONS['SQLITE_CANTOPEN']} ({error.strerror or error})") from None
    return real


def _lacks_log(path: Path) -> bool:
    return path.exists() and not Path(f"{path}-wal").exists()


def _freeze(path: Path, resources: ExitStack) -> sqlite3.Connection:
    """Open a connection that sees no later changes; without write permission the file is taken as immutable."""
    # mode=ro may leave new files behind; mode=rw would empty the log of a writer that was killed
    mode = "mode=rw" if _lacks_log(path) else "mode=ro"
    with ExitStack() as attempt:
        connection = attempt.enter_context(_connect(path, mode))
        connection.execute("BEGIN")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            _require_nothing_pending(path)
        else:
            resources.enter_context(attempt.pop_all())
            return connection
    return resources.enter_context(_connect(path, "mode=ro&immutable=1"))


def _require_nothing_pending(path: Path) -> None:
    """Raise a JournalError unless the main file is complete: in a read-only folder nothing else can be read."""
    pending = Path(f"{path}-wal")
    if pending.exists() and pending.stat().st_size:
        raise JournalError(
            f"{path} cannot be read in a read-only folder, because {pending.name} holds a part of it; "
            "copy both to another folder"
        )


@contextmanager
def _connect(path: Path, options: str) -> Iterator[sqlite3.Connection]:
    """Connect to a file; each statement is committed by itself, except in a `_transaction`."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?{options}", uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commit everything that is done inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _count(limit: int | None) -> int:
    return -1 if limit is None else limit
