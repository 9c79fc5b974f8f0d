"""Scaling by what has been seen, and what was learnt when the scaling changes."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from preselect import InputError, NoWinner, Preselector, Scaling, Void, state
from preselect.joint_features import JointFeatures
from preselect.policies import registry
from preselect.policies.estimators import Gaussian, Gram, OnlineNewton, WholeHistory
from preselect.scaling import Change
from preselect.store.learner import Learner
from preselect.store.verify import verify

SEEDS = st.integers(0, 2**32 - 1)
LINEAR = [*(name for name in registry.POLICIES if name not in ("mm", "random")), "newton(outside=True)"]


def as_raw(logs):
    """The values whose signed logarithms these are."""
    return np.sign(logs) * np.expm1(np.minimum(np.abs(logs), 700.0))


def make_change(generator, features=2, context=3):
    """A random affine change of all features, with factors from 1/3 to 3."""
    factors = lambda size: np.exp(generator.uniform(-1.1, 1.1, size))  # noqa: E731
    return Change(
        np.stack((factors(features), generator.normal(size=features))),
        np.stack((factors(context), generator.normal(size=context))),
    )


def draw_rows(generator, n, *, features=2, context=3, capacity=4):
    """Joint features of n arms: (features, identity) ⊗ (1, context)."""
    z = np.hstack((generator.normal(size=(n, features)), np.eye(capacity)[generator.integers(capacity, size=n)]))
    c = np.concatenate(([1.0], generator.normal(size=context)))
    return (z[:, :, None] * c).reshape(n, -1)


def play(preselector, rounds, generator, *, spread=1.0, shift=0.0, add=False):
    """Let the arm whose name fits the context best win; logarithms of the context are normal."""
    for t in range(rounds):
        context = as_raw(generator.normal(size=2) * spread + shift)
        decision = preselector.select(context, k=2)
        preselector.learn(decision, winner=sorted(decision.names)[int(context[0] > 0.3)])
        if add and t == rounds // 2:
            preselector.add("late", {"age": 1e5})


# --- statistics -------------------------------------------------------------------------------------------------------


def test_scaling_follows_what_was_seen():
    generator = np.random.default_rng(0)
    rows = generator.normal([5.0, -300.0, 7.0], [2.0, 50.0, 0.0], (2000, 3))
    rows[generator.random((2000, 3)) < 0.2] = np.nan
    scaling = Scaling(3)
    for row in rows:
        scaling.learn(row)
    logs = np.sign(rows) * np.log1p(np.abs(rows))
    deviations = np.nanstd(logs, axis=0)
    expected = (logs - np.nanmean(logs, axis=0)) / np.where(deviations > 1e-9, deviations, np.inf)
    np.testing.assert_allclose(scaling(rows), np.nan_to_num(expected).clip(-3, 3) * 2 / np.sqrt(3), atol=0.1)
    assert np.abs(scaling([1e9, -1e9, 1e9])).max() == pytest.approx(6 / np.sqrt(3))
    with pytest.raises(InputError, match="use 3 numbers, NaN for those that are not known"):
        scaling.learn([1.0, 2.0, np.inf])


@pytest.mark.parametrize("outlier", [1e9, -1e9, 1e300])
@pytest.mark.parametrize("before", [10, 100, 1000])
def test_a_single_outlier_moves_neither_mean_nor_deviation_much(outlier, before):
    generator = np.random.default_rng(before)
    with_outlier, without = Scaling(1), Scaling(1)
    for t in range(before + 1):
        value = as_raw(generator.normal(size=1))
        without.learn(value)
        with_outlier.learn([outlier] if t == before else value)
    factor, shift = without.change_to(with_outlier)
    assert 0.6 < factor[0] <= 1.1
    assert factor[0] > 0.88 or before == 10
    assert abs(shift[0] / 2.0) < 1.2 / np.sqrt(before)


def test_rare_values_are_no_outliers():
    """A feature that is 1 in one of fifty rounds keeps its deviation, as a fixed limit would not let it."""
    generator, scaling = np.random.default_rng(3), Scaling(1)
    for _ in range(4000):
        scaling.learn([float(generator.random() < 0.02)])
    count, _, squares = scaling.seen[:, 0]
    assert np.sqrt(squares / count) == pytest.approx(np.log(2) * np.sqrt(0.02 * 0.98), rel=0.2)


def test_arms_are_scaled_alike_in_any_order_and_one_extreme_arm_counts_little():
    ages = np.array([[1.0], [3.0], [4.0], [9.0], [2.0], [np.nan]])
    many, generator = np.random.default_rng(0).lognormal(size=(50, 4)), np.random.default_rng(1)
    assert len({Scaling.fit(generator.permutation(many)).seen.tobytes() for _ in range(20)}) == 1
    logs = np.log1p(ages[:5, 0])
    np.testing.assert_allclose(Scaling.fit(ages).seen[:, 0], [5, logs.mean(), 5 * logs.var()])
    extreme = Scaling.fit(np.vstack((ages, [[1e9]])))
    factor, _ = Scaling.fit(ages).change_to(extreme)
    assert factor[0] > 0.5  # 0.07 if it counted fully
    assert Scaling.fit([[0.0], [0.0], [0.0], [0.0], [1.0]])([1.0])[0] > 3.0  # not an outlier, but all there is


def reach(joint, context):
    """How many deviations the farthest value is away; values are cut off at 3."""
    scaled = joint.context_scaling(context) * np.sqrt(3) / 2, joint.arm_scaling(joint.values[:3]) * np.sqrt(2) / 2
    return max(np.abs(part).max() for part in scaled)


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_a_change_of_scaling_is_linear_where_nothing_is_cut_off(seed):
    generator = np.random.default_rng(seed)
    joint = JointFeatures(2, 3, capacity=6)
    for _ in range(3):
        joint.add(as_raw(generator.normal(size=2)))
    for _ in range(20):
        joint.see(as_raw(generator.normal(size=3)))
    joint.renew()
    context, arms = as_raw(generator.normal(size=3) * 0.3), np.arange(3)
    before, farthest = joint.rows(arms, joint.values, context), reach(joint, context)
    joint.add(as_raw(generator.normal(size=2) * 2.0))
    for _ in range(20):
        joint.see(as_raw(generator.normal(size=3) * generator.uniform(0.5, 3.0) + generator.normal(size=3)))
    change = joint.renew()
    assume(max(farthest, reach(joint, context)) < 2.999)
    np.testing.assert_allclose(change.map_rows(before), joint.rows(arms, joint.values[:3], context), atol=1e-9)
    assert not np.allclose(change.map_rows(before), before)


# --- maps of what was learnt ------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_weights_and_matrices_follow_rows(seed):
    generator = np.random.default_rng(seed)
    change, rows = make_change(generator), draw_rows(generator, 5)
    theta = generator.normal(size=rows.shape[1])
    mapped = change.map_rows(rows)
    np.testing.assert_allclose(mapped @ change.map_weights(theta), rows @ theta, atol=1e-9)
    np.testing.assert_allclose(change.map_matrix(rows.T @ rows), mapped.T @ mapped, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_a_history_and_a_gram_matrix_become_what_learning_in_the_new_units_gives(seed):
    generator = np.random.default_rng(seed)
    change = make_change(generator)
    pairs = [
        [make() for _ in range(2)] for make in (lambda: WholeHistory(24, precision=0.5, every=1), lambda: Gram(24, 2.0))
    ]
    for t in range(1, 13):
        rows, ranking = draw_rows(generator, 3), generator.permutation(3)[:2]
        for old, new in pairs:
            old.learn(rows, ranking, t)
            new.learn(change.map_rows(rows), ranking, t)
    for old, new in pairs:
        old.transform(change, 12)
        for name, array in new.arrays().items():
            np.testing.assert_allclose(old.arrays()[name], array, rtol=1e-4, atol=1e-4, err_msg=name)


def test_a_belief_keeps_its_evidence_and_its_prior():
    """As if the same evidence, a Gaussian likelihood of theta, had been seen in the new units."""
    generator = np.random.default_rng(4)
    belief = Gaussian(24, mean=0.3, precision=2.0)
    X, y = np.vstack([draw_rows(generator, 3) for _ in range(6)]), generator.normal(size=18)
    belief.A[:] += X.T @ X
    belief.theta[:] = np.linalg.solve(belief.A, 0.6 + X.T @ y)
    change = make_change(generator)
    Z = change.map_rows(X)
    belief.transform(change, 6)
    A = 2.0 * np.eye(24) + Z.T @ Z
    np.testing.assert_allclose(belief.A, A, atol=1e-9)
    np.testing.assert_allclose(belief.theta, np.linalg.solve(A, 0.6 + Z.T @ y), atol=1e-9)
    np.testing.assert_allclose(belief.P @ A, np.eye(24), atol=1e-8)


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_online_newton_becomes_what_learning_in_the_new_units_gives(discount):
    """Exactly, while all outcomes are kept: both are fitted to the same ones. Later the base follows as a Gaussian."""
    generator = np.random.default_rng(5)
    old, new = (OnlineNewton(24, mean=0.3, precision=2.0, discount=discount) for _ in range(2))
    change = make_change(generator)
    for t in range(1, 31):
        rows, ranking = draw_rows(generator, 3), generator.permutation(3)[:1]
        changed = change.map_rows(rows)
        for array in (rows, changed, ranking):
            array.setflags(write=False)  # as those of a decision; kernels are not compiled again for others
        old.learn(rows, ranking, t)
        new.learn(changed, ranking, t)
    old.transform(change, 30)
    new._fit(30, 1e-6)
    np.testing.assert_allclose(old.theta, new.theta, atol=1e-6)
    np.testing.assert_allclose(old.A, new.A, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(old.P @ old.A, np.eye(24), atol=1e-8)
    old.base[:] = old.block[:25]
    old.recent.clear()
    old.transform(make_change(generator), 30)
    np.testing.assert_allclose(old.block[:25], old.base, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_utilities_stay_where_the_prior_says_the_same_in_both_units(seed):
    """Reflections leave a prior around 0 as it is; so what follows from it and the outcomes is the same."""
    generator = np.random.default_rng(seed)
    signs = generator.choice([-1.0, 1.0], 5)
    change = Change(np.stack((signs[:2], np.zeros(2))), np.stack((signs[2:], np.zeros(3))))
    belief = Gaussian(24, mean=0.0, precision=1.0)
    past = np.vstack([draw_rows(generator, 3) for _ in range(10)])
    belief.A[:] += past.T @ past
    belief.theta[:] = np.linalg.solve(belief.A, past.T @ generator.normal(size=30))
    before = past @ belief.theta
    belief.transform(change, 10)
    np.testing.assert_allclose(change.map_rows(past) @ belief.theta, before, atol=1e-9)


# --- the facade -------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from(sorted(registry.POLICIES)))
@example(0, "newton")
def test_who_is_ahead_changes_by_learning_only(seed, policy):
    """No number of selections in contexts of any scale, and no arm that joins, moves a score."""
    generator = np.random.default_rng(seed)
    arms = {name: {"age": float(age)} for name, age in zip("abc", generator.lognormal(size=3), strict=True)}
    preselector = Preselector(arms, ["x", "y"], policy=policy, seed=seed)
    play(preselector, int(generator.integers(0, 12)), generator)
    contexts = as_raw(generator.normal(size=(5, 2)))
    before, utilities = [preselector.scores(context) for context in contexts], list_utilities(preselector, contexts)
    scale, shift = np.exp(generator.normal(size=2) * 3.0), generator.normal(size=2) * 5.0
    for _ in range(30):
        decision = preselector.select(as_raw(generator.normal(size=2) * scale + shift), k=2)
    preselector.learn(decision, outcome=Void())
    preselector.learn(decision, outcome=NoWinner())
    assert [preselector.scores(context) for context in contexts] == before
    preselector.add("new", {"age": 1e9})
    np.testing.assert_allclose(list_utilities(preselector, contexts), utilities, atol=1e-9)
    # widths may depend on d, which grew, or on the leader, which may be another one
    if policy not in ("cppl", "ofu-mnl", "ucb-mnl", "colstim", "newton"):
        after = [preselector.scores(context) for context in contexts]
        for one, other in zip(before, after, strict=True):
            assert {name: other[name] for name in one} == pytest.approx(one, abs=1e-9)


def list_utilities(preselector, contexts):
    """The estimates of the first three arms."""
    return [[preselector.estimates(context)[name].utility for name in "abc"] for context in contexts]


@pytest.mark.parametrize("policy", [name for name in LINEAR if name != "nearby"])  # which keeps no outcomes to fit
def test_what_was_learnt_is_kept_when_the_scaling_is_renewed(policy):
    """Contexts become ten times as spread out. The next outcome renews the scaling; answers stay."""
    arms = {"a": {"age": 1.0}, "b": {"age": 2.0}}
    preselector = Preselector(arms, ["x", "y"], policy=policy, covariance="full", seed=0)
    generator = np.random.default_rng(1)
    play(preselector, 150, generator)

    def best():
        shown = [np.asarray(preselector._joint.show(np.array([x, 0.0]))) for x in (-2.0, 3.0)]
        return [int(np.argmax(rows @ preselector.policy.theta)) for rows in shown]

    before, used = best(), preselector._joint.context_scaling
    for _ in range(1000):
        decision = preselector.select(as_raw(generator.normal(size=2) * 10.0), k=2)
    preselector.learn(decision, winner="a" if decision.context[0] < 0.3 else "b")
    assert preselector._joint.context_scaling is not used
    assert best() == before == [0, 1]


@pytest.mark.parametrize("policy", registry.POLICIES)
def test_a_decision_teaches_the_same_whenever_the_scaling_changes(policy):
    """What is learnt from a decision does not depend on the scaling that was in use when it was made."""
    generator = np.random.default_rng(2)
    arms = {name: {"age": age} for name, age in (("a", 1.0), ("b", 5.0), ("c", 9.0))}
    one = Preselector(arms, ["x", "y"], policy=policy, seed=0)
    play(one, 6, generator)
    early = one.select([3.0, -4.0], k=2)
    play(one, 30, generator, spread=3.0, shift=2.0, add=True)
    other = copy.deepcopy(one)
    late = other.select([3.0, -4.0], k=2, eligible=early.names)
    other._joint = copy.deepcopy(one._joint)  # the same contexts have been seen
    assert one._joint.context_scaling([3.0, -4.0]).tolist() == other._joint.context_scaling([3.0, -4.0]).tolist()
    for preselector, decision in ((one, early), (other, late)):
        preselector.learn(decision, winner=early.names[0])
    if policy != "epoch-greedy":  # which learns from some rounds only, by their number
        assert other.scores([1.0, 1.0]) == pytest.approx(one.scores([1.0, 1.0]), abs=1e-9)


@pytest.mark.parametrize("policy", registry.POLICIES)
def test_an_outcome_that_renews_the_scaling_is_learnt_by_the_new_one(policy):
    """What was learnt before is in the new units then, and so has to be what is added."""
    generator = np.random.default_rng(3)
    one = Preselector({"a": {"age": 1.0}, "b": {"age": 5.0}}, ["x", "y"], policy=policy, seed=0)
    play(one, 6, generator)
    for _ in range(20):
        decision = one.select(as_raw(generator.normal(size=2) * 9.0), k=2)
    other, used = copy.deepcopy(one), one._joint.context_scaling
    other._renew_scaling()
    for preselector in (one, other):
        preselector.learn(decision, winner="b")
    assert one._joint.context_scaling is not used
    assert one.to_bytes() == other.to_bytes()


def test_a_decision_teaches_what_arms_were_like_when_it_was_made(monkeypatch):
    preselector = Preselector({"a": {"age": 1.0}, "b": {"age": 5.0}, "c": {}}, ["x", "y"], seed=0)
    play(preselector, 6, np.random.default_rng(4))
    taught, decision = [], preselector.select([1.0, 2.0], k=2, eligible=["a", "b"])
    preselector.change("a", {"age": 9.0})
    preselector.remove("c")
    monkeypatch.setattr(preselector.policy, "learn", lambda decision, outcome: taught.append(decision.rows))  # noqa: ARG005
    preselector.learn(decision, winner="a")
    ages = np.array([[{"a": 1.0, "b": 5.0}[name]] for name in decision.names])
    slots = np.array(["ab".index(name) for name in decision.names])
    np.testing.assert_array_equal(taught[0], preselector._joint.rows(slots, ages, np.array([1.0, 2.0])))


def test_a_single_huge_value_neither_squashes_the_others_nor_moves_their_scores():
    generator = np.random.default_rng(5)
    one = Preselector(["a", "b", "c"], ["x", "y"], policy="newton(beta=0)", seed=0)
    play(one, 100, generator)
    other = copy.deepcopy(one)
    other.select([1e9, 1e300], k=2)
    for preselector in (one, other):
        play(preselector, 100, np.random.default_rng(6))
    for context in ([-2.0, 0.0], [0.1, 1.0], [2.0, -1.0]):
        assert other.scores(context) == pytest.approx(one.scores(context), abs=0.25)
    factor, shift = one._joint.context_scaling.change_to(other._joint.context_scaling)
    assert factor.min() > 0.85
    assert np.abs(shift).max() < 0.2


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_copies_and_files_renew_the_scaling_alike(duplicate, tmp_path):
    one = Preselector({"a": {"age": 1.0}, "b": {"age": 2.0}}, ["x", "y"], seed=0)
    play(one, 13, np.random.default_rng(0))
    waiting = one.select([5.0, 6.0], k=2)
    one.save(tmp_path / "state.npz")
    others = [duplicate(one), Preselector.load(tmp_path / "state.npz")]
    for preselector in (one, *others):
        play(preselector, 30, np.random.default_rng(1), spread=4.0, add=True)
        preselector.learn(duplicate(waiting), winner="a")
    assert [other.to_bytes() for other in others] == [one.to_bytes()] * 2


def test_a_state_of_an_earlier_version_goes_on(tmp_path):
    """Its one scaling of contexts is in use and has seen all that there was to see."""
    preselector = Preselector({"a": {"age": 1.0}, "b": {"age": 2.0}}, ["x", "y"], seed=0)
    play(preselector, 40, np.random.default_rng(0))
    preselector.save(tmp_path / "state.npz")
    file = state.read(tmp_path / "state.npz")
    del file.header["scaled"], file.arrays["context_seen"]
    state.write(tmp_path / "state.npz", file.kind, file.header, file.arrays)
    again = Preselector.load(tmp_path / "state.npz")
    assert again.scores([1.0, 2.0]) == preselector.scores([1.0, 2.0])
    used = again._joint.context_scaling
    play(again, 200, np.random.default_rng(1), spread=2.0, add=True)
    assert again._joint.context_scaling is not used
    assert again.scores([-3.0, 0.0])["a"] > again.scores([-3.0, 0.0])["b"]


def test_journals_replay_scaling_changes_between_decision_and_outcome_bit_for_bit(tmp_path):
    path, generator = tmp_path / "race.journal", np.random.default_rng(0)
    make = lambda: Preselector({"a": {"age": 1.0}, "b": {"age": 2.0}, "c": {}}, ["x", "y"], seed=0)  # noqa: E731
    waiting = []
    for part in range(3):
        with Learner.open(path, make=make, snapshot_every=7) as learner:
            for t in range(20):
                context = as_raw(generator.normal(size=2) * (1 + part)).tolist()
                waiting.append(learner.select([context[0], None if t % 3 == 0 else context[1]], k=2))
                if t % 4 == 3:
                    for entry in waiting[::2]:
                        learner.learn(entry.number, winner=entry.decision.names[t % 2])
                    waiting = waiting[1::2]
            learner.add(f"late {part}", {"age": 10.0**part})
            state_now = learner.preselector.to_bytes()
    assert learner.preselector._joint.scaled_contexts > 20
    found = verify(path)
    assert found.equal, found.difference
    with Learner.open(path, make=make) as learner:
        assert learner.preselector.to_bytes() == state_now
        assert learner.recovery.difference is None
