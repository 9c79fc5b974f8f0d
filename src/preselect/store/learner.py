"""A preselector that records every step in a journal, from which it can be restored bit for bit."""

from __future__ import annotations

import base64
import heapq
import secrets
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Self

from preselect.arguments import integer, names, number, show
from preselect.errors import ConflictError, ExpiredError, InputError, UnlearntError
from preselect.named.feedback import MISSING, Names, Places, Ratings, list_besides, make_outcome
from preselect.named.roster import Groups, Limits, describe_rules
from preselect.named.state import AnyPath
from preselect.named.values import Values, read_context
from preselect.outcomes import Outcome
from preselect.preselector import Preselector
from preselect.randomness import hash_root
from preselect.store.apply import Entry
from preselect.store.beginning import compare_beginnings
from preselect.store.events import Decided, Expired, Noted, Told
from preselect.store.journal import Journal, check_name
from preselect.store.record import Record
from preselect.store.recorded_arms import RecordedArms
from preselect.store.recorded_state import batch
from preselect.store.storage import MAIN, Row, SharedStorage, open_storage
from preselect.store.values import simplify


class Learner(RecordedArms):
    """Chooses and learns as a Preselector does, and writes every step to disk before it counts.

    A decision is in the journal when `select` returns, an outcome when `learn` returns. However a process ends, the
    next one that opens the journal resumes as if nothing had happened. A step that could not be recorded has no effect:
    after a full disk the same learner continues when there is room. Only one thread at a time may use a learner.

    Use `Learner.open`; the constructor takes a journal that is open already, and leaves its storage open.

    Parameters
    ----------
    journal : Journal
        The journal, open for writing.
    snapshot_every : int, optional
        After how many events to keep a snapshot of the state; 256 by default, more for large states. With fewer events
        opening is faster and writing slower.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> make = lambda: Preselector(["a", "b", "c"], seed=0)
    >>> with TemporaryDirectory() as folder:
    ...     with Learner.open(f"{folder}/race.journal", make=make) as learner:
    ...         entry = learner.select(k=2, label="first.cnf")
    ...     with Learner.open(f"{folder}/race.journal", make=make) as learner:
    ...         learner.learn(entry.number, winner=entry.decision.names[0], details={"seconds": 0.5})
    ...         learner.preselector.policy
    True
    Newton(d=3, rounds=1, observations=1)
    """

    @classmethod
    def open(
        cls,
        url: AnyPath,
        name: str = MAIN,
        *,
        make: Callable[[], Preselector],
        about: Mapping[str, Any] | None = None,
        snapshot_every: int | None = None,
        compare: bool = True,
    ) -> Self:
        """Resume a journal, or begin a new one.

        Parameters
        ----------
        url : str or path
            The storage. It is created if it does not exist.
        name : str, default "main"
            The name of the journal in it.
        make : callable
            Returns the preselector with which a new journal begins.
        about : mapping, optional
            What a new journal is about; anything that JSON can hold.
        snapshot_every : int, optional
            After how many events to keep a snapshot of the state.
        compare : bool, default True
            Whether to warn if an existing journal was begun with something other than `make` returns now, which then
            has no effect. With False, `make` is called only for a new journal.
        """
        with ExitStack() as resources:
            storage = resources.enter_context(open_storage(url, write=True))
            is_new = storage.about(check_name(name, "name")) is None
            if is_new:
                Journal.begin(storage, name, make().to_bytes(), about)
            learner = cls(Journal(storage, name), snapshot_every=snapshot_every)
            if compare and not is_new:
                learner._warn_about(make())
            learner._is_owner = True
            resources.pop_all()
        return learner

    def batch(self) -> AbstractContextManager[None]:
        """Make the steps in a `with` block durable at once, when it ends: all of them or, with an error, none."""
        return batch(self)

    def select(
        self,
        context: Values | None = None,
        k: int | None = None,
        *,
        eligible: Names | None = None,
        include: Names | None = None,
        at_most: Limits | None = None,
        budget: float | None = None,
        groups: Groups | None = None,
        propensities: bool = False,
        label: str = "",
        key: str | None = None,
        request: str | None = None,
        expires: float | None = None,
    ) -> Entry:
        """Choose k arms for a round, as Preselector.select does.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round: numbers by name, or in order; None or NaN for unknown values.
        k : int
            How many arms to choose.
        eligible : iterable of str, optional
            The arms to choose from; all of them by default.
        include, at_most, budget, groups : optional
            The rules for the set, as in Preselector.select; they are recorded.
        propensities : bool, default False
            Whether the decision records the probability with which each of its arms was chosen.
        label : str, default ""
            What the round is about, for reports.
        key : str, optional
            A public id for the decision, such as `make_key` returns, with which `learn` finds it. The decision's random
            numbers then depend on this id alone.
        request : str, optional
            The caller's name for this request. The same request again gives the same decision; with other arguments it
            is a ConflictError.
        expires : float, optional
            After how many seconds the decision expires if its outcome has not been reported: see `expire_due`.
        """
        if not isinstance(label, str):
            raise InputError(f"label is {show(label)}; use a string")
        if isinstance(eligible, Iterable) and not isinstance(eligible, str):
            eligible = tuple(eligible)  # an iterator could be read only once
        rules = describe_rules(include, at_most, budget, groups)
        known = None if request is None else self._find_request(check_name(request, "request"))
        if known is not None:
            return _repeat(known, context, k, label=label, eligible=eligible, rules=rules)
        with self._step():
            arms = self._fold.preselector
            seed = arms.policy.next_seed if key is None else hash_root(check_name(key, "key"))
            decision = arms.choose(context, k, seed=seed, eligible=eligible, propensities=propensities, **rules)
            more = {"label": label, "eligible": eligible, "rules": rules, "key": key, "request": request}
            event = Decided.of(decision, k=integer(k, "k", 1), expires=_find_end(expires), **more)
            entry = Entry(self.journal.last + 1, decision, label, key, event.expires)
            self._take(event, entry)
        return entry

    def learn(
        self,
        entry: Entry | int | str,
        *,
        winner: str | None = MISSING,
        ranking: Places | None = None,
        ratings: Ratings | None = None,
        outcome: Outcome | None = None,
        after: float | None = None,
        also: Names | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> bool:
        """Learn from the outcome of a decision: give a winner, a ranking, ratings or another outcome.

        Parameters
        ----------
        entry : Entry, int or str
            What `select` returned, its number, or its key: in this process or in an earlier one.
        winner : str or None, optional
            The chosen arm that won; None if nobody did, for policies with `outside`.
        ranking : iterable of str, or of lists of str, optional
            The chosen arms, or the best of them, best first. Arms that are tied are in a list: [["a", "b"], "c"].
        ratings : mapping of str to float, optional
            A number for every chosen arm, the higher the better: a ranking, in which equal ratings are ties.
        outcome : Outcome, optional
            Any other outcome, such as NoWinner() or Void().
        after : float, optional
            With a winner: how long the race took, as a share of its time limit, from 0 to 1.
        also : iterable of str, optional
            Arms that competed alongside the chosen ones: see Preselector.learn. They are recorded.
        details : mapping, optional
            What else to record, such as seconds; anything that JSON can hold. Nothing is learnt from it.

        Returns
        -------
        bool
            False if the same outcome was reported before; nothing changes then. A different outcome is a ConflictError;
            if the decision has expired, any outcome is an ExpiredError.
        """
        if not (details is None or isinstance(details, Mapping)):
            raise InputError(f"details is {show(details)}; give values by name")
        given = {"winner": winner, "ranking": ranking, "ratings": ratings, "outcome": outcome, "after": after}
        given["also"] = None if also is None else names(also, "also")
        with self._step():
            found = self.find(entry)
            ending = self.find_ending(found)
            if ending is not None:
                self._require_same(found, ending, given)
                return False
            refusal = self._take(self._make_told(found, given, details))[1]
        if refusal is not None:
            raise UnlearntError(f"the outcome of decision {found.number} is recorded, but not learnt from: {refusal}")
        return True

    def note(self, entry: Entry | int | str, *, details: Mapping[str, Any] | None = None, **outcome: Any) -> None:
        """Record what is known so far about how a decision ended; nothing is learnt before `learn`.

        If this process dies before that, the next one finds the note: see `find_note`.

        Parameters
        ----------
        entry : Entry, int or str
            What `select` returned, its number, or its key.
        details : mapping, optional
            What else to record, as in `learn`.
        **outcome
            winner, ranking, ratings, outcome, after or also, as in `learn`.
        """
        with self._step():
            found = self.find(entry)
            given = {"winner": MISSING, "ranking": None, "ratings": None, "outcome": None, "after": None, "also": None}
            self._take(Noted(self._make_told(found, {**given, **outcome}, details)))

    def expire(self, entry: Entry | int | str) -> bool:
        """Let a decision expire: its outcome is no longer accepted, and nothing is learnt.

        Parameters
        ----------
        entry : Entry, int or str
            What `select` returned, its number, or its key.

        Returns
        -------
        bool
            False if it had expired already. A decision that has an outcome is a ConflictError.
        """
        with self._step():
            found = self.find(entry)
            ending = self.find_ending(found)
            if ending is None:
                self._take(Expired(found.number, found.key))
            elif ending.kind != Expired.kind:
                raise ConflictError(f"decision {found.number} of {self.journal.source} has an outcome already")
        return ending is None

    def expire_due(self, now: float | None = None, *, limit: int = 1000) -> list[Entry]:
        """Let all decisions expire that are due, the oldest first, and return them.

        Parameters
        ----------
        now : float, optional
            The time, in seconds since 1970; by default that of the clock.
        limit : int, default 1000
            How many at most.
        """
        now, found = time.time() if now is None else now, []
        with self._step():
            for entry in self._list_due(now, limit):
                self._take(Expired(entry.number, entry.key))
                found.append(entry)
        return found

    def absorb(self, rows: Sequence[Row]) -> list[tuple[Row, str]]:
        """Number and apply rows that other processes submitted to a shared storage, and make that durable.

        Parameters
        ----------
        rows : sequence of Row
            Rows that wait, decisions before their endings.

        Returns
        -------
        list of pairs of Row and str
            The rows that were refused and removed, with the reason, such as that an arm of this name has joined
            already.
        """
        storage, refused = self.journal.storage, []
        assert isinstance(storage, SharedStorage)
        with self._step():
            for row in rows:
                try:
                    self._take_row(self._locate(row))
                except InputError as error:
                    refused.append((row, str(error)))
            storage.number(self.journal.drafts, [row for row, _ in refused])
            self.journal.settle()
        return refused

    # --- inside -------------------------------------------------------------------------------------------------------

    def _warn_about(self, made: Preselector) -> None:
        difference = compare_beginnings(self.journal.about.genesis, self._fold.preselector, made)
        if difference:
            warnings.warn(
                f"{self.journal.source} was begun with other settings, and keeps those: {difference}; "
                "change arms with add, change and remove, or use another journal",
                stacklevel=3,
            )

    def _find_request(self, request: str) -> Record | None:
        self._require_fresh()
        return self.journal.find_request(request)

    def _make_told(self, found: Entry, given: Mapping[str, Any], details: Mapping[str, Any] | None) -> Told:
        preselector = self._fold.preselector
        besides = list_besides(found.decision, given["also"])
        for name in besides:
            preselector.arm(name)  # refuses unknown arms
        outcome = make_outcome(found.decision, **{**given, "also": besides}, nobody_may_win=preselector.policy.outside)
        more = {"details": details or {}, "decision": found.number, "key": found.key}
        return Told.of(found.decision, outcome, also=besides, **more)

    def _require_same(self, found: Entry, ending: Record, given: Mapping[str, Any]) -> None:
        """Raise an error unless the outcome is the one reported before."""
        told = ending.event
        if not isinstance(told, Told):
            raise ExpiredError(f"decision {found.number} of {self.journal.source} has expired; nothing is learnt")
        try:
            same = told.says_the_same(self._make_told(found, given, None))
        except InputError:
            same = False
        if not same:
            raise ConflictError(
                f"decision {found.number} of {self.journal.source} has an outcome already: "
                f"{' '.join([told.outcome, *map(str, told.names)])}"
            )

    def _list_due(self, now: float, limit: int) -> Iterator[Entry]:
        if self._due is None:
            self._due = [(entry.expires, entry.number) for entry in self._list_waiting() if entry.expires is not None]
            heapq.heapify(self._due)
        while self._due and self._due[0][0] <= now and limit > 0:
            found = self.find(heapq.heappop(self._due)[1])
            if self.find_ending(found) is None:
                limit -= 1
                yield found

    def _locate(self, row: Row) -> Record:
        """Return a waiting row, completed by the number of the decision that it ends."""
        if row.kind not in (Told.kind, Expired.kind):
            return Record(row)
        found = self.find(row.key or "")
        if self.find_ending(found) is not None:
            raise ConflictError(f"decision {row.key} has ended already")
        return Record(row._replace(decision=found.number))


def make_key() -> str:
    """Return a public id for a decision: 26 random characters that nobody can guess."""
    return base64.b32encode(secrets.token_bytes(16))[:26].decode().lower()


def _find_end(seconds: float | None) -> float | None:
    return None if seconds is None else time.time() + number(seconds, "expires", least=0.0)


def _repeat(known: Record, context: Values | None, k: int | None, **given: Any) -> Entry:
    """Return the decision that a request got before; raise a ConflictError if its arguments were different."""
    event = known.event
    assert isinstance(event, Decided)
    try:
        values = read_context(context, list(event.labels[0]))
        same = values.tobytes() == event.decision.context.tobytes() and k == event.k
    except InputError:
        same = False
    for name, value in given.items():
        same = same and simplify(getattr(event, name), name) == simplify(value, name)
    if not same:
        raise ConflictError(f"request {event.request!r:.80} was made before, with other arguments; use another name")
    return Entry.of(event, known.number)
