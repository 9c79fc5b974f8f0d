"""Rules by name: groups and prices of arms, in memory, in files and in journals."""

import itertools
import json
import pickle

import numpy as np
import pytest
from journals import run

from preselect import InputError, NamedDecision, Preselector
from preselect.policies import registry
from preselect.store import Learner, verify

GROUPS = {"a": "sport", "b": "sport", "c": "sport", "d": "news", "e": "news"}
PRICES = {"a": 5.0, "b": 1.0, "c": 2.0, "d": 3.0, "e": 1.0, "f": 2.0}
QUICK = {"ofu-mnl": "ofu-mnl(K=3)", "ucb-mnl": "ucb-mnl(every=5)", "ts-mnl": "ts-mnl(every=5)"}
POLICIES = [QUICK.get(name, name) for name in registry.POLICIES]


def make(policy="newton", seed=0):
    return Preselector(list("abcdef"), ["size"], policy=policy, groups=GROUPS, prices=PRICES, seed=seed)


def play(preselector, rounds=10):
    for size in range(rounds):
        decision = preselector.select([size], k=3)
        preselector.learn(decision, winner=decision.names[size % 3])
    return preselector


RULES = [
    {"include": ["f"]},
    {"at_most": {"sport": 1}},
    {"at_most": {"sport": 0, "news": 1}, "k": 2},
    {"budget": 4.0},
    {"budget": 6.0, "include": ["c"], "at_most": {"sport": 1}},
    {"at_most": {"x": 1}, "groups": {"f": "x", "e": "x", "d": None}},
    {"include": ["a", "d"], "eligible": list("abd")},
]


@pytest.mark.parametrize("policy", [*POLICIES, "newton(choose='cover')", "thompson(draws='slot')"])
def test_sets_obey_what_is_said_about_names(policy):
    preselector = play(make(policy))
    for rules, size in itertools.product(RULES, (0.0, 3.0)):
        names = preselector.select([size], **{"k": 3, **rules}).names
        groups = {**GROUPS, **rules.get("groups", {})}
        for group, limit in rules.get("at_most", {}).items():
            assert sum(groups.get(name) == group for name in names) <= limit
        assert set(rules.get("include", ())) <= set(names) <= set(rules.get("eligible", "abcdef"))
        assert sum(PRICES[name] for name in names) <= rules.get("budget", np.inf)
        assert len(names) == rules.get("k", 3)  # b, e and any of 2 are paid by 4


def test_a_small_budget_makes_a_small_set_from_which_can_be_learnt():
    preselector = make()
    decision = preselector.select([1.0], k=5, budget=2.0)
    assert set(decision.names) == {"b", "e"}
    preselector.learn(decision, winner="b")
    assert preselector.policy.observations == 1
    with pytest.warns(UserWarning, match="the winner of a set of one teaches nothing"):
        preselector.select([1.0], k=5, budget=1.0)


def test_choosing_by_rules_is_pure_and_survives_files():
    preselector = play(make("thompson"))
    again = Preselector.from_bytes(preselector.to_bytes())
    assert again.groups == preselector.groups == GROUPS
    assert again.prices == preselector.prices == PRICES
    assert again.to_bytes() == preselector.to_bytes()
    for seed, rules in enumerate(RULES):
        one, two = (each.choose([1.0], seed=seed, **{"k": 3, **rules}) for each in (preselector, again))
        assert one.to_json() == two.to_json()
    assert again.to_bytes() == preselector.to_bytes()


def test_decisions_say_which_arms_had_to_be_in_the_set():
    preselector = play(make())
    decision = preselector.select([1.0], k=3, include=iter(["f", "b"]))
    assert decision.included == ("f", "b")
    for again in (NamedDecision.from_json(decision.to_json()), NamedDecision.from_record(*decision.to_record())):
        assert again == decision
        assert again.included == ("f", "b")
    assert pickle.loads(pickle.dumps(decision)).included == ("f", "b")
    roles = {arm.name: arm.role for arm in preselector.explain(decision).arms}
    assert (roles["f"], roles["b"]) == ("included", "included")
    assert "included" not in preselector.select([1.0], k=3).to_json()
    with pytest.raises(InputError):
        NamedDecision.from_json(decision.to_json().replace('"included": ["f"', '"included": ["z"'))


def test_preselectors_without_terms_write_the_files_that_they_wrote_before():
    assert not {"groups", "prices", "known_groups"} & set(Preselector(list("ab"))._collect_state()[0])


def test_groups_and_prices_change_with_the_arms():
    preselector = make()
    preselector.add("g", group="sport", price=0.5)
    assert (preselector.groups["g"], preselector.prices["g"]) == ("sport", 0.5)
    preselector.change("g", group=None)
    assert ("g" in preselector.groups, preselector.prices["g"]) == (False, 0.5)
    preselector.change("g", price=2.5)
    assert preselector.prices["g"] == 2.5
    preselector.change("g", {}, group="news")
    assert (preselector.groups["g"], preselector.prices["g"]) == ("news", 2.5)
    preselector.change("g", price=None)
    assert "g" not in preselector.prices
    preselector.remove("d")
    assert "d" not in preselector.groups
    assert "d" not in preselector.prices
    preselector.add("d")
    assert "d" not in preselector.groups


def test_a_group_that_no_arm_has_any_longer_may_be_limited():
    preselector = make()
    for name in "de":
        preselector.remove(name)
    preselector = Preselector.from_bytes(preselector.to_bytes())
    assert len(preselector.select([1.0], k=3, at_most={"news": 1}).names) == 3


def test_representations_show_groups_and_prices():
    assert "groups={'a': 'x'}, prices={'b': 2.0}" in repr(Preselector(list("ab"), groups={"a": "x"}, prices={"b": 2}))
    assert "groups" not in repr(Preselector(list("ab")))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"include": ["z"]}, "there is no arm 'z'; the arms are 'a'"),
        ({"include": "a"}, "include is 'a'; use a list of names"),
        ({"include": ["a", "a"]}, "include has 'a' more than once"),
        ({"include": ["a", "b", "c", "d"]}, "include has 4 arms, 'a', 'b', 'c', 'd', but k=3"),
        ({"include": ["a"], "eligible": list("bcd")}, "include has 'a', but eligible leaves it out"),
        ({"at_most": {"sprot": 1}}, "at_most limits 'sprot', but the groups of arms are 'sport', 'news'"),
        ({"at_most": {"sport": -1}}, "at_most\\['sport'\\] is -1; use an integer of at least 0"),
        ({"at_most": {"sport": 1.5}}, "at_most\\['sport'\\] is 1.5; use an integer"),
        ({"at_most": {3: 1}}, "at_most limits 3, but the groups"),
        ({"at_most": 2}, "at_most is 2; give values by name, such as {'sport': 2}"),
        (
            {"at_most": {"sport": 1, "news": 0}},
            "k=3, but the limits of groups .'sport': 1, 'news': 0. leave room for 2",
        ),
        (
            {"include": ["a", "b"], "at_most": {"sport": 1}},
            "include has 'a', 'b' of 'sport', but at most 1 of it may be",
        ),
        ({"groups": {"a": "x"}}, "groups is given without at_most"),
        ({"groups": {"z": "x"}, "at_most": {"x": 1}}, "there is no arm 'z'"),
        ({"groups": {"a": 3}, "at_most": {"sport": 1}}, "the group of a has 3 as a name; use strings"),
        ({"groups": {"a": ["x"]}, "at_most": {"sport": 1}}, "the group of a has \\['x'\\] as a name; use strings"),
        ({"groups": ["a"], "at_most": {"sport": 1}}, "groups is \\['a'\\]; give values by name"),
        ({"budget": -1}, "budget is -1; use a number of at least 0"),
        ({"budget": "x"}, "budget is 'x'; use a number of at least 0"),
        ({"budget": 0.5}, "the budget of 0.5 pays for no arm; the cheapest, 'b', costs 1"),
        ({"budget": 4, "include": ["a"]}, "include has 'a', which cost 5, but the budget is 4"),
    ],
)
def test_rules_that_cannot_be_obeyed_are_refused_by_name_and_change_nothing(rules, message):
    preselector = make()
    before = preselector.to_bytes()
    with pytest.raises(InputError, match=message):
        preselector.select([1.0], k=3, **rules)
    assert preselector.to_bytes() == before


def test_a_budget_needs_the_prices_of_the_arms_to_choose_from():
    preselector = Preselector(list("abc"), prices={"a": 1.0, "b": 2.0})
    with pytest.raises(InputError, match="budget needs the price of every arm to choose from, and 'c' have none"):
        preselector.select(k=2, budget=3.0)
    assert set(preselector.select(k=2, budget=3.0, eligible=["a", "b"]).names) == {"a", "b"}


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"groups": {"z": "x"}}, "there is no arm 'z'"),
        ({"groups": {"a": 3}}, "the group of a has 3 as a name"),
        ({"groups": {"a": ""}}, "the group of a has an empty name"),
        ({"prices": {"a": -1.0}}, "the price of a is -1.0; use a number of at least 0"),
        ({"prices": {"a": np.inf}}, "the price of a is inf; use a finite number"),
        ({"prices": [1.0]}, "prices is \\[1.0\\]; give values by name"),
    ],
)
def test_groups_and_prices_are_checked(terms, message):
    with pytest.raises(InputError, match=message):
        Preselector(list("ab"), **terms)


def test_an_arm_with_a_wrong_price_does_not_join():
    preselector = make()
    before = preselector.to_bytes()
    for wrong in ({"price": -1.0}, {"group": 7}):
        with pytest.raises(InputError, match="of g"):
            preselector.add("g", **wrong)
        with pytest.raises(InputError, match="of a"):
            preselector.change("a", **wrong)
    assert preselector.to_bytes() == before


@pytest.mark.parametrize("policy", ["newton", "thompson", "random", "epsilon-greedy(epsilon=0.5)"])
def test_journals_record_rules_and_replay_them(policy, tmp_path):
    path = tmp_path / "rules.journal"
    with Learner.open(path, make=lambda: make(policy), snapshot_every=1000) as learner:
        learner.add("g", group="news", price=0.5)
        for number, rules in enumerate(RULES * 3):
            rules = {"k": 3, **rules, "include": iter(rules.get("include", ()))}
            entry = learner.select([float(number)], **rules)
            learner.learn(entry, winner=entry.decision.names[0])
        entry = learner.select([1.0], k=5, budget=2.5)
        assert len(entry.decision.names) == 3
        state = learner.preselector.to_bytes()
        made = learner.journal.record(entry.number).event
        assert (made.k, made.rules) == (5, {"budget": 2.5})
        first = learner.journal.record(1).event
        assert (first.group, first.price) == ("news", 0.5)
    exported = run("export", path, "--format", "jsonl").stdout.splitlines()
    assert json.loads(exported[-1])["rules"] == {"budget": 2.5}
    found = verify(path)
    assert found.equal, found.difference
    with Learner.open(path, make=lambda: make(policy)) as learner:
        assert learner.preselector.to_bytes() == state


def test_journals_without_rules_are_as_they_were(tmp_path):
    with Learner.open(tmp_path / "plain.journal", make=lambda: Preselector(list("abc"), seed=0)) as learner:
        learner.add("d")
        entry = learner.select(k=2)
        assert '"rules"' not in learner.journal.record(entry.number).row.text
        assert json.loads(learner.journal.record(1).row.text) == {"v": 2, "name": "d", "features": {}}
