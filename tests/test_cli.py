"""The command, as it is typed."""

import errno
import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from commands import PRESELECT, preselect, start_preselect

from preselect.cli.main import Group
from preselect.errors import InputError
from preselect.policies import registry

QUICK = ["study", "synthetic", "--scenario", "8,3,2", "--reps", "2", "--horizon", "50", "--workers", "1"]


def test_alone_and_with_help_it_teaches():
    assert "preselect study synthetic --quick" in preselect(expect=2).stderr
    assert "preselect study synthetic --quick" in preselect("--help").stdout
    assert "preselect study show" in preselect("study", "--help").stdout
    said = preselect("study", "synthetic", "--help").stdout
    for option in ("--feedback", "--policies", "--scenario", "--horizon", "--reps", "--seed", "--out", "--workers"):
        assert option in said
    assert "--quick" in said
    assert "--cluster" in said


def test_a_study_and_its_table_again(tmp_path):
    out = tmp_path / "results"
    first = preselect(*QUICK, "--out", out)
    assert "(8, 3, 2)" in first.stdout
    assert "epsilon-greedy" in first.stdout
    names = {path.name for path in out.iterdir()}
    assert names >= {
        "manifest.json",
        "curves.npz",
        "summary.csv",
        "paired.csv",
        "timing.csv",
        "best-arm.png",
        "best-arm.svg",
    }
    assert names >= {"report.html", "top-k.png", "top-k.svg"}
    assert preselect("study", "show", out).stdout == first.stdout
    shown = json.loads(preselect("study", "show", out, "--format", "json").stdout)
    assert shown["parameters"]["horizon"] == 50
    assert {row["policy"] for row in shown["summary"]} == {"cppl", "max-theta", "epsilon-greedy", "mm"}
    assert {row["measure"] for row in shown["summary"]} == {"best_arm", "top_k"}
    assert [row["against"] for row in shown["paired"]][:3] == ["max-theta", "epsilon-greedy", "mm"]
    preselect(*QUICK, "--reps", "1", "--out", tmp_path / "one")
    assert "NaN" not in preselect("study", "show", tmp_path / "one", "--format", "json").stdout


def test_ranking_feedback_and_variations(tmp_path):
    for feedback, variation in (("ranking", "signed"), ("winner", "drifting")):
        out = tmp_path / variation
        preselect(*QUICK, "--feedback", feedback, "--variation", variation, "--policies", "cppl,random", "--out", out)
        assert json.loads((out / "manifest.json").read_text())["parameters"]["feedback"] == feedback


def test_a_policy_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text("import preselect\nclass Mine(preselect.MaxTheta):\n    '''Mine.'''\n")
    for workers in ("1", "2"):
        policies = ["--policies", "mine:Mine(gamma_1=1.5)", "--policies", "max-theta(gamma_1=1.5)"]
        start_preselect(*QUICK, "--workers", workers, *policies, "--out", f"out{workers}", cwd=tmp_path)
    shown = json.loads(preselect("study", "show", tmp_path / "out2", "--format", "json").stdout)
    assert shown["summary"][0]["mean"] == shown["summary"][1]["mean"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "clever"], "unknown policy 'clever'; choose colstim, cppl, epoch-greedy"),
        (["--scenario", "3,2,3"], "a setting needs 1 ≤ k < n and d ≥ 1, got n=3, d=2, k=3"),
        (["--scenario", "3;2"], "setting must be three integers n,d,k, got '3;2'"),
        (["--horizon", "0"], "horizon must be at least 1, got 0"),
        (["--cluster", "tcp://127.0.0.1:9"], "cannot reach a Dask scheduler at 'tcp://127.0.0.1:9'"),
        (["--policies", ":Mine"], "cannot import the policy ':Mine'"),
        (["--policies", "cppl(omega=1).x()"], "write name or name(parameter=value, ...)"),
        (["--policies", "mm(prior=0)"], "prior is 0; use a number above 0"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, message):
    said = preselect(*QUICK, "--out", tmp_path / "out", *arguments, expect=1).stderr
    assert message in said
    assert said.strip().splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize("arguments", [["--workers", "0"], ["--workers", "-5"], ["--policies", ","]])
def test_bad_options_are_named(tmp_path, arguments):
    assert "must" in preselect(*QUICK, "--out", tmp_path / "out", *arguments, expect=2).stderr


def test_a_folder_that_cannot_be_used_is_said(tmp_path):
    (tmp_path / "file").touch()
    assert "cannot write results to" in preselect(*QUICK, "--out", tmp_path / "file" / "out", expect=1).stderr
    assert "holds no results of a study" in preselect("study", "show", tmp_path, expect=1).stderr
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        assert "cannot write results to" in preselect(*QUICK, "--out", tmp_path / "locked", expect=1).stderr


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


def test_closed_streams_are_as_good_as_the_null_device(tmp_path):
    (tmp_path / "a.cnf").write_text("p cnf 1 1\n1 0\n")
    closed = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *PRESELECT, "sat", "solve", "a.cnf"]
    done = subprocess.run(closed, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (10, b"")


def test_policies_are_listed_and_described():
    listed = preselect("policies").stdout
    for name in registry.POLICIES:
        assert f"\n{name} " in f"\n{listed}"
    assert "over the leader. The default." in listed
    described = preselect("policies", "newton").stdout
    for part in ("Newton (this library)", "newton(beta=2.0, ", "discount : float, default 1.0", "the policy forgets"):
        assert described.count(part) == 1
    assert ">>>" not in described
    assert "unknown policy 'clever'" in preselect("policies", "clever", expect=1).stderr
