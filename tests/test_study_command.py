"""`preselect study`: what is printed and written, options, mistakes, and the command that computes a study again."""

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from commands import preselect
from studies import compute

from preselect.study import (
    AslibPlan,
    AslibSetting,
    Results,
    SapsPlan,
    SapsSetting,
    SyntheticPlan,
    SyntheticSetting,
    write_figures,
    write_report,
)

SMALL = SyntheticPlan(
    settings=(SyntheticSetting(8, 3, 2), SyntheticSetting(10, 4, 3)),
    policies=("cppl", "epsilon-greedy", "mm"),
    repetitions=7,
    horizon=120,
)
QUICK = ["study", "synthetic", "--scenario", "8,3,2", "--reps", "2", "--horizon", "50", "--workers", "1"]


@pytest.fixture
def no_report(monkeypatch):
    """No report is made, nor its figures, where they are not the point."""
    monkeypatch.setattr("preselect.study.study.write_report", lambda results: results.folder)


def test_help_teaches():
    assert "preselect study show" in preselect("study", "--help").stdout
    printed = preselect("study", "synthetic", "--help").stdout
    options = ("--feedback", "--policies", "--scenario", "--horizon", "--reps", "--seed", "--out", "--workers")
    for option in (*options, "--quick", "--cluster", "An unfinished study in"):
        assert option in printed


def test_a_single_repetition_has_no_errors_and_no_p_values(tmp_path):
    plan = replace(SMALL, settings=SMALL.settings[:1], policies=("cppl", "mm"), repetitions=1, horizon=20)
    results = compute(tmp_path / "one", plan)
    write_report(results)
    page = re.sub('base64,[^"]*', "", (tmp_path / "one" / "report.html").read_text())
    tables = [path.read_text() for path in (tmp_path / "one").glob("*.csv")]
    printed = [preselect("study", "show", tmp_path / "one", "--format", style).stdout for style in ("table", "json")]
    assert len(tables) == 4
    assert not [text for text in (page, *tables, *printed) if re.search(r"\bnan\b", text, re.IGNORECASE)]
    assert "With 1 repetition and 1 comparison no p can be below 1, so none is shown." in page
    assert re.search(r"<p>Regret of the best arm: (cppl|mm) has the smallest mean\.</p>", page)


def test_a_study_and_its_table_again(tmp_path):
    out = tmp_path / "results"
    first = preselect(*QUICK, "--out", out)
    assert "(8, 3, 2)" in first.stdout
    assert "epsilon-greedy" in first.stdout
    names = {path.name for path in out.iterdir()}
    assert names >= {"manifest.json", "curves.npz", "summary.csv", "paired.csv", "timing.csv"}
    assert names >= {"report.html", "best-arm.png", "best-arm.svg", "top-k.png", "top-k.svg"}
    assert preselect("study", "show", out).stdout == first.stdout
    shown = json.loads(preselect("study", "show", out, "--format", "json").stdout)
    assert shown["parameters"]["horizon"] == 50
    assert {row["policy"] for row in shown["summary"]} == {"cppl", "max-theta", "epsilon-greedy", "mm", "newton"}
    assert {row["measure"] for row in shown["summary"]} == {"best_arm", "top_k"}
    assert [row["against"] for row in shown["paired"]][:3] == ["max-theta", "epsilon-greedy", "mm"]


@pytest.mark.usefixtures("no_report")
def test_a_smaller_study_in_the_same_folder_is_finished(tmp_path):
    preselect(*QUICK, "--policies", "cppl,random", "--out", tmp_path)
    smaller = [*QUICK[:4], "--reps", 1, *QUICK[6:]]
    found = preselect(*smaller, "--policies", "mm", "--out", tmp_path)
    assert "unfinished" not in found.stderr
    assert all(policy in found.stdout for policy in ("cppl", "random", "mm"))
    assert (
        "unfinished: 1 blocks are missing" in preselect("study", "show", tmp_path).stderr
    )  # mm has 1 of 2 repetitions


@pytest.mark.usefixtures("no_report")
def test_tables_without_rows_have_a_header(tmp_path):
    preselect(*QUICK, "--policies", "random", "--out", tmp_path)
    assert (tmp_path / "ratios.csv").read_text() == "n,d,k,policy,ratio,value\n"
    assert (tmp_path / "paired.csv").read_text().startswith("n,d,k,policy,against,measure,repetitions,difference,")


@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize(("feedback", "variation"), [("ranking", "signed"), ("winner", "drifting")])
def test_ranking_feedback_and_variations(tmp_path, feedback, variation):
    preselect(*QUICK, "--feedback", feedback, "--variation", variation, "--policies", "cppl,random", "--out", tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text())["parameters"]["feedback"] == feedback
    assert Results.open(tmp_path).plan.variation == variation


@pytest.mark.usefixtures("no_report")
def test_a_policy_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("import preselect\nclass Mine(preselect.MaxTheta):\n    '''Mine.'''\n")
    monkeypatch.chdir(tmp_path)
    policies = ["--policies", "mine:Mine(gamma_1=1.5)", "--policies", "max-theta(gamma_1=1.5)"]
    for workers in ("1", "2"):
        preselect(*QUICK, "--workers", workers, *policies, "--out", f"out{workers}")
    shown = json.loads(preselect("study", "show", "out2", "--format", "json").stdout)
    assert shown["summary"][0]["mean"] == shown["summary"][1]["mean"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "clever"], "unknown policy 'clever'; choose colstim, cppl, epoch-greedy"),
        (["--scenario", "3,2,3"], "n=3, d=2, k=3 cannot be played: k goes from 1 to n - 1, d from 1"),
        (["--scenario", "3;2"], "cannot read the setting '3;2'; write three integers n,d,k as in 20,5,3"),
        (["--cluster", "nonsense://127.0.0.1:9"], "cannot reach a Dask scheduler at 'nonsense://127.0.0.1:9'"),
        (["--policies", ":Mine"], "cannot import the policy ':Mine'"),
        (["--policies", "cppl(omega=1).x()"], "write name or name(parameter=value, ...)"),
        (["--policies", "mm(prior=0)"], "prior is 0; use a number above 0"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, message):
    printed = preselect(*QUICK, "--out", tmp_path / "out", *arguments, expect=1).stderr
    assert message in printed
    assert printed.strip().splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "0"], "--workers is 0"),
        (["--workers", "-5"], "--workers is -5"),
        (["--policies", ","], "--policies names no policy: ','"),
        (["--horizon", "0"], "0 is not in the range 1<=x<=100000000"),
        (["--horizon", "9" * 20], "is not in the range 1<=x<=100000000"),
        (["--reps", "9" * 20], "is not in the range 1<=x<=1000000"),
    ],
)
def test_bad_options_are_named(tmp_path, arguments, message):
    assert message in preselect(*QUICK, "--out", tmp_path / "out", *arguments, expect=2).stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_used_is_said(tmp_path):
    (tmp_path / "file").touch()
    assert "cannot write results to" in preselect(*QUICK, "--out", tmp_path / "file" / "out", expect=1).stderr
    assert "holds no results of a study" in preselect("study", "show", tmp_path, expect=1).stderr
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        assert "cannot write results to" in preselect(*QUICK, "--out", tmp_path / "locked", expect=1).stderr


def test_figures_and_report_are_whole(tmp_path, monkeypatch):
    plan = replace(SMALL, policies=("cppl", "cppl(omega=0.5)", "random"), horizon=50)
    results = compute(tmp_path, plan)
    figures = write_figures(results)
    assert [path.name for path in figures] == ["best-arm.png", "best-arm.svg", "top-k.png", "top-k.svg"]
    assert figures[0].read_bytes().startswith(b"\x89PNG")
    drawing = figures[1].read_text()
    monkeypatch.setattr("preselect.study.report.write_figures", lambda _: [])  # they are drawn
    assert "Compute it again" not in write_report(results).read_text()  # no command has been recorded
    results.record_command(plan.write_command(Path("out")))
    page = write_report(results).read_text()
    for policy in plan.policies:
        assert policy in page
    assert drawing.count("fill-opacity: 0.35") == len(plan.settings) * len(plan.policies)
    assert page.count("data:image/png;base64,") == 2
    assert page.index("has the smallest mean in") < page.index("data:image/png")
    assert "http" not in page.replace("http-equiv", "")
    assert "(8, 3, 2)" in page
    assert plan.write_command(Path("out")) in page.replace("&#39;", "'")


@pytest.mark.parametrize(
    ("plan", "command"),
    [
        (SyntheticPlan(), "preselect study synthetic --out out"),
        (
            SMALL,
            "preselect study synthetic --scenario 8,3,2 --scenario 10,4,3 --policies cppl,epsilon-greedy,mm "
            "--horizon 120 --reps 7 --out out",
        ),
        (SapsPlan(), "preselect study saps --out out"),
        (
            SapsPlan(settings=(SapsSetting(2),), data="my tables"),
            "preselect study saps --k 2 --data 'my tables' --lambda 100.0 --out out",
        ),
        (
            AslibPlan(settings=(AslibSetting("it's", 2), AslibSetting("b", 2), AslibSetting("-c", 3)), charge=False),
            "preselect study aslib --k 2 --free-features --out out 'it'\"'\"'s' b &&\n"
            "preselect study aslib --k 3 --free-features --out out -- -c",
        ),
        (
            AslibPlan(settings=tuple(AslibSetting("a", k, after) for k in (2, 3) for after in (0.0, 0.5))),
            "preselect study aslib --k 2,3 --after 0,0.5 --out out a",
        ),
    ],
)
def test_the_command_that_computes_a_study_again(plan, command):
    assert plan.write_command(Path("out")) == command


@pytest.mark.usefixtures("no_report")
def test_the_command_can_be_pasted_and_computes_the_same_study(tmp_path, monkeypatch):
    (tmp_path / "fancy.py").write_text(
        "import preselect\n"
        "class Mine(preselect.Random):\n"
        "    def __init__(self, *, d=None, seed=0, label=''): super().__init__(d=d, seed=seed)\n"
    )
    monkeypatch.chdir(tmp_path)
    out = "my $results; it's & more"
    policy = """fancy:Mine(label="it's $HOME")"""
    preselect(*QUICK, "--policies", f"{policy},cppl(omega=0.5)", "--out", out)
    plan, command = Results.open(out).plan, Results.open(out).manifest.command
    assert plan.policies == (policy, "cppl(omega=0.5)")
    program, *arguments = shlex.split(command)
    assert program == "preselect"
    assert arguments[-2:] == ["--out", out]
    again = preselect(*arguments[:-1], "elsewhere", "--workers", 1)
    assert Results.open(Path("elsewhere")).plan == plan
    assert again.stdout == preselect("study", "show", out).stdout
