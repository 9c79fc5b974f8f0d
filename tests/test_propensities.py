"""Propensities: against exact values and real selections; None where nothing is left to chance."""

import numpy as np
import pytest

from preselect import (
    TSMNL,
    CoLSTIM,
    EpochGreedy,
    EpsilonGreedy,
    InputError,
    NamedDecision,
    Newton,
    Preselector,
    Random,
    Thompson,
    Winner,
)
from preselect.policies import registry
from preselect.rules import Rules

RANDOMISED = {
    "thompson": lambda: Thompson(d=3, seed=0),
    "thompson by slot": lambda: Thompson(d=3, draws="slot", seed=0),
    "thompson, scaled": lambda: Thompson(d=3, scale=0.3, seed=0),
    "newton that explores": lambda: Newton(d=3, explore=0.4, seed=0),
    "newton that covers": lambda: Newton(d=3, choose="cover", seed=0),
    "epsilon-greedy": lambda: EpsilonGreedy(d=3, epsilon=0.3, seed=0),
    "random": lambda: Random(d=3, seed=0),
    "colstim": lambda: CoLSTIM(d=3, p=0.5, every=10, seed=0),
    "ts-mnl": lambda: TSMNL(d=3, every=10, seed=0),
}


def train(policy, rounds=12, n=6):
    generator = np.random.default_rng(1)
    for _ in range(rounds):
        decision = policy.select(generator.normal(size=(n, 3)), 3)
        policy.learn(decision, Winner(decision.arms[generator.integers(3)]))
    return policy


def count(policy, X, k, times, **options):
    counts = np.zeros(len(X))
    for seed in range(times):
        counts[policy.decide(X, k, 10**6 + seed, **options).arms] += 1.0
    return counts / times


def assert_agree(policy, X, k, times, draws, **options):
    found = policy.propensities(X, k, draws=draws, **options)
    counted = count(policy, X, k, times, **options)
    assert found.probabilities.sum() == pytest.approx(counted.sum())
    p = np.clip(0.5 * (found.probabilities + counted), 1.0 / times, 1.0 - 1.0 / times)
    error = np.sqrt(p * (1.0 - p) / times + found.standard_errors**2)
    assert np.abs(found.probabilities - counted).max() < 4.5 * error.max()
    assert np.all(np.abs(found.probabilities - counted) < 5.0 * error + 2.0 / times)


@pytest.mark.parametrize("name", RANDOMISED)
@pytest.mark.parametrize("eligible", [None, [0, 2, 3, 5]])
def test_propensities_agree_with_selections(name, eligible):
    policy = train(RANDOMISED[name]())
    X = np.random.default_rng(2).normal(size=(6, 3))
    slow = name in ("newton that covers", "colstim", "ts-mnl")
    times, draws = (500, 500) if slow else (2000, 20_000)
    assert_agree(policy, X, 2, times, draws, eligible=eligible)


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in RANDOMISED if "covers" not in name and "mnl" not in name])
def test_propensities_agree_with_a_hundred_thousand_selections(name):
    policy = train(RANDOMISED[name]())
    X = np.random.default_rng(2).normal(size=(6, 3))
    assert_agree(policy, X, 2, 100_000, 100_000 if name != "colstim" else 10_000)


@pytest.mark.parametrize("name", ["thompson", "thompson by slot", "random", "epsilon-greedy", "newton that explores"])
def test_arms_that_are_alike_have_equal_propensities(name):
    """Ties are broken at random, in selections and in draws; also those of a policy that has seen nothing."""
    policy = RANDOMISED[name]()
    X = np.array([[1.0, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.5]] * 2)
    draws = 3000 if name == "newton that explores" else 20_000
    found = policy.propensities(X, 2, draws=draws).probabilities
    assert found[:3].std() < 0.03 > found[3:].std()
    assert_agree(policy, X, 2, 2000, draws)


def test_exact_propensities():
    X = np.eye(3)[[0, 1, 2, 2, 2]]
    assert Random(seed=0).propensities(X, 2, eligible=[0, 1, 3]).probabilities.tolist() == [2 / 3, 2 / 3, 0, 2 / 3, 0]
    greedy = EpsilonGreedy(d=3, epsilon=0.3, theta_0=[2.0, 0.0, 1.0], seed=0)
    found = greedy.propensities(X, 2)
    np.testing.assert_allclose(
        found.probabilities, 0.3 * 2 / 5 + 0.7 * np.array([1, 0, 1 / 3, 1 / 3, 1 / 3]), rtol=1e-12
    )
    assert not found.standard_errors.any()
    assert found.draws == 0
    epochs = EpochGreedy(d=3, seed=0)
    assert epochs.propensities(X, 2).probabilities.tolist() == [2 / 5] * 5
    epochs.select(X, 2)
    assert epochs.propensities(X, 2) is None  # an exploiting round


@pytest.mark.parametrize(
    "policy",
    [
        *(
            name
            for name in registry.POLICIES
            if name not in ("thompson", "random", "epsilon-greedy", "colstim", "ts-mnl")
        ),
        "thompson(scale=0)",
        "epsilon-greedy(epsilon=0)",
    ],
)
def test_policies_that_leave_nothing_to_chance_have_none(policy):
    preselector = Preselector(["a", "b", "c"], policy=policy, seed=0)
    preselector.select(k=2)
    assert preselector.propensities(None, 2) is None
    assert preselector.select(k=2, propensities=True).propensities is None


def test_errors_are_those_of_the_draws():
    policy, X = train(Thompson(d=3, seed=0)), np.random.default_rng(2).normal(size=(6, 3))
    many = np.stack([policy.propensities(X, 2, draws=100, seed=seed).probabilities for seed in range(300)])
    one = policy.propensities(X, 2, draws=100)
    np.testing.assert_allclose(one.standard_errors, many.std(axis=0), atol=0.012)
    assert np.all(one.standard_errors > 0.0)
    assert np.array_equal(one.probabilities, policy.propensities(X, 2, draws=100).probabilities)


def test_rules_are_obeyed():
    policy, X = train(Thompson(d=3, seed=0)), np.random.default_rng(2).normal(size=(6, 3))
    rules = Rules(include=[4], groups=[0, 0, -1, -1, -1, -1], limits=[1])
    found = policy.propensities(X, 3, rules=rules, draws=500)
    assert found.probabilities[4] == 1.0
    assert found.probabilities[:2].sum() <= 1.0 + 1e-12
    assert_agree(policy, X, 3, 500, 500, rules=rules)


def test_decisions_carry_their_own_on_request():
    preselector = Preselector(["a", "b", "c", "d"], ["size"], policy="thompson", seed=0)
    for size in range(10):
        preselector.learn(decision := preselector.select([float(size)], 2), winner=min(decision.names))
    found = preselector.propensities([3.0], 2)
    decision = preselector.choose([3.0], 2, seed=5, propensities=True)
    plain = preselector.choose([3.0], 2, seed=5)
    assert plain.propensities is None
    assert plain.names == decision.names
    for name, chance in zip(decision.names, decision.propensities, strict=True):
        assert chance == pytest.approx(found[name].probability, abs=6 * found[name].standard_error)
    assert NamedDecision.from_json(decision.to_json()).propensities == decision.propensities
    assert NamedDecision.from_record(*decision.to_record()).propensities == decision.propensities
    assert "propensities" not in plain.to_json()


@pytest.mark.parametrize("options", [{"draws": 0}, {"draws": 1.5}, {"seed": -1}, {"k": 9}, {"eligible": [0]}])
def test_bad_input_is_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Thompson(d=3, seed=0).propensities(np.ones((4, 3)), **{"k": 2, **options})


def test_sets_that_are_explored_have_that_role_and_the_others_are_as_usual():
    plain, exploring = (
        Preselector(list("abcdef"), ["size"], policy=policy, seed=0) for policy in ("newton", "newton(explore=0.3)")
    )
    explored = 0
    for seed in range(200):
        usual, decision = (each.choose([2.0], 3, seed=seed) for each in (plain, exploring))
        roles = {arm.role for arm in exploring.explain(decision).arms}
        explored += roles == {"explored"}
        assert roles in ({"explored"}, {"leader", "challenger"})
        learnt = exploring.choose([float(seed)], 3, seed=seed)
        for each in (plain, exploring):
            each.learn(learnt, winner=min(learnt.names))
        if seed > 5 and roles != {"explored"}:  # no more ties
            assert usual.names == decision.names
    assert 40 < explored < 80


RULES = {
    "include": {"include": ["d"]},
    "at_most": {"at_most": {"low": 1}},
    "budget": {"budget": 4.0},
    "groups": {"at_most": {"low": 1, "new": 0}, "groups": {"a": None, "e": "new"}},
    "all": {"eligible": list("abcde"), "include": ["b"], "at_most": {"low": 2, "high": 1}, "budget": 6.5},
}


def make_ruled(policy):
    """Six arms with groups and prices; which wins depends on the context."""
    terms = {"groups": dict(zip("abcdef", ["low", "low", "low", "high", "high", "high"], strict=True))}
    preselector = Preselector(
        {name: {"x": float(place)} for place, name in enumerate("abcdef")},
        ["size"],
        policy=policy,
        prices={name: 1.0 + place % 3 for place, name in enumerate("abcdef")},
        seed=0,
        **terms,
    )
    generator = np.random.default_rng(4)
    for _ in range(8):
        decision = preselector.select([generator.normal()], 3)
        preselector.learn(decision, winner=decision.names[generator.integers(3)])
    return preselector


@pytest.mark.parametrize(
    ("policy", "rules"),
    [
        *(("thompson", rules) for rules in RULES),
        *(("epsilon-greedy(epsilon=0.4)", rules) for rules in RULES),
        ("thompson(draws='slot')", "all"),
        ("random", "all"),
    ],
)
def test_propensities_with_rules_agree_with_selections_with_the_same_rules(policy, rules):
    preselector, times = make_ruled(policy), 400
    found = preselector.propensities([0.5], 3, draws=times, **RULES[rules])
    sets = [preselector.choose([0.5], 3, seed=10**6 + seed, **RULES[rules]).names for seed in range(times)]
    counted = {name: sum(name in names for names in sets) / times for name in "abcdef"}
    assert sum(one.probability for one in found.values()) == pytest.approx(np.mean([len(names) for names in sets]))
    for name, (probability, error) in found.items():
        assert probability == pytest.approx(counted[name], abs=5.0 * np.hypot(error, error) + 1e-12), name
    free = preselector.propensities([0.5], 3)
    assert max(abs(free[name].probability - counted[name]) for name in "abcdef") > 0.1  # rules make a difference


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["thompson", "epsilon-greedy(epsilon=0.4)"])
def test_propensities_with_rules_agree_with_twenty_thousand_selections(policy):
    preselector, times = make_ruled(policy), 20_000
    for rules in RULES.values():
        found = preselector.propensities([0.5], 3, draws=times, **rules)
        sets = [preselector.choose([0.5], 3, seed=10**6 + seed, **rules).names for seed in range(times)]
        for name, (probability, error) in found.items():
            counted = sum(name in names for names in sets) / times
            assert probability == pytest.approx(counted, abs=4.5 * np.hypot(error, error) + 1e-12), name


def test_a_decision_with_rules_carries_the_propensities_that_they_leave():
    preselector = make_ruled("thompson")
    for rules in (RULES["include"], RULES["at_most"]):
        decision = preselector.choose([0.5], 3, seed=5, propensities=True, **rules)
        found = preselector.propensities([0.5], 3, **rules)
        for name, chance in zip(decision.names, decision.propensities, strict=True):
            assert chance == pytest.approx(found[name].probability, abs=6 * found[name].standard_error)
            assert name not in rules.get("include", ()) or chance == 1.0


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"k": None}, "say how many arms to choose"),
        ({"k": 7}, "k=7 is too many; the arms to choose from are 'a'"),
        ({"include": ["z"]}, "there is no arm 'z'"),
        ({"at_most": {"none": 1}}, "at_most limits 'none'"),
        ({"groups": {"a": "low"}}, "groups is given without at_most"),
        ({"budget": 0.5}, "the budget of 0.5 pays for no arm"),
    ],
)
def test_rules_are_refused_as_in_select(rules, message):
    preselector = make_ruled("thompson")
    for act in (preselector.select, preselector.propensities):
        with pytest.raises(InputError, match=message):
            act([0.5], **{"k": 3, **rules})
