"""Keep preselectors in a storage that this process owns: each has a journal of its name there, and a learner."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from preselect.errors import ConflictError, ExpiredError, NotFoundError, OverloadedError, UnlearntError
from preselect.named.values import Values
from preselect.preselector import Preselector
from preselect.serve import answers, schemas
from preselect.serve.answers import Past
from preselect.serve.expiry import Deadlines
from preselect.serve.limits import ServiceLimits
from preselect.serve.log import log
from preselect.serve.schemas import ArmTerms, NewDecision, NewOutcome, NewPreselector, NumberedOutcome
from preselect.store import Decided, Expired, Journal, Learner, Record, Storage, Told, batch, read_counts

MADE_FROM = "preselector"  # the key, in a journal's description, of what its preselector was made from

_MOST_EXPIRED = 1000  # in one batch
_MOST_ROUNDS = 50  # in one update


class _Kept:
    """A preselector: its learner, what it was made from, and counts of what is durable."""

    def __init__(self, learner: Learner) -> None:
        self.learner, self.journal, self.name = learner, learner.journal, learner.journal.name
        self.new = msgspec.convert(learner.about[MADE_FROM], NewPreselector)
        found = read_counts(self.journal)
        special = {name: found.outcomes[name] for name in ("void", "expired")}
        self.counts = Counter(special | {"decisions": found.rounds, "waiting": found.unfinished})
        self.counts["told"] = found.outcomes.total() - sum(special.values())


class StoredEngine:
    """An Engine over a storage.

    Parameters
    ----------
    storage : Storage
        Open for writing; closed with the engine.
    limits : ServiceLimits
        How many decisions may wait, and how long.
    """

    is_read_only = False

    def __init__(self, storage: Storage, limits: ServiceLimits) -> None:
        self._storage, self._limits = storage, limits
        self._kept: dict[str, _Kept] = {}
        self._deadlines = Deadlines()
        self._made: list[tuple[_Kept, str, float]] = []  # decisions of this batch, which count once it is durable
        self._ended: dict[str, tuple[_Kept, str]] = {}  # the new status of decisions, by id

    def start(self) -> None:
        """Replay all journals that a service has begun."""
        for name in self._storage.journals():
            journal = Journal(self._storage, name)
            if MADE_FROM in journal.about.description:
                self._open(journal)
            else:
                log(logging.WARNING, "a journal is not served, because no service began it", journal=name)

    def _open(self, journal: Journal) -> None:
        kept = self._kept[journal.name] = _Kept(Learner(journal))
        for record in journal.unfinished():
            decided = record.event
            assert isinstance(decided, Decided)
            self._deadlines.add(decided.key or "", decided.expires or float("inf"), kept.name)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Collect steps for one commit."""
        self._made, self._ended = [], {}
        with batch(*(kept.learner for kept in self._kept.values())):
            yield
        for kept, key, expires in self._made:
            self._deadlines.add(key, expires, kept.name)
            kept.counts.update(("decisions", "waiting"))
        for key, (kept, status) in self._ended.items():
            self._deadlines.discard(key)
            kept.counts[status] += 1
            kept.counts["waiting"] -= 1

    def create(self, name: str, new: NewPreselector) -> tuple[schemas.Description, bool]:
        """Make a preselector."""
        kept = self._kept.get(name)
        if kept is not None and kept.new != new:
            raise ConflictError(f"there is a preselector {name} already, with other settings; use another name")
        if kept is None:
            state = answers.make_preselector(new).to_bytes()
            journal, is_new = Journal.begin(self._storage, name, state, {MADE_FROM: msgspec.to_builtins(new)})
            if not is_new:
                raise ConflictError(f"there is a journal {name} already, which no service began; use another name")
            self._open(journal)
        return self.describe(name), kept is None

    def describe(self, name: str) -> schemas.Description:
        """Describe a preselector."""
        kept = self._find(name)
        about = kept.journal.about
        return answers.describe(name, kept.new, kept.learner.preselector, about.created, kept.journal.last, kept.counts)

    def describe_all(self) -> list[schemas.Description]:
        """Describe all preselectors."""
        return [self.describe(name) for name in sorted(self._kept)]

    def put_arm(self, name: str, arm: str, terms: ArmTerms) -> tuple[schemas.Description, bool]:
        """Let an arm join, or change it."""
        learner = self._find(name).learner
        is_new = arm not in learner.arms
        if is_new:
            learner.add(arm, terms.features, group=terms.group, price=terms.price)
        elif not answers.has_terms(learner.preselector, arm, terms):
            learner.change(arm, terms.features, group=terms.group, price=terms.price)
        return self.describe(name), is_new

    def retire_arm(self, name: str, arm: str) -> None:
        """Let an arm leave."""
        learner = self._find(name).learner
        answers.require_arm(learner.preselector, arm)
        learner.remove(arm)

    def decide(self, name: str, new: NewDecision) -> tuple[schemas.Decision, bool]:
        """Choose arms."""
        kept = self._find(name)
        if kept.counts["waiting"] >= self._limits.waiting:
            raise OverloadedError(f"{self._limits.waiting} decisions of {name} wait for outcomes; report some first")
        entry = kept.learner.select(
            new.context,
            new.k,
            eligible=new.eligible,
            include=new.include,
            at_most=new.at_most,
            budget=new.budget,
            groups=new.groups,
            propensities=new.propensities,
            label=new.label,
            key=answers.make_id(),
            request=new.request_id,
            expires=new.expires_s or kept.new.expires_s or self._limits.expires_s,
        )
        explainer = kept.learner.preselector if new.explain else None
        record = kept.journal.record(entry.number)
        assert record is not None
        if not entry.is_new:
            return answers.describe_decision(name, self._read(kept, record), explainer), False
        key, expires = entry.key or "", entry.expires or 0.0
        self._made.append((kept, key, expires))
        return answers.describe_decision(name, make_past(record, None), explainer), True

    def find_decision(self, id: str, within: str | None, explain: bool) -> schemas.Decision:
        """Find a decision."""
        kept = self._locate(id, within)
        record = kept.journal.find_key(id)
        assert record is not None
        past = self._read(kept, record)
        return answers.describe_decision(kept.name, past, kept.learner.preselector if explain else None)

    def tell(self, id: str, outcome: NewOutcome, within: str | None) -> schemas.Ending:
        """Learn from an outcome."""
        kept = self._locate(id, within)
        waits = self._deadlines.find(id)
        if waits is not None and waits[0] < time.time() and self._expire(kept, id):
            raise ExpiredError(f"decision {id} has expired, so its outcome came too late")
        status: Any = "void" if outcome.outcome == "void" else "told"
        try:
            is_new, detail = kept.learner.learn(id, **answers.list_arguments(outcome), details=outcome.details), ""
        except UnlearntError as error:
            is_new, detail = True, str(error)
        if is_new:
            self._ended[id] = kept, status
        return schemas.Ending(id, status, is_new, detail)

    def tell_many(self, outcomes: Sequence[NumberedOutcome], within: str | None) -> list[schemas.Result]:
        """Learn from several outcomes."""
        return answers.tell_each(self.tell, outcomes, within)

    def weights(self, name: str, context: Values | None) -> schemas.Weights:
        """Estimate all arms."""
        return answers.estimate(self._find(name).learner.preselector, context)

    def rounds(self, name: str, after: int, limit: int) -> schemas.Rounds:
        """Read a page of rounds."""
        pairs = self._find(name).journal.rounds(after, limit + 1)
        return answers.make_page((make_past(*pair) for pair in pairs), limit)

    def history(self, name: str, after: int, limit: int) -> Sequence[Record]:
        """Read events."""
        return [*self._find(name).journal.records(after, limit)]

    def inspect(self, name: str, read: Callable[[Preselector], Any]) -> Any:
        """Return what a function reads from a preselector."""
        return read(self._find(name).learner.preselector)

    def update(self, name: str, after: int | None) -> schemas.Update:
        """Return counts and the newest rounds."""
        kept = self._find(name)
        pairs = [] if after is None else [*kept.journal.rounds(after, _MOST_ROUNDS, newest_first=True)]
        rounds = [answers.describe_round(make_past(*pair)) for pair in reversed(pairs)]
        return answers.make_update(kept.journal.last, kept.learner.preselector.version, kept.counts, rounds)

    def expire_due(self) -> int:
        """Expire the decisions that are due."""
        due = self._deadlines.list_due(time.time(), _MOST_EXPIRED)
        for key in due:
            self._expire(self._locate(key, None), key)
        return len(due)

    def check(self) -> None:
        """Write a snapshot, which changes nothing."""
        for kept in [*self._kept.values()][:1]:
            kept.learner.snapshot()

    def close(self) -> None:
        """Keep snapshots, and close the storage."""
        for kept in self._kept.values():
            kept.learner.close()
        self._storage.close()

    def _expire(self, kept: _Kept, id: str) -> bool:
        """Let a decision expire, unless it has ended in this batch."""
        if id in self._ended:
            return False
        kept.learner.expire(id)
        self._ended[id] = kept, "expired"
        return True

    def _find(self, name: str) -> _Kept:
        kept = self._kept.get(name)
        if kept is None:
            raise NotFoundError(f"there is no preselector {name!r:.100}; make it with PUT /v1/preselectors/NAME")
        return kept

    def _locate(self, id: str, within: str | None) -> _Kept:
        """Return the preselector of a decision."""
        waits = self._deadlines.find(id)
        if waits is not None:
            name = waits[1]
        else:
            row = self._storage.find_key(id)
            name = "" if row is None else row.journal
        kept = self._kept.get(name)
        if kept is None or within not in (None, name):
            raise NotFoundError(f"there is no decision {id!r:.100}")
        return kept

    def _read(self, kept: _Kept, record: Record) -> Past:
        return make_past(record, kept.journal.find_ending(record))


def make_past(record: Record, ending: Record | None) -> Past:
    """Return a decision and what ended it, as answers need them."""
    decided = record.event
    assert isinstance(decided, Decided)
    if ending is None:
        return Past(record.number, record.at, decided)
    event = ending.event
    assert isinstance(event, (Told, Expired))
    return Past(record.number, record.at, decided, ending.at, event)
