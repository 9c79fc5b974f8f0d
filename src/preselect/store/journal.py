"""`Journal`: events in order, in some storage, chained by digests that reveal any later change.

Each event carries a digest of itself and of the one before. Snapshots of the state are a cache beside the events. A
journal adds events in two steps: `draft` numbers an event, `commit` makes all drafts durable at once. Until then only
this object knows of them.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Self

import numpy as np

import preselect
from preselect.arguments import show
from preselect.errors import InputError, JournalError, StateFileError
from preselect.store.codec import encode_event
from preselect.store.events import Decided, Event
from preselect.store.record import Beginning, Record, make_digest
from preselect.store.storage import MAIN, About, Row, Snapshot, Storage, open_storage
from preselect.store.values import encode

_LONGEST = 200  # characters of a name


class Journal:
    """A journal in an open storage.

    One that was opened for reading shows what was there when it was opened. Only one thread at a time may use it, and
    after a fork only the parent. Closing the journal closes the storage if `Journal.read` opened it.

    Parameters
    ----------
    storage : Storage
        The storage, open for reading or for writing.
    name : str, default "main"
        The name of the journal, which must exist.

    Attributes
    ----------
    about : Beginning
        What the journal began with.
    last : int
        The number of the last event, drafts included; 0 if there is none.
    """

    def __init__(self, storage: Storage, name: str = MAIN) -> None:
        self.storage, self.name, self.source = storage, name, _describe(storage, name)
        found = storage.about(name)
        if found is None:
            raise JournalError(f"{storage.source} has no journal {name!r:.80}; it has {storage.journals()}")
        self.about = Beginning.of(found, self.source)
        self._owned = False
        self.reload()

    @classmethod
    def read(cls, url: str | PathLike[str], name: str = MAIN) -> Self:
        """Open a journal for reading, even while another process writes it.

        Parameters
        ----------
        url : str or path
            The storage; it is never created.
        name : str, default "main"
            The name of the journal.
        """
        storage = open_storage(url)
        try:
            journal = cls(storage, name)
        except BaseException:
            storage.close()
            raise
        journal._owned = True
        return journal

    @classmethod
    def begin(
        cls, storage: Storage, name: str, genesis: bytes, description: Mapping[str, Any] | None = None
    ) -> tuple[Self, bool]:
        """Begin a journal, unless there is one of this name; return it, and whether it is new.

        Parameters
        ----------
        storage : Storage
            A storage that is open for writing.
        name : str
            The name of the journal: letters, digits and other characters that can be printed, at most 200.
        genesis : bytes
            The state before any event, as `Preselector.to_bytes` gives it.
        description : mapping, optional
            What a new journal is about; anything that JSON can hold.
        """
        text = encode(description or {}, "description")
        about = About(check_name(name, "name"), time.time(), zlib.compress(genesis), text, json.dumps(list_versions()))
        is_new = storage.begin(about)
        return cls(storage, name), is_new

    def reload(self) -> None:
        """Forget drafts, and read again what the storage has."""
        self._drafts: dict[int, Record] = {}
        self._by_name: dict[tuple[str, str | int], Record] = {}
        last = self.storage.last(self.name)
        self.last, self.digest = (last.number or 0, last.digest or b"") if last else (0, self.about.digest)

    # --- adding events ------------------------------------------------------------------------------------------------

    def encode(self, event: Event) -> Row:
        """Return an event that happens now as a row without a number; raise an InputError if JSON cannot hold it.

        Parameters
        ----------
        event : Event
            What happened.
        """
        return encode_event(event, self.name, time.time())

    def draft(self, row: Row, event: Event | None = None) -> Record:
        """Add a row as the next event; it is durable once it is committed.

        Parameters
        ----------
        row : Row
            The row, without number and digest.
        event : Event, optional
            What is in it, if that is known.
        """
        number = self.last + 1
        content = (self.name, number, *row[2:9])
        digest = make_digest(self.digest, content)
        record = Record(Row(*content, digest), event)
        self.last, self.digest, self._drafts[number] = number, digest, record
        if row.decision is not None:
            self._by_name["decision", row.decision] = record
        elif row.kind == Decided.kind:
            self._by_name["key", row.key or ""] = self._by_name["request", row.request or ""] = record
        return record

    @property
    def drafts(self) -> list[Row]:
        """The rows that are not durable yet."""
        return [record.row for record in self._drafts.values()]

    def settle(self) -> None:
        """Count the drafts as durable, because the storage has them."""
        self._drafts, self._by_name = {}, {}

    # --- reading ------------------------------------------------------------------------------------------------------

    def records(self, after: int = 0, limit: int | None = None) -> Iterator[Record]:
        """The events in order, without drafts.

        Parameters
        ----------
        after : int, default 0
            Only events with a greater number.
        limit : int, optional
            How many at most.
        """
        return map(Record, self.storage.read(self.name, after, limit))

    def record(self, number: int) -> Record | None:
        """The event with a number; None if there is none.

        Parameters
        ----------
        number : int
            The number of the event.
        """
        return self._drafts.get(number) or _wrap(self.storage.find_number(self.name, number))

    def digest_of(self, number: int) -> bytes:
        """The digest of the event with a number (0: of the beginning); empty if there is no such event.

        Parameters
        ----------
        number : int
            The number of the event.
        """
        found = self.record(number)
        return (found and found.row.digest) or (b"" if number else self.about.digest)

    def find_decision(self, number: int) -> Record | None:
        """Return the decision with a number, or None; raise a JournalError if it has been altered.

        Parameters
        ----------
        number : int
            The number of the event.
        """
        found = self.record(number)
        if found is None or found.kind != Decided.kind:
            return None
        if not found.follows(self.digest_of(number - 1)):
            raise JournalError(f"event {number} of {self.source} is not as it was written; {_ADVICE}")
        return found

    def find_key(self, key: str) -> Record | None:
        """The decision with a public id; None if this journal has none.

        Parameters
        ----------
        key : str
            The public id.
        """
        found = self._by_name.get(("key", key)) or _wrap(self.storage.find_key(key))
        return found if found is not None and found.row.journal == self.name else None

    def find_request(self, request: str) -> Record | None:
        """The decision that was made for a request; None if there is none.

        Parameters
        ----------
        request : str
            The caller's name for the request.
        """
        return self._by_name.get(("request", request)) or _wrap(self.storage.find_request(self.name, request))

    def find_ending(self, decision: Record) -> Record | None:
        """The event that ended a decision, Told or Expired; None if it waits.

        Parameters
        ----------
        decision : Record
            The decision.
        """
        found = self._by_name.get(("decision", decision.number))
        if found is None and decision.number not in self._drafts:
            return _wrap(self.storage.find_ending(decision.row))
        return found

    def unfinished(self) -> list[Record]:
        """The decisions that wait for their outcome, in order."""
        drafted = [one for one in self._drafts.values() if one.kind == Decided.kind]
        stored = [*map(Record, self.storage.unfinished(self.name)), *drafted]
        return [record for record in stored if ("decision", record.number) not in self._by_name]

    def count_unfinished(self) -> int:
        """Count the decisions that wait for their outcome, without drafts."""
        return self.storage.count_unfinished(self.name)

    def rounds(
        self, after: int = 0, limit: int | None = None, *, newest_first: bool = False
    ) -> Iterator[tuple[Record, Record | None]]:
        """The decisions in order, each with its ending or None.

        Parameters
        ----------
        after : int, default 0
            Only decisions with a greater number.
        limit : int, optional
            How many at most.
        newest_first : bool, default False
            Whether to reverse the order.
        """
        for made, ended in self.storage.rounds(self.name, after, limit, newest_first=newest_first):
            yield Record(made), _wrap(ended)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def keep_snapshot(self, state: bytes) -> None:
        """Keep a snapshot of the state after the last event, which is durable. Only the two newest are kept.

        Parameters
        ----------
        state : bytes
            The state, as Preselector.to_bytes gives it.
        """
        digest = hashlib.sha256(self.digest + state).digest()
        self.storage.keep_snapshot(Snapshot(self.name, self.last, state, digest))

    def snapshots(self) -> Iterator[Snapshot]:
        """The snapshots, newest first."""
        return self.storage.snapshots(self.name)

    def read_snapshot(self, snapshot: Snapshot) -> bytes:
        """Return the state that a snapshot holds; raise a StateFileError if it is damaged or not of this journal.

        Parameters
        ----------
        snapshot : Snapshot
            One of `snapshots`.
        """
        what = f"the snapshot after event {snapshot.after} of {self.source}"
        if snapshot.after > self.last:
            raise StateFileError(f"{what} is later than the last event, {self.last}")
        digest = self.digest_of(snapshot.after)
        if snapshot.digest is None:  # a state of format 1 is compressed, and has only that checksum
            return _inflate(snapshot.state, f"{what} cannot be read")
        if hashlib.sha256(digest + snapshot.state).digest() != snapshot.digest:
            raise StateFileError(f"{what} cannot be read: its digest does not match")
        return snapshot.state

    def close(self) -> None:
        """Close the storage if this journal opened it."""
        if self._owned:
            self.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_ADVICE = "use a copy of it, or see `preselect journal verify`"


def commit(journals: Iterable[Journal]) -> None:
    """Make the drafts of journals in one storage durable: all of them or, with an error, none.

    Parameters
    ----------
    journals : iterable of Journal
        Some of them may have no drafts.
    """
    drafted = [journal for journal in journals if journal.drafts]
    if drafted:
        drafted[0].storage.append([row for journal in drafted for row in journal.drafts])
    for journal in drafted:
        journal.settle()


def check_name(name: Any, argument: str) -> str:
    """Return a name that any storage can hold; raise an InputError if it is not one."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST or not name.isprintable():
        raise InputError(f"{argument} is {show(name)}; use 1 to {_LONGEST} characters that can be printed")
    return name


def list_versions() -> dict[str, str]:
    """List the versions on which the last bits of numbers may depend."""
    return {"preselect": preselect.__version__, "numpy": np.__version__, "machine": platform.machine()}


def _wrap(row: Row | None) -> Record | None:
    return None if row is None else Record(row)


def _describe(storage: Storage, name: str) -> str:
    return storage.source if name == MAIN else f"{storage.source} ({name})"


def _inflate(block: bytes, problem: str) -> bytes:
    try:
        return zlib.decompress(block)
    except (TypeError, zlib.error):
        raise StateFileError(problem) from None
