"""Studies from Python: the same files as the command's, frames, comparisons, figures, mistakes."""

import itertools
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from commands import preselect
from small_scenario import COSTS

from preselect import InputError, study
from preselect.errors import ResultsError
from preselect.study import (
    AslibSetting,
    ChoicesSetting,
    OwnSetting,
    SapsSetting,
    Study,
    SyntheticPlan,
    SyntheticSetting,
)

ENVIRONMENT = """
import numpy as np
from preselect import MaxTheta, Winner

class Routes:
    '''Routes with a length and traffic; of those that are shown, somebody takes the best.'''

    def __init__(self, *, n=6, seed=0):
        self.n, self.d = n, 2
        self._generator = np.random.default_rng(seed)

    def context(self):
        X = self._generator.random((self.n, self.d))
        self._utilities = X @ [1.0, 2.0]
        self._noise = self._generator.gumbel(size=self.n)
        return X

    def outcome(self, decision):
        return Winner(decision.arms[(self._utilities + self._noise)[decision.arms].argmax()])

    def truth(self):
        return self._utilities

class Mine(MaxTheta):
    '''Mine.'''
"""
TABLE = "round,arm,place,context.hour\n1,a,1,3\n1,b,2,3\n1,c,,3\n2,a,,5\n2,b,1,5\n2,c,2,5\n"
SETTING = SyntheticSetting(8, 3, 2)
SMALL = {"repetitions": 2, "workers": 1}


@pytest.fixture
def no_report(monkeypatch):
    """No report is made, nor its figures, where they are not the point."""
    monkeypatch.setattr("preselect.study.study.write_report", lambda results: results.folder)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a module and a table."""
    (tmp_path / "routes.py").write_text(ENVIRONMENT)
    (tmp_path / "table.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("routes", None)


def stop_clock(monkeypatch):
    """Let measured times be the same in every run."""
    monkeypatch.setattr("preselect.study.runner.perf_counter", itertools.count().__next__)


def read_files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def compute_twice(folder, monkeypatch, arguments, run):
    """Return the files of the command and those of `study.run`, both with the folder out."""
    stop_clock(monkeypatch)
    preselect("study", *arguments, "--reps", 2, "--workers", 1, "--out", "out")
    command = read_files(folder / "out")
    (folder / "out").rename(folder / "of the command")
    stop_clock(monkeypatch)
    run(**SMALL, out="out")
    return command, read_files(folder / "out")


def test_the_command_and_the_library_write_the_same_files(folder, monkeypatch):
    arguments = ["synthetic", "--scenario", "8,3,2", "--policies", "newton,random", "--horizon", 30]
    command, library = compute_twice(
        folder,
        monkeypatch,
        arguments,
        lambda **options: study.run(SETTING, ["newton", "random"], horizon=30, **options),
    )
    assert {"report.html", "best-arm.svg", "ratios.csv", "manifest.json"} <= {path.name for path in library}
    assert command == library


@pytest.mark.usefixtures("no_report")
@pytest.mark.parametrize(
    ("arguments", "environments", "parameters"),
    [
        (["run", "routes:Routes(n=7)", "--k", 2, "--horizon", 20], "routes:Routes(n=7)", {"k": 2, "horizon": 20}),
        (["choices", "./table.csv", "--k", "1,2"], [ChoicesSetting("./table.csv", k) for k in (1, 2)], {}),
        (["saps", "--k", 3, "--data", "table"], SapsSetting(3), {"data": "table", "scale": 10.0}),
    ],
)
def test_other_studies_write_the_same_files_too(
    folder, monkeypatch, runtime_table, arguments, environments, parameters
):
    assert runtime_table == folder / "table"
    command, library = compute_twice(
        folder,
        monkeypatch,
        [*arguments, "--policies", "newton,random", "--seed", 3],
        lambda **options: study.run(environments, ["newton", "random"], seed=3, **parameters, **options),
    )
    assert command == library


@pytest.mark.parametrize(
    ("options", "settings", "parameters"),
    [
        (["--k", "1,2"], [(1,), (2,)], {}),
        (["--after", "0,1", "--k", 1], [(1, 0), (1, 1)], {"charge": True}),
        pytest.param(
            ["--after", 1 / 3, "--k", 1, "--free-features"],
            [(1, 1 / 3)],
            {"charge": False},
            marks=pytest.mark.soak,
        ),
    ],
)
def test_races_on_scenarios_write_the_same_files_too(
    folder, monkeypatch, write_scenario, options, settings, parameters
):
    (folder / "small").symlink_to(write_scenario(feature_costs=COSTS))
    command, library = compute_twice(
        folder,
        monkeypatch,
        ["aslib", "./small/", *options, "--policies", "newton,random"],
        lambda **more: study.run(
            [AslibSetting("./small/", *one) for one in settings], ["newton", "random"], **parameters, **more
        ),
    )
    assert {"report.html", "par10.svg", "ratios.csv", "manifest.json"} <= {path.name for path in library}
    assert command == library


@pytest.mark.usefixtures("no_report")
def test_the_command_of_a_study_from_python_is_exact(folder, write_scenario):
    (folder / "small").symlink_to(write_scenario())
    first = study.run(AslibSetting("./small/", 1, 1 / 3), "random", **SMALL, out="./out/")
    assert "--after 0.3333333333333333 " in first.results.manifest.command
    assert first.results.manifest.command.endswith("--out out small")


@pytest.mark.usefixtures("no_report")
def test_what_is_there_is_not_computed_again(tmp_path):
    first = study.run(SETTING, ["cppl", "random"], horizon=20, out=tmp_path, **SMALL)
    done = []
    more = study.run(
        SETTING,
        ["cppl", "random"],
        horizon=20,
        out=tmp_path,
        repetitions=6,
        workers=1,
        report=lambda *one: done.append(one),
    )
    assert (first.folder, more.folder) == (tmp_path, tmp_path)
    assert done[0] == (0, 4, None)  # blocks of 5 repetitions, of which 2 are there
    assert len(more.to_frame()) == 12


@pytest.mark.usefixtures("no_report")
def test_frames(tmp_path):
    found = study.run(SETTING, ["cppl", "random"], horizon=20, out=tmp_path, repetitions=8, workers=1)
    totals = found.to_frame()
    assert list(totals.columns) == ["n", "d", "k", "policy", "repetition", "best_arm", "top_k"]
    means = totals.groupby("policy")["best_arm"].mean()
    summary = found.to_frame("summary").query("measure == 'best_arm'").set_index("policy")["mean"]
    assert means.to_dict() == pytest.approx(summary.to_dict())
    curves = found.to_frame("curves")
    last = curves[curves["round"] == 20].sort_values(["policy", "repetition"])
    assert last["top_k"].tolist() == totals.sort_values(["policy", "repetition"])["top_k"].tolist()
    assert len(curves) == 20 * len(totals)
    ratios = found.to_frame("ratios")
    assert (len(ratios), list(ratios.columns)) == (0, ["n", "d", "k", "policy", "ratio", "value"])
    assert len(found.to_frame("timing")) == 2
    with pytest.raises(InputError, match="table"):
        found.to_frame("sums")


@pytest.mark.usefixtures("no_report")
def test_any_policy_can_be_compared_with_the_others(tmp_path):
    found = study.run(SETTING, ["cppl", "random", "mm"], horizon=20, out=tmp_path, repetitions=8, workers=1)
    first, other = found.compare(), found.compare("random", "top_k")
    assert first["against"].tolist() == ["random", "mm"]
    assert (other["policy"].tolist(), other["measure"].unique().tolist()) == (["random"] * 2, ["top_k"])
    assert other["against"].tolist() == ["cppl", "mm"]
    turned = found.compare("random").iloc[0]
    assert (turned["difference"], turned["wins"]) == (-first.iloc[0]["difference"], first.iloc[0]["losses"])
    with pytest.raises(InputError, match="policy"):
        found.compare("newton")


@pytest.mark.usefixtures("no_report")
def test_p_values_are_hidden_where_they_say_nothing(tmp_path):
    few = study.run(SETTING, ["cppl", "random"], horizon=20, out=tmp_path, repetitions=3, workers=1)
    assert math.isnan(few.compare()["p_mean"].iloc[0])
    assert "p_mean" in few.compare().columns


@pytest.mark.usefixtures("no_report")
def test_a_study_shows_itself_in_a_notebook_and_text_is_escaped(folder):
    found = study.run("routes:Routes", ["random", "routes:Mine(gamma_1=2.0)"], k=2, horizon=9, out="<b>", **SMALL)
    shown = found._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>'" not in shown
    assert "routes:Mine(gamma_<wbr>1=2.<wbr>0)" in shown
    assert shown.count("data:image/png;base64,") == 1
    assert re.search(r"(random|routes:Mine\S+) has the smallest mean", shown)
    assert repr(found) == "<Study run in '<b>', 4 of 4 blocks finished>"
    figure = found.plot("top_k")
    assert [panel.get_title() for panel in figure.axes] == ["routes:Routes, k = 2"]
    assert folder / "<b>" == found.folder.absolute()


@pytest.mark.usefixtures("no_report")
def test_results_open_without_the_classes_and_tables(folder):
    study.run("routes:Routes", "random", k=2, horizon=9, out="a", **SMALL)
    study.run(ChoicesSetting("table.csv", 2), "random", out="b", **SMALL)
    for name in ("routes.py", "table.csv"):
        (folder / name).unlink()
    sys.modules.pop("routes")
    assert len(Study.open("a").to_frame()) == len(Study.open("b").to_frame()) == 2
    assert "routes:Routes, k = 2" in preselect("study", "show", "a").stdout
    assert "table.csv, k = 2" in preselect("study", "show", "b").stdout


NOTEBOOK = """
import sys
from preselect import study
exec(open("routes.py").read())
found = study.run(Routes, [Mine, "random"], k=2, horizon=9, repetitions=2, workers=2, out="out")
print(*found.plan.settings[0], found.plan.policies[0], len(found.to_frame()), repr(found.results.manifest.command))
"""


def test_classes_of_a_notebook_run_on_processes(folder):
    command = [sys.executable, "-c", NOTEBOOK]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout
    assert printed.strip() == "__main__:Routes 2 __main__:Mine 4 ''"


@pytest.mark.parametrize(
    ("arguments", "parameters", "message"),
    [
        (["routes:Routes"], {}, "k is missing: how many arms to choose in the rounds of an environment of your own"),
        ([SETTING], {"k": 2}, "k is 2, but the settings say already how many arms to choose"),
        (
            [SETTING],
            {"rounds": 2},
            "SyntheticPlan has no parameter rounds; it has repetitions, seed, block, horizon, feedback",
        ),
        ([[]], {}, "environments is empty"),
        ([[SETTING, SapsSetting(3)]], {}, "environments are of different kinds"),
        ([3.5], {"k": 2}, "3.5 is neither a setting nor a class of environments"),
        ([SETTING, "clever"], {}, "unknown policy 'clever'"),
        ([SETTING, 3], {}, "3 is neither the name of a policy nor a class derived from preselect.Policy"),
        ([["routes:Routes", SETTING]], {"k": 2}, "environments are of different kinds"),
        (["routes:Routes"], {"k": 2.5}, "k is 2.5; use an integer"),
        (["routes:Routes"], {"k": []}, "k is empty; give at least one number of arms to choose"),
        ([SyntheticSetting("a", 3, 2)], {}, "n is 'a'; use an integer"),
        ([AslibSetting(None, 2)], {}, "folder is None; use a text or a path"),
        ([AslibSetting("x", 2, "a")], {}, "after is 'a'; use a finite number"),
        ([ChoicesSetting("table.csv", 1)], {"with_identity": "no"}, "with_identity is 'no'; use True or False"),
        ([SETTING], {"variation": ["paper"]}, "unknown variation ['paper']; choose one of paper"),
        ([SETTING], {"cluster": 3}, "cluster is 3; use the address of a Dask scheduler"),
        (["routes:Routes"], {"k": 2, "horizon": "x"}, "horizon is 'x'; use an integer"),
        ([SETTING], {"repetitions": 1.5}, "repetitions is 1.5; use an integer"),
        ([SETTING], {"workers": 0}, "workers is 0; use an integer of at least 1"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes_are_named(arguments, parameters, message):
    with pytest.raises(InputError, match=re.escape(message)):
        study.run(*arguments, **parameters, out="out")
    assert not os.path.exists("out")


@pytest.mark.parametrize("folder", [None, 3, ""])
def test_folders_are_named_by_texts(folder):
    calls = [Study.open, study.Results.open, lambda out: study.Results.create(out, SyntheticPlan())]
    for call in calls:
        with pytest.raises(InputError, match=f"the folder of results is {folder!r}; use a text or a path"):
            call(folder)


def test_figures_of_others_are_not_overwritten(tmp_path):
    (tmp_path / "best-arm.png").write_text("mine")
    with pytest.raises(ResultsError, match=r"has a best-arm\.png, but no manifest\.json"):
        study.run(SETTING, "random", horizon=9, out=tmp_path, **SMALL)
    assert (tmp_path / "best-arm.png").read_text() == "mine"


@pytest.mark.usefixtures("no_report")
def test_numbers_of_numpy_are_numbers(tmp_path):
    several = {"horizon": np.int64(9), "repetitions": np.int64(2), "seed": np.int32(0), "workers": 1}
    found = study.run(SyntheticSetting(*np.array([8, 3, 2])), "random", out=tmp_path, **several)
    again = study.run(SETTING, "random", horizon=9, out=tmp_path, **SMALL)
    assert found.plan == again.plan
    assert repr(again).endswith("1 of 1 blocks finished>")


def test_classes_inside_functions_are_refused():
    class Hidden:
        pass

    with pytest.raises(InputError, match="is defined in a function or a class; define it at the top of a module"):
        study.run(Hidden, k=2)


def test_newton_is_among_the_default_policies():
    assert "newton" in SyntheticPlan().policies
    assert "newton" in study.OwnPlan.policies
    assert SyntheticPlan().policies[0] == "cppl"  # the paper's, compared with the others


def test_the_command_is_written_for_the_new_studies():
    choices = study.ChoicesPlan((ChoicesSetting("a b.csv", 2),), feedback="ranking", with_identity=False)
    assert (
        choices.write_command("o") == "preselect study choices --k 2 --no-identity --feedback ranking --out o 'a b.csv'"
    )
    own = study.OwnPlan(
        (OwnSetting("m:E(n=3)", 2), OwnSetting("m:E(n=3)", 3)), horizon=5, criteria=(("r", "R", "", "r"),)
    )
    assert own.write_command("o") == "preselect study run --k 2,3 --horizon 5 --out o 'm:E(n=3)'"


def test_an_empty_name_of_a_folder_is_not_this_folder(folder):
    before = sorted(folder.iterdir())
    refused = preselect("study", "synthetic", "--out", "", expect=2)
    assert "the name of the folder is empty; write . for this folder" in refused.stderr
    assert sorted(folder.iterdir()) == before
