"""The progress of a command: lines every tenth in a log, a bar on a terminal."""

import pytest
from rich.console import Console

from preselect.cli import progress


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)


def test_a_log_gets_a_line_every_tenth(capsys):
    assert list(progress.track(range(30), "files")) == list(range(30))
    assert capsys.readouterr().err.splitlines() == [f"{done} of 30 files" for done in range(3, 31, 3)]
    with progress.show_progress("blocks") as bar:
        bar.restart(2, 4)
        bar.advance("cppl")
        bar.advance()
    assert capsys.readouterr().err.splitlines() == ["3 of 4 blocks", "4 of 4 blocks"]
    with progress.show_progress("events") as bar:
        for done in range(1, 41):
            bar.update(done, 40)
    assert len(capsys.readouterr().err.splitlines()) == 10


def test_short_work_writes_no_lines(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    assert len(list(progress.track(range(30), "files"))) == 30
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_with_count_and_description(capsys, monkeypatch):
    plain = {"force_terminal": True, "color_system": None, "width": 120}
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(stderr=stderr, **plain))
    with progress.show_progress("blocks") as bar:
        bar.restart(2, 4)
        bar.advance("cppl [8,3,2]")
        print("a row of a table that may go to a file")
    shown = capsys.readouterr()
    assert shown.out == "a row of a table that may go to a file\n"
    assert "3/4 blocks," in shown.err
    assert "cppl [8,3,2]" in shown.err
