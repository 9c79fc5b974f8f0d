"""Keep preselectors in a storage that several processes share; a replica's thread makes the calls."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from preselect.errors import (
    ConflictError,
    ExpiredError,
    InputError,
    JournalError,
    NotFoundError,
    OverloadedError,
    PreselectError,
)
from preselect.named.values import Values
from preselect.preselector import Preselector
from preselect.serve import answers, schemas
from preselect.serve.answers import Past
from preselect.serve.follower import Follower
from preselect.serve.limits import ServiceLimits
from preselect.serve.log import log
from preselect.serve.schemas import ArmTerms, NewDecision, NewOutcome, NewPreselector, NumberedOutcome
from preselect.serve.stored import MADE_FROM, make_past
from preselect.store.events import Event, Expired, Told
from preselect.store.journal import Journal
from preselect.store.record import Record
from preselect.store.storage import Listener, Row, SharedStorage, open_storage

_EVERY = 1.0  # seconds between two attempts to lead, and between two checks for events without a notification
_PATIENCE = 3.0  # seconds after which another process takes over from one that hangs
_MOST_EXPIRED = 1000  # at once
_REMEMBERED = 20_000  # how many decisions are kept in memory until their outcome arrives


class SharedEngine:
    """Chooses with the newest state that it has, and submits decisions and outcomes; while it leads, it numbers them.

    Steps stage rows, and `commit` submits them. It returns the steps that have to be repeated because another process
    was faster; when repeated, they see what that process wrote. So the first attempt need not look anything up.

    Parameters
    ----------
    url : str
        The storage.
    limits : ServiceLimits
        How many decisions may wait, and how long.
    """

    is_read_only = False

    def __init__(self, url: str, limits: ServiceLimits) -> None:
        self._url, self._limits = url, limits
        self._followers: dict[str, Follower] = {}
        self._strangers: set[str] = set()  # journals that the service did not begin
        self._known: OrderedDict[str, tuple[str, Past]] = OrderedDict()  # decisions by id, without their endings
        self._staged: list[tuple[int, Row]] = []
        self._taken: dict[tuple[str | None, bool], int] = {}
        self._step, self._is_again = 0, False
        self._tended, self._has_news = 0.0, True
        self._storage: SharedStorage
        self._opened = ExitStack()

    def start(self) -> None:
        """Open the storage and replay what is there."""
        storage = open_storage(self._url, write=True)
        if not isinstance(storage, SharedStorage):
            storage.close()
            raise InputError(f"{storage.source} cannot be shared; use a postgresql:// URL")
        self._storage = storage
        self._opened.callback(storage.close)
        self.catch_up()

    def listen(self) -> Listener:
        """Return a listener that another thread can use to wait for new events."""
        return self._storage.listen()

    # --- what others do, and what the leader does ---------------------------------------------------------------------

    def note_news(self) -> None:
        """Note that there may be new events."""
        self._has_news = True

    def catch_up(self) -> int:
        """Apply new events; while leading, number waiting rows and let decisions expire. Return how many expired."""
        is_due = time.monotonic() >= self._tended + _EVERY
        if not (is_due or self._has_news):
            return 0
        self._has_news, self._tended = False, time.monotonic() if is_due else self._tended
        if is_due:
            self._adopt_all()
        failures, expired = [], 0
        for follower in self._followers.values():
            try:
                expired += self._catch_up_one(follower, is_due)
            except PreselectError as error:  # the other preselectors are not affected
                failures.append(error)
        if failures:
            raise failures[0]
        return expired

    def _adopt_all(self) -> None:
        for name in self._storage.journals():
            try:
                self._adopt(name)
            except NotFoundError:  # not a journal of the service
                self._strangers.add(name)

    def _catch_up_one(self, follower: Follower, is_due: bool) -> int:
        if not follower.leads or is_due:
            follower.follow()
        if is_due:
            self._lead(follower)
        if not follower.leads:
            return 0
        expired = self._expire(follower) if is_due else 0
        try:
            number, is_more = follower.journal.last, follower.number()
        except JournalError:
            follower.leads = False  # perhaps; it is tried again
            raise
        self._has_news |= is_more
        if follower.journal.last > number:
            self._storage.notify()
        return expired

    def _lead(self, follower: Follower) -> None:
        led, follower.leads = follower.leads, False
        follower.leads = self._storage.lead(follower.name, patience=_PATIENCE)
        if follower.leads and not led:
            log(logging.INFO, "this process leads", preselector=follower.name)
            follower.follow()  # the previous leader may have written until it lost the lead
            follower.forget_due()

    def _expire(self, follower: Follower) -> int:
        rows = follower.list_expired(_MOST_EXPIRED)
        try:
            return len(rows) - len(self._storage.submit(rows)) if rows else 0
        except PreselectError:
            follower.forget_due()
            raise

    def _adopt(self, name: str) -> Follower:
        if name in self._strangers:
            raise NotFoundError(f"{name!r:.100} is not a preselector of the service; use another name")
        if name not in self._followers:
            self._followers[name] = Follower(self._storage, name)
        return self._followers[name]

    # --- steps and their rows -----------------------------------------------------------------------------------------

    def begin(self, step: int, is_again: bool) -> None:
        """Note which step comes next, and whether it is being repeated."""
        self._step, self._is_again = step, is_again

    def drop(self, step: int) -> None:
        """Forget the rows of a step that failed halfway."""
        self._staged = [(one, row) for one, row in self._staged if one != step]

    def commit(self) -> set[int]:
        """Submit the staged rows, durably; return the steps that have to be repeated."""
        staged, self._staged = self._staged, []
        if not staged:
            return set()
        rejected = {id(rejection.row) for rejection in self._storage.submit([row for _, row in staged])}
        self._taken |= {_name(row): step for step, row in staged if id(row) not in rejected}
        if len(rejected) < len(staged):
            self._storage.notify()
        return {step for step, row in staged if id(row) in rejected}

    def finish(self) -> None:
        """Forget what steps staged, committed or not."""
        self._staged, self._taken = [], {}

    def _stage(self, follower: Follower, event: Event) -> Row:
        row = follower.journal.encode(event)
        self._staged.append((self._step, row))
        return row

    # --- calls --------------------------------------------------------------------------------------------------------

    def create(self, name: str, new: NewPreselector) -> tuple[schemas.Description, bool]:
        """Make a preselector."""
        follower, is_new = self._followers.get(name), False
        if follower is None:
            state = answers.make_preselector(new).to_bytes()
            _, is_new = Journal.begin(self._storage, name, state, {MADE_FROM: msgspec.to_builtins(new)})
            try:
                follower = self._adopt(name)
            except NotFoundError:
                raise ConflictError(
                    f"there is a journal {name} already, which no service began; use another name"
                ) from None
            self._lead(follower)
        if follower.new != new:
            raise ConflictError(f"there is a preselector {name} already, with other settings; use another name")
        return follower.describe(), is_new

    def describe(self, name: str) -> schemas.Description:
        """Describe a preselector."""
        return self._find(name).describe()

    def describe_all(self) -> list[schemas.Description]:
        """Describe all preselectors."""
        return [self._followers[name].describe() for name in sorted(self._followers)]

    def propose_arm(self, name: str, arm: str, terms: ArmTerms) -> tuple[str | None, bool]:
        """Propose to add or change an arm; return the key for `find_fate`, and whether the arm is new."""
        row, is_new = self._find(name).propose_arm(arm, terms)
        return self._propose(row), is_new

    def propose_retirement(self, name: str, arm: str) -> str | None:
        """Propose to retire an arm; return the key for `find_fate`."""
        return self._propose(self._find(name).propose_retirement(arm))

    def _propose(self, row: Row | None) -> str | None:
        if row is not None:
            self._staged.append((self._step, row))
        return None if row is None else row.key

    def find_fate(self, name: str, key: str) -> bool | None:
        """Return whether a proposal was accepted; None while it waits."""
        follower, found = self._find(name), self._storage.find_submitted([key])
        if key in found and (found[key] or 0) in range(1, follower.journal.last + 1):
            return True
        self.note_news()  # so that the caller sees the newest state, and why the proposal was refused
        return None if key in found else False

    def decide(self, name: str, new: NewDecision) -> tuple[schemas.Decision, bool]:
        """Choose arms."""
        follower, shown = self._find(name), None
        if new.explain:
            shown = follower.preselector
        if new.request_id is not None and self._is_again:
            row = self._storage.find_request(name, new.request_id)
            if row is not None:
                past = self._read_past(row)
                answers.require_same_request(past.decided, new)
                return answers.describe_decision(name, past, shown), False
        if follower.counts["waiting"] >= self._limits.waiting:
            raise OverloadedError(f"too many decisions of {name} wait for their outcomes; report some first")
        expires = follower.new.expires_s or self._limits.expires_s
        _, decided = answers.choose(follower.preselector, new, answers.make_id(), time.time(), expires)
        past = Past(0, self._stage(follower, decided).at, decided)
        self._remember(name, past)
        return answers.describe_decision(name, past, shown), True

    def find_decision(self, id: str, within: str | None, explain: bool) -> schemas.Decision:
        """Find a decision."""
        follower, past = self._find_past(id, within, with_ending=True)
        return answers.describe_decision(follower.name, past, follower.preselector if explain else None)

    def tell(self, id: str, outcome: NewOutcome, within: str | None) -> schemas.Ending:
        """Learn from an outcome."""
        follower, past = self._find_past(id, within, with_ending=self._is_again)
        told = answers.make_told(past.decided, outcome, follower.preselector.policy.outside)
        is_late = (past.decided.expires or float("inf")) < time.time()
        if past.ending is None and is_late:
            self._stage(follower, Expired(key=id))
        if isinstance(past.ending, Expired) or (past.ending is None and is_late):
            raise ExpiredError(f"decision {id} has expired, so its outcome came too late")
        if isinstance(past.ending, Told):
            answers.require_same_outcome(past.ending, told)
            is_own = self._taken.get((id, False)) == self._step  # reported by this step, in an earlier attempt
            self._taken.pop((id, False), None)
            return schemas.Ending(id, answers.find_status(past.ending), is_own)
        self._stage(follower, told)
        return schemas.Ending(id, answers.find_status(told), True)

    def tell_many(self, outcomes: Sequence[NumberedOutcome], within: str | None) -> list[schemas.Result]:
        """Learn from several outcomes."""
        return answers.tell_each(self.tell, outcomes, within)

    def weights(self, name: str, context: Values | None) -> schemas.Weights:
        """Estimate all arms."""
        return answers.estimate(self._find(name).preselector, context)

    def rounds(self, name: str, after: int, limit: int) -> schemas.Rounds:
        """Read a page of rounds."""
        return self._find(name).read_rounds(after, limit)

    def history(self, name: str, after: int, limit: int) -> Sequence[Record]:
        """Read numbered events."""
        journal = self._find(name).journal
        return [*journal.records(after, min(limit, max(journal.last - after, 0)))]

    def inspect(self, name: str, read: Callable[[Preselector], Any]) -> Any:
        """Return what a function reads from a preselector."""
        return read(self._find(name).preselector)

    def update(self, name: str, after: int | None) -> schemas.Update:
        """Return counts and the newest rounds."""
        return self._find(name).update(after)

    def check(self) -> None:
        """Make the server do something that succeeds only if it can be written."""
        self._storage.notify()

    def close(self) -> None:
        """Give up all leads and close the storage, if it could be opened."""
        self._opened.close()

    # --- finding ------------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> Follower:
        follower = self._followers.get(name)
        if follower is None and self._storage.about(name) is not None:
            follower = self._adopt(name)  # another process has made it
        if follower is None:
            raise NotFoundError(f"there is no preselector {name!r:.100}; make it with PUT /v1/preselectors/NAME")
        return follower

    def _find_past(self, id: str, within: str | None, *, with_ending: bool) -> tuple[Follower, Past]:
        found = None if with_ending else self._known.get(id)
        if found is None:
            row = self._storage.find_key(id) if id.isprintable() else None
            if row is None:
                raise NotFoundError(f"there is no decision {id!r:.100}")
            found = row.journal, self._read_past(row, self._storage.find_ending(row) if with_ending else None)
            self._remember(*found)
        if within not in (None, found[0]):
            raise NotFoundError(f"there is no decision {id!r:.100}")
        return self._find(found[0]), found[1]

    def _read_past(self, row: Row, ending: Row | None = None) -> Past:
        return make_past(Record(row), None if ending is None else Record(ending))

    def _remember(self, name: str, past: Past) -> None:
        self._known[past.decided.key or ""] = name, past._replace(ended=None, ending=None)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _name(row: Row) -> tuple[str | None, bool]:
    return row.key, row.kind == "decision"
