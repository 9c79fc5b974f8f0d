"""`preselect race` as a command: what goes where, exit codes, lists of instances, and what is said of bad input."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from processes import Fork, wait_until

from preselect.cli.main import preselect as command
from preselect.errors import InputError
from preselect.race import read_pool
from preselect.race.outputs import OutputFolder
from preselect.store import Journal, verify

MODEL = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"
NO_MODEL = "echo 's UNSATISFIABLE'; exit 20"
WRITE_OWN = "test -e ../out/a.cnf.out || echo mine > ../out/a.cnf.out"
PRESELECT = [sys.executable, "-m", "preselect"]


def preselect(*arguments, expect=0, given=""):
    result = CliRunner().invoke(command, [*map(str, arguments)], input=given)
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code == expect, result.output
    return result


@pytest.fixture
def formulas(tmp_path):
    folder = tmp_path / "cnf"
    folder.mkdir()
    for name in ("a.cnf", "b.cnf", ".hidden"):
        (folder / name).write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    return folder


@pytest.mark.parametrize(
    ("script", "code", "printed"),
    [(MODEL, 10, "s SATISFIABLE\nv 1 2 0\n"), (NO_MODEL, 20, "s UNSATISFIABLE\n"), ("exit 1", 0, "s UNKNOWN\n")],
)
def test_one_file_is_answered_as_a_solver_does(pool, formulas, script, code, printed):
    done = preselect("race", pool({"one": script, "other": "exit 3"}), formulas / "a.cnf", expect=code)
    assert done.stdout == printed
    assert f"{0 if code == 0 else 1} of 1 race solved" in done.stderr


def test_folders_lists_and_files_are_raced_on_in_turn(pool, formulas, tmp_path):
    path, out = pool({"one": f"sleep 0.5; {MODEL}", "other": NO_MODEL.replace("20", "2")}), tmp_path / "out"
    done = preselect("race", path, formulas, "-", "--output", out, given=f"{formulas / 'b.cnf'}\n\n")
    assert done.stdout == ""
    assert sorted(os.listdir(out)) == [".preselect-outputs", "a.cnf.out", "b.cnf.out"]
    assert (out / "a.cnf.out").read_text() == "s SATISFIABLE\nv 1 2 0\n"
    assert "[3/3]" in done.stderr
    assert "3 of 3 races solved" in done.stderr
    row = next(line for line in done.stderr.splitlines() if "│ other" in line)
    assert 50 < float(row.split("│")[-2]) <= 60  # it fails every time, and the limit is 20 s
    assert verify(read_pool(path).journal).equal


def test_an_answer_that_does_not_end_its_line_does_not_swallow_the_next_heading(pool, formulas):
    path = pool({"one": MODEL.replace("0\\n", "0")})
    done = preselect("race", path, formulas)
    assert done.stdout == "".join(f"c instance {formulas / name}.cnf\ns SATISFIABLE\nv 1 2 0\n" for name in "ab")
    assert preselect("race", path, formulas / "a.cnf", expect=10).stdout == "s SATISFIABLE\nv 1 2 0"  # as it is


@pytest.mark.parametrize("name", ["0.cnf", "aa.cnf"])  # the first of all, and one among others
def test_an_instance_that_cannot_be_read_does_not_stop_the_others(pool, formulas, name):
    (formulas / name).write_text("p cnf 2 1\n1 x 0\n")
    done = preselect("race", pool({"one": MODEL}), formulas, expect=1)
    assert f"{name}, line 2" in done.stderr
    assert "2 of 2 races solved" in done.stderr
    assert "1 instance could not be raced; see above" in done.stderr
    assert f"{name}, line 2" in preselect("race", pool({"one": MODEL}), formulas / name, expect=1).stderr


def test_outputs_do_not_overwrite_one_another_and_do_not_outlive_their_race(pool, formulas, tmp_path):
    (tmp_path / "a.cnf").write_text((formulas / "a.cnf").read_text())
    path, out = pool({"one": MODEL}), tmp_path / "out"
    said = preselect("race", path, formulas, tmp_path / "a.cnf", "--output", out, expect=1).stderr
    assert "have the same name, and so would their outputs" in said
    preselect("race", path, formulas, "--output", out)
    assert (out / "a.cnf.out").exists()
    done = preselect("race", pool({"one": "exit 1"}), formulas, "--output", out, "--format", "json")
    assert not (out / "a.cnf.out").exists()
    assert [json.loads(line)["output"] for line in done.stdout.splitlines()] == [None, None]
    said = preselect("race", path, "--watch", out, "--output", out, expect=1).stderr
    assert "is also the folder of instances" in said


@pytest.mark.parametrize("script", [MODEL, "exit 1"])
@pytest.mark.parametrize("own", ["a file", "a changed output", "a link", "a folder"])
def test_files_that_are_not_ours_stay(pool, formulas, tmp_path, script, own):
    """Neither the output of a winner nor its absence touches a file that another program or a person wrote."""
    path, place = pool({"one": MODEL}), formulas / "a.cnf.out"
    if own == "a changed output":
        preselect("race", path, formulas / "a.cnf", "--output", formulas, expect=10)
    if own == "a link":
        (tmp_path / "thesis.txt").write_text("mine")
        place.symlink_to(tmp_path / "thesis.txt")
    elif own == "a folder":
        place.mkdir()
    else:
        place.write_text("mine")
    number = len(list_rounds(path))
    said = preselect("race", pool({"one": script}), formulas / "a.cnf", "--output", formulas, expect=1).stderr
    assert f"{place} exists and is not overwritten; move it, or name another folder for --output" in said
    assert place.is_dir() or place.read_text() == "mine"
    assert len(list_rounds(path)) == number


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("thesis.txt"), os.mkfifo, os.mkdir])
def test_the_list_of_outputs_is_a_file_of_our_own(tmp_path, make):
    (tmp_path / "thesis.txt").write_text("mine")
    make(tmp_path / ".preselect-outputs")
    with pytest.raises(
        InputError, match=r"\.preselect-outputs is not a regular file; remove it, or name another folder"
    ):
        OutputFolder(tmp_path, [])


def test_a_full_disk_is_said_with_the_name_of_the_list(tmp_path, monkeypatch):
    folder = OutputFolder(tmp_path, [])
    monkeypatch.setattr("preselect.race.outputs.open_plain", lambda *_: os.open("/dev/full", os.O_WRONLY))
    with pytest.raises(InputError, match=r"cannot write .*/\.preselect-outputs: No space left on device"):
        folder.write(tmp_path / "a.cnf", b"s SATISFIABLE\n")


def list_rounds(path):
    journal = read_pool(path).journal
    if not journal.exists():
        return []
    with Journal.read(journal) as source:
        return list(source.rounds())


def test_a_file_that_appears_during_the_race_stays(pool, formulas):
    """The others are raced all the same."""
    out = formulas.parent / "out"
    path = pool({"one": f"test -e {out}/a.cnf.out || echo mine > {out}/a.cnf.out; {MODEL}"})
    done = preselect("race", path, formulas, "--output", out, expect=1)
    assert (out / "a.cnf.out").read_text() == "mine\n"
    assert "a.cnf.out exists and is not overwritten" in done.stderr
    assert "1 instance could not be raced" in done.stderr
    assert (out / "b.cnf.out").read_text() == "s SATISFIABLE\nv 1 2 0\n"


def test_outputs_are_not_written_among_instances_that_are_listed_by_folder(pool, formulas):
    said = preselect("race", pool({"one": MODEL}), formulas, "--output", formulas, expect=1).stderr
    assert "is also the folder of instances; name another folder for --output" in said


def test_a_reader_that_has_had_enough_gets_no_traceback(pool, formulas):
    process = subprocess.Popen(
        [*PRESELECT, "race", pool({"one": MODEL}), formulas], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1
    assert b"Traceback" not in said
    assert b"Broken pipe" not in said


def test_an_answer_by_exit_code_alone_is_said_in_words(pool, formulas):
    path = pool({"one": "exit 20"})
    path.write_text(path.read_text() + 'success = { verifier = "none" }\n')
    assert preselect("race", path, formulas / "a.cnf", expect=20).stdout == "s UNSATISFIABLE\n"


def test_names_are_printed_as_they_are(pool, formulas):
    path = pool({"one": MODEL})
    path.write_text(path.read_text().replace("[arms.one]", '[arms."a[/b]"]'))
    strange = formulas / os.fsdecode(b"\xff[b].cnf")
    strange.write_text((formulas / "a.cnf").read_text())
    done = preselect("race", path, formulas)
    assert "a[/b]" in done.stderr
    assert "\\xff[b].cnf" in done.stderr


def test_json_has_a_line_for_each_instance(pool, formulas):
    done = preselect("race", pool({"one": MODEL}), formulas, "--format", "json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["winner"], line["answer"], line["exit_code"]) for line in lines] == [("one", "SATISFIABLE", 10)] * 2
    assert lines[0]["racers"][0]["status"] == "won"
    assert lines[0]["output"] == "s SATISFIABLE\nv 1 2 0\n"


def test_ctrl_c_during_a_race_loses_nothing(pool, formulas):
    path = pool({"one": "sleep 100", "other": "sleep 100"})
    journal = read_pool(path).journal
    with Fork(command, ["race", str(path), str(formulas)]) as process:
        wait_until(journal.with_name(f"{journal.name}.running").exists)
        process.send_signal(signal.SIGINT)
        said = process.errors.read()
        assert process.wait() == 130
    assert b"run the command again with the remaining instances" in said
    with Journal.read(journal) as found:
        assert [record.event.outcome for record in found.records() if record.kind == "outcome"] == ["void"]


def test_init_check_and_report(tmp_path, formulas, pool, monkeypatch):
    monkeypatch.chdir(tmp_path)
    preselect("race", "init")
    assert "saps" in (tmp_path / "pool.toml").read_text()
    assert "pool.toml exists and is not overwritten" in preselect("race", "init", expect=1).stderr
    (tmp_path / "pool.toml").unlink()
    path = pool({"good": MODEL, "liar": "printf 's SATISFIABLE\\nv -2 0\\n'; exit 10"})
    printed = preselect("race", "check", path, "--instance", formulas / "a.cnf", expect=1).stdout
    assert "ok     good" in printed
    assert "wrong  liar: its answer fails the verification" in printed
    preselect("race", path, formulas)
    for _ in range(2):  # an earlier page is replaced
        preselect("race", "report", path, "--out", tmp_path / "page.html")
    assert "good" in (tmp_path / "page.html").read_text()


def test_the_page_has_the_name_of_its_pool_and_spares_those_of_others(pool, formulas, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = pool({"one": MODEL})
    other = path.rename(tmp_path / "other.toml")
    path.write_text(other.read_text())
    for one in (path, other):
        preselect("race", one, formulas)
        preselect("race", "report", one)
    pages = {name: (tmp_path / f"{name}.html").read_text() for name in ("pool", "other")}
    assert [f"Races of {name}.journal" in page for name, page in pages.items()] == [True, True]
    said = preselect("race", "report", path, "--out", "other.html", expect=1).stderr
    assert "other.html exists and is a page about other races; name another file, or remove it" in said
    assert (tmp_path / "other.html").read_text() == pages["other"]
    preselect("race", "report", other.with_suffix(".journal"))  # again, by its journal
    older = pages["other"].replace(re.search(r"<meta name=.preselect-journal.*", pages["other"])[0], "")
    (tmp_path / "other.html").write_text(older)
    preselect("race", "report", path, "--out", "other.html", expect=1)
    preselect("race", "report", other)


@pytest.mark.parametrize("through", ["a link", "itself"])
def test_a_page_overwrites_nothing_but_a_page(pool, tmp_path, through):
    thesis, path, link = tmp_path / "thesis.txt", pool({"one": MODEL}), tmp_path / "link.html"
    thesis.write_text("mine")
    before = path.read_text()
    for place, sentence in (
        (thesis, "thesis.txt exists and was not written by preselect"),
        (path, "it is the pool; name another file"),
    ):
        link.unlink(missing_ok=True)
        link.symlink_to(place)
        out, sentence = (
            (link, sentence.replace("thesis.txt", "link.html")) if through == "a link" else (place, sentence)
        )
        assert sentence in preselect("race", "report", path, "--out", out, expect=1).stderr
    assert (thesis.read_text(), path.read_text()) == ("mine", before)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["pool.toml"], "name instances to race on", 2),
        (["pool.toml", "empty"], "there is no file in 'empty'; nothing was raced", 1),
        (["pool.toml", "empty", "-"], "there is no file in 'empty', the list on standard input; nothing was raced", 1),
        (["pool.toml", "gone.cnf"], "'gone.cnf' is not a file; nothing was raced", 1),
        (["gone.toml", "cnf/a.cnf"], "gone.toml", 1),
        (["pool.toml", "cnf/a.cnf", "--k", "7"], "k=7, but there is only 1 arm", 1),
        (["pool.toml", "cnf/a.cnf", "--seconds", "inf"], "seconds is inf; use a finite number above 0", 1),
        (["init", "/"], "/ is a folder; name a file to write, such as /pool.toml", 1),
        (["init", "new.toml", "--seconds", "-5"], "-5.0 is not in the range x>0", 2),
        (["pool.toml", "--watch", "gone"], "cannot watch 'gone': it is not a folder", 1),
        (["report", "gone.journal"], "gone.journal", 1),
        (["check", "gone.toml"], "gone.toml", 1),
        (["check", "pool.toml", "--instance", "gone"], "'gone' is not a file; name an instance to check", 1),
    ],
)
@pytest.mark.usefixtures("formulas")
def test_what_is_wrong_is_said_in_a_sentence(pool, tmp_path, monkeypatch, arguments, message, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".hidden").touch()
    pool({"one": MODEL})
    assert message in preselect("race", *arguments, expect=code).stderr


def test_help_teaches():
    assert "preselect race pool.toml cnf/*.cnf" in preselect("race", "--help").stdout
    assert "preselect race init" in preselect("race", expect=2).stderr
    assert "--watch" in preselect("race", "run", "--help").stdout
