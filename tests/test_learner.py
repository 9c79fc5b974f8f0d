"""A learner with a journal: interrupted at any point it resumes, and nothing counts that is not on disk."""

import json
import logging
import math
import os
import random
import re

import pytest
from journals import SOLVERS, change, draw_context, draw_outcome, fill, make_preselector, open_learner, play, run

from preselect import InputError, NoWinner, Preselector, Ranking, Void, Winner
from preselect.errors import JournalError
from preselect.policies import registry
from preselect.policies.newton import Newton
from preselect.store import Journal, Learner, verify


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def written(path):
    return fill(path)


def read_state(preselector):
    """The same as `to_bytes`, in memory."""
    header, arrays = preselector._collect_state()
    return header, {name: (array.shape, array.tobytes()) for name, array in arrays.items()}


class Walk:
    """The same steps with a journal and without one: what comes out must be equal all the way."""

    def __init__(self, path, policy, seed):
        self.path, self.policy, self.generator = path, policy, random.Random(seed)
        self.learner, self.plain = open_learner(path, policy, snapshot_every=9), make_preselector(policy)
        self.waiting, self.joined = {}, 0

    def select(self):
        shown, k = draw_context(self.generator), self.generator.randint(1, 3)
        eligible = self.generator.choice([None, self.generator.sample(self.plain.arms, 3)])
        entry = self.learner.select(shown, k=k, eligible=eligible)
        self.waiting[entry.number] = decision = self.plain.select(shown, k=k, eligible=eligible)
        assert entry.decision.names == decision.names
        assert entry.decision.to_record()[1] == decision.to_record()[1]

    def learn(self):
        if self.waiting:  # any of them: late, out of order, by its number as after a restart
            number = self.generator.choice(list(self.waiting))
            decision = self.waiting.pop(number)
            outcome = draw_outcome(self.generator, decision.names)
            self.learner.learn(number, **outcome)
            self.plain.learn(decision, **outcome)

    def add(self):
        self.joined += 1
        features = self.generator.choice([None, {"cdcl": self.generator.random()}, {"age": None}])
        for chooser in (self.learner, self.plain):
            chooser.add(f"new{self.joined}", features)

    def reopen(self):
        self.generator.choice([self.learner.close, self.learner.journal.storage.close])()  # the latter: no snapshot
        self.learner = open_learner(self.path, self.policy, snapshot_every=9)
        assert self.learner.recovery.unfinished == len(self.waiting)
        assert [entry.number for entry in self.learner.unfinished()] == list(self.waiting)

    def snapshot(self):
        self.learner.snapshot()

    def go(self, steps):
        for step in self.generator.choices(("select", "learn", "add", "reopen", "snapshot"), (9, 8, 1, 2, 1), k=steps):
            getattr(self, step)()
            assert read_state(self.learner.preselector) == read_state(self.plain)
        self.learner.close()


@pytest.mark.filterwarnings("ignore:the winner of a set of one")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", registry.POLICIES)
def test_an_interrupted_learner_resumes_like_one_that_was_not(path, policy, seed):
    walk = Walk(path, policy, seed)
    walk.go(60)
    found = verify(path)
    assert found.equal, found.difference
    assert found.snapshots >= 1
    with Journal.read(path) as journal:
        assert found.events == journal.last > 20
    change(path, "DELETE FROM snapshots", triggers=[])
    with open_learner(path, policy) as learner:
        assert learner.recovery.events == found.events
        assert learner.preselector.to_bytes() == walk.plain.to_bytes()


def test_outcomes_by_position_are_kept_by_name(path):
    with open_learner(path) as learner:
        for outcome in (Winner, lambda arm: Ranking([arm])):
            entry = learner.select([1, 2], k=2)
            learner.learn(entry, outcome=outcome(entry.decision.arms[1]))
            assert learner.find_ending(entry).event.names == (entry.decision.names[1],)
        assert learner.preselector.policy.observations == 2
    assert verify(path).equal


def test_times_are_recorded_and_learnt(path):
    policy = "newton(outside=True)"
    with open_learner(path, policy) as learner:
        for outcome in ({"winner": "saps", "after": 0.3}, {"outcome": NoWinner(after=1.0)}, {"winner": "saps"}):
            entry = learner.select([1, 2], k=2, eligible=["saps", "kissat"])
            learner.learn(entry, **outcome)
        assert learner.preselector.policy.pace[:4].tolist() == [2.0, 10.3, 0.0, 1.0]
        state = learner.preselector.to_bytes()
    assert [json.loads(line)["after"] for line in run("export", path, "--format", "jsonl").stdout.splitlines()] == [
        0.3, 1.0, None,
    ]  # fmt: skip
    assert verify(path).equal
    with open_learner(path, policy) as learner:
        assert learner.preselector.to_bytes() == state


def test_description_and_arms_are_restored(path):
    with open_learner(path, about={"cores": 4, "limit": math.inf}) as learner:
        assert learner.recovery.events == 0
    made = lambda: pytest.fail("it is there")  # noqa: E731
    with Learner.open(path, make=made, about={"cores": 5}, compare=False) as learner:
        assert learner.about == {"cores": 4, "limit": math.inf}
        assert learner.arms == list(SOLVERS)
        assert list(learner.scores([1.0, 2.0])) == list(SOLVERS)
        assert "events=0" in repr(learner)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda l, e: l.learn(e), "give exactly one of winner, ranking, ratings and outcome; 0 were given"),
        (lambda l, e: l.learn(e, winner="minisat"), "'minisat' was not chosen; the decision has '"),
        (
            lambda l, e: l.learn(e, winner=e.decision.names[0], after=-1),
            "use a number of at least 0",
        ),
        (lambda l, e: l.learn(e, outcome=Void(), after=1.0), "after=1.0 needs a winner"),
        (lambda l, e: l.learn(e, ranking=[]), "a ranking needs at least one arm; if no arm won, use NoWinner"),
        (
            lambda l, e: l.learn(e, ranking=[e.decision.names[0]] * 2),
            "ranking has .* more than once; use distinct names",
        ),
        (lambda l, e: l.learn(e, ranking="saps"), "ranking is 'saps'; use a list of names"),
        (lambda l, e: l.learn(e, outcome="saps"), "outcome is 'saps'; use a Winner, Ranking, NoWinner or Void"),
        (lambda l, e: l.learn(e, outcome=Winner(7)), "the winner, 7, is not one of the selected arms"),
        (
            lambda l, e: l.learn(e, outcome=Void(), details={"x": {1, 2}}),
            r"details\['x'\] is {1, 2}, which JSON cannot hold",
        ),
        (lambda l, e: l.learn(e, outcome=Void(), details=[1]), r"details is \[1\]; give values by name"),
        (lambda l, _: l.learn(99, winner="saps"), r"event 99 of .*race\.journal is not a decision"),
        (lambda l, e: l.learn(e.number - 1, winner="saps"), r"event 6 of .*race\.journal is not a decision"),
        (lambda l, _: l.learn(1, outcome=Void()), r"decision 1 of .*race\.journal has an outcome already: winner "),
        (lambda l, _: l.learn("1", winner="saps"), r"race\.journal has no decision '1'"),
        (lambda l, _: l.learn(1.5, winner="saps"), r"entry is 1\.5; use an integer of at least"),
        (lambda l, _: l.select([1.0], k=1), "context has length 1, but its features are"),
        (lambda l, _: l.select([1.0, 1.0], k=9), "k=9 is too many"),
        (lambda l, _: l.select([1.0, 1.0], k=1, eligible="saps"), "eligible is 'saps'; use a list of names"),
        (lambda l, _: l.select([1.0, 1.0], k=1, eligible=7), "eligible is 7; use a list of names"),
        (lambda l, _: l.select([1.0, 1.0], k=1, label=None), "label is None; use a string"),
        (lambda l, _: l.add("saps"), "there is an arm 'saps' already; use another name"),
        (
            lambda l, _: l.add("new", ["cdcl"]),
            "'new' has 1 features in order; the features of arms are 'cdcl', 'age'",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(path, call, message):
    with open_learner(path) as learner:
        play(learner, 3)
        entry = learner.select([5, 4], k=2)
        state, last = learner.preselector.to_bytes(), learner.journal.last
        with pytest.raises(InputError, match=message):
            call(learner, entry)
        assert (learner.preselector.to_bytes(), learner.journal.last) == (state, last)
        play(learner, 1)
    assert verify(path).equal


def test_an_outcome_of_another_journals_decision_is_refused(path, tmp_path):
    with open_learner(path) as one, open_learner(tmp_path / "other.journal", "random") as other:
        mine, foreign = one.select([5, 4], k=2, label="mine"), other.select([5, 4], k=2, label="other")
        assert mine.number == foreign.number
        with pytest.raises(InputError, match="the entry is decision 1 of another journal, not of"):
            one.learn(foreign, winner=foreign.decision.names[0])


def test_a_preselector_that_cannot_be_made_leaves_no_files(path):
    with pytest.raises(InputError, match="unknown policy"):
        open_learner(path, "clever")
    with pytest.raises(InputError, match=r"description\['x'\] is .*, which JSON cannot hold"):
        open_learner(path, about={"x": object()})
    assert os.listdir(path.parent) == []


def test_after_a_full_disk_the_learner_goes_on(path):
    with open_learner(path) as learner:
        play(learner, 5)
        connection = learner.journal.storage._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalError, match="cannot be written because the disk is full; make room and try again"):
            learner.select([1, 2], k=1, label="x" * 100_000)
        state = learner.preselector.to_bytes()
        with pytest.raises(JournalError, match="disk is full"), learner.batch():
            learner.learn(learner.select([1, 2], k=2), outcome=Void(), details={"x": "x" * 100_000})
        assert learner.preselector.to_bytes() == state == replay_plainly(5).to_bytes()
        connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
        play(learner, 5, seed=1)
        assert [entry.label for entry in learner.unfinished()] == []
        state = learner.preselector.to_bytes()
    assert verify(path).equal
    with open_learner(path) as learner:
        assert learner.journal.last == 20
        assert learner.preselector.to_bytes() == state


def replay_plainly(rounds):
    """What `play` makes of a preselector without a journal."""
    plain, generator = make_preselector(), random.Random(0)
    for _ in range(rounds):
        decision = plain.select(draw_context(generator), k=2)
        plain.learn(decision, winner=generator.choice(decision.names))
    return plain


def test_an_interrupted_step_has_not_happened(path, monkeypatch):
    with open_learner(path) as learner:
        play(learner, 2)
        entry = learner.select([1, 2], k=2)
        state = learner.preselector.to_bytes()
        with monkeypatch.context() as patch:
            learn = learner.preselector.policy.learn
            fail = lambda *given: (learn(*given), (_ for _ in ()).throw(KeyboardInterrupt))  # noqa: E731
            patch.setattr(learner.preselector.policy, "learn", fail)
            with pytest.raises(KeyboardInterrupt):
                learner.learn(entry, winner=entry.decision.names[0])
        assert learner.preselector.to_bytes() == state
        assert [one.number for one in learner.unfinished()] == [entry.number]
        assert learner.learn(entry, winner=entry.decision.names[0])
    with pytest.raises(JournalError, match=r"the learner of .* is closed; open the journal again"):
        learner.select([1, 2], k=2)
    with open_learner(path) as learner:
        assert learner.preselector.policy.observations == 3
        assert learner.unfinished() == []


def test_an_arm_for_which_there_is_no_room_does_not_join(path):
    arms = [str(place) for place in range(30)]
    make = lambda: Preselector(arms, [f"x{place}" for place in range(99)], policy="random", seed=0)  # noqa: E731
    with Learner.open(path, make=make) as learner:
        with pytest.raises(InputError, match="make 6000 joint features, and at most 5000 are possible"):
            learner.add("more")
        assert learner.arms == arms
        learner.learn(learner.select([0.0] * 99, k=2), outcome=Void())
    assert verify(path).equal


class Picky(Newton):
    """Refuses the outcome of its second decision."""

    def learn(self, decision, outcome):
        if decision.round == 2:
            raise InputError("the decision is not to its liking")
        super().learn(decision, outcome)


def test_an_outcome_that_is_refused_is_recorded_and_never_learnt(path):
    with open_learner(path, "test_learner:Picky", snapshot_every=100) as learner:
        play(learner, 1)
        entry = learner.select([1, 2], k=2)
        with pytest.raises(
            JournalError, match=r"the outcome of decision 3 is recorded, but not learnt from: .* liking"
        ):
            learner.learn(entry, winner=entry.decision.names[0])
        play(learner, 1)
        state = learner.preselector.to_bytes()
    change(path, "DELETE FROM snapshots", triggers=[])
    with open_learner(path, "test_learner:Picky") as learner:
        assert learner.preselector.to_bytes() == state
        assert learner.preselector.policy.observations == 2
    assert verify(path).equal


def test_snapshots_are_made_on_the_way_and_few_are_kept(path):
    with open_learner(path, snapshot_every=4) as learner:
        play(learner, 9)
        assert [snapshot.after for snapshot in learner.journal.snapshots()] == [16, 12]
        learner.snapshot()
        assert [snapshot.after for snapshot in learner.journal.snapshots()] == [18, 16]
        learner.journal.storage.close()
    with open_learner(path) as learner:
        assert learner.recovery.events == 0


def test_a_snapshot_that_cannot_be_written_is_a_warning(path, monkeypatch, caplog):
    with open_learner(path, snapshot_every=4) as learner:
        monkeypatch.setattr(learner.journal, "keep_snapshot", lambda _: (_ for _ in ()).throw(JournalError("no room")))
        play(learner, 4)
        with pytest.raises(JournalError, match="no room"):
            learner.snapshot()
    assert [record.getMessage() for record in caplog.records] == ["no snapshot could be kept: no room"] * 2
    with open_learner(path) as learner:
        assert learner.recovery.events == 8


def test_snapshots_that_cannot_be_read_are_ignored(path, caplog):
    with open_learner(path, snapshot_every=4) as learner:
        play(learner, 5)
        state = learner.preselector.to_bytes()
    change(path, "UPDATE snapshots SET state = x'00' WHERE after = 10", triggers=[])
    with caplog.at_level(logging.WARNING), open_learner(path) as learner:
        assert learner.recovery.events == 2
        assert learner.preselector.to_bytes() == state
    assert re.search("the snapshot after event 10 of .* cannot be read", caplog.text)


def test_a_snapshot_of_another_moment_is_ignored(path, caplog):
    with open_learner(path, snapshot_every=4) as learner:
        play(learner, 5)
        state = learner.preselector.to_bytes()
    change(path, "UPDATE snapshots SET state = (SELECT state FROM snapshots WHERE after = 8)", triggers=[])
    with caplog.at_level(logging.WARNING), open_learner(path) as learner:
        assert learner.preselector.to_bytes() == state
    assert "its digest does not match" in caplog.text


def test_decisions_that_cannot_be_reproduced_count_as_recorded(written, caplog):
    change(written, "DELETE FROM snapshots", triggers=[])
    change(written, "UPDATE events SET body = json_set(body, '$.round', 9) WHERE number = 5", chained=True)
    with caplog.at_level(logging.WARNING), open_learner(written) as learner:
        assert learner.recovery.difference.startswith("decision 5 (2.cnf): round was 9 and is 3 when replayed")
        assert learner.preselector.policy.observations == 5
    assert "the recorded decision counts" in caplog.text
