"""Which arms are worth starting: programs that are there and run, and that start faster than others answer."""

import json
import os

import pytest
from commands import preselect

from preselect import PreselectError
from preselect.race import RaceSession, check_arms, race, read_pool
from preselect.race.starts import Starts
from preselect.store import Journal, read_rounds, verify

FORMULA = "p cnf 3 3\n1 -2 0\n2 3 0\n-1 -3 0\n"
UNSATISFIABLE = "case $0$* in */unsatisfiable.cnf) echo s UNSATISFIABLE; exit 20;; esac; "
RIGHT = UNSATISFIABLE + "printf 's SATISFIABLE\\nv 1 2 -3 0\\n'; exit 10"
SLOW = "sleep 1.5; " + RIGHT


@pytest.fixture
def formula(tmp_path):
    path = tmp_path / "tiny.cnf"
    path.write_text(FORMULA)
    return path


@pytest.fixture
def with_program(pool, tmp_path):
    """Writes a pool of three arms, of which `own` runs a program of this folder with some content and mode."""

    def write(content, mode=0o755, *, k=2, wait="sleep 0"):
        path = pool({"one": f"{wait}; {RIGHT}", "other": f"{wait}; {RIGHT}", "own": ""}, head=f"k = {k}")
        path.write_text(path.read_text().replace('["/bin/sh", "-c", "", "{instance}"]', '["./own", "{instance}"]'))
        if content is not None:
            (tmp_path / "own").write_text(content)
            (tmp_path / "own").chmod(mode)
        return path

    return write


def rounds(path):
    with Journal.read(read_pool(path).journal) as journal:
        return read_rounds(journal)


@pytest.mark.parametrize(
    ("content", "mode", "why"), [(None, 0, "no such command: "), ("#!/bin/sh\n", 0o644, "not executable: ")]
)
def test_an_arm_whose_program_is_not_there_is_never_chosen(with_program, formula, tmp_path, content, mode, why):
    path = with_program(content, mode)
    for _ in range(4):  # each in a session of its own
        done = preselect("race", path, formula, expect=10)
        assert f"own is not raced: {why}{tmp_path}/own" in done.stderr
    assert [(past.kind, "own" in past.chosen) for past in rounds(path)] == [("winner", False)] * 4
    (tmp_path / "own").write_text(f"#!/bin/sh\n{RIGHT}\n")
    (tmp_path / "own").chmod(0o755)
    with RaceSession(path) as session:  # as soon as it is there, it races
        assert session.find_start_errors() == {}
        assert any("own" in session.run(formula).chosen for _ in range(3))


def test_an_arm_that_turns_out_not_to_start_is_remembered(with_program, formula, tmp_path):
    """The program is there, but has no #! line: only an attempt shows that it cannot be executed."""
    path = with_program("exit 10\n", k=3, wait="sleep 0.5")
    first = race(path, formula)
    assert first.winner in ("one", "other")
    assert first.void == f"own: Exec format error: {tmp_path}/own"
    with pytest.raises(PreselectError, match=r"k=3, but only 2 arms of .* can be started: own: Exec format error"):
        race(path, formula)
    path.write_text(path.read_text().replace("k = 3", "k = 2"))
    for _ in range(3):
        assert set(race(path, formula).chosen) == {"one", "other"}
    assert [past.kind for past in rounds(path)] == ["void", "winner", "winner", "winner"]
    (tmp_path / "own").write_text(f"#!/bin/sh\n{RIGHT}\n")
    assert Starts(read_pool(path)).find_errors() == {}  # it has changed


def test_what_is_remembered_is_only_a_help(with_program, formula, tmp_path):
    path, target = with_program(f"#!/bin/sh\n{RIGHT}\n"), tmp_path / "thesis.txt"
    starts, pool = tmp_path / "pool.journal.starts", read_pool(path)
    target.write_text("mine")
    for content in ("[]", "{", '{"own": 3}', '{"own": {"seconds": "x"}}'):
        starts.write_text(content)
        assert race(path, formula).winner is not None
    starts.unlink()
    starts.symlink_to(target)
    Starts(pool).note("own", error="no such command: own")
    assert (target.read_text(), starts.is_symlink()) == ("mine", False)
    assert Starts(pool).find_errors() == {"own": "no such command: own"}
    Starts(pool).note_checks(check_arms(pool, tmp_path / "check"))  # it works
    assert Starts(pool).find_errors() == {}
    os.remove(starts)
    starts.mkdir()
    assert race(path, formula).winner is not None


def slow_starter(pool):
    arms = {"a": RIGHT, "b": RIGHT, "slow": SLOW}
    path = pool(arms, head="k = 2", seconds=60)
    preselect("race", "check", path)
    return path


def test_a_slow_starter_does_not_take_the_second_place(pool, formula, tmp_path):
    """It answers as all others do, but only after 1.5 s; until the first race is over, nobody knows that it is late."""
    path = slow_starter(pool)
    known = json.loads((tmp_path / "pool.journal.starts").read_text())
    assert known["a"]["seconds"] < 1.5 < known["slow"]["seconds"]
    with RaceSession(path) as session:
        for _ in range(5):
            session.run(formula)
    for _ in range(5):
        race(path, formula)  # the journal knows how long the last races took
    assert ["slow" in past.chosen for past in rounds(path)][1:] == [False] * 9
    (tmp_path / "pool.journal.starts").unlink()  # not told by check, it takes part
    others = pool({"a": RIGHT, "b": RIGHT, "slow": SLOW}, head='journal = "untold.journal"\nk = 2', seconds=60)
    with RaceSession(others) as session:
        assert any("slow" in session.run(formula).chosen for _ in range(8))
    assert verify(read_pool(others).journal).equal


def test_a_slow_starter_is_back_when_races_take_longer(pool, formula):
    path = slow_starter(pool)
    starts = Starts(read_pool(path))
    assert starts.list_eligible(2) == ["a", "b", "slow"]
    starts.note_race([], 0.01)
    assert starts.list_eligible(2) == ["a", "b"]
    assert starts.list_eligible(3) == ["a", "b", "slow"]  # there is nobody else
    starts.note_race([], 20.0)
    assert starts.list_eligible(2) == ["a", "b", "slow"]
    for _ in range(9):
        starts.note_race([], 0.01)
    assert starts.list_eligible(2) == ["a", "b", "slow"]
    starts.note_race([], 0.01)
    assert starts.list_eligible(2) == ["a", "b"]
    starts.note_race([], None)  # void races say nothing
    race(path, formula)
    assert verify(read_pool(path).journal).equal
