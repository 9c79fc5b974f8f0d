"""Tables of run times as rounds: the reader, feedback, and the two studies on them."""

import csv
import json
import lzma
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from preselect import InputError, NoWinner, Random, Ranking, Winner
from preselect.cli.main import preselect
from preselect.environments import RaceReplay, RuntimeReplay, RuntimeTable, Scenario
from preselect.sat import runtimes
from preselect.sat.colouring import Colouring
from preselect.sat.dimacs import write_formula
from preselect.sat.parametrizations import EFFECTIVE
from preselect.study.aslib import AslibPlan, AslibSetting
from preselect.study.results import Results
from preselect.study.runner import run
from preselect.study.saps import SapsPlan, SapsSetting
from preselect.study.statistics import medians


@pytest.fixture
def folder(tmp_path):
    """A table of 12 instances and 4 algorithms in the paper's form."""
    generator = np.random.default_rng(0)
    names = [f"i{i}" for i in range(12)]
    features, times = generator.random((12, 3)), generator.random((12, 4))
    lines = [",a,b,c", *(f"{name}," + ",".join(map(str, row)) for name, row in zip(names, features, strict=True))]
    (tmp_path / "features.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")  # in another order
    lines = ["\tA\tB\tC\tD", *(f"{name}\t" + "\t".join(map(str, row)) for name, row in zip(names, times, strict=True))]
    (tmp_path / "cpu_times.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "parameters.json").write_text(json.dumps(generator.random((4, 4)).tolist()))
    return tmp_path


def test_a_table_is_read_with_features_in_the_order_of_its_runs(folder):
    table = RuntimeTable.read(folder)
    generator = np.random.default_rng(0)
    assert np.allclose(table.features, generator.random((12, 3)))
    assert np.allclose(table.seconds, generator.random((12, 4)))
    assert table.solved.all()


def test_feedback_is_drawn_from_the_model_or_the_truly_fastest(folder):
    table = RuntimeTable.read(folder)
    for feedback, kind in (("winner", Winner), ("ranking", Ranking), ("race", Winner)):
        rounds, policy, seen = RuntimeReplay(table, feedback=feedback, seed=1), Random(seed=0), []
        for _ in range(12):
            context = rounds.context()
            decision = policy.select(context, 2)
            outcome = rounds.outcome(decision)
            assert isinstance(outcome, kind)
            u = rounds.truth()
            seen.append(tuple(u))
            if feedback == "race":
                assert outcome.arm == decision.arms[u[decision.arms].argmax()]
        assert len(set(seen)) == 12  # each instance once


def test_each_table_has_its_own_joint_features(folder):
    table = RuntimeTable.read(folder)
    for width in range(1, 5):
        # Each is gone before the next is made, which may then be in the same place in memory.
        other = replace(table, parameters=table.parameters[:, :width])
        arms, contexts = other.joint_features
        assert arms.shape == (4, width)
        assert RuntimeReplay(other).d == width * contexts.shape[1]
        assert other.joint_features is other.joint_features
        del other, arms, contexts


def test_bad_tables_are_one_sentence(folder, tmp_path):
    with pytest.raises(InputError, match=r"is not a table of run times: it has no features\.csv"):
        RuntimeTable.read(tmp_path / "nowhere")
    (folder / "features.csv").write_text(",a\ni0,x\n")
    with pytest.raises(InputError, match=r"features\.csv, line 2: could not convert string to float: 'x'"):
        RuntimeTable.read(folder)
    (folder / "features.csv").write_text(",a\ni0,1\n")
    with pytest.raises(InputError, match=r"features\.csv has no row for the instance i1"):
        RuntimeTable.read(folder)


def test_the_shipped_table_is_whole():
    table = RuntimeTable.read_shipped()
    assert table.seconds.shape == (1040, 20)
    assert table.features.shape == (1040, 28)
    assert 0.3 < table.solved.mean() < 0.7
    assert table.seconds.max() == 0.1
    assert (table.seconds[~table.solved] >= 0.1).all()


def test_run_times_are_measured_resumed_and_the_same_again(tmp_path):
    files = [tmp_path / f"{seed}.cnf" for seed in range(3)]
    for seed, path in enumerate(files):
        write_formula(Colouring(30, 0.25, seed).formula(), path)
    out = tmp_path / "runs.csv"
    some = EFFECTIVE[:3]
    first = runtimes.measure_runtimes(files[:2], some, out, cutoff=0.2, workers=1)
    text = out.read_text()
    out.write_text(text + "2.cnf,1,0.0")  # killed in the middle of a line
    heard = []
    lines = runtimes.measure_runtimes(files, some, out, cutoff=0.2, workers=1, report=heard.append)
    assert lines[: len(first)] == first
    assert len(lines) == 9
    assert heard == ["", "", "2.cnf"]
    other = runtimes.measure_runtimes(files, some, tmp_path / "again.csv", cutoff=0.2, workers=2)
    assert {(line.instance, line.parametrization, line.steps) for line in other if line.solved} == {
        (line.instance, line.parametrization, line.steps) for line in lines if line.solved
    }
    (tmp_path / "runs.csv.xz").write_bytes(lzma.compress(out.read_bytes()))
    assert runtimes.read_runtimes(tmp_path / "runs.csv.xz") == lines
    out.write_text(text.replace(",1\n", ",yes\n", 1))
    with pytest.raises(InputError, match=r"runs\.csv, line \d+: expected instance,parametrization"):
        runtimes.read_runtimes(out)


def test_the_saps_study_is_played_resumed_and_told(folder, tmp_path):
    plan = SapsPlan(
        settings=(SapsSetting(2), SapsSetting(3)),
        policies=("newton", "random"),
        repetitions=2,
        data=str(folder),
        block=1,
    )
    results = Results.create(tmp_path / "out", plan)
    run(results, plan, workers=1)
    again = Results.open(tmp_path / "out")
    assert again.plan == plan
    assert not again.pending(plan)
    assert set(again.summaries("best_arm")) == {
        (SapsSetting(k), policy) for k in (2, 3) for policy in ("newton", "random")
    }
    assert "--data" in plan.command("x")
    with pytest.raises(InputError, match="k must be from 1 to 3, fewer than there are algorithms, got 4"):
        SapsPlan(settings=(SapsSetting(4),), data=str(folder))


@pytest.fixture
def scenario(tmp_path):
    """An ASlib scenario of 8 instances: algorithm a solves the first half, b the second, c everything slowly."""
    place = tmp_path / "TOY"
    place.mkdir()
    (place / "description.txt").write_text(
        "scenario_id: TOY\nperformance_measures: runtime\nmaximize: false\nperformance_type: runtime\n"
        "algorithm_cutoff_time: 100\nfeatures_deterministic: size\nfeature_steps:\n  all:\n    provides:\n    - size\n"
        "default_steps:\n- all\n"
    )
    runs, features, costs = [], [], []
    for i in range(8):
        runs += [f"i{i},1,a,{1 + i if i < 4 else 100},{'ok' if i < 4 else 'timeout'}"]
        runs += [f"i{i},1,b,{2 if i >= 4 else 100},{'ok' if i >= 4 else 'timeout'}", f"i{i},1,c,50,ok"]
        features.append(f"i{i},1,{i}")
        costs.append(f"i{i},1,{10 if i < 7 else 99}")
    head = "@RELATION x\n@ATTRIBUTE instance_id STRING\n@ATTRIBUTE repetition NUMERIC\n"
    (place / "algorithm_runs.arff").write_text(
        head
        + "@ATTRIBUTE algorithm STRING\n@ATTRIBUTE runtime NUMERIC\n@ATTRIBUTE runstatus {ok, timeout}\n@DATA\n"
        + "\n".join(runs)
    )
    (place / "feature_values.arff").write_text(head + "@ATTRIBUTE size NUMERIC\n@DATA\n" + "\n".join(features))
    (place / "feature_costs.arff").write_text(head + "@ATTRIBUTE all NUMERIC\n@DATA\n" + "\n".join(costs))
    return place


def test_races_are_won_by_the_fastest_that_solves(scenario):
    data = Scenario.read(scenario)
    races, policy = RaceReplay(data, charge=False, seed=0), Random(seed=0)
    for _ in range(8):
        decision = policy.select(races.context(), 2)
        i = int(races.truth()[0])
        solving = [arm for arm in decision.arms if data.solved[i, arm]]
        outcome = races.outcome(decision)
        if solving:
            first = min(solving, key=lambda arm: data.times[i, arm])
            assert outcome == Winner(first, after=data.times[i, first] / 100.0)
        else:
            assert outcome == NoWinner(after=1.0)
        best = min(data.times[i, arm] if data.solved[i, arm] else 1000.0 for arm in decision.arms)
        assert races.measure(races.truth()[None], decision.arms[None])["par10"] == best
        assert races.measure(races.truth()[None], decision.arms[None])["resources"] == 2 * best
        assert (
            races.measure(races.truth()[None], decision.arms[None])["excess"]
            == best - data.times[i][data.solved[i]].min()
        )


def test_time_for_features_counts_against_the_cutoff(scenario):
    data = Scenario.read(scenario)
    costs = data.charged_costs
    place = {name: column for column, name in enumerate(data.algorithms)}
    row = {name: number for number, name in enumerate(data.instances)}
    assert costs[row["i0"], place["a"]] == 11.0
    assert costs[row["i7"], place["b"]] == 1000.0  # 99 s for features, 2 s to solve it
    assert costs[row["i0"], place["b"]] == 1000.0


def test_the_aslib_study_is_played_and_told(scenario, tmp_path):
    one, two = AslibSetting(str(scenario), 1), AslibSetting(str(scenario), 2)
    plan = AslibPlan(settings=(one, two), policies=("newton(outside=True)", "random"), repetitions=2, charge=False)
    results = Results.create(tmp_path / "out", plan)
    run(results, plan, workers=1)
    assert Results.open(tmp_path / "out").plan == plan
    virtual = (1 + 2 + 3 + 4 + 4 * 2) / 8
    baselines = {"virtual best": 8 * virtual, "single best": 8 * 50.0, "best fixed set": 8 * 50.0}
    assert plan.baselines(one, "par10") == pytest.approx(baselines)
    assert plan.baselines(two, "par10") == pytest.approx({**baselines, "best fixed set": 8 * virtual})
    assert plan.baselines(one, "excess")["single best"] == pytest.approx(8 * (50.0 - virtual))
    assert plan.baselines(two, "resources")["best fixed set"] == pytest.approx(2 * 8 * virtual)
    fixed, single = results.ratios().values()
    total = results.summaries("par10")[two, "random"].mean
    assert single[two, "random"] == pytest.approx((total / 8 - virtual) / (50.0 - virtual))
    assert np.isnan(fixed[two, "random"])  # the best pair is as good as the virtual best
    assert fixed[one, "random"] == single[one, "random"]
    with pytest.raises(InputError, match=r"k must be from 1 to 3, the algorithms of .*, got 4"):
        AslibPlan(settings=(AslibSetting(str(scenario), 4),))


def test_the_aslib_command_tells_ratios_in_table_report_and_csv(scenario, tmp_path):
    out = tmp_path / "out"
    options = ["--k", "1,2", "--policies", "newton(outside=True),random", "--reps", "2", "--workers", "1"]
    command = ["study", "aslib", str(scenario), *options, "--out", str(out)]
    told = CliRunner().invoke(preselect, command, catch_exceptions=False).output
    results = Results.open(out)
    ratios = results.ratios()["(x - virtual best) / (single best - virtual best)"]
    said = f"{ratios[AslibSetting(str(scenario), 1), 'random']:.2f}"
    assert "(x - virtual best) / (best fixed set - virtual best)" in told
    assert next(line for line in told.splitlines() if "median, k = 1" in line).count(said) == 1
    assert "<td>median, k = 1<td>" in (out / "report.html").read_text()
    with (out / "ratios.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2
    assert {
        row["k"]: float(row["value"]) for row in rows if row["policy"] == "random" and "single" in row["ratio"]
    } == {str(k): pytest.approx(ratios[AslibSetting(str(scenario), k), "random"]) for k in (1, 2)}
    shown = json.loads(CliRunner().invoke(preselect, ["study", "show", str(out), "--format", "json"]).output)
    assert len(shown["ratios"]) == len(rows)
    assert None in {row["value"] for row in shown["ratios"]}  # the pair's gap is nothing to divide by


def test_medians_are_taken_for_each_k_over_what_is_there():
    values = {
        (AslibSetting("a", 1), "p"): 3.0,
        (AslibSetting("b", 1), "p"): 1.0,
        (AslibSetting("c", 1), "p"): np.nan,
        (AslibSetting("a", 2), "p"): 5.0,
    }
    assert medians(values) == {(1, "p"): 2.0, (2, "p"): 5.0}
