"""What storages and learners do besides choosing: old files, lost logs, damage, batches, requests, expiry, copies."""

import math
import random
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from journals import SOLVERS, change, fill, list_events, make_preselector, open_learner, play, run

from preselect import InputError, Preselector, Void, store
from preselect.errors import ConflictError, JournalError
from preselect.named.decision import NamedDecision
from preselect.race.report import write_report
from preselect.store import (
    ArmChanged,
    ArmJoined,
    ArmRetired,
    ContextAdded,
    Decided,
    Expired,
    Journal,
    Learner,
    Told,
    copy_journals,
    decode_event,
    encode_event,
    open_storage,
    read_preselector,
    verify,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def old(tmp_path):
    """A journal as version 1 wrote it: 16 events, of which the last is a decision that waits."""
    place = tmp_path / "old.journal"
    connection = sqlite3.connect(place)
    connection.executescript((Path(__file__).parent / "format1.sql").read_text())
    connection.close()
    return place


# --- format 1 ---------------------------------------------------------------------------------------------------------


def require_other_scores(old):
    """The journal was written when beta grew with any variance; nothing before the first decision that shows it."""
    found = verify(old)
    assert (found.equal, found.events) == (False, 8)
    assert found.difference.startswith("decision 8 (0.cnf): scores was [3.01927971800627, 2.39")


def test_old_journals_are_read_as_they_are(old):
    before = old.read_bytes()
    require_other_scores(old)
    assert read_preselector(old).policy.observations == 6
    assert "8 decisions: 6 winner" not in run("show", old).stdout
    assert len(run("export", old).stdout.splitlines()) == 9
    assert old.read_bytes() == before


def test_old_journals_go_on(old):
    rows, state = list_events(old), read_preselector(old).to_bytes()
    with open_learner(old) as learner:
        assert learner.preselector.to_bytes() == state
        assert learner.recovery.unfinished == 1
        learner.learn(16, winner="glucose")
        play(learner, 3)
        learner.remove("glucose")
    assert list_events(old)[:16] == rows
    assert len(list_events(old)) == 24
    require_other_scores(old)
    assert "has version" not in run("show", old).stdout


def test_an_upgrade_that_is_interrupted_has_not_happened(old, monkeypatch):
    before = list_events(old)
    with monkeypatch.context() as patch:
        patch.setattr(store.schema, "_GUARDS", ("CREATE INDEX broken ON missing (x)",))
        with pytest.raises(JournalError, match="cannot be used as a journal: no such table"):
            open_learner(old)
    assert list_events(old) == before
    with open_learner(old) as learner:
        play(learner, 1)


# --- logs that are lost -----------------------------------------------------------------------------------------------

KILLED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from journals import *
learner = open_learner(sys.argv[1])
play(learner, int(sys.argv[3]))
os._exit(0)
"""


def write_and_die(path, rounds):
    subprocess.run([sys.executable, "-c", KILLED, path, Path(__file__).parent, str(rounds)], check=True)


def test_a_young_journal_survives_without_its_log_and_says_so(path, tmp_path, caplog):
    write_and_die(path, 40)
    alone = tmp_path / "alone.journal"
    shutil.copy(path, alone)
    with Journal.read(path) as journal:
        assert journal.last == 80
    with Journal.read(alone) as journal:
        assert 64 <= journal.last < 80
    assert "alone.journal-wal is not beside it" in caplog.text
    caplog.clear()
    with open_learner(alone) as learner:
        assert learner.journal.last >= 64
    assert "alone.journal-wal is not beside it" in caplog.text
    caplog.clear()
    with open_learner(alone):
        assert caplog.text == ""


def test_a_lost_log_is_an_error_where_it_can_be_known(path):
    write_and_die(path, 40)
    path.with_name("race.journal-wal").rename(path.with_name("kept"))
    for _ in range(2):
        with pytest.raises(JournalError, match=r"has \d+ events, but 80 were acknowledged, so its file .*-wal is lost"):
            open_learner(path)
    path.with_name("race.journal-shm").unlink(missing_ok=True)
    path.with_name("kept").rename(path.with_name("race.journal-wal"))
    with open_learner(path) as learner:
        assert learner.journal.last == 80
    assert verify(path).equal


def test_readers_leave_the_log_of_a_killed_writer(path):
    write_and_die(path, 3)
    run("show", path)
    assert path.with_name("race.journal-wal").exists()


# --- damage -----------------------------------------------------------------------------------------------------------


def test_flipped_bits_are_noticed_on_opening_or_change_nothing(path):
    with open_learner(path, snapshot_every=1000) as learner:
        play(learner, 12)
        state = learner.preselector.to_bytes()
        learner.journal.storage.close()  # without a snapshot: all events are replayed
    whole, draw, refused = path.read_bytes(), random.Random(5), 0
    for _ in range(60):
        place = draw.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :])
        for suffix in ("-wal", "-shm", ".lock"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        try:
            found = read_preselector(path).to_bytes()
        except JournalError:
            refused += 1
        else:
            assert found == state
    assert refused > 5


BODIES = ["'x'", "'[]'", "'{}'", "'{\"v\":2}'", "'7'", "json_remove(body, '$.chosen', '$.kind', '$.name')"]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("kind", ["decision", "outcome", "arm"])
def test_damage_in_a_body_is_one_sentence(path, body, kind):
    fill(path)
    first = f"SELECT min(number) FROM events WHERE kind = '{kind}'"
    change(path, f"UPDATE events SET body = {body} WHERE number = ({first})")
    change(path, "DELETE FROM snapshots", triggers=[])
    for command in (["show"],) if kind == "arm" else (["show"], ["export"], ["export", "--format", "jsonl"]):
        said = run(*command, path, expect=1).stderr
        assert "is damaged: its body does not fit" in said
        assert len(said.splitlines()) == 1
    with pytest.raises(JournalError, match=r"cannot be restored: event \d+ \(\w+\) is not as it was written"):
        write_report(path, path.with_name("report.html"))


def test_a_decision_that_waits_is_checked_before_it_is_learnt_from(path):
    fill(path)
    change(path, "UPDATE events SET body = json_set(body, '$.round', 2) WHERE number = 12")
    with open_learner(path) as learner, pytest.raises(JournalError, match=r"event 12 of .* is not as it was written"):
        learner.learn(12, winner="saps")


def test_states_are_compared_by_content(path, monkeypatch):
    """As after a release of Python that writes other headers of archives."""
    fill(path)
    monkeypatch.setattr(zipfile, "ZIP64_VERSION", 63)
    original = zipfile.ZipInfo.FileHeader

    def write_header(self, zip64=None):
        self.create_version = self.extract_version = 63
        return original(self, zip64)

    monkeypatch.setattr(zipfile.ZipInfo, "FileHeader", write_header)
    before = path.read_bytes()
    assert make_preselector().to_bytes()[4] == 63
    found = verify(path)
    assert found.equal, found.difference
    assert path.read_bytes() == before


# --- names, beginnings ------------------------------------------------------------------------------------------------


def test_features_may_have_any_name(path):
    make = lambda: Preselector({"a": {"$number": 1.0}, "b": {}}, ["$number"], seed=0)  # noqa: E731
    with Learner.open(path, make=make) as learner:
        learner.add("c", {"$number": 2.0})
        learner.change("a", {"$number": 3.0})
        learner.learn(learner.select([1.0], k=2), outcome=Void(), details={"$number": {"$number": math.inf}})
        state = learner.preselector.to_bytes()
    assert verify(path).equal
    assert read_preselector(path).to_bytes() == state


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Preselector(SOLVERS, ["size"], seed=3), r"context was \['size', 'ratio'\] and is \['size'\]"),
        (lambda: Preselector([*SOLVERS, "new"], ["size", "ratio"], seed=3), "features was"),
        (lambda: Preselector({**SOLVERS, "new": {}}, ["size", "ratio"], seed=3), r"arms has \['new'\]"),
        (lambda: make_preselector("thompson"), r"policy was Newton\(.*\) and is Thompson\("),
        (lambda: make_preselector("newton(beta=0.5)"), r"policy was Newton\(.* and is Newton\(beta=0.5"),
    ],
)
def test_another_beginning_is_said(path, made, said):
    with open_learner(path) as learner:
        play(learner, 1)
    with pytest.warns(UserWarning, match=f"was begun with other settings, and keeps those: {said}"):
        Learner.open(path, make=made).close()


def test_the_same_beginning_is_not_said(path):
    with open_learner(path) as learner:
        learner.add("glucose")
        learner.remove("saps")
        learner.add_context("age")
    make = lambda: Preselector({**SOLVERS, "glucose": {}}, ["size", "ratio"], seed=9)  # noqa: E731
    Learner.open(path, make=make).close()


# --- the codec, copies ------------------------------------------------------------------------------------------------


PARTS = "bounds context departures features included labels names propensities round seed version"


def test_events_come_back_from_their_rows():
    decision = make_preselector().choose({"size": None, "ratio": 4.0}, 2, seed=5, include=["saps"])
    more = {"k": 2, "label": "x", "eligible": tuple(SOLVERS), "rules": {"budget": math.inf}, "key": "k", "request": "r"}
    for event in (
        ArmJoined("a", {"x": None, "$number": 1.0}, "g", 0.5),
        ArmChanged("a", {"x": 1.0}),
        ArmChanged("a", group=None, price=None),
        ArmRetired("a\udc80"),
        ContextAdded("ü"),
        Decided.of(decision, **more, expires=1.5),
        Told("ranking", ("a", ("b", "c")), None, {"x": [math.nan, {"$number": 1}]}, 7, "k"),
        Expired(7, "k"),
    ):
        row = encode_event(event, "main", 1.5)
        assert row.text.isascii()
        assert repr(decode_event(row)) == repr(event)
    assert set(NamedDecision.__slots__) == {f"_{name}" for name in PARTS.split()}  # that events have all of it
    again = decode_event(encode_event(Decided.of(decision, **more), "main", 1.5))
    assert again.decision == decision
    assert again.context == {"size": None, "ratio": 4.0}


def test_a_copy_of_no_journals_says_so(path, tmp_path):
    with open_storage(path, write=True):
        assert "has no journals yet: nothing was copied" in run("copy", path, tmp_path / "target.journal").stdout


def test_copies_are_the_same_and_go_on(path, old, tmp_path):
    fill(path)
    target = tmp_path / "target.journal"
    assert "main: 12 events" in run("copy", path, target).stdout
    assert list_events(target) == list_events(path)
    assert verify(target).equal
    with open_learner(path) as learner:
        play(learner, 600)
    assert copy_journals(path, f"sqlite:///{target}") == {"main": 1212}
    assert read_preselector(target).to_bytes() == read_preselector(path).to_bytes()
    with pytest.raises(ConflictError, match="has another journal 'main'; name another target"):
        copy_journals(old, target)
    upgraded = tmp_path / "upgraded.journal"
    assert copy_journals(old, upgraded) == {"main": 16}
    assert list_events(upgraded) == list_events(old)
    change(path, "UPDATE events SET at = 0 WHERE number = 7")
    with pytest.raises(JournalError, match=r"event 7 of .* is missing or not as it was written"):
        copy_journals(path, tmp_path / "broken.journal")


def test_places_are_files_or_urls(path):
    fill(path)
    with store.open(f"sqlite:///{path}") as storage:
        assert storage.journals() == ["main"]
    with pytest.raises(InputError, match="'mysql://x' is not a storage; use a path"):
        store.open("mysql://x")
