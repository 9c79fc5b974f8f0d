"""Nearby: the line against closed forms, the neighbours against a direct maximisation, and what is kept of the past."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preselect import NoWinner, Preselector, Ranking, StateFileError, Winner, state
from preselect.context import OneHotContext
from preselect.kernels import arm_by_arm, neighbours
from preselect.policies import Nearby
from preselect.policies.nearby import _learn_alone
from preselect.policies.past_races import PastRaces

SIZE, ARMS = 4, 6  # numbers in a context, the constant included, and arms


def draw_races(generator, count=30):
    """Races of 2 to 4 arms: won by one, ranked, tied, won by nobody or by some arm."""
    past = PastRaces(SIZE, 100)
    for _ in range(count):
        arms = generator.permutation(ARMS)[: generator.integers(2, 5)]
        k, kind = len(arms), generator.integers(5)
        ranking = [
            np.array([k - 1]),
            np.arange(k)[::-1],
            np.array([[1, 2], [0, 2]]),
            np.empty(0, int),
            np.empty(0, int),
        ][kind]
        ranked = -1 if kind == 4 else len(ranking)
        past.append(generator.normal(size=SIZE), arms, ranking, ranked, int(generator.choice([1, 2, 4, 6])))
    return past


def log_likelihood(v, arms, places, ranked, rivals):
    """Of one race, literally."""
    arms = arms[arms >= 0]
    rivals = [r for r in range(3) if rivals >> r & 1]
    if ranked < 0:
        V = v[arms].sum()
        return np.log(V) - sum(np.log(V + r) for r in rivals)
    total = np.log(v[arms[:ranked]]).sum()
    for first in places[:ranked] if ranked else [0]:
        total -= sum(np.log(v[arms[first:]].sum() + r) for r in rivals)
    return total


def objective(log_v, centre, alpha, weights, near, past):
    v = np.exp(log_v)
    races = zip(past.arms[near], past.places[near], past.ranked[near], past.rivals[near], strict=True)
    local = sum(w * log_likelihood(v, *race) for w, race in zip(weights, races, strict=True))
    return local + alpha * (log_v - v / centre).sum()


def fit(past, centre, alpha, weights, near, steps):
    worths = centre.copy()
    neighbours.fit_worths(worths, alpha, weights, near, past.arms, past.places, past.ranked, past.rivals, steps)
    return worths


@given(st.integers(0, 1000), st.sampled_from([0.5, 2.0, 7.0]))
def test_corrected_worths_maximise_the_local_likelihood(seed, alpha):
    generator = np.random.default_rng(seed)
    past, near = draw_races(generator), generator.permutation(30)[:12]
    weights, centre = generator.random(12), np.exp(generator.normal(size=ARMS))
    found = np.log(fit(past, centre, alpha, weights, near, 400))
    for a in range(ARMS):
        slopes = [
            objective(found + sign * 1e-5 * np.eye(ARMS)[a], centre, alpha, weights, near, past) for sign in (-1, 1)
        ]
        assert abs(slopes[1] - slopes[0]) / 2e-5 < 1e-4


@given(st.integers(0, 1000))
def test_every_step_raises_the_local_likelihood(seed):
    generator = np.random.default_rng(seed)
    past, near = draw_races(generator), np.arange(30)
    weights, centre = generator.random(30), np.exp(generator.normal(size=ARMS))
    values = [
        objective(np.log(fit(past, centre, 2.0, weights, near, steps)), centre, 2.0, weights, near, past)
        for steps in range(9)
    ]
    assert np.all(np.diff(values) > -1e-9)


def test_arms_that_did_not_race_nearby_stay_on_the_line():
    past, centre = PastRaces(SIZE, 10), np.linspace(0.5, 3.0, ARMS)
    past.append(np.zeros(SIZE), np.array([0, 1]), np.array([1]), 1, 2)
    worths = fit(past, centre, 2.0, np.ones(1), np.array([0]), 8)
    np.testing.assert_allclose(worths[2:], centre[2:], rtol=1e-12)
    assert worths[0] < centre[0]
    assert worths[1] > centre[1]


@pytest.mark.parametrize("rivals", [1, 2, 4, 6])
@pytest.mark.parametrize("ranking", [[2], [1, 0, 2], [], [[1, 2], [3, 2], [0, 3]]])
def test_slopes_of_arms_that_learn_alone_are_those_of_the_likelihood(ranking, rivals):
    ranking, u = np.array(ranking, dtype=np.int64), np.array([0.3, -1.0, 0.5, 0.1])
    past = PastRaces(1, 1)
    past.append(np.ones(1), np.arange(4), ranking, len(ranking), rivals)
    race = past.arms[0], past.places[0], past.ranked[0], past.rivals[0]
    g, H = _learn_alone(np.exp(u), ranking, len(ranking), rivals)
    for a, step in enumerate(1e-4 * np.eye(4)):
        below, here, above = (log_likelihood(np.exp(u + s * step), *race) for s in (-1, 0, 1))
        assert g[a] == pytest.approx((above - below) / 2e-4, abs=1e-6)
        assert H[a] == pytest.approx(-(above - 2 * here + below) / 1e-8, abs=1e-5)


def test_a_trivial_race_teaches_that_some_arm_was_first():
    u = np.array([0.3, -1.0, 0.5])
    g, _ = _learn_alone(np.exp(u), np.empty(0, int), -1, 2)
    for a, step in enumerate(1e-5 * np.eye(3)):
        V = [np.exp(u + sign * step).sum() for sign in (-1, 1)]
        assert g[a] == pytest.approx((np.log(V[1] / (V[1] + 1)) - np.log(V[0] / (V[0] + 1))) / 2e-5, abs=1e-7)


@pytest.mark.parametrize("shared", [0, 3])
def test_a_step_of_one_arm_is_that_of_a_gaussian_belief(shared):
    generator, size = np.random.default_rng(0), 2
    roots = [generator.normal(size=(n, n)) for n in (shared, size, size)]
    P = [root @ root.T + np.eye(len(root)) for root in roots]
    own = np.stack([block[np.tril_indices(size)] for block in P[1:]])
    theta, x = generator.normal(size=shared + 2 * size), generator.normal(size=shared + size)
    before, block = theta.copy(), P[0].copy()
    g, H = 0.7, 0.2
    arm_by_arm.learn_alone(x[None], np.array([1]), np.array([g]), np.array([H]), theta, block, own)
    whole = np.zeros((shared + size, shared + size))
    whole[:shared, :shared], whole[shared:, shared:] = P[0], P[2]
    after = np.linalg.inv(np.linalg.inv(whole) + H * np.outer(x, x))
    moved = before[np.r_[:shared, shared + size : shared + 2 * size]] + after @ x * g
    np.testing.assert_allclose(theta[np.r_[:shared, shared + size : shared + 2 * size]], moved)
    np.testing.assert_array_equal(theta[shared : shared + size], before[shared : shared + size])
    np.testing.assert_allclose(block, after[:shared, :shared])
    np.testing.assert_allclose(own[1], after[shared:, shared:][np.tril_indices(size)])


def play(policy, rounds, seed=0, see=lambda c: c):
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        c = np.concatenate(([1.0], generator.normal(size=SIZE - 1)))
        decision = policy.select(see(OneHotContext(ARMS, c, None)), 3)
        fast = (decision.arms + (c[1] > 0)) % ARMS
        late = generator.random()
        policy.learn(decision, NoWinner(1.0) if late > 0.9 else Winner(decision.arms[fast.argmin()], late))
    return policy


def make(**options):
    return Nearby(**{"d": SIZE * ARMS, "outside": True, "blocks": (0, SIZE), "seed": 1} | options)


def test_one_covariance_for_all_learns_the_same_line_as_blocks():
    with_blocks = make(blocks=(0, SIZE), alpha=1e9)  # the line, whatever the neighbours
    dense = make(blocks=None)
    for policy in (with_blocks, dense):
        play(policy, 60)
    np.testing.assert_allclose(dense.theta, with_blocks.theta, atol=1e-6)
    np.testing.assert_allclose(np.linalg.inv(dense.A), dense.P, atol=1e-9)
    blocks = dense.P.reshape(ARMS, SIZE, ARMS, SIZE)[2, :, 2]
    np.testing.assert_allclose(blocks[np.tril_indices(SIZE)], with_blocks.P.own[2], atol=1e-6)


def test_the_latest_races_are_kept_and_no_others():
    policy = play(make(memory=20), 65)
    assert (policy.past.count, policy.past.total, len(policy.past.contexts)) == (20, 65, 20)
    longer = play(make(memory=20), 40)  # then another 25: the ring has gone round
    assert longer.past.total == 40
    kept = {tuple(row) for row in policy.past.contexts}
    generator = np.random.default_rng(0)
    play_contexts = []
    for _ in range(65):
        play_contexts.append((1.0, *generator.normal(size=SIZE - 1)))
        generator.random()
    assert kept == set(play_contexts[-20:])


def test_the_order_of_the_arms_of_a_race_does_not_matter():
    policies = [play(make(), 20) for _ in range(2)]
    context = OneHotContext(ARMS, np.array([1.0, 0.2, -0.3, 0.5]), None)
    for policy, arms in zip(policies, ([0, 1, 2], [2, 0, 1]), strict=True):
        decision = policy.extend(policy.decide(context, 1, 0, eligible=arms[:1]), context, arms[1:])
        policy.learn(decision, Ranking([1, 2]))
    np.testing.assert_allclose(policies[0].theta, policies[1].theta, atol=1e-12)
    np.testing.assert_allclose(*(policy.scores(context) for policy in policies), atol=1e-12)


def test_neighbours_know_what_no_line_can():
    """Arm 0 wins where x is near 0, arm 1 elsewhere: no linear utility says so."""
    generator, right = np.random.default_rng(1), []
    preselector = Preselector(["in", "out"], ["x"], policy="nearby", nobody_may_win=True, seed=0)
    for _ in range(400):
        x = generator.uniform(-3.0, 3.0)
        decision = preselector.select([x], k=1)
        won = (decision.names[0] == "in") == (abs(x) < 1.0)
        preselector.learn(decision, winner=decision.names[0] if won else None, after=0.5 if won else 1.0)
        right.append(won)
    assert np.mean(right[200:]) > 0.8


def make_preselector():
    preselector = Preselector(list("abcd"), ["x", "y"], policy="nearby(memory=30)", nobody_may_win=True, seed=0)
    generator = np.random.default_rng(2)
    for _ in range(40):
        decision = preselector.select([generator.normal(), 100.0 * generator.random()], k=2)
        others = preselector.suggest(decision, 1)
        preselector.learn(decision, winner=others[0], after=0.05, also=others)
    return preselector


def choose(preselector):
    values = [
        [x, y][: len(preselector.context)] + [0.5] * (len(preselector.context) - 2) for x in (-1, 1) for y in (5, 70)
    ]
    return [preselector.scores(value) for value in values]


def test_states_come_back_and_go_on():
    preselector = make_preselector()
    for other in (
        Preselector.from_bytes(preselector.to_bytes()),
        copy.deepcopy(preselector),
        pickle.loads(pickle.dumps(preselector)),
    ):
        assert choose(other) == choose(preselector)
        assert other.to_bytes() == preselector.to_bytes()
        decision = other.select([0.1, 3.0], k=2)
        other.learn(decision, winner=None, after=1.0)
        assert other.to_bytes() != preselector.to_bytes()


def test_arms_and_features_come_and_go():
    preselector = make_preselector()
    before = preselector.scores([0.5, 20.0])
    preselector.add("e")
    after = preselector.scores([0.5, 20.0])
    assert {name: after[name] for name in before} == pytest.approx(before)
    preselector.remove("a")
    assert not (preselector.policy.past.arms == 0).any()
    preselector.add("f")  # in the slot of a
    assert preselector.suggest(preselector.select([0.5, 20.0], k=2, eligible=["b", "c"]), 2)[0] in ("e", "f")
    preselector.add_context("z")
    decision = preselector.select([0.5, 20.0, 1.0], k=3)
    preselector.learn(decision, ranking=[decision.names[2], decision.names[:2]])
    assert preselector.policy.past.contexts.shape[1] == 4
    assert choose(Preselector.from_bytes(preselector.to_bytes())) == choose(preselector)


def test_past_contexts_follow_the_scaling():
    """Values that no scaling cuts off stand, after it is renewed, where they would if they came now."""
    preselector, generator, values = (
        Preselector(list("abc"), ["x"], policy="nearby", seed=0),
        np.random.default_rng(3),
        [],
    )
    for _ in range(70):
        values.append(generator.normal())
        decision = preselector.select([values[-1]], k=2)
        preselector.learn(decision, winner=decision.names[0])
    now = [preselector._joint.context_scaling([value])[0] for value in values[8:]]
    np.testing.assert_allclose(preselector.policy.past.contexts[8:70, 1], now, atol=0.2)
    np.testing.assert_allclose(preselector.policy.past.contexts[40:70, 1], now[32:], atol=0.05)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("arms", lambda a: a + 100),
        ("arms", lambda a: np.zeros_like(a)),
        ("arms", lambda a: a[:, ::-1].copy()),
        ("arms", lambda a: a.astype(float)),
        ("places", lambda a: a + 1),
        ("ranked", lambda a: a + 5),
        ("ranked", lambda a: a[:-1]),
        ("rivals", lambda a: a * 0),
        ("rivals", lambda a: a + 8),
        ("contexts", lambda a: a * np.nan),
        ("contexts", lambda a: a[:, :1]),
        ("races", lambda a: a - 20),
        ("races", lambda a: -a),
    ],
)
def test_states_that_cannot_be_are_refused(tmp_path, name, wrong):
    policy = play(make(memory=20), 15)
    policy.learn(policy.select(OneHotContext(ARMS, np.ones(SIZE), None), 2), NoWinner())  # a shorter race
    policy.save(tmp_path / "good.npz")
    file = state.read(tmp_path / "good.npz")
    state.write(tmp_path / "bad.npz", file.kind, file.header, {**file.arrays, name: wrong(file.arrays[name])})
    assert Nearby.load(tmp_path / "good.npz").past.total == 16
    with pytest.raises(StateFileError):
        Nearby.load(tmp_path / "bad.npz")


def test_an_arm_that_joins_late_is_given_a_race():
    """The others win every race, and have done so for long: by its width alone the new one would never be tried."""
    preselector = Preselector(["a", "b", "c"], ["size"], policy="nearby(outside=True)", seed=0)
    for size in range(300):
        decision = preselector.select([size % 7], k=2)
        preselector.learn(decision, winner=decision.names[size % 2], after=0.02)
    preselector.add("new")
    decision = preselector.select([3.0], k=2)
    assert "new" in decision.names
    assert set(preselector.select([3.0], k=2, include=["a"], eligible=["a", "b", "new"]).names) == {"a", "new"}
    preselector.learn(decision, winner=next(name for name in decision.names if name != "new"), after=0.02)
    assert "new" not in preselector.select([3.0], k=2).names
