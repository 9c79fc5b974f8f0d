"""Environments: what they promise policies, and what makes each variation what it is."""

import numpy as np
import pytest

from preselect import InputError, MaxTheta, Random, Ranking, model
from preselect.environments import VARIATIONS, Drifting, FixedArms, Misspecified, Signed, Synthetic


@pytest.mark.parametrize("make", VARIATIONS.values(), ids=VARIATIONS)
def test_luck_does_not_depend_on_what_is_chosen(make):
    one, other = make(12, 4, seed=3), make(12, 4, seed=3)
    greedy, random = MaxTheta(d=4, seed=0), Random(seed=1)
    for _ in range(1500):
        X, Y = one.context(), other.context()
        assert np.array_equal(X, Y)
        assert np.array_equal(one.truth(), other.truth())
        one.outcome(greedy.select(X, 3))
        other.outcome(random.select(Y, 5))


@pytest.mark.parametrize("make", VARIATIONS.values(), ids=VARIATIONS)
def test_seeds_decide(make):
    shown = [make(6, 3, seed=seed).context() for seed in (1, 1, 2)]
    assert np.array_equal(shown[0], shown[1])
    assert not np.array_equal(shown[0], shown[2])


@pytest.mark.parametrize("place", [0, 1])
def test_outcomes_are_drawn_from_the_model(place):
    # Under the model the utility of the arm in this place of the ranking, less its mean, sums to a normal number.
    environment, policy = Signed(6, 20, feedback="ranking", seed=0), Random(seed=0)
    total, variance = 0.0, 0.0
    for _ in range(4000):
        decision = policy.select(environment.context(), 5)
        u = environment.truth()
        order = list(environment.outcome(decision).arms)[place:]
        p = model.winner_probabilities(u[order])
        mean = p @ u[order]
        total += u[order[0]] - mean
        variance += p @ (u[order] - mean) ** 2
    assert variance > 800  # enough for a wrong temperature to be noticed
    assert abs(total) < 3.5 * np.sqrt(variance)


def test_rankings_begin_with_the_winner_of_the_same_luck():
    winner, ranking = Synthetic(8, 3, seed=5), Synthetic(8, 3, feedback="ranking", seed=5)
    policy = Random(seed=0)
    for _ in range(50):
        decision = policy.select(winner.context(), 4)
        ranking.context()
        order = ranking.outcome(decision)
        assert isinstance(order, Ranking)
        assert sorted(order.arms) == sorted(decision.arms.tolist())
        assert order.arms[0] == winner.outcome(decision).arm


def test_variations_change_what_they_say():
    paper = Synthetic(20, 4, seed=0)
    X = paper.context()
    assert X.shape == (20, 4)
    assert 0.0 <= X.min() < X.max() <= 1.0
    assert np.allclose(paper.truth(), X @ paper.theta)
    assert not np.array_equal(X, paper.context())
    assert paper.theta.min() >= 0.0
    assert min(Signed(5, 20, seed=0).theta) < -0.5

    fixed = FixedArms(6, 3, seed=0)
    ratios = [fixed.context() / fixed.arms for _ in range(2)]
    assert np.allclose(ratios[0], ratios[0][0])
    assert not np.allclose(ratios[0], ratios[1])

    drifting = Drifting(4, 3, seed=0)
    start = drifting.theta.copy()
    for _ in range(5000):
        drifting.context()
    assert np.abs(drifting.theta - start).max() > 0.05
    assert 0.0 <= drifting.theta.min() <= drifting.theta.max() <= 1.0

    bent = Misspecified(200, 3, seed=0)
    X = bent.context()
    u = bent.truth()
    best = np.column_stack((X, np.ones(200)))
    assert np.abs(u - best @ np.linalg.lstsq(best, u, rcond=None)[0]).max() > 0.1


def test_drift_is_continuous():
    drifting = Drifting(4, 3, seed=0)
    thetas = []
    for _ in range(3 * drifting._rounds):
        X = drifting.context()
        thetas.append(np.linalg.lstsq(X, drifting.truth(), rcond=None)[0])
    assert np.abs(np.diff(thetas, axis=0)).max() < 0.06


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 0}, "n=0 and d=2; use at least one arm and one feature"),
        ({"feedback": "smile"}, "feedback is 'smile'; use 'winner' or 'ranking'"),
    ],
)
def test_bad_parameters_are_named(wrong, message):
    with pytest.raises(InputError, match=message):
        Synthetic(**{"n": 3, "d": 2, **wrong})
