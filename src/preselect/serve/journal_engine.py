"""Show journals that another process writes, such as those of races; nothing can be changed."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from preselect.errors import ConflictError, NotFoundError
from preselect.named.values import Values
from preselect.preselector import Preselector
from preselect.serve import answers, schemas
from preselect.serve.schemas import NewPreselector
from preselect.serve.stored import make_past
from preselect.store import Decided, Expired, Journal, Record, Told, open_storage, read_counts, restore
from preselect.store.storage import MAIN

_EVERY = 0.4  # seconds between two checks for new events
_MOST_ROUNDS = 50  # in one update


class _Seen:
    """A journal as far as it has been read: its state and counts."""

    def __init__(self, name: str, journal: Journal) -> None:
        self.name, self.journal_name, self.created = name, journal.name, journal.about.created
        self.fold, self.looked = restore(journal).fold, time.monotonic()
        found = read_counts(journal)
        special = {kind: found.outcomes[kind] for kind in ("void", "expired")}
        self.counts = Counter(special | {"decisions": found.rounds})
        self.counts["told"] = found.outcomes.total() - sum(special.values())

    def follow(self, journal: Journal) -> None:
        """Apply and count the new events."""
        self.fold.journal, self.looked = journal, time.monotonic()
        for record in journal.records(self.fold.number):
            self.fold.take(record)
            if record.kind == Decided.kind:
                self.counts["decisions"] += 1
            elif record.kind in (Told.kind, Expired.kind):
                self.counts[answers.find_status(record.event)] += 1  # type: ignore[arg-type]

    def count(self) -> dict[str, int]:
        ended = sum(self.counts[name] for name in ("told", "void", "expired"))
        return {**self.counts, "waiting": self.counts["decisions"] - ended}


class JournalEngine:
    """An Engine that only reads. It opens the file for moments at a time, so as not to disturb the writer.

    Parameters
    ----------
    path : str
        The journal; a race or a service may be writing it.
    """

    is_read_only = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: dict[str, _Seen] = {}

    def start(self) -> None:
        """Read all journals of the file; a file that does not exist yet may appear later."""
        if not Path(self._path).exists():
            return
        with open_storage(self._path) as storage:
            for name in storage.journals():
                shown = re.sub("[^A-Za-z0-9._-]", "-", Path(self._path).stem) if name == MAIN else name
                if shown not in self._seen:
                    self._seen[shown] = _Seen(shown, Journal(storage, name))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Do nothing, because nothing is written."""
        yield

    def create(self, *_: Any) -> Any:
        """Refuse: nothing can be changed. So do `put_arm`, `retire_arm`, `decide`, `tell` and `tell_many`."""
        raise ConflictError(
            f"{self._path} is only shown here, so nothing can be changed; use the process that writes it"
        )

    put_arm = retire_arm = decide = tell = tell_many = create

    def describe(self, name: str) -> schemas.Description:
        """Describe a preselector."""
        seen = self._find(name)
        policy = seen.fold.preselector.policy
        new = NewPreselector(policy=policy.kind, nobody_may_win=policy.outside)
        return answers.describe(name, new, seen.fold.preselector, seen.created, seen.fold.number, seen.count())

    def describe_all(self) -> list[schemas.Description]:
        """Describe all preselectors."""
        self.start()
        return [self.describe(name) for name in sorted(self._seen)]

    def find_decision(self, id: str, within: str | None, explain: bool) -> schemas.Decision:
        """Find a decision by its id or, in races, by its number."""
        for seen in [self._find(within)] if within else list(self._seen.values()):
            with self._open(seen) as journal:
                found = journal.find_decision(int(id)) if re.fullmatch("[0-9]{1,15}", id) else journal.find_key(id)
                if found is not None:
                    past = make_past(found, journal.find_ending(found))
                    shown = seen.fold.preselector if explain else None
                    return answers.describe_decision(seen.name, past, shown)
        raise NotFoundError(f"there is no decision {id!r:.100}")

    def weights(self, name: str, context: Values | None) -> schemas.Weights:
        """Estimate all arms."""
        return answers.estimate(self._find(name).fold.preselector, context)

    def rounds(self, name: str, after: int, limit: int) -> schemas.Rounds:
        """Read a page of rounds."""
        with self._open(self._find(name)) as journal:
            return answers.make_page((make_past(*pair) for pair in journal.rounds(after, limit + 1)), limit)

    def history(self, name: str, after: int, limit: int) -> Sequence[Record]:
        """Read events directly from the storage, because the beginning of a journal takes long to read."""
        seen = self._find(name)
        with open_storage(self._path) as storage:
            return [*map(Record, storage.read(seen.journal_name, after, limit))]

    def inspect(self, name: str, read: Callable[[Preselector], Any]) -> Any:
        """Return what a function reads from a preselector."""
        return read(self._find(name).fold.preselector)

    def update(self, name: str, after: int | None) -> schemas.Update:
        """Return counts and the newest rounds."""
        seen = self._find(name)
        with self._open(seen) as journal:
            pairs = [] if after is None else [*journal.rounds(after, _MOST_ROUNDS, newest_first=True)]
        rounds = [answers.describe_round(make_past(*pair)) for pair in reversed(pairs)]
        return answers.make_update(seen.fold.number, seen.fold.preselector.version, seen.count(), rounds)

    def expire_due(self) -> int:
        """Return 0, because nothing expires here."""
        return 0

    def check(self) -> None:
        """Do nothing, because nothing is written."""

    def close(self) -> None:
        """Do nothing, because nothing is open."""

    @contextmanager
    def _open(self, seen: _Seen) -> Iterator[Journal]:
        with Journal.read(self._path, seen.journal_name) as journal:
            yield journal

    def _find(self, name: str) -> _Seen:
        if name not in self._seen:
            self.start()
        seen = self._seen.get(name)
        if seen is None:
            raise NotFoundError(f"there is no preselector {name!r:.100} in {self._path}")
        if time.monotonic() > seen.looked + _EVERY:
            with self._open(seen) as journal:
                seen.follow(journal)
        return seen
