"""Rankings with ties: their likelihood against brute force over orders, and what policies make of them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import preselect
from preselect import InputError, Ranking, Winner, model
from preselect.policies import registry
from preselect.policies.mm import _find_stages

CASES = [  # how many arms, and the ranking
    (3, [[0, 1], 2]),
    (4, [[0, 1]]),
    (4, [[1, 3], 0]),
    (4, [2, [1, 3], 0]),
    (4, [[0, 1, 2]]),
    (5, [[0, 1], [2, 3]]),
    (5, [[0, 1], [2, 3, 4]]),
    (6, [[0, 1, 2, 3], 4]),
    (7, [3, [0, 1, 2, 4, 5]]),
]


def list_orders(ranking):
    """All rankings without ties that a ranking with ties may stand for."""
    places = [place if isinstance(place, list) else [place] for place in ranking]
    for orders in itertools.product(*map(itertools.permutations, places)):
        yield [arm for order in orders for arm in order]


def add_orders(X, theta, ranking):
    """Log of the summed probability of all orders, its gradient, and minus its Hessian, by Louis's formula."""
    orders = list(list_orders(ranking))
    logs = np.array([model.log_likelihood(X @ theta, order) for order in orders])
    chances = np.exp(logs - logs.max())
    total = logs.max() + math.log(chances.sum())
    chances /= chances.sum()
    slopes = np.array([model.gradient(X, theta, order) for order in orders])
    mean = chances @ slopes
    curvature = sum(p * model.curvature(X, theta, order) for p, order in zip(chances, orders, strict=True))
    return total, mean, curvature - (slopes - mean).T @ (chances[:, None] * (slopes - mean))


@pytest.mark.parametrize(("k", "ranking"), CASES)
@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_a_tie_is_all_its_orders_together(k, ranking, spread):
    generator = np.random.default_rng(k)
    X, theta = generator.normal(size=(k, 3)), spread * generator.normal(size=3)
    total, slope, curvature = add_orders(X, theta, ranking)
    assert model.log_likelihood(X @ theta, ranking) == pytest.approx(total, abs=1e-10)
    assert model.gradient(X, theta, ranking) == pytest.approx(slope, abs=1e-10)
    assert model.curvature(X, theta, ranking) == pytest.approx(curvature, abs=1e-9)


def test_the_orders_of_all_splits_add_up_to_certainty():
    u = np.array([0.3, -1.2, 2.0, 0.5, -0.1])
    sets = itertools.combinations(range(5), 2)
    assert sum(model.ranking_probability(u, [list(tied)]) for tied in sets) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("lead", [-2000.0, -50.0, 50.0, 2000.0])
def test_ties_of_extreme_utilities_are_finite(lead):
    u = np.array([lead, 0.1, 0.0, -0.2])
    value = model.log_likelihood(u, [[0, 1]])
    assert value == pytest.approx(add_orders(np.diag(u), np.ones(4), [[0, 1]])[0], rel=1e-12)
    F = model.curvature_factor(np.diag(u), np.ones(4), [[0, 1]])
    assert np.isfinite(F).all()


def test_a_tie_of_many_arms_is_exact_where_all_are_equal():
    k, g = 60, 40
    assert model.log_likelihood(np.zeros(k), [list(range(g))]) == pytest.approx(-math.log(math.comb(k, g)), rel=1e-12)


def test_a_tie_of_all_that_are_left_says_nothing():
    u = [0.4, -1.0, 2.0]
    assert model.log_likelihood(u, [[0, 1, 2]]) == 0.0
    assert model.log_likelihood(u, [2, [0, 1]]) == pytest.approx(model.log_likelihood(u, [2]), abs=1e-13)
    assert not model.gradient(np.diag(u), np.ones(3), [[0, 1, 2]]).any()


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_labels_do_not_matter(data):
    k = data.draw(st.integers(3, 6))
    cuts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3).filter(lambda sizes: sum(sizes) <= k))
    order = data.draw(st.permutations(range(k)))
    names = data.draw(st.permutations(range(k)))
    u = np.linspace(-1.0, 2.0, k)
    ends = np.cumsum([0, *cuts])
    ranking = [order[first:last] for first, last in itertools.pairwise(ends)]
    renamed = [[names.index(arm) for arm in tied] for tied in ranking]
    assert model.log_likelihood(u[names], renamed) == pytest.approx(model.log_likelihood(u, ranking), abs=1e-12)


# --- outcomes ---------------------------------------------------------------------------------------------------------


def test_places_of_one_arm_are_no_ties():
    assert Ranking([[3], (1,), {2}]) == Ranking([3, 1, 2])
    assert Ranking([[3], [1]]).positions(np.array([1, 3])).tolist() == [1, 0]


def test_the_order_within_a_tie_does_not_matter():
    assert Ranking([[3, 1], 2]) == Ranking([{1, 3}, 2]) == Ranking(((1, 3), 2)) == Ranking([np.array([1, 3]), 2])


def test_positions_say_where_ties_end():
    assert Ranking([4, [3, 1]]).positions(np.array([1, 3, 4, 7])).tolist() == [[2, 1], [0, 3], [1, 3]]


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([[0, 1], 1], "more than once"),
        ([[0, 0]], "more than once"),
        ([[], 1], "one of them is empty"),
        ([["a"], 1], "an integer"),
        (["ab"], "an integer"),
        ([np.array(1.5)], "an integer"),
        ([[[0]]], "an integer"),
    ],
)
def test_bad_ties_are_named(arms, message):
    with pytest.raises(InputError, match=message):
        Ranking(arms)


# --- policies ---------------------------------------------------------------------------------------------------------

POLICIES = list(registry.POLICIES)


def make(name, d=6):
    policy, parameters = registry.parse(name)
    return policy(**{"d": d, "seed": 0, **parameters})


def show(seed=0, n=5, d=6):
    return np.random.default_rng(seed).normal(size=(n, d))


def state_of(policy):
    return preselect.policies.persistence.collect_state(policy)[1]


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert np.array_equal(array, other[name]), name


@pytest.mark.parametrize("name", POLICIES)
def test_a_tie_of_all_arms_is_counted_and_teaches_nothing(name):
    policy = make(name)
    for seed in range(3):
        decision = policy.select(show(seed), 4)
        policy.learn(decision, Winner(decision.arms[0]))
    decision, before = policy.select(show(3), 4), {key: array.copy() for key, array in state_of(policy).items()}
    policy.learn(decision, Ranking([decision.arms]))
    assert_same(state_of(policy), before)
    assert policy.observations == 4


@pytest.mark.parametrize("name", POLICIES)
def test_a_last_tie_is_as_if_it_were_left_out(name):
    policies = make(name), make(name)
    for policy, last in zip(policies, ([], [(1, 3)]), strict=True):
        for seed in range(6):
            decision = policy.select(show(seed), 4)
            places = [tuple(decision.arms[list(place)]) for place in last]
            policy.learn(decision, Ranking([decision.arms[2], decision.arms[0], *places]))
    assert_same(state_of(policies[0]), state_of(policies[1]))


@pytest.mark.parametrize("name", [*POLICIES, "newton(outside=True)", "thompson(outside=True, discount=0.99)"])
def test_policies_with_ties_are_saved_and_go_on(name, tmp_path):
    policy = make(name)
    for seed in range(7):
        decision = policy.select(show(seed), 4)
        first, second, third, _ = decision.arms
        policy.learn(decision, Ranking([[first, second], third]) if seed % 2 else Winner(first))
    policy.save(tmp_path / "policy.npz")
    again = preselect.load(tmp_path / "policy.npz")
    for seed in range(7, 14):
        decisions = [one.select(show(seed), 4) for one in (policy, again)]
        assert decisions[0].arms.tolist() == decisions[1].arms.tolist()
        for one, decision in zip((policy, again), decisions, strict=True):
            one.learn(decision, Ranking([decision.arms[1], decision.arms[[2, 3]]]))
    assert_same(state_of(policy), state_of(again))


LEARNERS = [name for name in POLICIES if name not in ("random", "epoch-greedy")]


@pytest.mark.parametrize("name", LEARNERS)
def test_ties_teach_who_is_better(name):
    """Arms 0 and 1 always come before 2 and 3, which nobody can tell from single winners alone."""
    policy = make(name, d=4)
    for _ in range(60):
        decision = policy.select(np.eye(4), 4)
        policy.learn(decision, Ranking([[0, 1]]))
    scores = policy.scores(np.eye(4))
    assert scores[:2].min() > scores[2:].max()


@pytest.mark.parametrize("name", ["newton", "thompson", "ucb-mnl", "colstim", "ts-mnl"])
def test_histories_fit_the_sum_over_orders(name):
    """theta is at the maximum of the posterior: its gradient, by brute force over the orders, vanishes."""
    policy = make(name, d=3)
    outcomes = []
    for seed in range(30):
        X = show(seed, 4, 3)
        decision = policy.select(X, 4)
        ranking = [[0, 1], 2] if seed % 3 else [3]
        policy.learn(decision, Ranking([decision.arms[place] for place in ranking]))
        outcomes.append((decision.rows, ranking))
    estimate = policy.estimate
    if name in ("newton", "thompson"):
        estimate._fit(30, 1e-9)
    slope = -policy.precision * estimate.theta
    curvature = policy.precision * np.eye(3)
    for rows, ranking in outcomes:
        _, g, H = add_orders(rows, estimate.theta, ranking)
        slope, curvature = slope + g, curvature + H
    assert slope == pytest.approx(np.zeros(3), abs=1e-6)
    assert pytest.approx(curvature, rel=1e-4) == estimate.A


def test_what_was_tied_long_ago_is_forgotten():
    """With a discount, theta and A are those of the orders, weighted by how long ago they were."""
    policy = preselect.Newton(d=3, discount=0.5, seed=0)
    decisions = [policy.select(show(seed, 4, 3), 4) for seed in range(6)]
    for decision in decisions:
        policy.learn(decision, Ranking([decision.arms[[0, 1]], decision.arms[2]]))
    policy.estimate._fit(6, 1e-9)
    slope, curvature = -policy.theta, np.eye(3)  # the prior is restored
    for age, decision in enumerate(reversed(decisions)):
        _, g, H = add_orders(decision.rows, policy.theta, [[0, 1], 2])
        slope, curvature = slope + 0.5**age * g, curvature + 0.5**age * H
    assert slope == pytest.approx(np.zeros(3), abs=1e-6)
    assert pytest.approx(curvature, rel=1e-5) == policy.A


@pytest.mark.parametrize("name", ["cppl", "max-theta"])
def test_steps_go_along_the_sum_over_orders(name):
    policy = make(name, d=3)
    theta = policy.theta_hat.copy()
    decision = policy.select(show(1, 4, 3), 4)
    policy.learn(decision, Ranking([decision.arms[[2, 3]], decision.arms[0]]))
    _, slope, _ = add_orders(decision.rows, theta, [[2, 3], 0])
    assert policy.theta_hat == pytest.approx(theta + policy.gamma_1 * slope, abs=1e-12)
    if name == "cppl":
        _, slope, curvature = add_orders(decision.rows, policy.theta_bar, [[2, 3], 0])
        assert pytest.approx(policy.ridge * np.eye(3) + curvature, abs=1e-11) == policy.A
        assert pytest.approx(np.outer(slope, slope), abs=1e-11) == policy.B


def test_mirror_descent_gains_the_curvature_of_the_sum_over_orders():
    policy = make("ofu-mnl", d=3)
    decision, before = policy.select(show(1, 4, 3), 4), policy.A.copy()
    policy.learn(decision, Ranking([decision.arms[[2, 3]], decision.arms[0]]))
    assert policy.A - before == pytest.approx(add_orders(decision.rows, policy.theta, [[2, 3], 0])[2], abs=1e-11)


def test_one_newton_step_finds_the_maximum_of_belief_times_likelihood():
    policy = make("newton", d=8)
    decision = policy.select(3.0 * show(2, 5, 8), 5)
    policy.learn(decision, Ranking([decision.arms[[0, 3]], decision.arms[2]]))
    slope = add_orders(decision.rows, policy.theta, [[0, 3], 2])[1] - policy.theta
    assert np.sqrt(slope @ policy.P @ slope) < 0.05  # standard deviations from the maximum


def test_tied_arms_share_the_reward_of_linucb():
    policy = make("linucb", d=4)
    policy.learn(policy.select(np.eye(4), 4), Ranking([[0, 1], 2]))
    assert policy.b.tolist() == [0.5, 0.5, 0.0, 0.0]


def test_colstim_learns_no_contrast_within_a_tie():
    policy = make("colstim", d=4)
    policy.learn(policy.select(np.eye(4), 4), Ranking([[0, 1]]))
    contrasts = [np.eye(4)[i] - np.eye(4)[j] for i in (0, 1) for j in (2, 3)]
    assert pytest.approx(policy.precision * np.eye(4) + sum(np.outer(z, z) for z in contrasts)) == policy.M


def test_mm_counts_orders_by_their_chances():
    worth = np.array([1.0, 3.0, 0.5, 2.0])
    u = np.log(worth)
    chances = {order: model.ranking_probability(u, order) for order in itertools.permutations((0, 1, 2))}
    total = sum(chances.values())
    for left, chance in _find_stages([0, 1, 2], [3], worth):
        gone = {0, 1, 2, 3} - set(left)
        expected = sum(p for order, p in chances.items() if set(order[: len(gone)]) == gone) / total
        assert chance == pytest.approx(expected, rel=1e-12)


def test_mm_refuses_ties_of_too_many_arms():
    policy = preselect.MM(seed=0)
    decision = policy.select(np.zeros((12, 1)), 12)
    with pytest.raises(InputError, match="at most 8 arms"):
        policy.learn(decision, Ranking([decision.arms[:9]]))
    assert policy.observations == 0
    assert not policy.wins.size


def test_with_an_outside_option_tied_arms_beat_nobody():
    """All arms are tied and all are better than nobody, which teaches what the sum over orders with NOBODY does."""
    policy = preselect.Newton(d=3, outside=True, seed=0)
    decision = policy.select(np.eye(3), 3)
    policy.learn(decision, Ranking([[0, 1, 2]]))
    policy.estimate._fit(1, 1e-9)
    rows = np.vstack((decision.rows, np.zeros(3)))
    slope = add_orders(rows, policy.theta, [[0, 1, 2]])[1] - policy.theta
    assert slope == pytest.approx(np.zeros(3), abs=1e-6)
    assert policy.theta.min() > 0.1


def test_a_policy_that_does_not_know_ties_refuses_them():
    class Old(preselect.Policy):
        def __init__(self, *, d=None, seed=None):
            super().__init__(d=d, seed=seed)

        def _score(self, context):
            return np.zeros(context.shape[0]), np.zeros(context.shape[0])

        def _learn(self, decision, ranking, outcome):
            pass

    policy = Old(seed=0)
    decision = policy.select(np.eye(3), 3)
    with pytest.raises(InputError, match="Old does not learn from ties; rank the arms without ties"):
        policy.learn(decision, Ranking([[0, 1]]))
    assert policy.observations == 0


def test_damaged_ties_in_a_state_file_are_refused():
    policy = make("ucb-mnl", d=3)
    decision = policy.select(show(1, 4, 3), 4)
    policy.learn(decision, Ranking([decision.arms[[2, 3]]]))
    arrays = state_of(policy)
    for ties in ([2, 3, 0, 0], [2, 2, 1, 0], [9, 9, 0, 0], [-1, 2, 0, 0], [2, 2]):
        with pytest.raises(ValueError, match="ties has to say"):
            policy.estimate.history.restore({**arrays, "ties": np.array(ties)})
