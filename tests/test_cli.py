"""The command, as it is typed."""

import errno
import subprocess
import sys

import click
import pytest
import threadpoolctl
from click.testing import CliRunner
from commands import PRESELECT, preselect, start_preselect

from preselect.cli import _open_standard_streams
from preselect.cli.main import _THREADS, Group
from preselect.cli.main import preselect as command
from preselect.errors import InputError
from preselect.policies import registry


def test_alone_and_with_help_it_teaches():
    assert "preselect study synthetic --quick" in preselect(expect=2).stderr
    assert "preselect study synthetic --quick" in preselect("--help").stdout


def test_without_the_extra_the_command_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from preselect.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    advice = "run pip install '.[cli]' in a checkout of preselect"
    assert result.stderr.strip() == f"preselect: the command needs click and rich; {advice}"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("k=7, but there are only 5 arms"), "k=7, but there are only 5 arms"),
        (OSError(errno.EACCES, "Permission denied", "a.cnf"), "cannot read or write a.cnf: Permission denied"),
        (OSError("something else"), "cannot read or write: something else"),
        (MemoryError(), "not enough memory"),
        (
            ModuleNotFoundError("No module named 'jinja2'", name="jinja2"),
            "this needs jinja2, which is not installed; run pip install '.[study]' in a checkout of preselect",
        ),
    ],
)
def test_expected_errors_are_a_sentence(error, sentence):
    @click.command
    def fail():
        raise error

    result = CliRunner().invoke(Group(commands={"fail": fail}), ["fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"Error: {sentence}\n")


def test_commands_are_listed_in_order_of_use():
    listed = preselect("--help").stdout.partition("Commands:")[2]
    places = [listed.index(f"\n  {name} ") for name in ("race", "study", "policies", "journal", "sat")]
    assert places == sorted(places)


def test_output_that_nobody_reads_ends_the_command_silently():
    process = subprocess.Popen([*PRESELECT, "policies"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
    process.stderr.close()


def test_a_full_disk_is_a_sentence():
    with open("/dev/full", "w") as full:
        said = start_preselect("--help", stdout=full, expect=1).stderr
    assert said == "Error: cannot read or write: No space left on device\n"


@pytest.mark.parametrize(("command", "code"), [("solve", 10), ("features", 0)])
def test_closed_streams_are_as_good_as_the_null_device(tmp_path, command, code):
    (tmp_path / "a.cnf").write_text("p cnf 1 1\n1 0\n")
    closed = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *PRESELECT, "sat", command, "a.cnf"]
    done = subprocess.run(closed, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr  # slow work may say how far it is


def test_closed_streams_can_be_used(monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    _open_standard_streams()
    assert [stream.fileno() for stream in (sys.stdin, sys.stdout, sys.stderr)] == [0, 1, 2]
    for stream in (sys.stdout, sys.stderr):
        stream.writelines(["\N{GREEK SMALL LETTER THETA}\n"])
        assert isinstance(stream.isatty(), bool)
        stream.flush()


def test_policies_are_listed_and_described():
    listed = preselect("policies").stdout
    for name in registry.POLICIES:
        assert f"\n{name} " in f"\n{listed}"
    assert "over the leader. The default." in listed
    described = preselect("policies", "newton").stdout
    for part in ("Newton (this library)", "newton(beta=None, ", "discount : float, default 1.0", "the policy forgets"):
        assert described.count(part) == 1
    assert ">>>" not in described
    assert "unknown policy 'clever'" in preselect("policies", "clever", expect=1).stderr


def test_linear_algebra_uses_one_thread_unless_the_environment_says_otherwise(monkeypatch):
    def count_threads():
        CliRunner().invoke(command, ["policies"])
        return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
        assert count_threads() == {2}
        for name in _THREADS:
            monkeypatch.delenv(name, raising=False)
        assert count_threads() == {1}


def list_groups(command, path=()):
    """All groups of commands, with the words that lead to them."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        yield path
        for name in command.list_commands(context):
            yield from list_groups(command.get_command(context, name), (*path, name))


@pytest.mark.parametrize("path", [*list_groups(command)], ids=" ".join)
def test_help_fits_into_80_columns_and_lists_commands_uncut(path):
    result = CliRunner().invoke(command, [*path, "--help"], terminal_width=80)
    assert [line for line in result.output.splitlines() if len(line) > 80] == []
    listed = result.output.partition("\nCommands:\n")[2].splitlines()
    assert listed
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []


def test_a_mistyped_command_is_corrected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "No such command 'studdy'. Did you mean 'study'?" in preselect("studdy", expect=2).stderr
    said = preselect("race", "chek", "pool.toml", expect=2).stderr
    assert "there is neither a command nor a pool 'chek'; did you mean 'check'?" in said


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["logs", "check", "none"], "Error: cannot read none: No such file or directory", 1),
        (["logs", "check", "folder"], "Error: cannot read folder: Is a directory", 1),
        (["logs", "check", "table", "--name", "a"], "table is a table, not a journal, and holds no 'a'; drop", 1),
        (["sat", "generate", "--out", "table"], "Invalid value for '--out': Directory 'table' is a file.", 2),
        (["sat", "generate", "--out", ""], "the name of the folder is empty; write . for this folder", 2),
        (["race", "init", "table"], "Error: table exists and is not overwritten; move it", 1),
        (["race", "init", "--seconds", "0"], "Invalid value for '--seconds': 0.0 is not in the range x>0.", 2),
        (["race", "pool.toml", "a.cnf", "--output", "table"], "'--output': Directory 'table' is a file.", 2),
        (["race", "pool.toml", "a.cnf", "--output", ""], "the name of the folder is empty", 2),
        (["serve", "--expires", "0"], "Invalid value for '--expires': 0.0 is not in the range x>0.", 2),
        (["serve", "--max-rate", "-1"], "Invalid value for '--max-rate': -1.0 is not in the range x>0.", 2),
        (["serve", "--patience", "0"], "Invalid value for '--patience': 0.0 is not in the range x>0.", 2),
        (["serve", "key", "--role", "client", "--preselector", ""], "--preselector is empty; name a preselector", 2),
        (["study", "show", "table"], "table holds no results of a study: there is no manifest.json", 1),
        (["study", "saps", "--lambda", "-1"], "Invalid value for '--lambda': -1.0 is not in the range x>0.", 2),
        (["fit", "table", "--nobody-may-win", "--no-identity"], "(--nobody-may-win) needs identity=True", 1),
        (["evaluate", "table", "--policies", ""], "no policy is given to evaluate; name one, such as newton", 1),
    ],
)
def test_mistakes_are_explained_and_change_nothing(tmp_path, monkeypatch, arguments, message, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    rows = [f"{t},{arm},{place},{t % 7}\n" for t in range(50) for arm, place in (("a", 1), ("b", ""))]
    (tmp_path / "table").write_text("round,arm,place,arm.x\n" + "".join(rows))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    said = preselect(*arguments, expect=code).stderr
    assert message in " ".join(said.split())
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
