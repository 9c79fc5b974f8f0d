"""The journal: nothing acknowledged is lost, nothing counts twice, and everything comes out again bit for bit."""

import csv
import io
import json
import logging
import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
from click.testing import CliRunner

from preselect import InputError, NoWinner, Preselector, Ranking, StateFileError, Void, Winner
from preselect.cli.journal import journal as command
from preselect.cli.main import Group
from preselect.errors import JournalError
from preselect.policies import registry
from preselect.policies.newton import Newton
from preselect.store import Journal, Learner, verify
from preselect.store import database as files
from preselect.store import journal as journals
from preselect.store.values import decode, encode

SOLVERS = {"cadical": {"cdcl": 1, "age": 5.0}, "saps": {"cdcl": 0, "age": 20.0}, "kissat": {"cdcl": 1, "age": None}}
TRIGGERS = [f"{table}_refuses_{change}" for table in ("about", "events") for change in ("update", "delete")]


def made(policy="newton"):
    return Preselector(SOLVERS, ["size", "ratio"], policy=policy, seed=3)


def opened(path, policy="newton", **options):
    return Learner.open(path, make=lambda: made(policy), **options)


def context(generator):
    return {"size": generator.choice([None, math.exp(generator.uniform(0, 9))]), "ratio": generator.uniform(3, 5)}


def told(generator, chosen):
    """Some outcome for the arms chosen, as `learn` takes it."""
    order = generator.sample(chosen, generator.randint(1, len(chosen)))
    after = generator.choice([None, generator.random()])
    ends = [{"winner": order[0], "after": after}, {"ranking": order}, {"outcome": NoWinner(after)}, {"outcome": Void()}]
    return generator.choice(ends)


def play(learner, rounds, seed=0):
    """Rounds in which every decision has its outcome at once."""
    generator = random.Random(seed)
    for place in range(rounds):
        entry = learner.select(context(generator), k=2, label=f"{place}.cnf")
        learner.learn(entry, winner=generator.choice(entry.decision.names), details={"seconds": place / 7})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def written(path):
    """A journal of 6 rounds, the last one unfinished, with an arm that joined."""
    with opened(path, about={"purpose": "test"}) as learner:
        play(learner, 3)
        learner.add("glucose", {"cdcl": 1})
        play(learner, 2, seed=1)
        learner.select([1.0, None], k=3, label="last.cnf", eligible=["saps", "glucose", "kissat"])
    return path


def changed(path, *statements, triggers=TRIGGERS, chained=False):
    """Change a journal by other means; with `chained`, by somebody who makes the digests fit too."""
    connection = sqlite3.connect(path)
    for trigger in triggers:
        connection.execute(f"DROP TRIGGER {trigger}")
    for statement in statements:
        assert connection.execute(statement).rowcount, statement
    if chained:
        digest = journals.About(0.0, _genesis(connection), {}, {}).digest
        for row in connection.execute("SELECT * FROM events ORDER BY number").fetchall():
            digest = journals._digest(digest, *row[:-1])
            connection.execute("UPDATE events SET digest = ? WHERE number = ?", (digest, row[0]))
    connection.commit()
    connection.close()


def _genesis(connection):
    return journals.zlib.decompress(connection.execute("SELECT value FROM about WHERE name = 'genesis'").fetchone()[0])


class Walk:
    """The same steps with a journal and without one: what comes out must be equal all the way."""

    def __init__(self, path, policy, seed):
        self.path, self.policy, self.generator = path, policy, random.Random(seed)
        self.learner, self.plain = opened(path, policy, snapshot_every=9), made(policy)
        self.waiting, self.joined = {}, 0

    def select(self):
        shown, k = context(self.generator), self.generator.randint(1, 3)
        eligible = self.generator.choice([None, self.generator.sample(self.plain.arms, 3)])
        entry = self.learner.select(shown, k=k, eligible=eligible)
        self.waiting[entry.number] = decision = self.plain.select(shown, k=k, eligible=eligible)
        assert entry.decision.names == decision.names
        assert entry.decision.numbers.tobytes() == decision.numbers.tobytes()

    def learn(self):
        if self.waiting:  # any of them: late, out of order, by its number as after a restart
            number = self.generator.choice(list(self.waiting))
            decision = self.waiting.pop(number)
            outcome = told(self.generator, decision.names)
            self.learner.learn(number, **outcome)
            self.plain.learn(decision, **outcome)

    def add(self):
        self.joined += 1
        features = self.generator.choice([None, {"cdcl": self.generator.random()}, {"age": None}])
        for chooser in (self.learner, self.plain):
            chooser.add(f"new{self.joined}", features)

    def reopen(self):
        self.generator.choice([self.learner.close, self.learner.journal.close])()  # the latter: without a snapshot
        self.learner = opened(self.path, self.policy, snapshot_every=9)
        assert self.learner.recovery.unfinished == len(self.waiting)
        assert [entry.number for entry in self.learner.unfinished()] == list(self.waiting)

    def snapshot(self):
        self.learner.snapshot()

    def go(self, steps):
        for step in self.generator.choices(("select", "learn", "add", "reopen", "snapshot"), (9, 8, 1, 2, 1), k=steps):
            getattr(self, step)()
            assert self.learner.preselector.to_bytes() == self.plain.to_bytes()
        self.learner.close()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", registry.POLICIES)
def test_a_learner_that_is_interrupted_goes_on_as_one_that_is_not(path, policy, seed):
    walk = Walk(path, policy, seed)
    walk.go(60)
    found = verify(path)
    assert found.equal, found.difference
    assert found.snapshots >= 1
    with Journal.read(path) as journal:
        assert found.events == journal.last > 20
    changed(path, "DELETE FROM snapshots", triggers=[])
    with opened(path, policy) as learner:
        assert learner.recovery.events == found.events
        assert learner.preselector.to_bytes() == walk.plain.to_bytes()


WRITER = """
import json, os, random, signal, sys, time, traceback
from preselect import Preselector
from preselect.store import Learner

def write(path, pipe, seed):
    generator = random.Random(seed)
    make = lambda: Preselector(["a", "b", "c", "d"], ["size"], policy="thompson", seed=0)
    with Learner.open(path, make=make, snapshot_every=7) as learner:
        waiting = [entry.number for entry in learner.unfinished()]
        while True:
            entry = learner.select([generator.random()], k=2)
            os.write(pipe, b"decision %d\\n" % entry.number)
            waiting.append(entry.number)
            number = waiting.pop(generator.randrange(len(waiting)))
            names = [one for one in learner.unfinished() if one.number == number][0].decision.names
            learner.learn(number, winner=generator.choice(names))
            os.write(pipe, b"outcome %d\\n" % number)

generator, acknowledged = random.Random(0), []
for kill in range(24):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(sys.argv[1], theirs, kill)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(70)
    os.close(theirs)
    said = b""
    if kill % 2:  # at least one step is done; otherwise the moment may be one of the opening
        said = os.read(ours, 1)
    time.sleep(generator.uniform(0.0, 0.06))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status
    while part := os.read(ours, 65536):
        said += part
    os.close(ours)
    acknowledged += said.decode().splitlines()
print(json.dumps(acknowledged))
"""


def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(path):
    run = subprocess.run([sys.executable, "-c", WRITER, path], capture_output=True, text=True, check=False, timeout=300,
                         env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})  # fmt: skip
    assert run.returncode == 0, run.stderr
    acknowledged = [line.split() for line in json.loads(run.stdout)]
    with Journal.read(path) as journal:
        events = list(journal.events())
    decisions = {event.number for event in events if event.kind == "decision"}
    outcomes = [event.decision for event in events if event.kind == "outcome"]
    assert {int(number) for kind, number in acknowledged if kind == "decision"} <= decisions
    assert {int(number) for kind, number in acknowledged if kind == "outcome"} <= set(outcomes)
    assert len(set(outcomes)) == len(outcomes)
    assert 12 <= len(acknowledged) <= len(events) <= len(acknowledged) + 24
    found = verify(path)
    assert found.equal, found.difference
    with Learner.open(path, make=made) as learner:
        assert len(learner.unfinished()) == len(decisions) - len(outcomes)
    assert verify(path).equal


def test_outcomes_by_position_are_kept_by_name(path):
    with opened(path) as learner:
        for outcome in (Winner, lambda arm: Ranking([arm])):
            entry = learner.select([1, 2], k=2)
            learner.learn(entry, outcome=outcome(entry.decision.arms[1]))
            assert learner.journal.outcome_of(entry.number).body["names"] == [entry.decision.names[1]]
        assert learner.preselector.policy.observations == 2
    assert verify(path).equal


def test_how_long_it_took_is_kept_and_learnt(path):
    policy = "newton(outside=True)"
    with opened(path, policy) as learner:
        for told in ({"winner": "saps", "after": 0.3}, {"outcome": NoWinner(after=1.0)}, {"winner": "saps"}):
            entry = learner.select([1, 2], k=2, eligible=["saps", "kissat"])
            learner.learn(entry, **told)
        assert learner.preselector.policy.pace.tolist() == [2.0, 10.3]
        state = learner.preselector.to_bytes()
    assert [json.loads(line)["after"] for line in run("export", path, "--format", "jsonl").stdout.splitlines()] == [
        0.3, 1.0, None,
    ]  # fmt: skip
    assert verify(path).equal
    with opened(path, policy) as learner:
        assert learner.preselector.to_bytes() == state


def test_what_it_is_about_and_its_arms_are_there_again(path):
    with opened(path, about={"cores": 4, "limit": math.inf}) as learner:
        assert learner.recovery.events == 0
    with Learner.open(path, make=lambda: pytest.fail("it is there"), about={"cores": 5}) as learner:
        assert learner.about == {"cores": 4, "limit": math.inf}
        assert learner.arms == list(SOLVERS)
        assert list(learner.scores([1.0, 2.0])) == list(SOLVERS)
        assert "events=0" in repr(learner)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda l, e: l.learn(e), "give exactly one of winner, ranking and outcome; 0 were given"),
        (lambda l, e: l.learn(e, winner="minisat"), r"winner must name arms that were chosen, \[.*\], got 'minisat'"),
        (
            lambda l, e: l.learn(e, winner=e.decision.names[0], after=-1),
            "use a number of at least 0",
        ),
        (lambda l, e: l.learn(e, outcome=Void(), after=1.0), "after=1.0 needs a winner"),
        (lambda l, e: l.learn(e, ranking=[]), "a ranking needs at least one arm; if no arm won, use NoWinner"),
        (lambda l, e: l.learn(e, ranking=[e.decision.names[0]] * 2), "ranking must name distinct arms"),
        (lambda l, e: l.learn(e, ranking="saps"), "ranking must be a list of names, got 'saps'"),
        (lambda l, e: l.learn(e, outcome="saps"), "outcome must be Winner, Ranking, NoWinner or Void, got 'saps'"),
        (lambda l, e: l.learn(e, outcome=Winner(7)), "the winner, 7, is not one of the selected arms"),
        (
            lambda l, e: l.learn(e, outcome=Void(), details={"x": {1, 2}}),
            r"outcome\['details'\]\['x'\] must be what JSON",
        ),
        (lambda l, e: l.learn(e, outcome=Void(), details=[1]), r"details must be values by name, got \[1\]"),
        (lambda l, _: l.learn(99, winner="saps"), r"entry must be a decision of .*race\.journal, got number 99"),
        (lambda l, e: l.learn(e.number - 1, winner="saps"), "entry must be a decision of .*, got number"),
        (lambda l, _: l.learn(1, winner="saps"), "entry must be a decision without an outcome, got 1"),
        (lambda l, _: l.learn("1", winner="saps"), "entry is '1'; use an integer of at least"),
        (lambda l, _: l.select([1.0], k=1), "context has length 1, but its features are"),
        (lambda l, _: l.select([1.0, 1.0], k=9), "k=9 is too many"),
        (lambda l, _: l.select([1.0, 1.0], k=1, eligible="saps"), "eligible is 'saps'; use a list of names"),
        (lambda l, _: l.select([1.0, 1.0], k=1, eligible=7), "eligible is 7; use a list of names"),
        (lambda l, _: l.select([1.0, 1.0], k=1, label=None), "label must be a text, got None"),
        (lambda l, _: l.add("saps"), "there is an arm 'saps' already; use another name"),
        (lambda l, _: l.add("new", ["cdcl"]), r"features of new must be values by name, got \['cdcl'\]"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(path, call, message):
    with opened(path) as learner:
        play(learner, 3)
        entry = learner.select([5, 4], k=2)
        state, last = learner.preselector.to_bytes(), learner.journal.last
        with pytest.raises(InputError, match=message):
            call(learner, entry)
        assert (learner.preselector.to_bytes(), learner.journal.last) == (state, last)
        play(learner, 1)
    assert verify(path).equal


def test_an_outcome_of_another_journals_decision_is_refused(path, tmp_path):
    with opened(path) as one, opened(tmp_path / "other.journal", "random") as other:
        mine, foreign = one.select([5, 4], label="mine"), other.select([5, 4], label="other")
        assert mine.number == foreign.number
        with pytest.raises(InputError, match="got another journal's number 1"):
            one.learn(foreign, winner=foreign.decision.names[0])


def test_the_file_refuses_second_outcomes_changes_and_gaps(written):
    connection = sqlite3.connect(written, isolation_level=None)
    event = "SELECT {}, at, kind, {}, body, numbers, digest FROM events WHERE number = {}"
    last = connection.execute("SELECT max(number) FROM events").fetchone()[0]
    before = list(connection.execute("SELECT * FROM events"))
    for statement, reason in (
        ("UPDATE events SET at = 0", "only ever added to"),
        ("DELETE FROM events WHERE number = 1", "only ever added to"),
        ("UPDATE about SET value = 0", "only ever added to"),
        ("DELETE FROM about", "only ever added to"),
        (f"INSERT INTO events {event.format(last + 1, 1, 2)}", "a decision has one outcome"),
        (f"INSERT OR REPLACE INTO events {event.format(last + 1, 1, 2)}", "a decision has one outcome"),
        (f"INSERT OR REPLACE INTO events {event.format(1, 'decision', 1)}", "the number after the last one"),
        (f"INSERT INTO events {event.format(last + 2, 'decision', 1)}", "the number after the last one"),
        (f"INSERT INTO events {event.format(last + 1, 2, 2)}", "an outcome must be that of a decision"),
        (f"INSERT INTO events {event.format(last + 1, 'NULL', 2)}", "must be that of a decision"),
        (f"INSERT INTO events {event.format(last + 1, last, 1)}", "CHECK constraint failed"),
    ):
        with pytest.raises(sqlite3.IntegrityError, match=reason):
            connection.execute(statement)
    assert list(connection.execute("SELECT * FROM events")) == before
    connection.close()


def test_one_writer_at_a_time(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    with opened(path) as learner:
        for name in (path, tmp_path / "link"):
            with pytest.raises(JournalError, match=rf"race\.journal is in use by process {os.getpid()}; end it first"):
                opened(name)
        play(learner, 1)
        child = subprocess.Popen(["sleep", "600"], close_fds=False)
        held = {os.readlink(link) for link in Path(f"/proc/{child.pid}/fd").iterdir()}
    try:
        assert not {name for name in held if "race.journal" in name}
        with opened(path) as again:
            assert again.recovery.events == 0
    finally:
        child.kill()
        child.wait()


def test_a_lock_that_was_left_behind_is_nobodys(path):
    path.with_name("race.journal.lock").write_text("1")
    with opened(path):
        assert path.with_name("race.journal.lock").read_text() == str(os.getpid())
    assert not path.with_name("race.journal.lock").exists()


def test_readers_beside_a_writer_see_one_state_and_are_in_nobodys_way(path):
    with opened(path, snapshot_every=3) as learner:
        play(learner, 5)
        with Journal.read(path) as reader:
            play(learner, 5, seed=1)
            assert reader.last == len(list(reader.events())) == 10
            assert learner.journal.last == 20
            assert verify(path).events == 20
        assert verify(path).equal
        with Journal.read(path) as reader, pytest.raises(JournalError, match="cannot be written"):
            reader.append("arm", {"name": "x", "features": {}})
    assert os.listdir(path.parent) == [path.name]


def test_a_file_in_which_nothing_was_committed_is_begun(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert path.stat().st_size > 0
    with pytest.raises(JournalError, match="is not a journal, it is empty"):
        Journal.read(path)
    with opened(path) as learner:
        play(learner, 1)
    path.unlink()
    path.touch()
    with opened(path) as learner:
        play(learner, 1)
    assert verify(path).equal


def test_a_preselector_that_cannot_be_made_leaves_no_files(path):
    with pytest.raises(InputError, match="unknown policy"):
        opened(path, "clever")
    with pytest.raises(InputError, match=r"description\['x'\] must be what JSON can hold"):
        opened(path, about={"x": object()})
    assert os.listdir(path.parent) == []


def refusals(path):
    """What opening says, for reading and for writing."""
    said = []
    for attempt in (lambda: Journal.read(path), lambda: opened(path)):
        with pytest.raises(JournalError) as refusal:
            attempt()
        said.append(str(refusal.value))
    return said


def test_what_is_no_journal_is_refused_and_left_as_it_is(path, tmp_path):
    with pytest.raises(JournalError, match=r"there is no journal .*race\.journal"):
        Journal.read(path)
    assert os.listdir(tmp_path) == []
    for content in (b"x", b"nonsense\n" * 1000):
        path.write_bytes(content)
        assert all("is not a journal, it is no SQLite database" in said for said in refusals(path))
        assert path.read_bytes() == content
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = path.read_bytes()
    assert all("it is another program's SQLite database" in said for said in refusals(path))
    assert path.read_bytes() == before
    assert all("must be a file to be a journal, got a folder" in said for said in refusals(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [path.name]
    for place in (tmp_path / "nowhere" / "a.journal", Path("/proc/self/a.journal")):
        with pytest.raises(JournalError, match="must be a file in a folder in which files can be written"):
            opened(place)


def test_newer_versions_are_refused(written):
    connection = sqlite3.connect(written)
    connection.execute(f"PRAGMA user_version = {files.VERSION + 1}")
    connection.close()
    assert all("has version 2, this preselect reads up to 1; update preselect" in said for said in refusals(written))


def test_truncated_and_overwritten_files_are_refused_or_found(path):
    with opened(path, snapshot_every=10) as learner:
        play(learner, 40)
    whole, events = path.read_bytes(), listed(path)
    for length in (1, 100, 511, 512, 4096, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:length])
        assert all("is damaged" in said or "is not a journal" in said for said in refusals(path))
    noticed = 0
    for first in range(4096, len(whole), 4096):
        path.write_bytes(whole[:first] + bytes(4096) + whole[first + 4096 :])
        try:
            equal = verify(path).equal
        except JournalError:
            equal = False
        noticed += not equal
        assert not equal or listed(path) == events  # a page that holds nothing at present
    assert noticed > 10


def listed(path):
    with Journal.read(path) as journal:
        return list(journal.events())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_may_not_be_written_can_be_read(written):
    for mode, place in ((0o444, written), (0o555, written.parent)):
        place.chmod(mode)
        try:
            assert verify(written).equal
            with pytest.raises(JournalError, match=r"can(not)? be written"):
                opened(written)
        finally:
            place.chmod(0o755)
    assert verify(written).equal


def test_a_full_disk_ends_the_learner_and_nothing_else(path):
    with opened(path) as learner:
        play(learner, 5)
        connection = learner.journal._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalError, match="the disk is full; make room and open it again"):
            learner.select([1, 2], k=1, label="x" * 100_000)
        for use in (
            lambda: learner.select([1, 2]),
            lambda: learner.scores([1, 2]),
            lambda: learner.learn(1, winner="a"),
        ):
            with pytest.raises(JournalError, match=r"must be opened again to go on from what is on disk, .* is full"):
                use()
    plain = made()
    generator = random.Random(0)
    for _ in range(5):
        decision = plain.select(context(generator), k=2)
        plain.learn(decision, winner=generator.choice(decision.names))
    with opened(path) as learner:
        assert learner.recovery.events == 10
        assert learner.preselector.to_bytes() == plain.to_bytes()


def test_an_interrupted_step_ends_the_learner(path, monkeypatch):
    with opened(path) as learner:
        entry = learner.select([1, 2], k=2)
        monkeypatch.setattr(learner.preselector.policy, "_observe", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            learner.learn(entry, winner=entry.decision.names[0])
        with pytest.raises(JournalError, match="a step was not finished: KeyboardInterrupt"):
            learner.select([1, 2])
    with pytest.raises(JournalError, match="must be open to be used, got a learner that was closed"):
        learner.select([1, 2])
    with opened(path) as learner:
        assert learner.recovery.events == 2
        assert learner.preselector.policy.observations == 1
        assert learner.unfinished() == []


def test_an_arm_for_which_there_is_no_room_does_not_join_and_the_learner_goes_on(path):
    arms = [str(place) for place in range(30)]
    make = lambda: Preselector(arms, [f"x{place}" for place in range(99)], policy="random", seed=0)  # noqa: E731
    with Learner.open(path, make=make) as learner:
        with pytest.raises(InputError, match="make 6000 joint features, and at most 5000 are possible"):
            learner.add("more")
        assert learner.arms == arms
        learner.learn(learner.select([0.0] * 99, 2), outcome=Void())
    assert verify(path).equal


class Picky(Newton):
    """Refuses what it is told of its second decision."""

    def _observe(self, decision, ranking):
        if decision.round == 2:
            raise InputError("decision must be to its liking")
        super()._observe(decision, ranking)


def test_an_outcome_that_is_refused_is_kept_and_teaches_nothing_ever(path):
    with opened(path, "test_journal:Picky", snapshot_every=100) as learner:
        play(learner, 1)
        entry = learner.select([1, 2])
        with pytest.raises(JournalError, match=r"the outcome of decision 3 is kept, but taught nothing: .* liking"):
            learner.learn(entry, winner=entry.decision.names[0])
        play(learner, 1)
        state = learner.preselector.to_bytes()
    changed(path, "DELETE FROM snapshots", triggers=[])
    with opened(path) as learner:
        assert learner.preselector.to_bytes() == state
        assert learner.preselector.policy.observations == 2
    assert verify(path).equal


def test_snapshots_are_made_on_the_way_and_few_are_kept(path):
    with opened(path, snapshot_every=4) as learner:
        play(learner, 9)
        assert [snapshot.after for snapshot in learner.journal.snapshots()] == [16, 12]
        learner.snapshot()
        assert [snapshot.after for snapshot in learner.journal.snapshots()] == [18, 16]
        learner.journal.close()
    with opened(path) as learner:
        assert learner.recovery.events == 0


def test_a_snapshot_that_cannot_be_written_is_a_warning(path, monkeypatch, caplog):
    with opened(path, snapshot_every=4) as learner:
        monkeypatch.setattr(learner.journal, "keep_snapshot", lambda _: (_ for _ in ()).throw(JournalError("no room")))
        play(learner, 4)
        with pytest.raises(JournalError, match="no room"):
            learner.snapshot()
    assert [record.getMessage() for record in caplog.records] == ["no snapshot was kept: no room"] * 2
    with opened(path) as learner:
        assert learner.recovery.events == 8


def test_snapshots_that_cannot_be_read_are_passed_over(path, caplog):
    with opened(path, snapshot_every=4) as learner:
        play(learner, 5)
        state = learner.preselector.to_bytes()
    changed(path, "UPDATE snapshots SET state = x'00' WHERE after = 10", triggers=[])
    with caplog.at_level(logging.WARNING), opened(path) as learner:
        assert learner.recovery.events == 2
        assert learner.preselector.to_bytes() == state
    assert "the snapshot after event 10 cannot be read" in caplog.text


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE events SET body = json_set(body, '$.context.size', 7.0) WHERE number = 12", "decision 12"),
        ("UPDATE events SET body = json_set(body, '$.context.ratio', 9.0) WHERE number = 5", "decision 5 (2.cnf)"),
        ("UPDATE events SET body = json_set(body, '$.scores[0]', 0.5) WHERE number = 5", "scores was [0.5, "),
        ("UPDATE events SET body = json_set(body, '$.chosen[0]', 'x') WHERE number = 3", "chosen was ['x', "),
        ("UPDATE events SET numbers = (SELECT numbers FROM events WHERE number = 1) WHERE number = 3", "features"),
        ("UPDATE events SET numbers = x'00' WHERE number = 3", "event 3 is damaged"),
        ("UPDATE events SET body = '{}' WHERE number = 2", "event 2 is damaged"),
        ("UPDATE events SET body = 'x' WHERE number = 2", "event 2 is damaged"),
        ("UPDATE events SET body = json_set(body, '$.kind', 'void', '$.names', json('[]')) WHERE number = 2", "deci"),
        ("UPDATE events SET body = json_set(body, '$.names[0]', 'x') WHERE number = 2", "event 2 of "),
        ("UPDATE events SET body = json_set(body, '$.features.cdcl', 0) WHERE number = 7", "decision 8"),
        ("DELETE FROM events WHERE number = 4", "event 4 is missing"),
        ("DELETE FROM events WHERE number = 12", "a snapshot after event 12, but the last event is 11"),
        ("UPDATE events SET decision = 12 WHERE number = 2", ""),
    ],
)
def test_what_was_changed_by_other_means_is_found(written, statement, found, chained):
    assert verify(written).equal
    changed(written, statement, chained=chained)
    difference = verify(written).difference
    assert found in difference if chained or "missing" in found or "last event" in found else "digest" in difference


def test_changes_that_teach_nothing_are_found_by_their_digest(written):
    changed(written, "UPDATE events SET body = json_set(body, '$.label', 'other.cnf') WHERE number = 5")
    assert verify(written).difference == "event 5 (decision) is not as it was written: its digest does not fit"


def test_a_snapshot_of_another_state_is_found(written, monkeypatch):
    changed(written, "UPDATE snapshots SET state = (SELECT value FROM about WHERE name = 'genesis')", triggers=[])
    monkeypatch.setattr(files, "list_versions", lambda: {"numpy": "9.9"})
    said = verify(written).difference
    assert said.startswith("the state after event 12 is not that of the snapshot kept then (last bits may differ")
    assert said.endswith(" then, 9.9 now)")


def test_decisions_that_come_out_differently_count_as_they_were_recorded(written, caplog):
    changed(written, "DELETE FROM snapshots", triggers=[])
    changed(written, "UPDATE events SET body = json_set(body, '$.scores[0]', 0.5) WHERE number = 5")
    with caplog.at_level(logging.WARNING), opened(written) as learner:
        assert learner.recovery.difference.startswith("decision 5 (2.cnf): scores was [0.5, ")
        assert learner.preselector.policy.observations == 5
    assert "the recorded decision counts" in caplog.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@hypothesis.given(JSON)
def test_values_come_back_from_strict_json(value):
    text = encode(value, "value")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert repr(decode(text)) == repr(value)


def test_a_map_that_would_come_back_as_a_number_is_refused():
    with pytest.raises(InputError, match=r"details\['x'\] must be what JSON can hold"):
        encode({"x": {"$number": "inf"}}, "details")


def test_states_as_bytes_name_their_source():
    assert Preselector.from_bytes(made().to_bytes()).to_bytes() == made().to_bytes()
    with pytest.raises(StateFileError, match=r"somewhere is not a preselect-state file"):
        Preselector.from_bytes(b"nonsense", "somewhere")


def run(*arguments, expect=0):
    result = CliRunner().invoke(Group(commands={"journal": command}), ["journal", *map(str, arguments)])
    assert result.exit_code == expect, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_show_counts_and_lists(written):
    text = run("show", written, "--last", 2).stdout
    for part in ("Newton(", "6 decisions: 5 winner, 1 unfinished", "glucose", '{"purpose": "test"}', "last.cnf"):
        assert part in text
    assert "0.cnf" not in text.partition("the last rounds")[2]
    found = json.loads(run("show", written, "--format", "json", "--last", 1).stdout)
    assert (found["decisions"], found["unfinished"], found["outcomes"], found["events"]) == (6, 1, {"winner": 5}, 12)
    assert [arm["name"] for arm in found["arms"]] == [*SOLVERS, "glucose"]
    assert sum(arm["plays"] for arm in found["arms"]) == 13
    assert sum(arm["wins"] for arm in found["arms"]) == 5
    assert [line["label"] for line in found["last"]] == ["last.cnf"]
    assert found["context"] == ["size", "ratio"]


def test_names_and_labels_may_be_anything(path):
    name, label = "odd [red] \udc80;name", "line\nbreak [bold]\udcff.cnf"
    with Learner.open(path, make=lambda: Preselector([name], seed=0)) as learner:
        learner.learn(learner.select(label=label), ranking=[name], details={"seconds": math.inf})
    assert "odd [red] \\udc80;name" in run("show", path).stdout
    (line,) = json.loads(run("show", path, "--format", "json").stdout)["last"]
    assert (line["label"], line["seconds"]) == (label, {"$number": "inf"})
    (row,) = csv.DictReader(io.StringIO(run("export", path).stdout))
    assert (row["label"], row["seconds"]) == ("line\nbreak [bold]\\udcff.cnf", "inf")
    assert decode(run("export", path, "--format", "jsonl").stdout)["details"] == {"seconds": math.inf}
    assert verify(path).equal


def test_export_gives_every_round(written, tmp_path):
    rows = list(csv.DictReader(io.StringIO(run("export", written).stdout)))
    assert [row["label"] for row in rows] == ["0.cnf", "1.cnf", "2.cnf", "0.cnf", "1.cnf", "last.cnf"]
    lines = [json.loads(line) for line in run("export", written, "--format", "jsonl").stdout.splitlines()]
    for row, line in zip(rows, lines, strict=True):
        assert row["chosen"].split(";") == line["chosen"]
        assert row["winner"] == (line["winner"] or "")
        assert row["context.ratio"] == str(line["context"]["ratio"] or "")
        assert row["time"] == line["time"]
        assert row["time"].endswith("Z")
    assert rows[2]["seconds"] == str(2 / 7)
    assert (rows[-1]["outcome"], rows[-1]["winner"], rows[-1]["context.size"]) == ("", "", "1.0")
    assert sorted(lines[-1]["eligible"]) == sorted(lines[-1]["chosen"]) == ["glucose", "kissat", "saps"]
    assert lines[0]["details"] == {"seconds": 0.0}
    out = tmp_path / "runs.csv"
    out.write_text("old")
    assert run("export", written, "--out", out).stdout == ""
    assert list(csv.DictReader(io.StringIO(out.read_text()))) == rows
    assert sorted(os.listdir(tmp_path)) == ["race.journal", "runs.csv"]


def test_an_export_that_fails_leaves_the_old_file(written, tmp_path):
    out = tmp_path / "runs.csv"
    out.write_text("old")
    changed(written, "UPDATE events SET body = 'x' WHERE number = 12")
    assert "event 12 is damaged" in run("export", written, "--out", out, expect=1).stderr
    assert out.read_text() == "old"
    assert "event 12 is damaged" in run("show", written, expect=1).stderr
    assert sorted(os.listdir(tmp_path)) == ["race.journal", "runs.csv"]


def test_an_empty_journal_has_a_header_and_no_rounds(path):
    opened(path).close()
    assert run("export", path).stdout.startswith(
        "number,time,label,chosen,outcome,winner,ranking,seconds,after,context.size"
    )
    assert run("export", path, "--format", "jsonl").stdout == ""
    assert "0 decisions: no outcomes, 0 unfinished" in run("show", path).stdout
    assert "0 events" in run("replay", path).stdout


def test_replay_says_whether_everything_comes_out_again(written, monkeypatch):
    said = run("replay", written)
    assert "bit for bit: 12 events, 6 decisions, 5 outcomes, 1 snapshots compared" in said.stdout
    assert said.stderr == ""
    monkeypatch.setattr("preselect.cli.journal._LONG", 10)
    assert run("replay", written).stderr.splitlines()[-1] == "12 of 12 events"
    changed(written, "UPDATE events SET at = 0 WHERE number = 5")
    assert "event 5 (decision) is not as it was written" in run("replay", written, expect=1).stdout


def test_a_policy_of_ones_own_is_named_for_the_replay(tmp_path, monkeypatch):
    (tmp_path / "own_policy.py").write_text("import preselect\nclass Mine(preselect.MaxTheta):\n    '''Mine.'''\n")
    write = ("from preselect import Preselector; from preselect.store import Learner\n"
             "make = lambda: Preselector(['a', 'b'], policy='own_policy:Mine', seed=0)\n"
             "with Learner.open('own.journal', make=make) as learner: learner.select()")  # fmt: skip
    subprocess.run([sys.executable, "-c", write], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    assert "own_policy:Mine" in run("show", "own.journal").stdout
    assert "own_policy:Mine, has not been imported" in run("replay", "own.journal", expect=1).stderr
    assert "bit for bit" in run("replay", "own.journal", "--policy", "own_policy:Mine").stdout


def test_the_command_teaches_and_refuses_with_a_sentence(written, tmp_path):
    assert "preselect journal replay race.journal" in run("--help").stdout
    shutil.copy(__file__, tmp_path / "text")
    for form in ("show", "export", "replay"):
        assert "Exit code" in run(form, "--help").stdout or form != "replay"
        assert "there is no journal" in run(form, tmp_path / "nothing", expect=1).stderr
        assert "is not a journal" in run(form, tmp_path / "text", expect=1).stderr
        assert "must be a file" in run(form, tmp_path, expect=1).stderr
    assert "cannot write" in run("export", written, "--out", "/proc/self/x", expect=1).stderr
