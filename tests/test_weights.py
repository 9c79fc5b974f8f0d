"""Weights as reports show them."""

import math
import random

import numpy as np
import pytest
from race_journals import SOLVERS

from preselect import Preselector
from preselect.policies.newton import Newton
from preselect.reports.weights import read_weights


def test_weights_are_those_by_which_arms_are_scored():
    preselector = Preselector(SOLVERS, ["size", "ratio"], policy="newton(beta=0)", seed=0)
    generator = random.Random(1)
    for place in range(30):
        if place == 10:
            preselector.add("glucose", {"cdcl": 1.0})  # makes room for more than one
        decision = preselector.select([generator.uniform(0, 9), generator.uniform(3, 5)], k=2)
        preselector.learn(decision, winner=generator.choice(decision.names))
    found = read_weights(preselector)
    assert (found.features, found.arms, found.columns) == (["cdcl"], preselector.arms, ["1", "size", "ratio"])
    shown = preselector._joint.show(np.array([2.0, 4.0]))
    utilities = shown.arms[:, : len(found.values)] @ found.values @ shown.context
    np.testing.assert_allclose(utilities, list(preselector.scores([2.0, 4.0]).values()), rtol=1e-12)
    assert len(set(found.values.ravel())) == found.values.size
    for row, column in np.ndindex(found.values.shape):
        unit = np.zeros((len(preselector.policy.theta) // 3, 3))
        unit[row, column] = 1.0
        variance = unit.ravel() @ preselector.policy.P @ unit.ravel()
        assert found.deviations[row, column] == pytest.approx(math.sqrt(variance))


@pytest.mark.parametrize("covariance", ["full", "blocks"])
def test_weights_are_found_where_arms_have_left_and_in_blocks(covariance):
    preselector = Preselector(SOLVERS, ["size"], policy="newton(beta=0)", covariance=covariance, seed=0)
    preselector.remove("saps")
    preselector.remove("cadical")
    for name in ("glucose", "lingeling"):  # the slots of those that have left are used again, the last one first
        preselector.add(name, {"cdcl": 1.0})
    for size in range(20):
        preselector.learn(preselector.select([size], k=2, eligible=["glucose", "kissat"]), winner="glucose")
    found = read_weights(preselector)
    own = dict(zip(found.arms, found.values[1:, 0], strict=True))
    assert own["glucose"] > 0.1 > -0.1 > own["kissat"]
    assert own["lingeling"] == pytest.approx(0.0, abs=1e-12)
    unsure = dict(zip(found.arms, found.deviations[1:], strict=True))
    assert unsure["lingeling"] == pytest.approx([1.0, 1.0])
    assert (unsure["glucose"] < 1.0).all()
    assert (unsure["kissat"] < 1.0).all()


def test_arms_without_identity_have_the_read_weights_their_features():
    preselector = Preselector(SOLVERS, ["size"], policy="newton", identity=False, seed=0)
    found = read_weights(preselector)
    assert (found.features, found.arms, found.values.shape) == (["cdcl"], [], (1, 2))


def test_cppl_is_not_sure_of_an_arm_that_it_never_saw():
    preselector = Preselector(["a", "b", "c"], policy="cppl", seed=0)
    for _ in range(20):
        decision = preselector.select(k=2, eligible=["a", "b"])
        preselector.learn(decision, winner="a")
    found = read_weights(preselector)
    np.testing.assert_array_equal(found.values.ravel(), preselector.policy.theta)
    np.testing.assert_allclose(found.deviations.ravel() ** 2, np.diagonal(preselector.policy.P))
    assert found.deviations.argmax() == 2
    assert found.ratios().argmin() == 2


def test_policies_of_ones_own_that_are_gaussian_have_weights():
    class Own(Newton):
        pass

    preselector = Preselector(["a", "b"], policy="newton", seed=0)
    preselector.policy = Own(d=2, mean=[1.0, -1.0], precision=4.0, seed=0)
    found = read_weights(preselector)
    assert found.values.ravel().tolist() == [1.0, -1.0]
    assert found.deviations.ravel().tolist() == [0.5, 0.5]
