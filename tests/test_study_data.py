"""Studies on data: SAPS and ASlib, their ratios, and results that outlive the data."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import preselect
from studies import age, compute

from preselect import InputError
from preselect.errors import ResultsError
from preselect.study import AslibPlan, AslibSetting, Results, SapsPlan, SapsSetting, saps, write_report


@pytest.fixture
def saps_plan(runtime_table):
    settings = (SapsSetting(2), SapsSetting(3))
    return SapsPlan(
        settings=settings, policies=("newton", "random"), repetitions=2, data=str(runtime_table), block=1
    )  # fmt: skip


@pytest.fixture
def aslib_plan(toy_scenario):
    settings = (AslibSetting(str(toy_scenario), 1), AslibSetting(str(toy_scenario), 2))
    return AslibPlan(settings=settings, policies=("newton(outside=True)", "random"), repetitions=2, charge=False)


def test_the_saps_study_is_played_and_resumed(saps_plan, tmp_path):
    compute(tmp_path / "out", saps_plan)
    again = Results.open(tmp_path / "out")
    assert again.plan == saps_plan
    assert not again.find_pending(saps_plan)
    assert set(again.summarise("best_arm")) == {
        (SapsSetting(k), policy) for k in (2, 3) for policy in ("newton", "random")
    }
    with pytest.raises(InputError, match="k=4, but the table has 4 algorithms; choose k from 1 to 3"):
        SapsPlan(settings=(SapsSetting(4),), data=saps_plan.data).check()


def test_data_that_changed_are_not_mixed_with_what_they_were(saps_plan, tmp_path):
    compute(tmp_path / "out", saps_plan)
    compute(tmp_path / "out", saps_plan)  # the same data may be added to
    times = Path(saps_plan.data) / "cpu_times.tsv"
    times.write_text(times.read_text().replace("\t0.1", "\t0.9"))
    saps._read_absolute.cache_clear()
    with pytest.raises(
        ResultsError, match=r"holds results of .*, whose data have changed since; choose another folder"
    ):
        compute(tmp_path / "out", saps_plan)


def test_the_aslib_study_is_played_with_baselines_and_ratios(aslib_plan, tmp_path):
    results = compute(tmp_path / "out", aslib_plan)
    one, two = aslib_plan.settings
    assert Results.open(tmp_path / "out").plan == aslib_plan
    virtual = (1 + 2 + 3 + 4 + 4 * 2) / 8
    baselines = {"virtual best": 8 * virtual, "single best": 8 * 50.0, "best fixed set": 8 * 50.0}
    of_one, of_two = (results.find_data(setting).baselines for setting in (one, two))
    assert of_one["par10"] == pytest.approx(baselines)
    assert of_two["par10"] == pytest.approx({**baselines, "best fixed set": 8 * virtual})
    assert of_one["excess"]["single best"] == pytest.approx(8 * (50.0 - virtual))
    assert of_two["resources"]["best fixed set"] == pytest.approx(2 * 8 * virtual)
    fixed, single = results.compute_ratios().values()
    total = results.summarise("par10")[two, "random"].mean
    assert single[two, "random"] == pytest.approx((total / 8 - virtual) / (50.0 - virtual))
    assert np.isnan(fixed[two, "random"])  # the best pair is as good as the virtual best
    assert fixed[one, "random"] == single[one, "random"]
    with pytest.raises(InputError, match=r"k=4, but .* has 3 algorithms; choose k from 1 to 3"):
        AslibPlan(settings=(AslibSetting(one.folder, 4),)).check()


def test_the_aslib_command_shows_ratios_in_table_report_and_csv(toy_scenario, tmp_path):
    out, folder = tmp_path / "out", str(toy_scenario)
    options = ["--k", "1,2", "--policies", "newton(outside=True),random", "--reps", "2", "--workers", "1"]
    printed = preselect("study", "aslib", folder, *options, "--out", out).stdout
    ratios = Results.open(out).compute_ratios()["(x - virtual best) / (single best - virtual best)"]
    shown = f"{ratios[AslibSetting(folder, 1), 'random']:.2f}"
    assert "(x - virtual best) / (best fixed set - virtual best)" in printed
    assert next(line for line in printed.splitlines() if "median, k = 1" in line).count(shown) == 1
    assert "<td>median, k = 1</td>" in (out / "report.html").read_text()
    with (out / "ratios.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2
    assert {
        row["k"]: float(row["value"]) for row in rows if row["policy"] == "random" and "single" in row["ratio"]
    } == {str(k): pytest.approx(ratios[AslibSetting(folder, k), "random"]) for k in (1, 2)}
    content = json.loads(preselect("study", "show", out, "--format", "json").stdout)
    assert content["parameters"]["settings"] == [[folder, 1, 0.0], [folder, 2, 0.0]]
    assert len(content["ratios"]) == len(rows)
    assert None in {row["value"] for row in content["ratios"]}  # the pair's gap is nothing to divide by


@pytest.mark.parametrize("name", ["saps_plan", "aslib_plan"])
def test_results_are_shown_and_reported_after_the_data_have_moved(name, request, tmp_path):
    plan = request.getfixturevalue(name)
    data = plan.data if name == "saps_plan" else plan.settings[0].folder
    out = compute(tmp_path / "out", plan).folder
    before = preselect("study", "show", out).stdout
    forget_data()
    shutil.move(data, tmp_path / "moved")
    assert preselect("study", "show", out).stdout == before
    results = Results.open(out)
    known = "12 instances of the table in" if name == "saps_plan" else "All settings"
    assert known in write_report(results).read_text()
    age(out)
    forget_data()
    with pytest.raises(ResultsError, match=r"does not describe the data of .*move them back to where they were"):
        Results.open(out).summarise(next(iter(plan.measures)))
    assert "does not describe the data" in preselect("study", "show", out, expect=1).stderr
    shutil.move(tmp_path / "moved", data)
    assert preselect("study", "show", out).stdout == before  # results from before this was kept read the data


def forget_data():
    """Data are read once in a process; read them again."""
    from preselect.study import aslib, saps

    aslib._read_absolute.cache_clear()
    saps._read_absolute.cache_clear()


def test_a_relative_folder_is_that_of_the_current_folder(toy_scenario, tmp_path, monkeypatch):
    other = shutil.copytree(toy_scenario, tmp_path / "elsewhere" / toy_scenario.name)
    runs = (other / "algorithm_runs.arff").read_text()
    (other / "algorithm_runs.arff").write_text(runs.replace(",50,ok", ",60,ok"))
    plan = AslibPlan(settings=(AslibSetting(toy_scenario.name, 1),), policies=("random",))
    found = []
    for folder in (toy_scenario.parent, other.parent):
        monkeypatch.chdir(folder)
        found.append(plan.read_data(plan.settings[0]))
    assert found[0] != found[1]


def test_names_of_folders_and_policies_cannot_break_the_report(toy_scenario, tmp_path, monkeypatch):
    (tmp_path / "scripted.py").write_text(
        "import preselect\n"
        "class Mine(preselect.Random):\n"
        "    def __init__(self, *, d=None, seed=0, label=''): super().__init__(d=d, seed=seed)\n"
    )
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "<script>alert('folder')&amp;\"$x$"
    toy_scenario.rename(folder)
    policies = ("random", 'scripted:Mine(label="<script>alert(1)</script>&")')
    results = compute(tmp_path / "out", AslibPlan(settings=(AslibSetting(str(folder), 1),), policies=policies))
    results.record_command("echo '<script>'")
    page = write_report(results).read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#39;folder&#39;)&amp;amp;&#34;$x$, k = 1" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in page
