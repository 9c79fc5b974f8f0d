"""`preselect race --watch`: which files of a folder are raced on, and when."""

import json
import os
from contextlib import suppress
from types import SimpleNamespace

import pytest
from commands import preselect

from preselect.cli.instances import _STABLE_SCANS, _is_being_written, iterate_files
from preselect.race import read_pool

MODEL = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"
FORMULA = "p cnf 2 2\n1 2 0\n-1 2 0\n"


@pytest.fixture
def inbox(tmp_path):
    folder = tmp_path / "in box"
    folder.mkdir()
    return folder


@pytest.fixture
def watch(inbox, monkeypatch):
    """Watch the folder; each function is called between two scans, and then the user presses Ctrl-C."""

    def follow(*steps):
        left = iter(steps)

        def sleep(_):
            step = next(left, None)
            if step is None:
                raise KeyboardInterrupt
            step()

        monkeypatch.setattr("preselect.cli.instances.time", SimpleNamespace(sleep=sleep))
        found = []
        with suppress(KeyboardInterrupt):
            for path in iterate_files([], inbox, lambda _: False):
                found.append((path.name, path.read_text()))  # noqa: PERF401  # what was found before Ctrl-C counts
        return found

    return follow


def nothing():
    return


WAIT = [nothing] * _STABLE_SCANS


def test_a_watched_folder_is_raced_on_as_files_come(pool, inbox, monkeypatch):
    """A file is raced when it has stopped growing; Ctrl-C comes while the command waits."""
    path, steps = pool({"one": MODEL}), iter(range(20))

    def wait(_):
        step = next(steps)
        if step == 15:
            raise KeyboardInterrupt
        if step < 3:
            (inbox / "late.cnf").write_text(FORMULA[: 8 * (step + 1)])

    monkeypatch.setattr("preselect.cli.instances.time", SimpleNamespace(sleep=wait))
    done = preselect("race", path, "--watch", inbox, "--format", "json", expect=130)
    first = json.loads(done.stdout)
    assert first["instance"].endswith("late.cnf")
    assert first["winner"] == "one"
    assert "1 of 1 race solved" in done.stderr
    assert f"what was learnt is in {read_pool(path).journal}" in done.stderr
    assert f"run the same command again: it races on every file that is then in '{inbox}'\n" in done.stderr
    assert "remaining instances" not in done.stderr


def test_a_file_that_grows_in_leaps_is_taken_when_it_is_whole(watch, inbox):
    def grow():
        with (inbox / "a").open("a") as file:
            file.write("x")

    pause = [nothing] * (_STABLE_SCANS - 2)
    assert watch(grow, *pause, grow, *pause, grow, *WAIT, *WAIT) == [("a", "xxx")]


def test_a_file_that_is_overwritten_is_taken_again(watch, inbox):
    (inbox / "a").write_text("old")
    (inbox / "b").write_text("same")

    def overwrite():
        (inbox / "a").write_text("new")

    def replace():
        (inbox / "other").write_text("one more")
        os.utime(inbox / "other", ns=(0, (inbox / "a").stat().st_mtime_ns))
        (inbox / "other").replace(inbox / "a")

    found = watch(*WAIT, overwrite, *WAIT, replace, *WAIT)
    assert found == [("a", "old"), ("b", "same"), ("a", "new"), ("a", "one more")]


def test_a_file_that_a_process_is_writing_waits(watch, inbox):
    file = (inbox / "a").open("w")
    file.write("whole")
    file.flush()
    if not _is_being_written(inbox / "a"):
        pytest.skip("the kernel does not say who writes here")
    assert watch(*WAIT, *WAIT) == []
    assert watch(*WAIT, file.close, nothing) == [("a", "whole")]
    assert not _is_being_written(inbox / "gone")
