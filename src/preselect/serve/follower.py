"""This process's copy of a preselector that several processes serve, made from all numbered events."""

from __future__ import annotations

import logging
import time
from collections import Counter

import msgspec

from preselect.errors import NotFoundError
from preselect.preselector import Preselector
from preselect.serve import answers, schemas
from preselect.serve.log import log
from preselect.serve.schemas import ArmTerms, NewPreselector
from preselect.serve.stored import MADE_FROM, make_past
from preselect.store.events import ArmChanged, ArmJoined, ArmRetired, Decided, Expired, Told
from preselect.store.journal import Journal
from preselect.store.learner import Learner
from preselect.store.storage import Row, SharedStorage

_LONG = 0.5  # seconds: if a page takes longer, the next ones have fewer rows
_SHORT = 0.1  # seconds: if a page takes less, the next ones have more rows
_MOST_ROWS = 2048  # in a page
_MOST_ROUNDS = 50  # in one update


class Follower(Learner):
    """Applies numbered events and, while this process leads, numbers those that wait.

    Parameters
    ----------
    storage : SharedStorage
        The storage.
    name : str
        The preselector, and its journal.
    """

    def __init__(self, storage: SharedStorage, name: str) -> None:
        super().__init__(Journal(storage, name))
        if MADE_FROM not in self.about:
            raise NotFoundError(f"journal {name!r:.80} of {storage.source} was not begun by the service")
        self.storage, self.name, self.leads = storage, name, False
        self.new = msgspec.convert(self.about[MADE_FROM], NewPreselector)
        self._counts: Counter[str] = Counter()
        self._counted, self._page = 0, 64
        self._count_up()

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of all decisions, and of those that wait, were told, were void or have expired."""
        ended = sum(self._counts[name] for name in ("told", "void", "expired"))
        return {**self._counts, "waiting": self._counts["decisions"] - ended}

    def follow(self) -> None:
        """Apply what other processes have numbered."""
        self._require_fresh()
        fold, journal = self._fold, self.journal
        fold.number, fold.digest = journal.last, journal.digest
        try:
            for record in journal.records(after=journal.last):
                fold.take(record)
                journal.last, journal.digest = record.number, record.row.digest or b""
        except BaseException as error:
            self._stale = str(error) or type(error).__name__
            raise
        self._count_up()

    def number(self) -> bool:
        """While leading, number waiting rows and apply them; return whether there may be more."""
        rows = self.storage.pending(self.name, self._page)
        if not rows:
            return False
        began = time.monotonic()
        for row, reason in self.absorb(rows):
            log(logging.WARNING, "refused", preselector=self.name, kind=row.kind, detail=reason)
        self._count_up()
        spent, is_full = time.monotonic() - began, len(rows) == self._page
        # pages are short, because nothing is chosen meanwhile, and a leader that seems to hang loses the lead
        if spent > _LONG:
            self._page = max(self._page // 2, 1)
        elif spent < _SHORT and is_full:
            self._page = min(self._page * 2, _MOST_ROWS)
        return is_full

    def list_expired(self, limit: int) -> list[Row]:
        """Return rows that end the decisions which are due to expire."""
        self._require_fresh()
        return [self.journal.encode(Expired(key=entry.key)) for entry in self._list_due(time.time(), limit)]

    def forget_due(self) -> None:
        """Search for due decisions again, because rows of `list_expired` were not written."""
        self._due = None

    # --- what callers ask for -----------------------------------------------------------------------------------------

    def propose_arm(self, arm: str, terms: ArmTerms) -> tuple[Row | None, bool]:
        """Return a row that adds or changes an arm, None if nothing would change, and whether the arm is new."""
        arms = self.preselector
        is_new = arm not in arms.arms
        if not is_new and answers.has_terms(arms, arm, terms):
            return None, False
        trial = _copy(arms)
        given = {"group": terms.group, "price": terms.price}
        if is_new:
            trial.add(arm, terms.features, **given)  # type: ignore[arg-type]
        else:
            trial.change(arm, terms.features, **given)  # type: ignore[arg-type]
        kind = ArmJoined if is_new else ArmChanged
        return self._encode(kind(arm, trial.arm(arm), terms.group, trial.prices.get(arm))), is_new

    def propose_retirement(self, arm: str) -> Row:
        """Return a row that retires an arm."""
        answers.require_arm(self.preselector, arm)
        _copy(self.preselector).remove(arm)
        return self._encode(ArmRetired(arm))

    def _encode(self, event: ArmJoined | ArmChanged | ArmRetired) -> Row:
        return self.journal.encode(event)._replace(key=answers.make_id())

    def describe(self) -> schemas.Description:
        """Describe the preselector."""
        created, number = self.journal.about.created, self.journal.last
        return answers.describe(self.name, self.new, self.preselector, created, number, self.counts)

    def read_rounds(self, after: int, limit: int) -> schemas.Rounds:
        """Return a page of rounds."""
        return answers.make_page((make_past(*pair) for pair in self.journal.rounds(after, limit + 1)), limit)

    def update(self, after: int | None) -> schemas.Update:
        """Return counts, and the newest rounds after a number."""
        last = self.journal.last
        pairs = [] if after is None else list(self.journal.rounds(after, _MOST_ROUNDS, newest_first=True))[::-1]
        rounds = [answers.describe_round(make_past(*pair)) for pair in pairs if pair[0].number <= last]
        return answers.make_update(last, self.preselector.version, self.counts, rounds)

    def _count_up(self) -> None:
        """Count the events since the last count."""
        for record in self.journal.records(self._counted, self.journal.last - self._counted):
            if record.kind == Decided.kind:
                self._counts["decisions"] += 1
            elif record.kind in (Told.kind, Expired.kind):
                self._counts[answers.find_status(record.event)] += 1  # type: ignore[arg-type]
            self._counted = record.number


def _copy(preselector: Preselector) -> Preselector:
    return Preselector.from_bytes(preselector.to_bytes())
