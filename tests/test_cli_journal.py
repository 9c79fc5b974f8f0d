"""`preselect journal`: show, export and verify."""

import csv
import io
import json
import math
import os
import shutil
import sys

import pytest
from journals import SOLVERS, change, fill, open_learner, run

from preselect import Preselector
from preselect.policies import persistence
from preselect.store import Learner, verify
from preselect.store.values import decode


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def written(path):
    return fill(path)


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
    name, label = "odd [red] \udc80;\x1b[2Jname", "line\nbreak [bold]\udcff.cnf"
    with Learner.open(path, make=lambda: Preselector([name], seed=0)) as learner:
        learner.learn(learner.select(k=1, label=label), ranking=[name], details={"seconds": math.inf})
    shown = run("show", path).stdout
    assert "odd [red] \\udc80;\\x1b[2Jname" in shown
    assert "\x1b[2J" not in shown
    (line,) = json.loads(run("show", path, "--format", "json").stdout)["last"]
    assert (line["label"], line["seconds"]) == (label, {"$number": "inf"})
    (row,) = csv.DictReader(io.StringIO(run("export", path).stdout))
    assert (row["label"], row["seconds"]) == ("line\nbreak [bold]\\udcff.cnf", "inf")
    assert decode(run("export", path, "--format", "jsonl").stdout)["details"] == {"seconds": math.inf}
    assert verify(path).equal


def test_ties_and_nobody_are_recorded_shown_exported_and_replayed(path):
    def make():
        return Preselector(["a", "b", "c", "d"], nobody_may_win=True, seed=0)

    with Learner.open(path, make=make) as learner:
        eligible = ["a", "b", "c"]
        learner.learn(learner.select(k=3, eligible=eligible), ranking=["c", ["b", "a"]])
        learner.learn(learner.select(k=3, eligible=eligible), ratings={"a": 4, "b": 1, "c": 4})
        learner.learn(learner.select(k=3, eligible=eligible), winner=None)
        state = learner.preselector.to_bytes()
    with Learner.open(path, make=make) as learner:
        assert learner.preselector.to_bytes() == state
    assert verify(path).equal
    text = run("show", path).stdout
    assert "c > a = b" in text or "c > b = a" in text
    found = json.loads(run("show", path, "--format", "json", "--last", 3).stdout)
    assert found["outcomes"] == {"ranking": 2, "no-winner": 1}
    assert {arm["name"]: arm["wins"] for arm in found["arms"]} == {"a": 1, "b": 0, "c": 2, "d": 0}
    rows = list(csv.DictReader(io.StringIO(run("export", path).stdout)))
    places = [[sorted(place.split("=")) for place in row["ranking"].split(";")] for row in rows]
    assert places == [[["c"], ["a", "b"]], [["a", "c"], ["b"]], [[""]]]
    assert [row["winner"] for row in rows] == ["c", "", ""]
    lines = [json.loads(line) for line in run("export", path, "--format", "jsonl").stdout.splitlines()]
    assert [list(map(sorted, line["ranking"])) for line in lines] == [*places[:2], []]


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
    out.touch()
    for style in ("csv", "jsonl", "csv"):  # each is replaced by the next
        assert run("export", written, "--out", out, "--format", style).stdout == ""
    assert list(csv.DictReader(io.StringIO(out.read_text()))) == rows
    assert sorted(os.listdir(tmp_path)) == ["race.journal", "runs.csv"]


def test_an_export_keeps_links_modes_and_pipes(written, tmp_path):
    target, link, pipe = tmp_path / "target.csv", tmp_path / "link.csv", tmp_path / "pipe"
    target.touch(0o600)
    link.symlink_to(target)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        for out in (link, pipe):
            run("export", written, "--out", out)
        assert os.read(reader, 1 << 16) == target.read_bytes()
    finally:
        os.close(reader)
    assert link.is_symlink()
    assert pipe.is_fifo()
    assert target.stat().st_mode & 0o777 == 0o600


def test_an_export_that_fails_leaves_the_old_file(written, tmp_path):
    out = tmp_path / "runs.csv"
    run("export", written, "--out", out)
    before = out.read_text()
    change(written, "UPDATE events SET body = 'x' WHERE number = 12")
    assert "event 12 is damaged" in run("export", written, "--out", out, expect=1).stderr
    assert out.read_text() == before
    assert "event 12 is damaged" in run("show", written, expect=1).stderr
    assert sorted(os.listdir(tmp_path)) == ["race.journal", "runs.csv"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock", ".running"])
def test_an_export_does_not_overwrite_the_journal(written, suffix):
    before, link = written.read_bytes(), written.with_name("link.csv")
    link.symlink_to(f"{written.name}{suffix}")
    for out in (written.with_name(written.name + suffix), link):
        assert "it belongs to the journal; name another file" in run("export", written, "--out", out, expect=1).stderr
    assert "it belongs to the journal" in run("export", link, "--out", written, expect=1).stderr or suffix
    assert written.read_bytes() == before


@pytest.mark.parametrize("content", ["My thesis.\n", "number,time\n", '{"number": "one"}\n', "\n"])
def test_an_export_does_not_overwrite_files_of_others(written, content):
    out = written.with_name("thesis.txt")
    out.write_text(content)
    for style in ("csv", "jsonl"):
        said = run("export", written, "--out", out, "--format", style, expect=1).stderr
        assert f"{out} exists and was not written by preselect; name another file, or remove it" in said
    assert out.read_text() == content


def test_an_empty_journal_has_a_header_and_no_rounds(path):
    open_learner(path).close()
    assert run("export", path).stdout.startswith(
        "number,time,label,chosen,outcome,winner,ranking,seconds,after,also,context.size"
    )
    assert run("export", path, "--format", "jsonl").stdout == ""
    assert "0 decisions: no outcomes, 0 unfinished" in run("show", path).stdout
    assert "0 events" in run("verify", path).stdout


def test_verify_says_whether_everything_is_reproduced(written, monkeypatch):
    result = run("verify", written)
    assert "bit for bit: 12 events, 6 decisions, 5 outcomes, 1 snapshot" in result.stdout
    assert result.stderr == ""
    monkeypatch.setattr("preselect.cli.progress._PATIENCE", 0.0)
    assert run("verify", written).stderr.splitlines()[-1] == "12 of 12 events"
    assert run("replay", written).stdout == result.stdout  # the older name
    change(written, "UPDATE events SET at = 0 WHERE number = 5")
    assert "event 5 (decision) is not as it was written" in run("verify", written, expect=1).stdout


def test_a_policy_of_ones_own_is_named_to_verify(tmp_path, monkeypatch):
    (tmp_path / "own_policy.py").write_text("import preselect\nclass Mine(preselect.MaxTheta):\n    '''Mine.'''\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(persistence, "_kinds", dict(persistence._kinds))
    with Learner.open("own.journal", make=lambda: Preselector(["a", "b"], policy="own_policy:Mine")) as learner:
        learner.select(k=2)
    del persistence._kinds["own_policy:Mine"], sys.modules["own_policy"]  # as in a new process
    assert "own_policy:Mine" in run("show", "own.journal").stdout
    assert "own_policy:Mine, a policy whose class has not been" in run("verify", "own.journal", expect=1).stderr
    assert "bit for bit" in run("verify", "own.journal", "--policy", "own_policy:Mine").stdout


def test_the_command_teaches_and_refuses_with_a_sentence(written, tmp_path):
    assert "preselect journal verify race.journal" in run("--help").stdout
    shutil.copy(__file__, tmp_path / "text")
    for form in ("show", "export", "verify"):
        assert "exit code" in run(form, "--help").stdout or form != "verify"
        assert "there is no journal" in run(form, tmp_path / "nothing", expect=1).stderr
        assert "is not a journal" in run(form, tmp_path / "text", expect=1).stderr
        assert "is a folder or a device, not a journal" in run(form, tmp_path, expect=1).stderr
    assert "cannot write" in run("export", written, "--out", "/proc/self/x", expect=1).stderr
    assert "not in the range" in run("show", written, "--last", 2**63, expect=2).stderr
