"""The file of a journal: one writer, any number of readers, and nothing that is not a journal is touched."""

import json
import math
import os
import sqlite3
import subprocess
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
from journals import collect_refusals, fill, make_preselector, open_learner, play

from preselect import Preselector, StateFileError
from preselect.errors import JournalError
from preselect.store import ArmRetired, Journal, schema, verify
from preselect.store.values import decode, encode


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def written(path):
    return fill(path)


def test_the_file_refuses_second_outcomes_changes_and_gaps(written):
    connection = sqlite3.connect(written, isolation_level=None)
    event = (
        f"SELECT {schema.SPAN} + {{0}}, journal, {{0}}, at, kind, {{1}}, key, request, body, numbers, digest "
        "FROM events WHERE number = {2}"
    )
    last = connection.execute("SELECT max(number) FROM events").fetchone()[0]
    before = list(connection.execute("SELECT * FROM events"))
    for statement, reason in (
        ("UPDATE events SET at = 0", "events of a journal are never changed or deleted"),
        ("DELETE FROM events WHERE number = 1", "events of a journal are never changed or deleted"),
        ("UPDATE journals SET name = 'other'", "events of a journal are never changed or deleted"),
        ("DELETE FROM journals", "events of a journal are never changed or deleted"),
        (f"INSERT INTO events {event.format(last + 1, 1, 2)}", "a decision has only one outcome"),
        (f"INSERT OR REPLACE INTO events {event.format(last + 1, 1, 2)}", "a decision has only one outcome"),
        (f"INSERT OR REPLACE INTO events {event.format(1, 'decision', 1)}", "events are numbered one after another"),
        (f"INSERT INTO events {event.format(last + 2, 'decision', 1)}", "events are numbered one after another"),
        (f"INSERT INTO events {event.format(last + 1, 2, 2)}", "an outcome belongs to a decision"),
        (f"INSERT INTO events {event.format(last + 1, 'NULL', 2)}", "CHECK constraint failed"),
        (f"INSERT INTO events {event.format(last + 1, last, 1)}", "CHECK constraint failed"),
    ):
        with pytest.raises(sqlite3.IntegrityError, match=reason):
            connection.execute(statement)
    assert list(connection.execute("SELECT * FROM events")) == before
    connection.close()


def test_one_writer_at_a_time(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    with open_learner(path) as learner:
        for name in (path, tmp_path / "link"):
            with pytest.raises(
                JournalError, match=r"race\.journal is already open in this process; close it there first"
            ):
                open_learner(name)
        play(learner, 1)
        child = subprocess.Popen(["sleep", "600"], close_fds=False)
        held = {os.readlink(link) for link in Path(f"/proc/{child.pid}/fd").iterdir()}
    try:
        assert not {name for name in held if "race.journal" in name}
        with open_learner(path) as again:
            assert again.recovery.events == 0
    finally:
        child.kill()
        child.wait()


def test_a_stale_lock_is_taken_over(path):
    path.with_name("race.journal.lock").write_text("1")
    with open_learner(path):
        assert path.with_name("race.journal.lock").read_text() == f"{os.getpid()}\n0\n"
    assert not path.with_name("race.journal.lock").exists()


def test_readers_see_one_state_and_do_not_disturb_the_writer(path):
    with open_learner(path, snapshot_every=3) as learner:
        play(learner, 5)
        with Journal.read(path) as reader:
            play(learner, 5, seed=1)
            assert reader.last == len(list(reader.records())) == 10
            assert learner.journal.last == 20
            assert verify(path).events == 20
        assert verify(path).equal
        with Journal.read(path) as reader, pytest.raises(JournalError, match="cannot be written"):
            reader.storage.append([reader.draft(reader.encode(ArmRetired("saps"))).row])
    assert os.listdir(path.parent) == [path.name]


def test_an_empty_database_becomes_a_journal(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert path.stat().st_size > 0
    with pytest.raises(JournalError, match="is empty, not a journal"):
        Journal.read(path)
    with open_learner(path) as learner:
        play(learner, 1)
    path.unlink()
    path.touch()
    with open_learner(path) as learner:
        play(learner, 1)
    assert verify(path).equal


def test_what_is_no_journal_is_refused_and_left_as_it_is(path, tmp_path):
    with pytest.raises(JournalError, match=r"there is no journal .*race\.journal"):
        Journal.read(path)
    assert os.listdir(tmp_path) == []
    for content in (b"x", b"nonsense\n" * 1000):
        path.write_bytes(content)
        assert all("is not a journal but some other file" in said for said in collect_refusals(path))
        assert path.read_bytes() == content
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = path.read_bytes()
    assert all("is not a journal but another program's database" in said for said in collect_refusals(path))
    assert path.read_bytes() == before
    assert all("is a folder or a device, not a journal; name a file" in said for said in collect_refusals(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [path.name]
    for place in (tmp_path / "nowhere" / "a.journal", Path("/proc/self/a.journal")):
        with pytest.raises(JournalError, match="cannot be opened; check that its folder exists and can be written"):
            open_learner(place)


def test_newer_versions_are_refused(written):
    connection = sqlite3.connect(written)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    assert all(
        "has version 3, and this preselect reads up to 2; update preselect" in said
        for said in collect_refusals(written)
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_journals_can_be_read(written):
    for mode, place in ((0o444, written), (0o555, written.parent)):
        place.chmod(mode)
        try:
            assert verify(written).equal
            with pytest.raises(JournalError, match=r"can(not)? be written"):
                open_learner(written)
        finally:
            place.chmod(0o755)
    assert verify(written).equal


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


def test_a_map_that_looks_like_a_number_comes_back():
    for value in ({"$number": "inf"}, {"$$number": {"$number": math.inf}}, {"$number": 1.0, "x": 2}, {"number": 1}):
        assert decode(encode({"x": value}, "details")) == {"x": value}


def test_states_as_bytes_name_their_source():
    assert Preselector.from_bytes(make_preselector().to_bytes()).to_bytes() == make_preselector().to_bytes()
    with pytest.raises(StateFileError, match=r"somewhere is not a preselect-state file"):
        Preselector.from_bytes(b"nonsense", "somewhere")
