"""After-races in the replay of run times: what they cost, what is learnt from them, and what is reported."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from preselect import InputError, Nearby, NoWinner, Random, Winner
from preselect.cli.main import preselect
from preselect.environments import RaceReplay, Scenario
from preselect.race.budget import Budget


@pytest.fixture
def scenario():
    """40 instances and 7 algorithms, whose times are from 0.1 to beyond the limit of 10 s."""
    generator = np.random.default_rng(0)
    times = np.minimum(0.1 * 10.0 ** (2.4 * generator.random((40, 7))), 10.0)
    solved = times < 10.0
    return Scenario(
        name="drawn", instances=[f"i{i}" for i in range(40)], algorithms=list("abcdefg"), performance=times,
        times=times, solved=solved, ranks=np.argsort(np.argsort(np.where(solved, times, np.inf))), cutoff=10.0,
        features=generator.normal(size=(40, 2)), feature_names=["x", "y"], feature_costs=np.zeros(40),
        algorithm_features=None, algorithm_feature_names=[], quality=False, maximise=False,
    )  # fmt: skip


def play(scenario, after, policy=None):
    """Yield each race as it was decided, as it is told, and what races and after-races have used by then."""
    races = RaceReplay(scenario, charge=False, seed=1, after=after)
    policy = policy or Nearby(d=races.d, blocks=races.show_blocks(), outside=True, seed=2)
    used = np.zeros(2)
    for _ in scenario.instances:
        races.rescale(policy)
        context = races.context()
        decision = policy.select(context, 2)
        told = decision, races.outcome(decision)
        told = races.run_on(policy, context, decision) or told
        policy.learn(*told)
        used += races.truth()[1:]
        yield int(races.truth()[0]), decision, *told, used.copy()


@pytest.mark.parametrize("after", [0.1, 0.3, 2.5])
def test_the_budget_is_never_overspent_and_soon_spent(scenario, after):
    shares = [extra / cpu for *_, (cpu, extra) in play(scenario, after)]
    assert max(shares) <= after * (1 + 1e-9)
    assert shares[-1] > 0.8 * min(after, 0.7)  # all other arms, until the first answers, use about as much


def test_one_race_of_all_arms_is_learnt_with_its_winner_and_time(scenario):
    more = 0
    for i, decision, together, outcome, _ in play(scenario, 1.0):
        arms = together.arms
        assert arms[:2].tolist() == decision.arms.tolist()
        assert len(set(arms.tolist())) == len(arms)
        solving = arms[scenario.solved[i, arms]]
        if len(solving):
            first = solving[scenario.times[i, solving].argmin()]
            assert outcome == Winner(first, after=scenario.times[i, first] / 10.0)
        else:
            assert outcome == NoWinner(after=1.0)
        more += len(arms) - 2
    assert more > 10


def test_arms_run_in_groups_until_the_best_time_so_far(scenario):
    """With a budget that pays for all arms, the costs follow from the times; on easy instances there are none."""
    before, beaten = 0.0, []
    for i, decision, together, _, (_, extra) in play(scenario, 100.0, Random(seed=0)):
        times = np.where(scenario.solved[i], scenario.times[i], 10.0)
        best, cost = times[decision.arms].min(), 0.0
        beaten.append(best)
        for first in range(2, 7 if best >= 0.3 * np.mean(beaten) else 0, 2):
            group = together.arms[first : first + 2]
            best = min(best, times[group].min())
            cost += len(group) * best
        assert extra - before == pytest.approx(cost)
        before = extra


def test_without_a_budget_nothing_changes(scenario):
    for _, decision, together, _, (_, extra) in play(scenario, 0.0):
        assert together is decision
        assert extra == 0.0
    with pytest.raises(InputError, match="after is -1"):
        RaceReplay(scenario, after=-1.0)


def test_what_was_earned_is_spent_on_races_that_took_long_enough():
    budget = Budget(0.5)
    budget.earn(4.0, 1.0)
    assert [budget.count_arms(seconds) for seconds in (3.0, 2.0, 1.0, 0.31, 0.29)] == [0, 1, 2, 6, 0]
    for _ in range(99):
        budget.earn(0.0, 0.0)
    assert [budget.count_arms(seconds) for seconds in (0.1, 0.04, 0.0)] == [20, 0, 0]


def test_the_study_with_budgets_has_a_curve(toy_scenario, tmp_path):
    out = tmp_path / "out"
    options = ["--k", "1", "--after", "0,1", "--policies", "nearby(outside=True)", "--reps", "2", "--workers", "1"]
    found = CliRunner().invoke(preselect, ["study", "aslib", str(toy_scenario), *options, "--out", str(out)])
    assert found.exit_code == 0, found.output
    assert (out / "after-races.png").read_bytes().startswith(b"\x89PNG")
    with (out / "ratios.csv").open() as file:
        shares = {row["after"]: float(row["value"]) for row in csv.DictReader(file) if "after-races" in row["ratio"]}
    assert shares["0.0"] == 0.0 < shares["1.0"] <= 1.0
    assert "--after 0,1" in (out / "manifest.json").read_text()


def test_orders_of_instances_do_not_depend_on_where_a_scenario_lies(toy_scenario, tmp_path, monkeypatch):
    options = ["--k", "1", "--policies", "random", "--reps", "2", "--workers", "1"]
    found = []
    for number, folder in enumerate([str(toy_scenario), f"./{toy_scenario.name}/", "."]):
        monkeypatch.chdir(toy_scenario if folder == "." else tmp_path)
        out = tmp_path / str(number)
        assert CliRunner().invoke(preselect, ["study", "aslib", folder, *options, "--out", str(out)]).exit_code == 0
        with np.load(out / "curves.npz") as curves:
            found.append([curves[name].tolist() for name in curves.files if curves[name].dtype.kind == "f"])
    assert found[0]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("budgets", ["half", "-1", "nan", "inf", ""])
def test_budgets_that_cannot_be(toy_scenario, budgets):
    found = CliRunner().invoke(preselect, ["study", "aslib", str(toy_scenario), "--after", budgets])
    assert found.exit_code == 2
    assert "numbers of at least 0" in found.output
