"""Tables of run times as rounds: the reader and feedback."""

import lzma
from dataclasses import replace

import numpy as np
import pytest

from preselect import InputError, NoWinner, Random, Ranking, Winner
from preselect.environments import RaceReplay, RuntimeReplay, RuntimeTable, Scenario
from preselect.sat import runtimes
from preselect.sat.colouring import Colouring
from preselect.sat.dimacs import Formula, write_formula
from preselect.sat.parametrizations import EFFECTIVE


def test_a_table_is_read_with_features_in_the_order_of_its_runs(runtime_table):
    table = RuntimeTable.read(runtime_table)
    generator = np.random.default_rng(0)
    assert np.allclose(table.features, generator.random((12, 3)))
    assert np.allclose(table.seconds, generator.random((12, 4)))
    assert table.solved.all()


def test_feedback_is_drawn_from_the_model_or_the_truly_fastest(runtime_table):
    table = RuntimeTable.read(runtime_table)
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


def test_each_table_has_its_own_joint_features(runtime_table):
    table = RuntimeTable.read(runtime_table)
    for width in range(1, 5):
        # Each is gone before the next is made, which may then be in the same place in memory.
        other = replace(table, parameters=table.parameters[:, :width])
        arms, contexts = other.joint_features
        assert arms.shape == (4, width)
        assert RuntimeReplay(other).d == width * contexts.shape[1]
        assert other.joint_features is other.joint_features
        del other, arms, contexts


def test_bad_tables_are_one_sentence(runtime_table, tmp_path):
    with pytest.raises(InputError, match=r"is not a table of run times: it has no features\.csv"):
        RuntimeTable.read(tmp_path / "nowhere")
    (runtime_table / "features.csv").write_text(",a\ni0,x\n")
    with pytest.raises(InputError, match=r"features\.csv, line 2: could not convert string to float: 'x'"):
        RuntimeTable.read(runtime_table)
    (runtime_table / "features.csv").write_text(",a\ni0,1\n")
    with pytest.raises(InputError, match=r"features\.csv has no row for the instance i1"):
        RuntimeTable.read(runtime_table)


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


def test_run_times_are_censored_at_the_cutoff(tmp_path):
    write_formula(Formula.of(2, [[1, 2], [-1, 2], [1, -2], [-1, -2]]), tmp_path / "hard.cnf")
    (line,) = runtimes.measure_runtimes(
        [tmp_path / "hard.cnf"], EFFECTIVE[:1], tmp_path / "runs.csv", cutoff=0.03, workers=1
    )
    assert (line.seconds, line.solved) == (0.03, False)
    assert line.steps > 0


def test_races_are_won_by_the_fastest_that_solves(toy_scenario):
    data = Scenario.read(toy_scenario)
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


@pytest.mark.parametrize("charge", [False, True])
def test_a_race_is_told_as_won_if_and_only_if_it_is_counted_as_won(toy_scenario, charge):
    """On one instance features take 99 of 100 s, so that an algorithm that needs 2 s comes too late."""
    data = Scenario.read(toy_scenario)
    races, policy, late = RaceReplay(data, charge=charge, seed=0), Random(seed=0), 0
    for _ in range(8):
        decision = policy.select(races.context(), 2)
        i = int(races.truth()[0])
        cost = float(races.measure(races.truth()[None], decision.arms[None])["par10"][0])
        outcome = races.outcome(decision)
        assert isinstance(outcome, Winner) == (cost < 1000.0)
        late += bool(data.solved[i, decision.arms].any()) and cost == 1000.0
        if isinstance(outcome, Winner):
            features = 10.0 if charge else 0.0
            assert cost == data.times[i, outcome.arm] + features
            assert outcome.after == pytest.approx(data.times[i, outcome.arm] / (100.0 - features))
        else:
            assert outcome == NoWinner(after=1.0)
    assert late == charge


def test_time_for_features_counts_against_the_cutoff(toy_scenario):
    data = Scenario.read(toy_scenario)
    costs = data.charged_costs
    place = {name: column for column, name in enumerate(data.algorithms)}
    row = {name: number for number, name in enumerate(data.instances)}
    assert costs[row["i0"], place["a"]] == 11.0
    assert costs[row["i7"], place["b"]] == 1000.0  # 99 s for features, 2 s to solve it
    assert costs[row["i0"], place["b"]] == 1000.0
