"""What `learn` is told by name: rankings with ties, ratings, and rounds that nobody wins."""

import math

import numpy as np
import pytest

from preselect import InputError, NoWinner, Preselector, Winner

ARMS = ["a", "b", "c", "d", "e"]


def learn(preselector, **outcome):
    decision = preselector.select(k=3, eligible=["a", "b", "c"])
    preselector.learn(decision, **outcome)
    return preselector.to_bytes()


def test_ratings_are_rankings_with_ties():
    ratings = {"c": 1, "a": 4, "b": 4.0}
    assert learn(Preselector(ARMS, seed=0), ratings=ratings) == learn(
        Preselector(ARMS, seed=0), ranking=[["b", "a"], "c"]
    )
    assert learn(Preselector(ARMS, seed=0), ratings={"a": 1, "b": 3, "c": 2}) == learn(
        Preselector(ARMS, seed=0), ranking=["b", "c", "a"]
    )


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"ratings": {"a": 1, "b": 2}}, "ratings lacks 'c'; rate all chosen arms"),
        ({"ratings": {"a": 1, "b": 2, "c": 3, "d": 4}}, "'d' was not chosen"),
        ({"ratings": {"a": 1, "b": 2, "c": math.nan}}, "the rating of 'c'"),
        ({"ratings": {"a": 1, "b": 2, "c": None}}, "the rating of 'c'"),
        ({"ratings": [1, 2, 3]}, "give a number for each chosen arm"),
        ({"ranking": [["a", "b"], "a"]}, "'a' more than once"),
        ({"ranking": [["a", 3]]}, "ranking has 3 as a name"),
        ({"ranking": [["a"], []]}, "ranking has an empty list"),
        ({"ranking": [["a", "d"]]}, "'d' was not chosen"),
        ({"ranking": "abc"}, "use a list of names"),
        ({"outcome": "a"}, "outcome is 'a'; use a Winner, Ranking, NoWinner or Void"),
        ({}, "exactly one of winner, ranking, ratings and outcome; 0 were given"),
        ({"winner": None, "ranking": ["a"]}, "2 were given"),
        ({"winner": None}, "make the preselector with nobody_may_win=True, or give outcome=NoWinner"),
    ],
)
def test_bad_outcomes_are_named(outcome, message):
    preselector = Preselector(ARMS, seed=0)
    decision = preselector.select(k=3, eligible=["a", "b", "c"])
    with pytest.raises(InputError, match=message):
        preselector.learn(decision, **outcome)


def test_nobody_may_win():
    preselectors = [
        Preselector(ARMS, nobody_may_win=True, seed=0),
        Preselector(ARMS, policy="newton(outside=True)", seed=0),
    ]
    assert preselectors[0].to_bytes() == preselectors[1].to_bytes()
    assert learn(preselectors[0], winner=None) == learn(preselectors[1], outcome=NoWinner())
    assert preselectors[0].policy.no_winners == 1
    learn(preselectors[0], winner=None, after=1.0)
    assert preselectors[0].policy.no_winners == 2


def test_a_preselector_for_clicks_learns_how_often_nobody_wins():
    """a is clicked in 3 of 4 rounds, nobody in the others: its utility is log 3."""
    preselector = Preselector(["a"], nobody_may_win=True, policy="newton(precision=0.01)", seed=0)
    for turn in range(400):
        decision = preselector.select(k=1)
        preselector.learn(decision, winner="a" if turn % 4 else None)
    decision = preselector.select(k=1)
    assert float(decision.scores[0] - decision.widths[0]) == pytest.approx(math.log(3.0), abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "cppl"}, "CPPL cannot learn that nobody won; use one of nearby, newton, thompson"),
        ({"policy": "newton(outside=False)"}, "outside=False"),
        ({"arms": {"a": {"x": 1.0}}, "identity": False}, "needs identity=True"),
        ({"nobody_may_win": "yes"}, "nobody_may_win is 'yes'; use True or False"),
    ],
)
def test_preselectors_in_which_nobody_cannot_win_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        Preselector(**{"arms": ["a", "b"], "nobody_may_win": True, **arguments})


def test_an_outcome_of_more_arms_is_that_of_all_of_them():
    """What is learnt is what a decision about all of them would have taught, whatever the order of the arms."""
    for outcome in (
        {"winner": "d", "after": 0.25},
        {"winner": "a"},
        {"ranking": ["e", "a", "d"]},
        {"ratings": {"a": 1, "b": 1, "c": 3, "d": 2, "e": 3}},
        {"winner": None},
    ):
        few, all_five = (Preselector(ARMS, ["x"], nobody_may_win=True, seed=0) for _ in range(2))
        for number in range(4):
            decision = few.select([number % 3], k=3, eligible=["a", "b", "c"])
            few.learn(decision, **outcome, also=iter(["e", "d"]))
            all_five.learn(all_five.select([number % 3], k=5), **outcome)
        np.testing.assert_allclose(few.policy.theta, all_five.policy.theta, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(few.policy.P, all_five.policy.P, rtol=0.0, atol=1e-10)
        assert few.policy.observations == all_five.policy.observations


def test_places_of_arms_besides_follow_those_of_the_chosen_ones():
    named, placed = (Preselector(ARMS, seed=0) for _ in range(2))
    assert learn(named, winner="e", also=["d", "e"]) == learn(placed, outcome=Winner(4), also=["d", "e"])


def test_features_of_arms_besides_are_those_they_have_now():
    arms = {name: {"size": size} for name, size in zip(ARMS, range(5), strict=True)}
    policies = []
    for size in (1.0, 9.0):
        preselector = Preselector(arms, seed=0)
        decision = preselector.select(k=2, eligible=["a", "b"])
        preselector.change("c", {"size": size})
        preselector.learn(decision, winner="c", also=["c"])
        policies.append(preselector.policy)
    assert not np.array_equal(policies[0].theta, policies[1].theta)


@pytest.mark.parametrize(
    ("also", "message"),
    [
        (["d", "a"], "also has 'a', already chosen; name only arms that were not chosen"),
        (["d", "d"], "also has 'd' more than once; use distinct names"),
        (["z"], "there is no arm 'z'; the arms are 'a', 'b', 'c', 'd', 'e'"),
        ("d", "also is 'd'; use a list of names"),
        ([3], "also has 3 as a name"),
    ],
)
def test_arms_that_cannot_have_competed_are_refused(also, message):
    preselector = Preselector(ARMS, seed=0)
    decision = preselector.select(k=3, eligible=["a", "b", "c"])
    before = preselector.to_bytes()
    with pytest.raises(InputError, match=message):
        preselector.learn(decision, winner="a", also=also)
    assert preselector.to_bytes() == before


@pytest.mark.parametrize("policy", ["newton", "thompson", "cppl", "random"])
def test_arms_are_suggested_that_were_not_chosen(policy):
    preselector = Preselector(ARMS, ["x"], policy=policy, seed=0)
    decision = preselector.select([1.0], k=2)
    before = preselector.to_bytes()
    others = set(ARMS) - set(decision.names)
    assert set(preselector.suggest(decision, 9)) == others
    assert preselector.suggest(decision, 2, seed=5) == preselector.suggest(decision, 2, seed=5)
    assert preselector.suggest(decision, 0) == ()
    assert preselector.suggest(decision, 2, eligible=decision.names) == ()
    assert set(preselector.suggest(decision, 3, eligible=ARMS[:3])) == others & set(ARMS[:3])
    assert preselector.to_bytes() == before


def test_the_arms_about_which_least_is_known_are_suggested_first():
    preselector = Preselector(ARMS, nobody_may_win=True, seed=0)
    for arms in (["a", "b", "c"], ["a", "b", "d"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        preselector.learn(preselector.select(k=len(arms), eligible=arms), winner="a")
    decision = preselector.select(k=1, eligible=["a"])
    assert preselector.suggest(decision, 3)[:3] == ("e", "d", "c")


def test_arms_are_suggested_at_random_where_nothing_is_known():
    preselector = Preselector(ARMS, seed=0)
    decision = preselector.select(k=2, eligible=["a", "b"])
    assert {preselector.suggest(decision, 1, seed=seed) for seed in range(30)} == {("c",), ("d",), ("e",)}
