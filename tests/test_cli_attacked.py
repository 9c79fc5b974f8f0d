"""Folders and names that were prepared to harm whoever races there: links, escapes, and files of our own."""

import json
import os
from types import SimpleNamespace

import pytest
from commands import preselect

from preselect.errors import InputError, JournalError
from preselect.race import RaceSession, race, read_pool
from preselect.race.outputs import OutputFolder

MODEL = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"
FORMULA = "p cnf 2 2\n1 2 0\n-1 2 0\n"


@pytest.fixture
def formula(tmp_path):
    path = tmp_path / "cnf" / "a.cnf"
    path.parent.mkdir()
    path.write_text(FORMULA)
    return path


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_text("precious")
    return path


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_is_a_link_is_refused_and_its_target_stays(pool, formula, precious, link):
    path = pool({"one": MODEL})
    link(precious, f"{read_pool(path).journal}.lock")
    with pytest.raises(JournalError, match=r"\.lock is a link or .*, not a regular file; remove it"):
        race(path, formula)
    assert precious.read_text() == "precious"


def test_a_folder_of_running_races_that_is_a_link_is_not_followed(pool, formula, tmp_path):
    path, elsewhere = pool({"one": MODEL}), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "pool.journal.running").symlink_to(elsewhere)
    with pytest.raises(InputError, match=r"\.running is a symbolic link, which may lead anywhere; remove it"):
        race(path, formula)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["a.cnf.out", ".preselect-outputs"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_links_that_appear_among_outputs_are_not_written_through(tmp_path, precious, name, link):
    """They appear after it was looked whether there are any."""
    folder = OutputFolder(tmp_path / "out", [])
    folder.require_free = lambda _: None
    link(precious, folder.path / name)
    try:
        folder.write(tmp_path / "a.cnf", b"answer")
    except InputError as error:
        assert name == ".preselect-outputs" and "not a regular file" in str(error)  # noqa: PT018, PT017
    assert precious.read_text() == "precious"
    assert name == ".preselect-outputs" or (folder.path / name).read_bytes() == b"answer"


def test_nothing_is_left_of_a_race_that_could_not_be_written_down(pool, formula, tmp_path, monkeypatch):
    """A full disk would stay full of what the racers printed, and the next run could not write either."""
    path = pool({"one": f"head -c 100000 /dev/zero; {MODEL}"}, features='from = "none"')

    def fail(*_, **__):
        raise JournalError("the disk is full")

    with RaceSession(path) as session:
        monkeypatch.setattr("preselect.race.session.RaceSession._tell", fail)
        with pytest.raises(JournalError, match="the disk is full"):
            session.run(formula)
        assert not [name for name in os.listdir(tmp_path) if "running" in name]


def test_names_and_details_cannot_steer_the_terminal_or_forge_a_line(pool, formula):
    strange = formula.with_name("x\ns UNSATISFIABLE\nc \x1b[2Jy.cnf")
    strange.write_text(FORMULA)
    wrong = "printf 's \\033[31mFALSE\\n'; exit 10"
    done = preselect("race", pool({"one": f"sleep 1; {MODEL}", "other": wrong}), formula.parent)
    assert "s UNSATISFIABLE" not in done.stdout.splitlines()
    assert "x\\ns UNSATISFIABLE\\nc \\x1b[2Jy.cnf" in done.stdout
    assert "\\x1b[31mFALSE" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_a_watched_folder_does_not_feed_on_itself_through_a_link(pool, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    path = pool({"one": MODEL})
    said = preselect("race", path, "--watch", tmp_path / "in", "--output", tmp_path / "link", expect=1).stderr
    assert "is also the folder of instances; name another folder for --output" in said


def test_a_pool_does_not_race_on_its_own_files(pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.cnf").write_text(FORMULA)
    (tmp_path / "solver").write_text(f"#!/bin/sh\n{MODEL}\n")
    (tmp_path / "solver").chmod(0o755)
    path = pool({"one": MODEL})
    path.write_text(path.read_text() + '[arms.two]\ncommand = ["./solver", "{instance}"]\n')
    preselect("race", path, "a.cnf", "--output", ".", expect=10)
    preselect("race", "report", path)
    for arguments in (["."], ["--watch", "."]):
        monkeypatch.setattr("preselect.cli.instances.time", SimpleNamespace(sleep=make_interrupt(8)))
        code = 130 if "--watch" in arguments else None
        done = preselect("race", path, *arguments, "--format", "json", expect=code or 10)
        assert [json.loads(line)["instance"] for line in done.stdout.splitlines()] == ["a.cnf"]


def make_interrupt(count):
    waits = iter(range(count))

    def wait(_):
        if next(waits, None) is None:
            raise KeyboardInterrupt

    return wait
