"""Steps of a learner: arms that change, outcomes and requests told again, expiry, batches of several journals."""

import pytest
from journals import SOLVERS, list_events, make_preselector, open_learner, play, run

from preselect import InputError, Void, store
from preselect.errors import ConflictError, ExpiredError, NotFoundError, UnlearntError
from preselect.store import Journal, Learner, batch, make_key, read_preselector, verify


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


def test_arms_and_features_change_and_are_replayed(path):
    with open_learner(path, snapshot_every=1000) as learner:
        play(learner, 3)
        entry = learner.select([1.0, 2.0], k=3)
        learner.remove("saps")
        with pytest.raises(UnlearntError, match="is recorded, but not learnt from"):
            learner.learn(entry, winner="saps")
        learner.change("kissat", {"age": 7.0}, group="new", price=2.0)
        learner.change("kissat", group=None)
        learner.add_context("hour")
        learner.add("saps", [0.5, None], price=1.0)
        learner.learn(learner.select([1.0, 2.0, None], k=2), outcome=Void())
        assert learner.preselector.prices == {"kissat": 2.0, "saps": 1.0}
        state = learner.preselector.to_bytes()
        learner.journal.storage.close()
    found = verify(path)
    assert found.equal, found.difference
    assert read_preselector(path).to_bytes() == state
    assert "context.hour" in run("export", path).stdout


def test_what_a_preselector_says_its_learner_says(path):
    with open_learner(path) as learner:
        play(learner, 4)
        entry = learner.select([3.0, 4.0], k=2)
        plain = learner.preselector
        assert str(learner.estimates([3.0, 4.0])) == str(plain.estimates([3.0, 4.0]))
        assert learner.explain(entry.number).to_dict() == plain.explain(entry.decision).to_dict()
        assert learner.propensities([3.0, 4.0], 2) == plain.propensities([3.0, 4.0], 2)
    with open_learner(path.with_name("drawn.journal"), "thompson") as learner:
        assert learner.select([3.0, 4.0], k=2, propensities=True).decision.propensities is not None
    assert verify(path.with_name("drawn.journal")).equal


def test_the_same_outcome_again_is_told_already(path):
    with open_learner(path) as learner:
        entry = learner.select([1, 2], k=2, key=make_key())
        name = entry.decision.names[0]
        assert learner.learn(entry.key, winner=name, details={"seconds": 1})
        state = learner.preselector.to_bytes()
        assert not learner.learn(entry.key, winner=name, details={"seconds": 2})
        assert not learner.learn(entry.number, winner=name)
        for other in ({"winner": entry.decision.names[1]}, {"outcome": Void()}, {"winner": name, "after": 0.5}):
            with pytest.raises(ConflictError, match=f"has an outcome already: winner {name}"):
                learner.learn(entry, **other)
        with pytest.raises(NotFoundError):
            learner.learn(make_key(), winner=name)
        with pytest.raises(ConflictError):
            learner.expire(entry)
        assert (learner.preselector.to_bytes(), learner.journal.last) == (state, 2)


def test_decisions_expire_without_teaching(path):
    with open_learner(path) as learner:
        entries = [learner.select([1, 2], k=2, key=make_key(), expires=60.0 - place) for place in range(3)]
        forever = learner.select([1, 2], k=2)
        assert learner.expire_due() == []
        late = learner.select([1, 2], k=2, expires=30.0)  # after the times were collected
        learner.learn(entries[0], outcome=Void())
        state = learner.preselector.to_bytes()
        due = learner.expire_due(late.expires + 1000, limit=2)
        assert [one.number for one in due] == [late.number, entries[2].number]
        assert learner.expire(entries[1])
        assert not learner.expire(entries[1])
        assert learner.preselector.to_bytes() == state
        with pytest.raises(ExpiredError, match="has expired"):
            learner.learn(late, outcome=Void())
        assert [one.number for one in learner.unfinished()] == [forever.number]
    found = verify(path)
    assert (found.equal, found.expired) == (True, 3), found.difference
    assert "1 void, 3 expired, 1 unfinished" in run("show", path).stdout
    assert ", 3 expired" in run("verify", path).stdout


def test_the_same_request_again_gets_the_same_decision(path):
    given = {"context": {"size": None, "ratio": 4.0}, "k": 2, "request": "r-1", "budget": None, "label": "x"}
    with open_learner(path) as learner:
        first = learner.select(**given, key=make_key())
        play(learner, 2)
        learner.remove(first.decision.names[0])
        again = learner.select(**given, key=make_key())
        assert (again.number, again.key, again.decision, again.is_new) == (1, first.key, first.decision, False)
        for other in (
            {"k": 1},
            {"label": "y"},
            {"eligible": list(SOLVERS)},
            {"context": [1.0, 4.0]},
            {"context": [1.0]},
        ):
            with pytest.raises(ConflictError, match="request 'r-1' was made before, with other arguments"):
                learner.select(**{**given, **other})
        for name in ("", "a\0b", "x" * 201, "\udc80", 7):
            with pytest.raises(InputError, match="use 1 to 200 characters"):
                learner.select(**{**given, "request": name})
    assert verify(path).equal


def test_keys_decide_about_chance(path):
    with open_learner(path, "random") as one, open_learner(path.with_name("other"), "random") as other:
        play(other, 3)
        key = make_key()
        assert one.select([1, 2], k=2, key=key).decision.names == other.select([1, 2], k=2, key=key).decision.names
        with pytest.raises(ConflictError, match="there is a decision with this key"):
            one.select([1, 2], k=2, key=key)
        assert (one.preselector.policy.rounds, one.journal.last) == (1, 1)
        one.learn(key, outcome=Void())
    assert len({make_key() for _ in range(100)}) == 100
    assert {len(make_key()) for _ in range(100)} == {26}


# --- batches and several journals -------------------------------------------------------------------------------------


def fail_after(learner, rounds):
    play(learner, rounds)
    raise ZeroDivisionError


def test_a_batch_is_one_commit_and_all_or_nothing(path):
    with open_learner(path) as learner:
        play(learner, 2)
        state = learner.preselector.to_bytes()
        with pytest.raises(ZeroDivisionError), learner.batch():
            fail_after(learner, 2)
        assert (learner.preselector.to_bytes(), learner.journal.last) == (state, 4)
        with learner.batch():
            entry = learner.select([1, 2], k=2, request="r", key=make_key())
            with pytest.raises(InputError):
                learner.select([1], k=2)
            assert learner.select([1, 2], k=2, request="r").number == entry.number
            learner.learn(entry.key, outcome=Void())
            assert not learner.learn(entry.number, outcome=Void())
            waiting = learner.select([1, 2], k=2, expires=0.0)
            assert [one.number for one in learner.unfinished()] == [waiting.number]
            assert [one.number for one in learner.expire_due()] == [waiting.number]
            assert len(list_events(path)) == 4
        assert len(list_events(path)) == 8
    assert verify(path).equal


def test_journals_in_one_file_are_committed_together(path):
    with store.open(path, write=True) as storage:
        learners = [
            Learner(Journal.begin(storage, name, make_preselector().to_bytes())[0]) for name in ("one", "two", "three")
        ]
        with batch(*learners):
            for place, learner in enumerate(learners):
                play(learner, place + 1)
        with pytest.raises(ZeroDivisionError), batch(*learners):
            fail_after(learners[0], 1)
        assert [learner.preselector.policy.rounds for learner in learners] == [1, 2, 3]
        _, is_new = Journal.begin(storage, "one", b"other")
        assert not is_new
        for learner in learners:
            learner.close()
    for name, events in (("one", 2), ("two", 4), ("three", 6)):
        assert verify(path, name).events == events
    assert "4 events" in run("verify", path, "--name", "two").stdout
    assert "has no journal 'main'; it has ['one', 'three', 'two']" in run("show", path, expect=1).stderr
