"""Any sequence of steps, failures and restarts, on both engines, against a dictionary and a pure fold."""

import contextlib
import hashlib
import itertools
import sqlite3
from unittest import mock

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from preselect import NoWinner, Preselector, Void
from preselect.errors import ConflictError, ExpiredError, InputError, JournalError, NotFoundError, UnlearntError
from preselect.store import Journal, Learner, verify
from preselect.store.learner import make_key
from preselect.store.restore import restore

ARMS = {"a": {"x": 1.0}, "b": {"x": 2.0}, "c": {}, "d": {"x": 0.5}}
SIZES = st.one_of(st.none(), st.floats(-10, 10), st.floats(allow_nan=False, allow_infinity=False))
EVERY = 5  # events between snapshots


def make_preselector():
    return Preselector(ARMS, ["size"], seed=0)


def end(decision, kind, place):
    """Some outcome of a decision, as `learn` takes it."""
    first = decision.names[place % len(decision.names)]
    return {
        "winner": {"winner": first, "after": 0.25 * (place % 5)},
        "ranking": {"ranking": [first, *(name for name in decision.names if name != first)]},
        "no-winner": {"outcome": NoWinner()},
        "void": {"outcome": Void()},
    }[kind]


OUTCOMES = {"kind": st.sampled_from(["winner", "ranking", "no-winner", "void"]), "place": st.integers(0, 3)}


class Failure:
    """Lets the storage fail at its next append, before anything is written or after all of it is durable."""

    def __init__(self, learner, after):
        self.storage, self.after = learner.journal.storage, after

    def __enter__(self):
        append = self.storage.append
        self.patch = mock.patch.object(self.storage, "append", lambda rows: self.fail(append, rows))
        self.patch.__enter__()

    def fail(self, append, rows):
        if self.after:
            append(rows)
        raise JournalError("the connection is lost")

    def __exit__(self, *error):
        self.patch.__exit__(*error)


class Machine(RuleBasedStateMachine):
    """Steps of a learner, and the same steps in memory."""

    waiting, ended, expired, requests = Bundle("waiting"), Bundle("ended"), Bundle("expired"), Bundle("requests")

    def __init__(self, url, damage, numbers):
        super().__init__()
        self.url, self.damage, self.name = url, damage, f"journal{next(numbers)}"
        self.fold, self.events = make_preselector(), 0
        self.decisions, self.model = {}, {}  # by key: the decision, and how it ended
        self.joined = 0
        self.open()

    def open(self):
        self.learner = Learner.open(self.url, self.name, make=make_preselector, snapshot_every=EVERY)

    # --- steps --------------------------------------------------------------------------------------------------------

    @rule(target=waiting, size=SIZES, k=st.integers(1, 4))
    def select(self, size, k):
        return self.choose(size, k)

    @rule(target=requests, size=SIZES, k=st.integers(1, 3))
    def request(self, size, k):
        request = f"r{len(self.decisions)}"
        return request, size, self.choose(size, k, request=request)

    def choose(self, size, k, **more):
        key = make_key()
        entry = self.learner.select([size], k=min(k, len(self.fold.arms)), key=key, **more)
        return self.expect(key, entry, size)

    def expect(self, key, entry, size):
        """Take the decision that must have been made into the model."""
        again = self.fold.choose([size], len(entry.decision.names), seed=entry.decision.seed)
        assert again == entry.decision
        self.fold.record(again)
        self.decisions[key], self.model[key] = again, None
        self.events += 1
        return key

    @rule(made=requests)
    def repeat(self, made):
        request, size, key = made
        count = len(self.decisions[key].names)
        entry = self.learner.select([size], k=count, key=make_key(), request=request)
        assert (entry.key, entry.is_new, entry.decision) == (key, False, self.decisions[key])
        with pytest.raises(ConflictError):
            self.learner.select([size], k=count, key=make_key(), request=request, label="another")

    @rule(target=ended, key=consumes(waiting), **OUTCOMES)
    def tell(self, key, kind, place):
        given = end(self.decisions[key], kind, place)
        try:
            assert self.learner.learn(key, **given) is True
            refused = False
        except UnlearntError:
            refused = True
        assert self.learn(key, given) is refused
        return key

    def learn(self, key, given):
        """Take an outcome into the model; whether nothing can be learnt from it."""
        self.model[key] = given
        self.events += 1
        try:
            self.fold.learn(self.decisions[key], **given)
        except InputError:
            return True
        return False

    @rule(key=ended)
    def tell_again(self, key):
        assert self.learner.learn(key, **self.model[key]) is False

    @rule(key=ended, **OUTCOMES)
    def tell_something_else(self, key, kind, place):
        given = end(self.decisions[key], kind, place)
        if given != self.model[key] and len(self.decisions[key].names) > 1:
            with pytest.raises(ConflictError):
                self.learner.learn(key, **given)
        with pytest.raises(ConflictError):
            self.learner.expire(key)

    @rule(target=expired, key=consumes(waiting))
    def expire(self, key):
        assert self.learner.expire(key) is True
        self.model[key] = "expired"
        self.events += 1
        return key

    @rule(key=expired)
    def tell_too_late(self, key):
        assert self.learner.expire(key) is False
        with pytest.raises(ExpiredError):
            self.learner.learn(key, winner=self.decisions[key].names[0])

    @rule()
    def tell_nothing(self):
        with pytest.raises(NotFoundError):
            self.learner.learn(make_key(), winner="a")

    @rule(x=SIZES)
    def join(self, x):
        self.joined += 1
        for arms in (self.learner, self.fold):
            arms.add(f"new{self.joined}", {"x": x})
        self.events += 1

    @rule(data=st.data(), x=SIZES)
    def change(self, data, x):
        name = data.draw(st.sampled_from(self.fold.arms))
        for arms in (self.learner, self.fold):
            arms.change(name, {"x": x}, price=1.5)
        self.events += 1

    @rule(data=st.data())
    def retire(self, data):
        if len(self.fold.arms) > 3:
            name = data.draw(st.sampled_from(self.fold.arms))
            for arms in (self.learner, self.fold):
                arms.remove(name)
            self.events += 1

    @rule(target=ended, keys=st.lists(consumes(waiting), min_size=1, max_size=4, unique=True), place=st.integers(0, 3))
    def tell_in_a_batch(self, keys, place):
        given = {key: end(self.decisions[key], "winner", place) for key in keys}
        with self.learner.batch():
            for key in keys:
                with contextlib.suppress(UnlearntError):
                    self.learner.learn(key, **given[key])
        for key in keys:
            self.learn(key, given[key])
        return multiple(*keys)

    # --- failures -----------------------------------------------------------------------------------------------------

    @rule(target=waiting, size=SIZES, after=st.booleans())
    def fail_to_select(self, size, after):
        key = make_key()
        with Failure(self.learner, after), pytest.raises(JournalError):
            self.learner.select([size], k=2, key=key)
        if after:  # it is there, although nobody was told so
            return self.expect(key, self.learner.find(key), size)
        with pytest.raises(NotFoundError):
            self.learner.find(key)
        return multiple()

    @rule(target=ended, key=consumes(waiting), place=st.integers(0, 3))
    def fail_to_tell(self, key, place):
        given = end(self.decisions[key], "ranking", place)
        with Failure(self.learner, after=False), pytest.raises(JournalError):
            self.learner.learn(key, **given)
        with contextlib.suppress(UnlearntError):
            assert self.learner.learn(key, **given) is True
        self.learn(key, given)
        return key

    @rule(keys=st.lists(waiting, min_size=1, max_size=4, unique=True))
    def give_a_batch_up(self, keys):
        with contextlib.suppress(RuntimeError), self.learner.batch():
            for key in keys:
                with contextlib.suppress(UnlearntError):
                    self.learner.learn(key, winner=self.decisions[key].names[0])
            self.learner.add("never")
            raise RuntimeError

    @rule(is_kind=st.booleans())
    def restart(self, is_kind):
        if is_kind:
            self.learner.close()
        else:  # as after a crash: without a snapshot, and without a word
            self.learner.journal.storage.close()
        self.open()
        assert self.learner.recovery.difference is None

    @rule(place=st.integers(0, 10**6), which=st.integers(0, 1))
    def damage_a_snapshot_and_crash(self, place, which):
        self.learner.journal.storage.close()
        self.damage(self.url, self.name, place, which)
        self.open()

    # --- what holds ---------------------------------------------------------------------------------------------------

    @invariant()
    def the_state_is_the_fold(self):
        assert self.learner.preselector.version == self.fold.version
        assert self.learner.preselector.to_bytes() == self.fold.to_bytes()
        assert self.learner.journal.last == self.events

    @invariant()
    def what_waits_waits(self):
        found = [entry.key for entry in self.learner.unfinished()]
        assert found == [key for key, ending in self.model.items() if ending is None]

    def teardown(self):
        self.learner.journal.storage.close()
        with Journal.read(self.url, self.name) as journal:
            assert restore(journal).fold.preselector.to_bytes() == self.fold.to_bytes()
            assert len(list(journal.rounds())) == len(self.decisions)
            is_damaged = [not is_intact(journal, snapshot) for snapshot in journal.snapshots()]
        difference = verify(self.url, name=self.name).difference
        assert (difference is None) is not any(is_damaged), difference


def is_intact(journal, snapshot):
    digest = journal.record(snapshot.after).row.digest if snapshot.after else journal.about.digest
    return hashlib.sha256(digest + snapshot.state).digest() == snapshot.digest


def flip(state, place):
    return bytes([*state[: place % len(state)], state[place % len(state)] ^ 1, *state[place % len(state) + 1 :]])


def damage_in_sqlite(url, name, place, which):
    with contextlib.closing(sqlite3.connect(url)) as connection, connection:
        query = "SELECT journal, after, state FROM snapshots WHERE journal = (SELECT id FROM journals WHERE name = ?)"
        for own, after, state in connection.execute(f"{query} ORDER BY after DESC", (name,)).fetchall()[which:]:
            change = "UPDATE snapshots SET state = ? WHERE journal = ? AND after = ?"
            connection.execute(change, (flip(state, place), own, after))
            return


def damage_in_postgres(url, name, place, which):
    with psycopg.connect(url) as connection:
        query = "SELECT after, state FROM preselect.snapshots WHERE journal = %s ORDER BY after DESC"
        for after, state in connection.execute(query, (name,)).fetchall()[which:]:
            change = "UPDATE preselect.snapshots SET state = %s WHERE journal = %s AND after = %s"
            connection.execute(change, (flip(state, place), name, after))
            return


def run(url, damage, **limits):
    numbers = itertools.count()
    limits |= {"phases": [Phase.generate]}  # to make a sequence shorter takes minutes
    run_state_machine_as_test(lambda: Machine(url, damage, numbers), settings=settings(**limits))


QUICK = {"max_examples": 8, "stateful_step_count": 25}
LONG = {"max_examples": 100, "stateful_step_count": 50}


@pytest.mark.filterwarnings("ignore::UserWarning")  # sets of one
def test_steps_with_sqlite(tmp_path):
    run(str(tmp_path / "machine.journal"), damage_in_sqlite, **QUICK)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_steps_with_postgresql(postgres):
    run(postgres, damage_in_postgres, **QUICK)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_many_steps_with_sqlite(tmp_path):
    run(str(tmp_path / "machine.journal"), damage_in_sqlite, **LONG)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_many_steps_with_postgresql(postgres):
    run(postgres, damage_in_postgres, **LONG)
