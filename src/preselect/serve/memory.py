"""Keep preselectors in memory only: for tests, for the demo, and to measure what durability costs."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from preselect.errors import ConflictError, ExpiredError, NotFoundError, OverloadedError
from preselect.named.values import Values
from preselect.preselector import Preselector
from preselect.serve import answers, schemas
from preselect.serve.answers import Past
from preselect.serve.expiry import Deadlines
from preselect.serve.limits import ServiceLimits
from preselect.serve.schemas import ArmTerms, NewDecision, NewOutcome, NewPreselector, NumberedOutcome
from preselect.store import Record
from preselect.store.events import ArmChanged, ArmJoined, ArmRetired, Event, Expired, Told
from preselect.store.storage import Row

_MOST_EXPIRED = 1000  # in one batch
_MOST_ROUNDS = 50  # in one update


class _Kept:
    """A preselector and its decisions."""

    def __init__(self, name: str, new: NewPreselector, preselector: Preselector) -> None:
        self.name, self.new, self.preselector = name, new, preselector
        self.created, self.number = time.time(), 0
        self.records: list[Record] = []
        self.numbers: list[int] = []
        self.ids: list[str] = []
        self.requests: dict[str, str] = {}
        self.counts: Counter[str] = Counter()

    def note(self, event: Event) -> Record:
        """Number an event."""
        self.number += 1
        ended = event.decision if isinstance(event, Told | Expired) else None
        row = Row(self.name, self.number, time.time(), event.kind, ended, None, None, "", None, None)
        self.records.append(Record(row, event))
        return self.records[-1]

    @property
    def waiting(self) -> int:
        return self.counts["decisions"] - self.counts["told"] - self.counts["void"] - self.counts["expired"]


class MemoryEngine:
    """An Engine that forgets everything when it ends.

    Parameters
    ----------
    limits : ServiceLimits
        How many decisions may wait, and how long.
    """

    is_read_only = False

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits
        self._kept: dict[str, _Kept] = {}
        self._past: dict[str, tuple[_Kept, Past]] = {}
        self._deadlines = Deadlines()

    def start(self) -> None:
        """Do nothing, because nothing is stored."""

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Do nothing, because nothing has to be committed."""
        yield

    def create(self, name: str, new: NewPreselector) -> tuple[schemas.Description, bool]:
        """Make a preselector."""
        kept = self._kept.get(name)
        if kept is not None and kept.new != new:
            raise ConflictError(f"there is a preselector {name} already, with other settings; use another name")
        if kept is None:
            self._kept[name] = _Kept(name, new, answers.make_preselector(new))
        return self.describe(name), kept is None

    def describe(self, name: str) -> schemas.Description:
        """Describe a preselector."""
        kept = self._find(name)
        return answers.describe(
            name, kept.new, kept.preselector, kept.created, kept.number, {**kept.counts, "waiting": kept.waiting}
        )

    def describe_all(self) -> list[schemas.Description]:
        """Describe all preselectors."""
        return [self.describe(name) for name in sorted(self._kept)]

    def put_arm(self, name: str, arm: str, terms: ArmTerms) -> tuple[schemas.Description, bool]:
        """Let an arm join, or change it."""
        kept = self._find(name)
        is_new = arm not in kept.preselector.arms
        if is_new:
            kept.preselector.add(arm, terms.features, group=terms.group, price=terms.price)
        elif not answers.has_terms(kept.preselector, arm, terms):
            kept.preselector.change(arm, terms.features, group=terms.group, price=terms.price)
        kind = ArmJoined if is_new else ArmChanged
        kept.note(kind(arm, kept.preselector.arm(arm), terms.group, terms.price))
        return self.describe(name), is_new

    def retire_arm(self, name: str, arm: str) -> None:
        """Let an arm leave."""
        kept = self._find(name)
        answers.require_arm(kept.preselector, arm)
        kept.preselector.remove(arm)
        kept.note(ArmRetired(arm))

    def decide(self, name: str, new: NewDecision) -> tuple[schemas.Decision, bool]:
        """Choose arms."""
        kept, now = self._find(name), time.time()
        earlier = kept.requests.get(new.request_id) if new.request_id is not None else None
        if earlier is not None:
            past = self._past[earlier][1]
            answers.require_same_request(past.decided, new)
            return answers.describe_decision(name, past, kept.preselector if new.explain else None), False
        if kept.waiting >= self._limits.waiting:
            raise OverloadedError(f"{kept.waiting} decisions of {name} wait for their outcomes; report some first")
        key = answers.make_id()
        decision, decided = answers.choose(
            kept.preselector, new, key, now, kept.new.expires_s or self._limits.expires_s
        )
        kept.preselector.record(decision)
        past = self._keep(kept, Past(kept.note(decided).number, now, decided))
        if new.request_id is not None:
            kept.requests[new.request_id] = key
        return answers.describe_decision(name, past, kept.preselector if new.explain else None), True

    def _keep(self, kept: _Kept, past: Past) -> Past:
        key = past.decided.key or ""
        kept.numbers.append(past.number)
        kept.ids.append(key)
        kept.counts["decisions"] += 1
        self._past[key] = kept, past
        self._deadlines.add(key, past.decided.expires or 0.0, kept.name)
        return past

    def find_decision(self, id: str, within: str | None, explain: bool) -> schemas.Decision:
        """Find a decision."""
        kept, past = self._find_past(id, within)
        return answers.describe_decision(kept.name, past, kept.preselector if explain else None)

    def tell(self, id: str, outcome: NewOutcome, within: str | None) -> schemas.Ending:
        """Learn from an outcome."""
        kept, past = self._find_past(id, within)
        told, now = answers.make_told(past.decided, outcome, kept.preselector.policy.outside), time.time()
        if past.ending is None and (past.decided.expires or now) < now:
            past = self._end(kept, past, Expired(past.number, id))
        if isinstance(past.ending, Expired):
            raise ExpiredError(f"decision {id} has expired, so its outcome came too late")
        if past.ending is not None:
            answers.require_same_outcome(past.ending, told)
            return schemas.Ending(id, answers.find_status(past.ending), False)
        kept.preselector.learn(past.decided.decision, **answers.list_arguments(outcome))
        return schemas.Ending(id, answers.find_status(self._end(kept, past, told).ending), True)

    def _end(self, kept: _Kept, past: Past, ending: Told | Expired) -> Past:
        key = past.decided.key or ""
        ended = past._replace(ended=kept.note(replace(ending, decision=past.number)).at, ending=ending)
        self._past[key] = kept, ended
        self._deadlines.discard(key)
        kept.counts[answers.find_status(ending)] += 1
        return ended

    def tell_many(self, outcomes: Sequence[NumberedOutcome], within: str | None) -> list[schemas.Result]:
        """Learn from several outcomes."""
        return answers.tell_each(self.tell, outcomes, within)

    def weights(self, name: str, context: Values | None) -> schemas.Weights:
        """Estimate all arms."""
        return answers.estimate(self._find(name).preselector, context)

    def rounds(self, name: str, after: int, limit: int) -> schemas.Rounds:
        """Read a page of rounds."""
        kept = self._find(name)
        begin = bisect_right(kept.numbers, after)
        return answers.make_page((self._past[key][1] for key in kept.ids[begin : begin + limit + 1]), limit)

    def history(self, name: str, after: int, limit: int) -> Sequence[Record]:
        """Read events."""
        records = self._find(name).records
        begin = bisect_right(records, after, key=lambda record: record.number)
        return records[begin : begin + limit]

    def inspect(self, name: str, read: Callable[[Preselector], Any]) -> Any:
        """Return what a function reads from a preselector."""
        return read(self._find(name).preselector)

    def update(self, name: str, after: int | None) -> schemas.Update:
        """Return counts and the newest rounds."""
        kept = self._find(name)
        begin = len(kept.numbers) if after is None else bisect_right(kept.numbers, after)
        rounds = [
            answers.describe_round(self._past[key][1]) for key in kept.ids[max(begin, len(kept.ids) - _MOST_ROUNDS) :]
        ]
        return answers.make_update(
            kept.number, kept.preselector.version, {**kept.counts, "waiting": kept.waiting}, rounds
        )

    def expire_due(self) -> int:
        """Expire the decisions that are due."""
        due = self._deadlines.list_due(time.time(), _MOST_EXPIRED)
        for key in due:
            kept, past = self._past[key]
            self._end(kept, past, Expired(past.number, key))
        return len(due)

    def check(self) -> None:
        """Do nothing, because memory can always be written."""

    def close(self) -> None:
        """Do nothing, because nothing is stored."""

    def _find(self, name: str) -> _Kept:
        kept = self._kept.get(name)
        if kept is None:
            raise NotFoundError(f"there is no preselector {name!r:.100}; make it with PUT /v1/preselectors/NAME")
        return kept

    def _find_past(self, id: str, within: str | None) -> tuple[_Kept, Past]:
        found: Any = self._past.get(id)
        if found is None or within not in (None, found[0].name):
            raise NotFoundError(f"there is no decision {id!r:.100}")
        return found  # type: ignore[no-any-return]
