"""Evaluations on logs: against closed forms, the truth of worlds in which it is known, and what was really won."""

import csv
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from logged_world import ARMS, SETS, K, LoggedWorld, N, arm_chances, evaluate_with_truth
from scipy import stats

from preselect import InputError, Preselector, Random, Rules, logs
from preselect.cli.main import preselect as command
from preselect.offline import Estimate, Evaluation, PolicyValue, evaluate, read_logs
from preselect.offline.choosing import Choice, Chooser, train
from preselect.offline.estimates import Interval, count_effective, self_normalise
from preselect.offline.evaluation_page import write_evaluation_page
from preselect.offline.logged_rounds import LoggedRound
from preselect.offline.measures import Hits, Picks, Wins
from preselect.policies.propensities import make_exact
from preselect.store import Learner

MEASURES = {"picks": Picks(), "wins": Wins(outside=True), "wins, always somebody": Wins(outside=False)}
OPTIONS = {"identity": True, "nobody_may_win": True}


def see_round(chances, place, winner, v):
    """The round in which a set was shown and one of its arms won, or nobody, as an evaluation sees it."""
    won = np.eye(K + 1)[winner, :K]
    p = arm_chances(chances[None])[0][SETS[place]]
    return LoggedRound(SETS[place], won, p, chances[place], v, np.ones(N))


@pytest.mark.parametrize("name", MEASURES)
def test_weighted_rounds_are_right_on_average(name):
    """Summed over all sets and winners: what a policy really wins, whatever the model believes."""
    measure, generator = MEASURES[name], np.random.default_rng(1)
    world = LoggedWorld(0, outside="somebody" not in name, bend=1.0)
    c = generator.normal(size=(1, 2))
    chances, wins = world.set_chances(c)[0], world.win_chances(c)[0]
    others = generator.dirichlet(np.ones(len(SETS)))  # another policy's probability of each set
    sets = SETS[generator.choice(len(SETS), size=4000, p=others)]
    counts = np.array([(sets == arms).all(axis=1).mean() for arms in SETS])  # as it is drawn
    choice = Choice(arm_chances(counts[None])[0], sets)
    v = np.exp(generator.normal(size=(N, 1)))  # a model that knows nothing
    weight = robust = normal = 0.0
    for place, winners in enumerate(wins):
        for winner, chance in enumerate([*winners, 1.0 - winners.sum()]):
            one = see_round(chances, place, winner, v)
            found = measure.weigh(one, choice)
            weight += chances[place] * chance * found.weight / measure.expect(one)
            normal += chances[place] * chance * found.wins
            robust += chances[place] * chance * (measure.predict(one, choice)[0] + found.wins - found.predicted)
    if measure.name == "picks":
        truth = counts @ wins.sum(axis=1)
    else:
        each = [(chances[:, None] * wins * (arm == SETS)).sum() for arm in range(N)] / arm_chances(chances[None])[0]
        truth = choice.probabilities @ each
    np.testing.assert_allclose([weight, normal, robust], [1.0, truth, truth], rtol=1e-10)


def test_self_normalised_numbers_have_the_error_of_the_ratio():
    """Against the spread of the estimate over many samples."""
    generator = np.random.default_rng(0)

    def draw():
        weights = generator.gamma(0.5, 2.0, size=400)
        return self_normalise(weights * (generator.random(400) < 0.3), weights, np.ones(400))

    many = [draw() for _ in range(400)]
    means = [one.mean() for one in many]
    assert np.mean(means) == pytest.approx(0.3, abs=0.01)
    errors = [one.std(ddof=1) / 20.0 for one in many]
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_a_self_normalised_estimate_is_the_ratio_and_jackknifed():
    generator = np.random.default_rng(0)
    weights, expected = generator.gamma(0.5, 2.0, size=30), generator.uniform(1.0, 2.0, size=30)
    wins = weights * (generator.random(30) < 0.3)
    found = self_normalise(wins, weights, expected)

    def estimate(rows):
        return wins[rows].sum() / weights[rows].sum() * expected[rows].mean()

    others = np.array([estimate(np.arange(30) != left_out) for left_out in range(30)])
    assert found.mean() == pytest.approx(estimate(np.arange(30)))
    assert found.var(ddof=1) / 30 == pytest.approx(29 / 30 * ((others - others.mean()) ** 2).sum())


def test_a_round_may_outweigh_the_others_by_any_factor():
    weights, wins = np.array([1e20, 1.0, 2.0]), np.array([1e20, 0.0, 2.0])
    found = self_normalise(wins, weights, np.ones(3))
    others = np.array([2.0 / 3.0, 1.0, 1.0])  # the estimates without each of the rounds
    assert found == pytest.approx(1.0 + 2.0 * (others.mean() - others))


def test_intervals_and_effective_rounds():
    value, low, high = Interval.of(np.array([1.0, 3.0]), variance=3.0)
    assert (value, high - value) == pytest.approx((2.0, 1.959964 * 2.0))
    assert low == pytest.approx(2.0 - (high - value))
    value, low, high = Interval.of(np.array([1.0, 3.0]), effective=11.0)
    assert high - value == pytest.approx(stats.t.ppf(0.975, 10), rel=2e-3)
    assert count_effective(np.array([2.0, 2.0, 0.0])) == 2.0
    assert count_effective(np.zeros(3)) == 0.0


@pytest.mark.parametrize("most", [1.0, 2.0])
@pytest.mark.parametrize("wins", [0, 1, 37, 400])
def test_shares_of_equal_rounds_have_the_interval_of_wilson(wins, most):
    value, low, high = Interval.of_share(most * (np.arange(400) < wins), most, 400.0)
    exact = stats.binomtest(wins, 400).proportion_ci(method="wilson")
    assert (value / most, low / most, high / most) == pytest.approx((wins / 400, exact.low, exact.high), abs=2e-4)
    assert 0.0 <= low <= value <= high <= most


@pytest.mark.parametrize("share", [1e-9, 1e-3])
def test_estimates_that_are_nearer_to_an_end_than_their_error_are_not_taken_for_a_few_rounds(share):
    """Doubly robust numbers have both signs, so their mean may be next to 0 with any standard error."""
    numbers = np.random.default_rng(0).normal(size=500)
    numbers = share + 0.02 * np.sqrt(500) * (numbers - numbers.mean()) / numbers.std(ddof=1)
    around = Interval.of(numbers, effective=100.0)
    for value, low, high in (
        Interval.of_share(numbers, 1.0, 100.0),
        1.0 - np.array(Interval.of_share(1.0 - numbers, 1.0, 100.0))[[0, 2, 1]],
    ):
        assert value == pytest.approx(share)
        assert 0.0 <= low <= value
        assert around.high <= high < around.high + 0.04


def test_an_estimate_that_is_out_of_bounds_has_an_interval_around_it():
    numbers = np.array([0.0, 3.0])
    assert Interval.of_share(numbers, 1.0, 50.0) == Interval.of(numbers, effective=50.0)


def test_what_a_model_expects_is_plackett_luce():
    v = np.array([[1.0], [2.0], [5.0]])
    one = LoggedRound(np.array([0, 1]), np.zeros(2), np.ones(2), 1.0, v, np.ones(3))
    choice = Choice(np.array([0.0, 1.0, 1.0]), np.array([[1, 2]]))
    assert Picks().predict(one, choice)[0] == pytest.approx(7.0 / 8.0)
    assert Picks().predict_logged(one)[0] == pytest.approx(3.0 / 4.0)
    assert Hits().predict(one, choice)[0] == pytest.approx(7.0 / 8.0)
    assert Hits().predict_logged(one)[0] == pytest.approx(3.0 / 8.0)
    competitor = 8.0 / 3.0
    assert Wins(False).predict(one, choice)[0] == pytest.approx(2 / (2 + competitor) + 5 / (5 + competitor))
    assert Wins(True).predict_logged(one)[0] == pytest.approx(1 / (2 + competitor) + 2 / (3 + competitor))


@pytest.mark.parametrize("outside", [True, False], ids=["picks", "wins"])
def test_estimates_are_near_the_truth(outside):
    for _, truth, value in evaluate_with_truth(LoggedWorld(5, outside, bend=1.0), 600):
        for estimate in value.estimates[:2]:
            reach = estimate.value.high - estimate.value.value
            assert abs(estimate.value.value - truth) < 1.5 * reach
            assert reach < 0.15


@pytest.mark.soak
@pytest.mark.parametrize("outside", [True, False], ids=["picks", "wins"])
def test_intervals_contain_the_truth_as_often_as_they_say(outside):
    inside = []
    for seed in range(60):  # benchmarks/evaluation.py has 200
        for _, truth, value in evaluate_with_truth(LoggedWorld(500 + seed, outside, bend=1.0), 1000):
            inside.append([low <= truth <= high for _, (_, low, high), _ in value.estimates[:2]])
    assert np.all(np.mean(inside, axis=0) >= 0.88)


def test_a_model_is_asked_only_where_there_are_no_propensities():
    table = LoggedWorld(2).play(100)
    assert evaluate(table, ["random"], nobody_may_win=True, draws=3).measure == "picks"
    assert evaluate(table, ["random"]).measure == "wins"
    asked = evaluate(table, ["random"], nobody_may_win=True, by_model=True, draws=3)
    assert (asked.measure, asked.reason) == ("picks", "it was asked for")
    blind = logs.read({**columns(table), "place": place_first(table)})
    found = evaluate(blind, ["random"])
    assert (found.measure, found.reason[:19]) == ("hits", "the logs do not say")
    assert [one.method for one in found.policies[1].estimates] == ["the model"]
    assert found.policies[1].estimates[0].lead.value < 0.5


def columns(table):
    """The columns of a table again, without propensities."""
    contexts = {f"context.{name}": np.repeat(table.contexts[:, i], N) for i, name in enumerate(table.context)}
    rounds = np.repeat(np.arange(len(table)), N)
    return {"round": rounds, "arm": [table.arms[arm] for arm in table.arm], "shown": table.shown, **contexts}


def place_first(table):
    """The first arm that is shown wins."""
    return [1 if shown and not any(table.shown[row // N * N : row]) else None for row, shown in enumerate(table.shown)]


def test_the_logging_policy_gets_what_was_observed():
    """Uniform sets, evaluated with a policy that chooses uniformly: all weights are 1."""
    generator, rows = np.random.default_rng(0), []
    for t in range(60):
        shown = generator.choice(4, 2, replace=False)
        for arm in range(4):
            place = 1 if arm == shown[0] and t % 3 else None
            rows.append((t, f"a{arm}", arm in shown, place, 0.5, 1 / 6))
    names = ("round", "arm", "shown", "place", "propensity", "set_propensity")
    table = logs.read(dict(zip(names, zip(*rows, strict=True), strict=True)))
    found = evaluate(table, ["random"], nobody_may_win=True, draws=3)
    logged, random = found.policies
    assert tuple(random.estimates[0].value) == pytest.approx(tuple(logged.estimates[0].value))
    assert (random.effective, random.support.value) == pytest.approx((30.0, 1.0))
    assert random.estimates[0].lead == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


def test_policies_that_cannot_be_fitted_learn_round_by_round():
    table = LoggedWorld(3).play(300)
    for policy in ("mm", "cppl", "epsilon-greedy", "thompson(draws='slot')"):
        made = train(policy, table, OPTIONS, 0)
        assert made.policy.observations == table.winners.sum()
    choice = Chooser("thompson", made, table).choose(0, K, 50, 0, need_sets=True)
    assert choice.probabilities.sum() == pytest.approx(K)
    assert sum(choice.weigh(arms) for arms in SETS) == pytest.approx(1.0)


def test_the_features_of_a_round_are_those_of_its_rows():
    """An arm whose features change is shown to policies as it was in each round."""
    rows = [
        (t, arm, arm == "a", 1 if arm == "a" else None, float(t * 10 + i))
        for t in range(40)
        for i, arm in enumerate("ab")
    ]
    table = logs.read(dict(zip(("round", "arm", "shown", "place", "arm.x"), zip(*rows, strict=True), strict=True)))
    made = Preselector.fit(table, seed=0)
    shown = [np.asarray(Chooser("it", made, table).show(t)) for t in (0, 39)]
    assert not np.allclose(*shown)
    np.testing.assert_allclose(shown[1], made._joint.rows(np.arange(2), table.values[-2:], table.contexts[39]))


def test_every_arm_may_be_listed():
    table = logs.read({"round": [1, 1, 2], "arm": ["a", "b", "b"], "place": [1, None, 1], "arm.x": [1.0, 2.0, 3.0]})
    full = table.list_every_arm()
    assert full.starts.tolist() == [0, 2, 4]
    assert full.shown.tolist() == [True, True, False, True]
    assert full.values[:, 0].tolist() == [1.0, 2.0, 1.0, 3.0]
    assert [one.places for one in full.rounds()] == [one.places for one in table.rounds()]


def test_a_journal_of_randomised_decisions_can_be_evaluated(tmp_path):
    path, generator = tmp_path / "journal.sqlite", np.random.default_rng(0)
    make = partial(Preselector, ["a", "b", "c"], policy="newton(explore=1.0)", seed=0)
    with Learner.open(path, make=make) as learner:
        for _ in range(60):
            entry = learner.select(k=2, propensities=True)
            first, last = sorted(entry.decision.names)
            learner.learn(entry.number, winner=first if generator.random() < 0.8 else last)
    table = read_logs(path)
    with pytest.raises(InputError, match="no round has an arm that was not shown"):
        evaluate(table, ["random"])
    found = evaluate(table, ["newton(beta=0)"], every_arm=True)
    assert (found.measure, found.reason, found.rounds) == ("wins", "", 30)


def change(**values):
    """A table of 60 rounds with propensities, with some columns changed."""
    rounds = np.repeat(np.arange(60), 3)
    shown = np.tile([True, True, False], 60)
    usual = {"round": rounds, "arm": list("abc") * 60, "shown": shown, "place": [1, None, None] * 60}
    return {**usual, "propensity": [0.5] * 180, **values}


@pytest.mark.parametrize(
    ("table", "policies", "message"),
    [
        (change(), [], "no policy is given"),
        (change(), "newton", r"policies is 'newton'; give a list of names, such as \['newton'\]"),
        (change(), ["greedy"], "unknown policy 'greedy'; choose"),
        (change(propensity=[None] * 180), {"it": Preselector(["a"])}, "it does not know the arms 'b', 'c' of these"),
        (change(), {"it": Preselector([*"abc"], ["x"])}, "it has the features of rounds 'x', but the logs have none"),
        (change(propensity=[0.5] * 150 + [None] * 30), ["random"], "10 of 30 rounds have no propensity, .* round 50"),
        (change(propensity=[0.5] * 179 + [0.0]), ["random"], "row 179: propensity is 0; use a probability above 0"),
        (change(set_propensity=[0.5] * 179 + [0.4]), ["random"], "row 179: set_propensity differs from row 177"),
        (change(shown=[True] * 180), ["random"], "no round has an arm that was not shown"),
        (change(place=[None] * 180), ["random"], "0 of the rounds to evaluate on have a winner"),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_is_said(table, policies, message):
    with pytest.raises(InputError, match=message):
        evaluate(logs.read(table), policies)


def test_too_few_rounds_are_refused():
    with pytest.raises(InputError, match="10 rounds to learn from and 10 to evaluate on are too few"):
        evaluate(LoggedWorld(0).play(20), ["random"])
    with pytest.raises(InputError, match=r"use what preselect\.logs\.read returns"):
        evaluate({"round": [1]}, ["random"])


def write_table(path, table, *, propensities):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["round", "arm", "shown", "place", "context.c0", "propensity"])
        for row, arm in enumerate(table.arm):
            p = table.propensities[row] if propensities else ""
            place, context = table.places[row] or "", table.contexts[row // N, 0]
            writer.writerow([row // N, f"<b>{ARMS[arm]}</b>", int(table.shown[row]), place, context, p])


@pytest.mark.parametrize("propensities", [True, False])
def test_the_command_prints_and_writes_a_page(tmp_path, propensities):
    path, page, state = (tmp_path / name for name in ("t.csv", "t.html", "mine.npz"))
    table = LoggedWorld(4, outside=False).play(120)
    write_table(path, table, propensities=propensities)
    Preselector([f"<b>{arm}</b>" for arm in table.arms], ["c0"], seed=0).save(state)
    arguments = ["evaluate", str(path), "--policies", f"newton,random,{state}", "--out", str(page)]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert "learnt from the first 60 rounds, evaluated on the 60 after them" in result.output
    assert ("This is a model's opinion" in result.output) != propensities
    assert ("doubly robust" in result.output) == propensities
    assert ("This is a model&#39;s opinion" in page.read_text()) != propensities
    assert "mine.<wbr>npz" in page.read_text()
    page.write_text("mine")
    refused = CliRunner().invoke(command, arguments)
    assert refused.exit_code == 1
    assert page.read_text() == "mine"


def test_a_lead_of_nothing_has_no_minus_sign(tmp_path):
    rounding = Interval(-1e-17, -2e-17, 3e-17)
    estimate = Estimate("self-normalised", Interval(0.5, 0.4, 0.6), rounding)
    value = PolicyValue("random", (estimate,), 100.0, 50.0, Interval(1.0, 0.9, 1.1))
    page = write_evaluation_page(tmp_path / "t.html", Evaluation("picks", "", "", 100, 100, (value,)), "t")
    assert "+0.000 [+0.000, +0.000]" in page.read_text()


def test_arms_that_were_never_shown_are_told(tmp_path):
    """The log shows only a and b; a policy that shows c gets weights of nothing."""
    path = tmp_path / "t.csv"
    rows = [(t, arm, int(arm != "c"), int(arm == "ab"[t % 2]) or "", 1.0) for t in range(60) for arm in "abc"]
    path.write_text("round,arm,shown,place,propensity\n" + "\n".join(",".join(map(str, row)) for row in rows))
    result = CliRunner().invoke(command, ["evaluate", str(path), "--policies", "random"])
    assert result.exit_code == 0, result.output
    assert "random: its weights average 0.67 instead of 1" in result.output
    few = "only about 30 rounds count for it, too few for reliable intervals; use more rounds"
    assert f"random: {few}, or a policy closer to that of the logs\n" in result.output
    assert "as logged: only" not in result.output  # nothing is weighed for it


def test_random_sets_are_all_sets_where_these_are_few_and_even_draws_elsewhere():
    preselector = Preselector([f"a{i}" for i in range(8)], policy="random", seed=0)
    rows = {"round": [0] * 8, "arm": list(preselector.arms), "place": [1, *[None] * 7]}
    chooser = Chooser("random", preselector, logs.read(rows))
    few = chooser.choose(0, 2, 28, 0, True).sets
    assert len({tuple(one) for one in few.tolist()}) == len(few) == 28  # all of them
    many = chooser.choose(0, 3, 55, 0, True).sets
    assert many.shape == (55, 3)
    assert all(len(set(one)) == 3 for one in many.tolist())
    drawn = np.concatenate([chooser.choose(0, 3, 55, seed, True).sets for seed in range(100)])
    assert np.abs(np.bincount(drawn.ravel()) / len(drawn) - 3 / 8).max() < 0.03


class FirstArmAndAnother(Random):
    def _choose(self, context, k, eligible, randomness, _):
        return super()._choose(context, k, eligible, randomness, Rules(include=[0]))

    def _find_propensities(self, context, k, *_):
        others = context.shape[0] - 1
        return make_exact(np.array([1.0, *[(k - 1) / others] * others]))


def test_a_policy_derived_from_random_chooses_its_own_sets():
    preselector = Preselector(["a", "b", "c"], policy="test_evaluate:FirstArmAndAnother", seed=0)
    rows = {"round": [0] * 3, "arm": [*"abc"], "place": [1, None, None]}
    choice = Chooser("its own", preselector, logs.read(rows)).choose(0, 2, 100, 0, True)
    assert choice.weigh(np.array([1, 2])) == 0.0
    assert choice.weigh(np.array([0, 1])) == pytest.approx(0.5, abs=0.2)


def test_few_wins_are_told(tmp_path):
    """Two hundred rounds count, but only three of them have a winner."""
    path = tmp_path / "t.csv"
    shown = [{"a", "bc"[t % 2]} for t in range(400)]
    rows = [
        (t, arm, int(arm in shown[t]), int(t % 80 == 79 and arm == "a") or "", 0.5) for t in range(400) for arm in "abc"
    ]
    path.write_text("round,arm,shown,place,set_propensity\n" + "\n".join(",".join(map(str, row)) for row in rows))
    options = ["--policies", "random", "--nobody-may-win"]
    result = CliRunner().invoke(command, ["evaluate", str(path), *options])
    assert result.exit_code == 0, result.output
    assert "random: only about 3 wins count for it, too few for reliable intervals; use more rounds" in result.output
