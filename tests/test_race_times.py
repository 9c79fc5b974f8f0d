"""What races teach policies with an outside option: the likelihood, what it is estimated by, and its chances."""

from functools import partial

import numpy as np
import pytest

from preselect import Newton, NoWinner, Ranking, Thompson, Winner, load, state
from preselect.chances import Chances
from preselect.kernels import learning
from preselect.kernels.types import OK
from preselect.policies.persistence import collect_state
from preselect.policies.race_times import _estimate_early

X = np.random.default_rng(4).uniform(-1.0, 1.0, (3, 6))  # the rows of three arms
THETA = np.array([0.5, -1.0, 2.0, 0.3, -0.2, 1.0])
PACE = np.array([40.0, 60.0, 12.0, 20.0, 5.0])
E = np.exp(_estimate_early(PACE[2:]))


def log_likelihood(theta, kind, e=E):
    """As the module's docstring has it; arm 1 wins."""
    v = np.exp(X @ theta)
    V = v.sum()
    return np.log(
        {
            "early": v[1] / (V + e + 1.0),
            "late": e / (V + e + 1.0) * v[1] / (V + 1.0),
            "untimed": v[1] / (V + 1.0),
            "failed": 1.0 / (V + 1.0),
            "trivial": V / (V + e + 1.0),
        }[kind]
    )


OUTCOMES = {
    "early": [lambda arm: Winner(arm, after=0.1), lambda arm: Winner(arm, after=2e-3)],
    "late": [lambda arm: Winner(arm, after=0.11), lambda arm: Winner(arm, after=1.2)],
    "untimed": [Winner, lambda arm: Ranking([arm])],
    "failed": [lambda _: NoWinner(), lambda _: NoWinner(after=1.0), lambda _: NoWinner(after=0.0)],
    "trivial": [lambda arm: Winner(arm, after=9e-4), lambda arm: Winner(arm, after=0.0)],
}
CASES = [(kind, outcome) for kind, outcomes in OUTCOMES.items() for outcome in outcomes]


def differentiate(function, theta, step=1e-4):
    """The gradient by central differences; for a function with several values, one row for each."""
    return np.array([
        (np.asarray(function(theta + one)) - np.asarray(function(theta - one))) / (2.0 * step)
        for one in step * np.eye(len(theta))
    ]).T  # fmt: skip


def learn_one(outcome, mean, precision):
    """The policy after one race of all three arms."""
    policy = Newton(d=6, mean=mean, precision=precision, outside=True, seed=0)
    policy.pace[:] = PACE
    policy.learn(policy.select(X, 3), outcome(1))
    return policy


@pytest.mark.parametrize(("kind", "outcome"), CASES)
def test_a_race_teaches_the_gradient_and_the_curvature_of_its_likelihood(kind, outcome):
    """With a prior so strong that theta hardly moves, the step is the gradient over the precision."""
    theta, precision = THETA, 1e8
    policy = learn_one(outcome, theta, precision)
    gradient = differentiate(lambda theta: log_likelihood(theta, kind), theta)
    np.testing.assert_allclose(precision * (policy.theta - theta), gradient, atol=1e-6)
    curvature = -differentiate(lambda theta: differentiate(lambda t: log_likelihood(t, kind), theta), theta)
    if kind == "trivial":  # log V is convex: what it adds is left out
        v = np.exp(X @ theta)
        mean, q = v / v.sum() @ X, v.sum() / (v.sum() + E + 1.0)
        curvature = q * (1.0 - q) * np.outer(mean, mean)
    np.testing.assert_allclose(policy.A - precision * np.eye(6), curvature, atol=1e-6)


@pytest.mark.parametrize(("kind", "outcome"), CASES[:-2])  # a trivial race has no maximum of its own
def test_a_long_step_ends_at_the_maximum_of_prior_times_likelihood(kind, outcome):
    mean, precision = 3.0 * (X[0] - X[1] + X[2]), 0.01
    policy = learn_one(outcome, mean, precision)
    slope = differentiate(lambda theta: log_likelihood(theta, kind), policy.theta)
    left = slope - precision * (policy.theta - mean)
    assert np.abs(X @ (policy.theta - mean)).max() > 2.0
    assert left @ policy.P @ left < 1e-3


@pytest.mark.parametrize("make", [Newton, Thompson])
@pytest.mark.parametrize("precision", [1e-3, 1.0])  # the weaker prior takes more than one step
def test_after_several_races_theta_is_at_the_maximum_of_prior_times_likelihood(make, precision):
    """After the fourth race theta is fitted to all four; utilities of EARLY are those of the time."""
    policy = make(d=6, precision=precision, outside=True, seed=0)
    kinds, es = ["late", "failed", "early", "untimed"], []
    for kind in kinds:
        es.append(np.exp(_estimate_early(policy.pace[2:])))
        policy.learn(policy.select(X, 3), OUTCOMES[kind][0](1))
    slope = differentiate(lambda theta: sum(map(partial(log_likelihood, theta), kinds, es)), policy.theta)
    np.testing.assert_allclose(slope - precision * policy.theta, 0.0, atol=2e-3)
    assert len(set(es)) > 1


@pytest.mark.parametrize("step", [learning.update_newton, learning.proximal_newton])
def test_only_differences_between_offsets_matter(step):
    """As between utilities; the last arm's is not zero, as NOBODY's would be."""
    found = []
    for shift in (0.0, 3.0):
        arrays = X.copy(), np.array([2, 0]), np.array([0.4, -0.3, 0.2]) + shift
        for array in arrays:
            array.setflags(write=False)
        found.append(np.vstack((THETA, np.eye(6), np.eye(6))))
        assert step(*arrays, found[-1]) == OK
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
    assert np.abs(found[0][0] - THETA).max() > 0.1


def test_the_likelihood_is_that_of_a_ranking_of_arms_and_virtual_arms():
    """Drawn: NOBODY may come before or after EARLY if no arm wins."""
    theta, generator = THETA, np.random.default_rng(0)
    u = np.concatenate((X @ theta, [np.log(E), 0.0]))
    drawn = u + generator.gumbel(size=(200_000, 5))
    arms, first, early, nobody = drawn[:, :3].max(axis=1), drawn[:, :3].argmax(axis=1), drawn[:, 3], drawn[:, 4]
    seen = {
        "early": (first == 1) & (arms > np.maximum(early, nobody)),
        "late": (first == 1) & (early > arms) & (arms > nobody) & (early > nobody),
        "failed": nobody > arms,
        "trivial": arms > np.maximum(early, nobody),
    }
    for kind, happened in seen.items():
        assert np.exp(log_likelihood(theta, kind)) == pytest.approx(happened.mean(), abs=0.004)
    either = np.exp(log_likelihood(theta, "early")) + np.exp(log_likelihood(theta, "late"))
    assert either == pytest.approx(np.exp(log_likelihood(theta, "untimed")), rel=1e-12)


@pytest.mark.parametrize("wins", [(0, 0), (12, 20), (300, 0), (0, 300), (5, 3000)])
def test_the_utility_of_early_maximises_the_likelihood_of_early_and_late_wins(wins):
    """With V = 3 in every race, and one win of each kind added, which say nothing about V."""
    (m, n), V = wins, 3.0
    g = 0.5
    for _ in range(500):  # the sum of V / (1 + g V) at the estimate: where the estimate is its own source
        g = 1.0 / (1.0 + np.exp(_estimate_early(np.array([m, n, (m + n) * V / (1.0 + g * V)]))))
    grid = np.linspace(1e-5, 1.0 - 1e-5, 400_001)
    value = (m + 1) * np.log(grid) + (n + 1) * np.log1p(-grid) - (m + n) * np.log1p(grid * V)
    assert g == pytest.approx(grid[value.argmax()], abs=1e-5)


# --- calibration ------------------------------------------------------------------------------------------------------


def play(k, chance, after, rounds=800, seed=1):
    """Race k equal arms; return how often one won in the second half, the chance by the model, and that of reports."""
    generator, policy, chances = np.random.default_rng(seed), Newton(d=k, outside=True, seed=0), Chances(outside=True)
    won, plain, corrected = [], [], []
    for _ in range(rounds):
        decision = policy.select(np.eye(k), k)
        u = decision.scores - decision.widths
        plain.append(1.0 - Chances(outside=True).predict(u)[-1])
        corrected.append(1.0 - chances.predict(u)[-1])
        won.append(generator.random() < chance)
        place = int(generator.integers(k)) if won[-1] else None
        ended = NoWinner(after=1.0) if place is None else Winner(decision.arms[place], after=after(generator))
        policy.learn(decision, ended)
        chances.learn(u, place)
    return [np.mean(every[rounds // 2 :]) for every in (won, plain, corrected)]


TIMES = {"1e-5": lambda _: 1e-5, "5 %": lambda _: 0.05, "50 %": lambda _: 0.5, "any": np.random.Generator.random}


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("time", TIMES)
def test_chances_do_not_depend_on_how_fast_winners_are(k, time):
    """Where half of the races are won, the model says so to within 0.07 (its prior says 1 / (1 + k) of none; with
    k = 10 a little of it is left), and reports to within 0.05."""
    won, plain, corrected = play(k, 0.5, TIMES[time])
    assert plain == pytest.approx(0.5, abs=0.07)
    assert corrected == pytest.approx(won, abs=0.05)


@pytest.mark.parametrize("chance", [0.1, 0.9])
def test_chances_near_the_ends_are_right_too(chance):
    for time in ("5 %", "50 %"):
        won, plain, corrected = play(3, chance, TIMES[time])
        assert plain == pytest.approx(chance, abs=0.06)
        assert corrected == pytest.approx(won, abs=0.04)


# --- which races are trivial, and the pace ----------------------------------------------------------------------------


SHOWN = np.eye(3)


def tells_apart(policy, after, X=SHOWN):
    """Let the second of two chosen arms win; return whether the policy learnt which."""
    before, decision = policy.theta.copy(), policy.select(X, 2)
    policy.learn(decision, Winner(decision.arms[1], after=after))
    gained = decision.rows @ (policy.theta - before)
    return bool(gained[1] > 0.0 > gained[0])


def test_races_are_trivial_compared_with_the_average_race_or_the_limit_if_that_is_less():
    hasty, failing = (Newton(d=3, outside=True, seed=0) for _ in range(2))
    for _ in range(300):
        tells_apart(hasty, 1e-3)
    for _ in range(3):
        failing.learn(failing.select(SHOWN, 2), NoWinner(after=1.0))
    assert [tells_apart(hasty, after) for after in (1.1e-6, 0.9e-6)] == [True, False]
    assert [tells_apart(failing, after) for after in (1.1e-3, 0.9e-3)] == [True, False]


def test_the_pace_of_races_is_forgotten_like_everything_else():
    policy = Newton(d=2, discount=0.5, outside=True, seed=0)
    for outcome in (Winner(0, after=0.2), NoWinner(after=1.0), Winner(0), Winner(0, after=0.04)):  # one without a time
        policy.learn(policy.select(np.eye(2), 2), outcome)
    expected = [1.75, 0.25 * 0.2 + 0.5 * 10.0 + 0.04, 1.0, 0.25]
    np.testing.assert_allclose(policy.pace[:4], expected)


def test_an_arm_that_wins_at_once_or_never_keeps_what_it_has_won():
    """It solves nine of ten at once, the others five of these nine, slowly: ignoring quick races would hide it."""
    generator, policy, failures = np.random.default_rng(0), Newton(d=4, outside=True, seed=0), 0
    for _ in range(1000):
        decision, difficulty = policy.select(np.eye(4), 1), generator.random()
        if difficulty < (0.9 if decision.arms[0] == 0 else 0.5):
            policy.learn(decision, Winner(decision.arms[0], after=2e-4 if decision.arms[0] == 0 else 0.05))
        else:
            policy.learn(decision, NoWinner(after=1.0))
            failures += 1
    assert failures < 150


def test_without_an_outside_option_the_time_changes_nothing():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (6, 3))
    plain, timed = Newton(d=3, seed=0), Newton(d=3, seed=0)
    for t in range(30):
        tells_apart(plain, None, X)
        tells_apart(timed, t / 30, X)
    assert np.array_equal(plain.estimate.block, timed.estimate.block)


@pytest.mark.parametrize("discount", [1.0, 0.99])
def test_races_go_on_from_a_file_as_if_nothing_had_happened(tmp_path, discount):
    generator, policy = np.random.default_rng(0), Newton(d=6, discount=discount, outside=True, seed=0)

    def race(policy, t):
        decision = policy.select(np.roll(X, t, axis=1), 2)
        policy.learn(decision, NoWinner(after=1.0) if times[t] > 1.0 else Winner(decision.arms[t % 2], after=times[t]))

    times = 10.0 ** generator.uniform(-5.0, 0.5, 60)
    for t in range(30):
        race(policy, t)
    policy.save(tmp_path / "policy.npz")
    again = load(tmp_path / "policy.npz")
    for t in range(30, 60):
        race(policy, t)
        race(again, t)
    assert np.array_equal(policy.estimate.block, again.estimate.block)
    assert np.array_equal(policy.pace, again.pace)
    assert len(set(policy.estimate.recent.arrays()["offsets"])) > 10


@pytest.mark.parametrize("kept", [0, 2])
def test_old_files_without_pace_or_with_less_of_it_are_read(tmp_path, kept):
    policy = Newton(d=3, outside=True, seed=0)
    tells_apart(policy, 0.5)
    header, arrays = collect_state(policy)
    if kept:
        arrays["pace"] = arrays["pace"][:kept]
    else:
        del arrays["pace"]
    state.write(tmp_path / "old.npz", "Newton", header, arrays)
    again = Newton.load(tmp_path / "old.npz")
    assert np.array_equal(again.theta, policy.theta)
    assert again.pace.tolist() == [*policy.pace[:kept], *[0.0] * (5 - kept)]
    assert policy.widen(5).pace.tolist() == policy.pace.tolist()
    assert policy.pace[:4].tolist() == [1.0, 0.5, 0.0, 1.0]
