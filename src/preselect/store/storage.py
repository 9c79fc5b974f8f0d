"""Storages of journals: the protocol that SQLite and PostgreSQL implement, and `open_storage`, which takes a URL.

A storage holds any number of journals by name. It keeps rows without interpreting them; events, numbers and the chain
of digests belong to `preselect.store.journal`. Whatever callers do, a storage ensures that rows are never changed, that
those of a journal are numbered from 1 without gaps, that a decision has at most one ending (an outcome, or that it
expired), and that keys of decisions are unique in the storage and requests unique in their journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, Self, runtime_checkable

from preselect.errors import InputError

MAIN = "main"  # the journal of a file that holds only one


class Row(NamedTuple):
    """An event as it is stored.

    Parameters
    ----------
    journal : str
        The name of the journal.
    number : int or None
        Its number in the journal, from 1 without gaps; None while it waits for the learner (PostgreSQL only).
    at : float
        When it was recorded, in seconds since 1970.
    kind : str
        "arm", "change", "retire", "context", "decision", "outcome" or "expired".
    decision : int or None
        The number of the decision that this row ends, if it does. None while it waits for the learner.
    key : str or None
        The public id of this decision, or of the one that this row ends. None in format 1, and in races.
    request : str or None
        The caller's name for the request, if this is a decision.
    text : str
        What happened, as JSON in ASCII.
    block : bytes or None
        The numbers of a decision, as bytes.
    digest : bytes or None
        SHA-256 of this row and of the previous row's digest; None while it waits for the learner.
    """

    journal: str
    number: int | None
    at: float
    kind: str
    decision: int | None
    key: str | None
    request: str | None
    text: str
    block: bytes | None
    digest: bytes | None


class About(NamedTuple):
    """The beginning of a journal, as it is stored.

    Parameters
    ----------
    journal : str
        Its name.
    created : float
        When it was begun, in seconds since 1970.
    genesis : bytes
        The state before any event, compressed.
    description : str
        What the journal is about, as JSON in ASCII.
    software : str
        The versions of the software that began it, as JSON in ASCII.
    """

    journal: str
    created: float
    genesis: bytes
    description: str
    software: str


class Snapshot(NamedTuple):
    """The state after an event, kept so that opening a journal need not replay all events; as it is stored.

    Parameters
    ----------
    journal : str
        The name of the journal.
    after : int
        The number of the event.
    state : bytes
        The state, compressed.
    digest : bytes or None
        SHA-256 of the event's digest and of the state; None in format 1.
    """

    journal: str
    after: int
    state: bytes
    digest: bytes | None


class Storage(Protocol):
    """Journals by name. Only one thread at a time may use a storage; all errors are those of `preselect.errors`.

    A storage that was opened for reading refuses to write, and shows all journals as they were when it was opened.
    Iterators read rows as they go, so finish or close them before closing the storage.
    """

    source: str  # what messages call it: the path, or the URL without its password

    def journals(self) -> list[str]:
        """Return the names of all journals, in alphabetical order."""

    def begin(self, about: About) -> bool:
        """Begin a journal, durably; False if there is one of this name already, which stays as it is."""

    def about(self, journal: str) -> About | None:
        """Return what a journal began with; None if there is no journal with this name."""

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, of any journals, each with its number and digest: all of them or, with an error, none.

        They are durable when this returns. A second ending, key or request is a ConflictError. Without rows, it writes
        something that changes nothing, to find out whether the storage can be written.
        """

    def read(self, journal: str, after: int = 0, limit: int | None = None) -> Iterator[Row]:
        """Yield the rows with greater numbers than `after`, in order, at most `limit`. Rows that wait are left out."""

    def last(self, journal: str) -> Row | None:
        """Return the row with the greatest number; None if there is none yet."""

    def find_number(self, journal: str, number: int) -> Row | None:
        """Return the row with a number; None if there is none."""

    def find_key(self, key: str) -> Row | None:
        """Return the decision with a public id, in any journal, even one that waits; None if there is none."""

    def find_request(self, journal: str, request: str) -> Row | None:
        """Return the decision that a request of this name got, also one that waits; None if there is none."""

    def find_ending(self, decision: Row) -> Row | None:
        """Return the row that ends a decision, given as its row; also one that waits; None if there is none."""

    def unfinished(self, journal: str) -> Iterator[Row]:
        """Yield the decisions that have no ending, in order."""

    def count_unfinished(self, journal: str) -> int:
        """Count the decisions that have no ending."""

    def rounds(
        self, journal: str, after: int = 0, limit: int | None = None, *, newest_first: bool = False
    ) -> Iterator[tuple[Row, Row | None]]:
        """Yield the decisions with greater numbers than `after`, in order, each with its ending or None.

        At most `limit` are yielded; with `newest_first` in reverse order.
        """

    def keep_snapshot(self, snapshot: Snapshot, keep: int = 2) -> None:
        """Keep a snapshot, and of its journal only the `keep` newest ones."""

    def snapshots(self, journal: str) -> Iterator[Snapshot]:
        """Yield the snapshots of a journal, newest first."""

    def find_damage(self) -> str | None:
        """Return what the engine itself finds wrong with its data; None if it is intact."""

    def close(self) -> None:
        """Close the storage; another process may write it then."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Rejection(NamedTuple):
    """A submitted row that was rejected, and the row that exists instead.

    Parameters
    ----------
    row : Row
        What was submitted.
    existing : Row
        The decision of the same request, or the ending that the decision has already.
    """

    row: Row
    existing: Row


@runtime_checkable
class SharedStorage(Storage, Protocol):
    """A storage that several processes write: all of them submit rows, and one learner per journal numbers the rows."""

    def submit(self, rows: Sequence[Row]) -> list[Rejection]:
        """Insert rows without numbers, durably; reject those whose request or ending exists already.

        Every row has a key. A decision and its ending share one; any other row has its own.
        """

    def pending(self, journal: str, limit: int | None = None) -> list[Row]:
        """Return the rows that wait for the learner, in the order of submission, decisions before their endings."""

    def find_submitted(self, keys: Sequence[str]) -> dict[str, int | None]:
        """Return the numbers of rows that were submitted with these keys; None for those that wait.

        Rows that were refused are missing. For a decision that has ended, it is the number of either row.
        """

    def number(self, rows: Sequence[Row], refused: Sequence[Row] = ()) -> None:
        """Store the numbers and digests of waiting rows, and remove the refused ones: all or nothing.

        Only the leading process may do this; raises an error if another leads by now.
        """

    def lead(self, journal: str, *, patience: float | None = None) -> bool:
        """Try to become, or to remain, the process that writes a journal; return whether it is.

        With `patience`, the server ends the lead after that many seconds without a call of this and without a write, so
        that another process can take over from one that hangs.
        """

    def notify(self) -> None:
        """Wake up all listeners, after something was submitted or numbered."""

    def listen(self) -> Listener:
        """Return a listener for notifications, for use in another thread."""


class Listener(Protocol):
    """Waits for news from other processes."""

    def wait(self, seconds: float) -> bool:
        """Wait for a notification, at most `seconds`; return whether one came. The first call returns at once."""

    def close(self) -> None:
        """Stop listening."""


def open_storage(url: str | os.PathLike[str], *, write: bool = False) -> Storage:
    """Open a storage for reading or writing; with `write`, one that does not exist is created.

    Parameters
    ----------
    url : str or path
        A path or sqlite:///path of an SQLite file, or postgresql://user:password@host/database.
    write : bool, default False
        Whether to write. An SQLite file has one writing process at a time, and any number of readers.
    """
    scheme, separator, rest = os.fspath(url).partition("://")
    if scheme in ("postgresql", "postgres") and separator:
        return _open_postgres(str(url), write)
    if separator and scheme != "sqlite":
        raise InputError(f"{url!r:.80} is not a storage; use a path, sqlite:///path or postgresql://...")
    from preselect.store.sqlite import SQLiteStorage  # not at the top, because engines import this module

    return SQLiteStorage(rest.removeprefix("/") if separator else url, write=write)


def _open_postgres(url: str, write: bool) -> Storage:
    try:
        from preselect.store.postgres import PostgresStorage
    except ImportError:
        raise InputError("PostgreSQL needs psycopg; in a checkout, run pip install '.[postgres]'") from None
    return PostgresStorage(url, write=write)
