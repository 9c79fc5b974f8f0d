"""Rules about the set as a whole, against brute force over all sets: arms to include, limits of groups, budgets."""

import itertools
from functools import cache

import numpy as np
import pytest
from rule_cases import draw_case, draw_refused, list_sets

from preselect import CoLSTIM, InputError, Preselector, Rules, Winner
from preselect.context import as_context
from preselect.kernels.types import PLAIN
from preselect.policies import registry
from preselect.policies.room import Randomness, Room, fill, fill_at_random

EVERY = np.empty(0, dtype=np.bool_)
QUICK = {"ofu-mnl": "ofu-mnl(K=3)", "ucb-mnl": "ucb-mnl(every=5)", "ts-mnl": "ts-mnl(every=5)"}
POLICIES = [QUICK.get(name, name) for name in registry.POLICIES]
VARIANTS = ["newton(bonus='arm')", "newton(outside=True)", "newton(explore=0.5)", "thompson(draws='slot')"]
COVERS = ["newton(choose='cover')", "thompson(choose='cover')", "ts-mnl(choose='cover', every=5)"]


def as_mask(eligible, n):
    return np.isin(np.arange(n), eligible)


# --- the greedy choice ------------------------------------------------------------------------------------------------


def check_best_sum(seed, cases):
    generator = np.random.default_rng(seed)
    for case in range(cases):
        n, k, eligible, rules, sets = draw_case(generator)
        scores = generator.normal(size=n) if case % 2 else generator.integers(0, 3, n) * 0.1 + 0.2  # half with ties
        chosen = fill(Room(as_mask(eligible, n), n, k, rules), scores, Randomness(case))
        sums = {arms: scores[list(arms)].sum() for arms in sets}
        assert sums[tuple(sorted(chosen.tolist()))] == pytest.approx(max(sums.values()), abs=1e-9)
        assert np.all(np.diff(scores[chosen]) <= 0.0)


def test_with_arms_to_include_and_limits_no_set_has_a_larger_sum_of_scores():
    check_best_sum(1, 1000)


@pytest.mark.soak
def test_no_set_has_a_larger_sum_of_scores_in_many_cases():
    check_best_sum(11, 20_000)


def list_by_order(eligible, rules, scores, sets):
    """The sets that are first in the order of best arm, second arm and so on, for every order of equal scores."""
    found = set()
    for order in itertools.permutations(eligible):
        place = {arm: (-scores[arm], order.index(arm)) for arm in order}
        rest = [arms for arms in sets if set(rules.include.tolist()) <= set(arms)]
        added = [tuple(sorted(place[arm] for arm in arms if arm not in rules.include)) for arms in rest]
        found.add(rest[added.index(min(added))])
    return found


@pytest.mark.parametrize("budget", [False, True])
def test_every_set_that_an_order_of_tied_arms_makes_best_occurs_and_no_other(budget):
    generator, most = np.random.default_rng(2), 0
    for case in range(40):
        n, k, eligible, rules, sets = draw_case(generator, budget)
        eligible = eligible[:5]
        sets = list_sets(eligible.tolist(), k, rules)
        if not sets or k > len(eligible):
            continue
        scores = generator.integers(0, 2, n) * 1.0 + generator.choice([0.0, 1e-15, -1e-15], n)  # rounding is no lead
        wanted = list_by_order(eligible.tolist(), rules, scores.round(6), sets)
        room = [Room(as_mask(eligible, n), n, k, rules) for _ in range(60 * len(wanted))]
        chosen = {tuple(sorted(fill(each, scores, Randomness(seed)).tolist())) for seed, each in enumerate(room)}
        assert chosen == wanted, (case, rules)
        most = max(most, len(wanted))
    assert most >= 3


def rank_added(arms, scores, rules):
    """The scores of the arms that did not have to be in the set, best first."""
    return sorted((scores[arm] for arm in arms if arm not in rules.include), reverse=True)


def check_budget(seed, cases):
    """As many arms as can be paid; the best that such a set can have, then the best beside it, and so on."""
    generator = np.random.default_rng(seed)
    gaps, shares = [], []
    for case in range(cases):
        n, k, eligible, rules, sets = draw_case(generator, budget=True)
        scores = generator.normal(size=n)
        chosen = fill(Room(as_mask(eligible, n), n, k, rules), scores, Randomness(case)).tolist()
        assert tuple(sorted(chosen)) in sets
        assert rank_added(chosen, scores, rules) == max(rank_added(arms, scores, rules) for arms in sets)
        utilities = np.exp(scores)
        shares.append(utilities[chosen].sum() / max(utilities[list(arms)].sum() for arms in sets))
        gaps.append(max(scores[list(arms)].sum() for arms in sets) - scores[chosen].sum())
        if not len(rules.include):
            assert shares[-1] >= 1.0 / len(chosen)
    return np.array(gaps), np.array(shares)


def test_with_a_budget_the_set_is_as_large_as_can_be_paid_and_has_the_best_arms_in_turn():
    gaps, shares = check_budget(3, 1000)
    assert (gaps < 1e-9).mean() > 0.85
    assert shares.mean() > 0.98


def test_the_cheapest_arms_of_many_are_found_though_most_are_of_one_group():
    """The first 60 are cheap, and only one of them may be in the set; the budget just pays it and two of the others."""
    rules = Rules(groups=[0] * 60 + [-1] * 5, limits=[1], prices=[1.0] * 60 + [3.0, 4.0, 5.0, 6.0, 7.0], budget=8.0)
    chosen = fill(Room(EVERY, 65, 4, rules), np.arange(65.0), Randomness(0))
    assert chosen.tolist() == [61, 60, 59]


@pytest.mark.soak
def test_budgets_in_many_cases():
    check_budget(13, 20_000)


def test_a_random_set_takes_each_time_any_arm_that_may_join():
    """Arm 0 has to be in; 1 and 2 exclude each other; 3 is free: by hand the chances of {1, 3}, {2, 3} are equal."""
    rules = Rules(include=[0], groups=[-1, 0, 0, -1, 1], limits=[1, 0])
    found = [fill_at_random(Room(EVERY, 5, 3, rules), np.arange(5.0), Randomness(seed)).tolist() for seed in range(400)]
    assert {tuple(arms) for arms in found} == {(3, 1, 0), (3, 2, 0)}
    assert abs(found.count([3, 1, 0]) - 200) < 5 * 10
    uneven = Rules(groups=[0, 0, -1, -1], limits=[1])  # {2, 3} by 1/4 · 2/3 · 2/2 ...: in turn, not over all sets
    found = [fill_at_random(Room(EVERY, 4, 2, uneven), np.zeros(4), Randomness(seed)).tolist() for seed in range(3000)]
    both = sum(set(arms) == {2, 3} for arms in found) / 3000
    assert both == pytest.approx(2 * (1 / 4) * (1 / 3), abs=5 * np.sqrt(0.16 / 3000))


# --- every policy -----------------------------------------------------------------------------------------------------


def make(policy, d=3, seed=0):
    """A policy that has learnt something."""
    build, parameters = registry.parse(policy)
    made, generator = build(**{"seed": seed, **parameters, "d": d}), np.random.default_rng(seed)
    for _ in range(12):
        decision = made.select(generator.normal(size=(7, d)), 3)
        made.learn(decision, Winner(int(decision.arms[generator.integers(3)])))
    return made


@cache
def list_cases(seed, count):
    """Cases for all policies, every second one with a budget; with a context in which some arms are equal."""
    generator, cases = np.random.default_rng(seed), []
    for number in range(count):
        n, *case = draw_case(generator, budget=number % 2 == 1)
        X = generator.normal(size=(n, 3))
        X[generator.integers(n)] = X[0]
        cases.append((number, X, *case))
    return cases


def is_best(chosen, scores, sets, rules):
    """Whether no set has a larger sum, or with a budget is before it arm by arm; where arms are tied, in some order."""
    assert tuple(sorted(chosen)) in sets
    favoured = scores.round(9) + 1e-7 * np.isin(np.arange(len(scores)), chosen)
    if rules.budget < np.inf:
        return rank_added(chosen, favoured, rules) == max(rank_added(arms, favoured, rules) for arms in sets)
    return favoured[chosen].sum() > max(favoured[list(arms)].sum() for arms in sets) - 1e-12


def score(made, X, seed):
    """What every arm is ranked by, drawn with this seed: all arms are chosen."""
    decision = made.decide(X, len(X), seed)
    return decision.scores[np.argsort(decision.arms)]


BY_SCORE = [policy for policy in POLICIES if policy not in ("newton", "colstim", "epsilon-greedy", "nearby")]


@pytest.mark.parametrize(
    "policy", [*BY_SCORE, "epsilon-greedy(epsilon=0.0)", "newton(bonus='arm')", "newton(explore=1.0)"]
)
def test_policies_choose_the_best_set_by_their_scores(policy):
    made = make(policy)
    made.rounds += policy == "epoch-greedy"  # the next round does not explore
    for seed, X, k, eligible, rules, sets in list_cases(4, 160):
        chosen = made.decide(X, k, seed, eligible=eligible, rules=rules).arms.tolist()
        assert is_best(chosen, score(made, X, seed), sets, rules), (seed, rules)


def test_nearby_takes_one_arm_after_the_other_and_counts_half_of_the_width_for_the_first():
    made = make("nearby")
    for seed, X, k, eligible, rules, sets in list_cases(4, 160):
        chosen = made.decide(X, k, seed, eligible=eligible, rules=rules).arms.tolist()
        scores, widths = made._score(as_context(X, 3))
        taken = set(rules.include.tolist())
        while len(taken) < len(chosen):
            values = scores - 0.5 * (k - 1 - len(taken)) / max(k - 1, 1) * widths
            favoured = values.round(9) + 1e-7 * np.isin(np.arange(len(scores)), chosen)
            may_join = {arm for arms in sets if taken <= set(arms) for arm in arms} - taken
            taken.add(max(may_join, key=favoured.__getitem__))
        assert taken == set(chosen), (seed, rules)


def estimate(made, context, seed):
    """What the leader is chosen by."""
    estimates, norms = made._score_all(context, (np.eye(3), 0.0, 0.0, PLAIN))
    if isinstance(made, CoLSTIM):
        norms = made._score_all(context, (made.M_inverse, 1.0, 0.0, PLAIN))[1]
        estimates = estimates + made._perturb(len(norms), np.random.default_rng(seed)) * norms
    return estimates


@pytest.mark.parametrize("policy", ["newton", "colstim"])
def test_the_leader_is_the_best_arm_that_may_be_in_the_set_and_the_others_the_best_beside_it(policy):
    made = make(policy)
    for seed, X, k, eligible, rules, sets in list_cases(4, 160):
        leader, *others = made.decide(X, k, seed, eligible=eligible, rules=rules).arms.tolist()
        context = as_context(X, 3)
        estimates = estimate(made, context, seed)
        assert estimates[leader] >= max(estimates[arm] for arms in sets for arm in arms) - 1e-9
        scores = made._score_all(context, made._width(), leader)[0]
        assert np.all(np.diff(scores[others]) <= 0.0)
        scores[leader] = 100.0
        assert is_best([leader, *others], scores, [arms for arms in sets if leader in arms], rules), (seed, rules)


@pytest.mark.parametrize("policy", [*POLICIES, *VARIANTS, *COVERS, "epsilon-greedy(epsilon=1.0)"])
def test_every_policy_obeys_the_rules(policy):
    made = make(policy)
    for seed, X, k, eligible, rules, sets in list_cases(5, 60):
        decision = made.decide(X, k, seed, eligible=eligible, rules=rules)
        assert tuple(sorted(decision.arms.tolist())) in sets
        assert np.all(np.isfinite(decision.scores))


def may_join(arms, sets):
    """The arms with which these are part of a set."""
    return sorted({arm for each in sets if set(arms) <= set(each) for arm in each} - set(arms))


def list_reachable(arms, sets, pick):
    """The sets to which these arms can grow if each time one of those that `pick` calls the best joins."""
    if len(arms) == len(sets[0]):
        return {tuple(sorted(arms))}
    return set().union(*(list_reachable([*arms, arm], sets, pick) for arm in pick(arms, may_join(arms, sets))))


def keep_best(values):
    """The arms with the largest values, up to rounding."""
    return [arm for arm, value in values.items() if value >= max(values.values()) - 1e-9]


def test_every_slot_has_the_best_arm_of_its_draw_that_may_join():
    made, tied = make("thompson(draws='slot')"), 0
    for seed, X, k, eligible, rules, sets in list_cases(4, 160):
        context = as_context(X, 3)
        draws = made._draw(context, made._score(context)[0], len(sets[0]), np.random.default_rng(seed))
        pick = lambda arms, open_, draws=draws: keep_best({arm: draws[arm, len(arms)] for arm in open_})  # noqa: E731
        wanted = list_reachable(rules.include.tolist(), sets, pick)
        decision = made.decide(X, k, seed, eligible=eligible, rules=rules)
        assert tuple(sorted(decision.arms.tolist())) in wanted
        assert np.all(np.diff(decision.scores) <= 0.0)
        assert np.all(np.abs(draws[decision.arms] - decision.scores[:, None]).min(axis=1) < 1e-9)
        tied += len(wanted) > 1
    assert tied > 5


@pytest.mark.parametrize("policy", COVERS)
def test_a_cover_takes_in_turn_the_arm_that_adds_most_of_those_that_may_join(policy):
    made, tied = make(policy), 0
    for seed, X, k, eligible, rules, sets in list_cases(4, 160)[:100]:
        context = as_context(X, 3)
        u = np.subtract(*made._score(context))
        draws = made._draw(context, u, 64, np.random.default_rng(seed))
        shares = np.exp(draws - draws[eligible].max(axis=0))

        def pick(arms, open_, u=u, shares=shares):
            most = keep_best({arm: shares[[*arms, arm]].max(axis=0).sum() for arm in open_})
            return keep_best({arm: u[arm] for arm in most})

        wanted = list_reachable(rules.include.tolist(), sets, pick)
        chosen = made.decide(X, k, seed, eligible=eligible, rules=rules).arms.tolist()
        assert tuple(sorted(chosen)) in wanted, (seed, rules)
        tied += len(wanted) > 1
    assert tied > 3


def test_a_set_of_one_with_an_outside_option_is_the_best_arm_by_its_own_bound():
    made, generator = make("newton(outside=True)"), np.random.default_rng(8)
    for case in range(200):
        n, k, eligible, rules, sets = draw_case(generator, budget=case % 2 == 1)
        if len(sets[0]) > 1:
            continue
        X = generator.normal(size=(n, 3))
        X[generator.integers(n)] = X[0]
        scores = made._score_all(as_context(X, 3), made._width_of_one())[0]
        (chosen,) = made.decide(X, k, case, eligible=eligible, rules=rules).arms.tolist()
        assert scores[chosen] >= max(scores[arm] for (arm,) in sets) - 1e-9


@pytest.mark.parametrize("covariance", ["full", "blocks"])
@pytest.mark.parametrize("policy", ["thompson", "newton(bonus='arm')", "newton(explore=1.0)"])
def test_names_stand_for_the_right_arms_also_after_others_have_left(policy, covariance):
    """By name, against brute force: arms h and a have left, and i has the place of one of them."""
    preselector = Preselector(list("habcdefg"), ["x"], policy=policy, covariance=covariance, seed=0)
    generator = np.random.default_rng(9)
    for _ in range(15):
        decision = preselector.select(generator.normal(size=1), k=3)
        preselector.learn(decision, winner=decision.names[generator.integers(3)])
    for name in "ha":
        preselector.remove(name)
    preselector.add("i")
    names = preselector.arms
    for case in range(60):
        n, k, eligible, rules, sets = draw_case(generator, budget=case % 2 == 1)
        allowed, group = names[:n], {names[arm]: f"group {number}" for arm, number in enumerate(rules.groups)}
        for arm, name in enumerate(allowed):
            preselector.change(name, price=float(rules.prices[arm]) if len(rules.prices) else None)
        given = {"include": [names[arm] for arm in rules.include], "eligible": [names[arm] for arm in eligible]}
        if len(rules.limits):
            given["groups"] = {name: "other" if one == "group -1" else one for name, one in group.items()}
            limits = {f"group {number}": int(limit) for number, limit in enumerate(rules.limits)}
            given["at_most"] = {name: limit for name, limit in limits.items() if name in group.values()}
        given |= {"budget": rules.budget} if rules.budget < np.inf else {}
        full = preselector.choose([0.5], len(names), seed=case)
        scores = np.array([full.scores[full.names.index(name)] for name in allowed])
        chosen = [names.index(name) for name in preselector.choose([0.5], k, seed=case, **given).names]
        assert is_best(chosen, scores, sets, rules), (case, rules)


@pytest.mark.parametrize("policy", [*POLICIES, *VARIANTS, *COVERS])
def test_rules_that_forbid_nothing_change_nothing(policy):
    made, generator = make(policy), np.random.default_rng(5)
    loose = Rules(groups=[0, 1, 0, 1, -1, 0], limits=[3, 3], prices=np.ones(6), budget=3.0)
    for seed in range(20):
        X = generator.normal(size=(6, 3))
        one, two = made.decide(X, 3, seed), made.decide(X, 3, seed, rules=loose)
        if policy in ("random", "epsilon-greedy") or (policy == "epoch-greedy" and made.explores(made.rounds + 1)):
            continue  # drawn in another way
        assert set(one.arms.tolist()) == set(two.arms.tolist())
        assert dict(zip(one.arms, one.scores, strict=True)) == pytest.approx(
            dict(zip(two.arms, two.scores, strict=True)), abs=1e-9
        )
        if "slot" not in policy:
            assert one.arms.tolist() == two.arms.tolist()


# --- what cannot be obeyed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [False, True])
def test_rules_are_refused_exactly_if_they_leave_no_set(budget):
    made, generator = make("newton"), np.random.default_rng(6)
    for seed in range(300):
        n, k, eligible, rules = draw_refused(generator, budget)
        with pytest.raises(InputError):
            made.decide(np.ones((n, 3)), k, seed, eligible=eligible, rules=rules)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"include": [0, 1, 2]}, "include has 3 arms, arm 0, 1, 2, but k=2"),
        ({"include": [4]}, "include has arm 4, but eligible leaves it out"),
        ({"include": [9]}, "include should be distinct positions from 0 to 4, not"),
        ({"include": [1, 1]}, "include should be distinct positions from 0 to 4, not"),
        ({"groups": [0], "limits": [1]}, "groups should be 5 numbers, one per arm, from -1 to 0, because there are 1"),
        ({"groups": [0, 1, 0, 0, 0], "limits": [1]}, "groups should be 5 numbers, one per arm, from -1 to 0"),
        ({"groups": [0] * 5, "limits": [-1]}, "the limit of group 0 is -1; use at least 0"),
        ({"groups": [0] * 5, "limits": [1]}, "k=2, but the limits of groups .group 0: 1. leave room for 1 arms only"),
        (
            {"include": [0, 1], "groups": [0, 0, 1, 1, 1], "limits": [1, 2]},
            "include has arm 0, 1 of group 0, but at most 1 of it may be in the set",
        ),
        ({"budget": 1.0}, "prices should be 5 numbers, one per arm, not"),
        ({"prices": [1, -2, 1, 1, 1], "budget": 1.0}, "the price of arm 1 is -2.0; use a number of at least 0"),
        ({"prices": [np.nan, 2, 1, 1, 1], "budget": 1.0}, "the price of arm 0 is nan; use a number of at least 0"),
        ({"prices": [3, 2, 4, 5, 1], "budget": 1.0}, "the budget of 1 pays for no arm; the cheapest, arm 1, costs 2"),
        ({"include": [0], "prices": [3, 2, 1, 1, 1], "budget": 2.0}, "include has arm 0, which cost 3, but the budget"),
    ],
)
def test_rules_that_cannot_be_obeyed_are_named(rules, message):
    with pytest.raises(InputError, match=message):
        make("newton").decide(np.ones((5, 3)), 2, 0, eligible=[0, 1, 2, 3], rules=Rules(**rules))


@pytest.mark.parametrize("budget", [-1.0, np.nan, "x", None])
def test_budgets_are_numbers_of_at_least_0(budget):
    with pytest.raises(InputError, match="budget is"):
        Rules(prices=[1.0], budget=budget)


def test_rounding_does_not_break_a_budget():
    rules = Rules(prices=[0.1, 0.2, 0.3], budget=0.3)
    assert sorted(make("newton").decide(np.eye(3), 3, 0, rules=rules).arms.tolist()) == [0, 1]
