"""Covariances in blocks: exact where they can be, close to the whole covariance elsewhere, and of any size."""

import numpy as np
import pytest

from preselect import InputError, Newton, NoWinner, Ranking, Thompson, Winner, load
from preselect.block_context import BlockContext, pack, unpack
from preselect.context import StructuredContext
from preselect.scaling import Change

M, P, SLOTS, WEIGHT = 2, 3, 6, 0.7  # features of arms, of the context with its constant, slots, weight of identities
SHARED, D = M * P, (M + SLOTS) * P


def make(policy=Newton, m=M, slots=SLOTS, **parameters):
    """The same policy twice: with blocks, and with the whole covariance."""
    d = (m + slots) * P
    return policy(d=d, blocks=(m * P, P), seed=0, **parameters), policy(d=d, seed=0, **parameters)


def show(generator, slots, n_slots=SLOTS, m=M, arms=None):
    """The same arms and context twice: in blocks, and as joint features."""
    arms = generator.normal(size=(len(slots), m)) if arms is None else arms
    context = np.concatenate(([1.0], generator.normal(size=P - 1)))
    identities = WEIGHT * np.eye(n_slots)[slots]
    return (
        BlockContext(arms, np.array(slots), context, WEIGHT, n_slots),
        StructuredContext(np.hstack((arms, identities)), context, slots),
    )


def dense_covariance(policy):
    P_ = np.zeros((policy.d, policy.d))
    s, size = policy.blocks
    P_[:s, :s] = policy.P.shared
    for slot, block in enumerate(unpack(policy.P.own, size)):
        first = s + slot * size
        P_[first : first + size, first : first + size] = block
    return P_


def drop_between_blocks(P_, s, size):
    kept = np.zeros_like(P_)
    for first, last in [(0, s), *((first, first + size) for first in range(s, len(P_), size))]:
        kept[first:last, first:last] = P_[first:last, first:last]
    return kept


OUTCOMES = [
    (lambda arms: Winner(arms[1]), False),
    (lambda arms: Ranking(arms[::-1]), False),
    (lambda arms: Ranking(arms[[2, 0]]), False),
    (lambda arms: Winner(arms[0], 0.4), True),
    (lambda arms: Winner(arms[0], 0.02), True),
    (lambda _: NoWinner(1.0), True),
]


@pytest.mark.parametrize(("outcome", "outside"), OUTCOMES)
def test_one_outcome_is_learnt_exactly_but_for_what_lies_between_blocks(outcome, outside):
    blocks, full = make(outside=outside, mean=0.2, precision=1.5)
    of_blocks, of_full = show(np.random.default_rng(1), [4, 0, 5, 2])
    decisions = blocks.select(of_blocks, 3), full.select(of_full, 3)
    assert decisions[0].rows.shape == (3, SHARED + P)
    for policy, decision in zip((blocks, full), decisions, strict=True):
        policy.learn(decision, outcome(decisions[1].arms))
    np.testing.assert_allclose(blocks.theta, full.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense_covariance(blocks), drop_between_blocks(full.P, SHARED, P), rtol=1e-9, atol=1e-12)


def test_a_long_step_goes_to_the_maximum():
    """A belief this wide moves so far that one Newton step would not be trusted."""
    blocks, full = make(precision=1e-3)
    of_blocks, of_full = show(np.random.default_rng(2), [1, 2, 3])
    decisions = blocks.select(of_blocks, 3), full.select(of_full, 3)
    for policy, decision in zip((blocks, full), decisions, strict=True):
        policy.learn(decision, Winner(decisions[1].arms[2]))
    np.testing.assert_allclose(blocks.theta, full.theta, rtol=1e-8, atol=1e-9)


def test_more_rows_than_features_are_learnt_exactly():
    """One number per arm, and two virtual arms beside them: the step is made by a fit."""
    blocks, full = Newton(d=4, blocks=(0, 1), outside=True), Newton(d=2, outside=True)
    of_blocks = BlockContext(np.empty((2, 0)), np.array([1, 3]), np.ones(1), 1.0, 4)
    decision, of_full = blocks.select(of_blocks, 2), full.select(np.eye(2), 2)
    blocks.learn(decision, Winner(0, 0.5))
    full.learn(of_full, Winner(0, 0.5))
    np.testing.assert_allclose(blocks.theta[[1, 3]], full.theta, rtol=1e-9)
    np.testing.assert_allclose(blocks.P.own[[1, 3], 0], full.P.diagonal(), rtol=1e-9)


def test_arms_that_never_meet_are_independent():
    """Without shared features a set's outcomes say nothing about other sets: both keep the same belief about them."""
    generator = np.random.default_rng(3)
    blocks, full = make(m=0)
    for slots in ([0, 1], [2, 3], [4, 5]):
        of_blocks, of_full = show(generator, slots, m=0)
        for policy, context in ((blocks, of_blocks), (full, of_full)):
            decision = policy.select(context, 2)
            policy.learn(decision, Winner(0))
    np.testing.assert_allclose(blocks.theta, full.theta, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bonus", ["contrast", "arm"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("some", [False, True])
def test_choices_and_scores_are_those_of_the_dense_formula(bonus, k, some):
    """Against a dense policy that is given the same belief."""
    generator = np.random.default_rng(4)
    blocks, full = make(bonus=bonus)
    for _ in range(30):
        of_blocks, of_full = show(generator, generator.permutation(SLOTS)[:5])
        eligible = [4, 1, 2] if some else None
        full.theta[:], full.P[:] = blocks.theta, dense_covariance(blocks)
        full.seen[:], full._seen_features, full.observations = blocks.seen, blocks._seen_features, blocks.observations
        np.testing.assert_allclose(blocks.scores(of_blocks), full.scores(of_full), rtol=1e-9, atol=1e-9)
        decision, expected = blocks.select(of_blocks, k, eligible=eligible), full.select(of_full, k, eligible=eligible)
        np.testing.assert_array_equal(decision.arms, expected.arms)
        np.testing.assert_allclose(decision.scores, expected.scores, rtol=1e-9)
        np.testing.assert_allclose(decision.widths, expected.widths, rtol=1e-9, atol=1e-12)
        decision = blocks.select(of_blocks, 3)
        blocks.learn(decision, Winner(decision.arms[generator.integers(3)]))


def test_ties_are_broken_at_random():
    """Before anything is learnt all arms are equal: each is chosen, each leads."""
    policy = Newton(d=SLOTS * P, blocks=(0, P), seed=0)
    context = show(np.random.default_rng(5), range(SLOTS), m=0)[0]
    chosen = [policy.select(context, 2).arms.tolist() for _ in range(100)]
    assert {arms[0] for arms in chosen} == {arms[1] for arms in chosen} == set(range(SLOTS))


@pytest.mark.parametrize("parameters", [{}, {"draws": "slot"}, {"choose": "cover"}])
def test_thompson_draws_from_the_belief(parameters):
    generator = np.random.default_rng(6)
    blocks, full = make(Thompson, **parameters)
    of_blocks, of_full = show(generator, [0, 3, 1, 5])
    for _ in range(5):
        decision = blocks.select(of_blocks, 2)
        blocks.learn(decision, Winner(decision.arms[0]))
    full.theta[:], full.P[:] = blocks.theta, dense_covariance(blocks)
    u = of_blocks.utilities(blocks.theta[None])[:, 0]
    drawn = blocks._draw(of_blocks, u, 40_000, generator)
    np.testing.assert_allclose(u, of_full.utilities(full.theta[None])[:, 0], atol=1e-12)
    expected = of_full.covariance(full.P)
    np.testing.assert_allclose(of_blocks.covariance(blocks.P), expected, atol=1e-12)
    np.testing.assert_allclose(np.cov(drawn), expected, atol=0.08)
    np.testing.assert_allclose(drawn.mean(axis=1), u, atol=0.04)


def test_blocks_follow_a_change_of_scaling():
    """Rows that have changed give the utilities that they would have if they had been learnt after the change."""
    generator = np.random.default_rng(7)
    change = Change(np.array([[1.5, 0.8], [0.0, 0.0]]), np.array([[0.5, 2.0], [0.3, -0.4]]))
    before, full = make(mean=0.4, precision=2.0)
    of_blocks, of_full = show(generator, [1, 2, 5])
    for policy, context in ((before, of_blocks), (full, of_full)):
        policy.learn(policy.select(context, 3), Winner(1))
    expected = drop_between_blocks(full.P, SHARED, P)
    full.A[:], full.P[:] = np.linalg.inv(expected), expected
    full.estimate._is_fitted = False  # what it would be fitted to is not what the blocks know
    for policy in (before, full):
        policy.transform(change)
    np.testing.assert_allclose(before.theta, full.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense_covariance(before), full.P, rtol=1e-9, atol=1e-12)


def test_untouched_slots_stay_as_they_were():
    generator = np.random.default_rng(8)
    policy = make(mean=0.3, precision=2.0)[0]
    before = policy.theta.copy(), policy.P.own.copy()
    policy.learn(policy.select(show(generator, [1, 2])[0], 2), Winner(0))
    policy.transform(Change(np.ones((2, M)), np.full((2, P - 1), 0.5)))
    rest = [0, 3, 4, 5]
    np.testing.assert_array_equal(policy.P.own[rest], before[1][rest])
    np.testing.assert_array_equal(policy.estimate.own[rest], np.full((4, P), 0.3))
    policy.estimate.forget_slots(np.array([1]))
    np.testing.assert_array_equal(policy.P.own[1], before[1][1])


def test_state_files_and_room_for_more(tmp_path):
    generator = np.random.default_rng(9)
    policy = make(outside=True)[0]
    for _ in range(20):
        decision = policy.select(show(generator, generator.permutation(SLOTS)[:4])[0], 2)
        policy.learn(decision, Winner(decision.arms[0], 0.3))
    policy.save(tmp_path / "blocks.npz")
    again, wider = load(tmp_path / "blocks.npz"), policy.widen((M + 9) * P)
    context = show(generator, [0, 2, 3, 5])[0]
    more = BlockContext(context.arms, context.ids, context.context, WEIGHT, 9)
    for other, shown in ((again, context), (wider, more)):
        np.testing.assert_array_equal(other.scores(shown), policy.scores(context))
    with pytest.raises(InputError, match="cannot forget"):
        Newton(d=D, blocks=(SHARED, P), discount=0.9)
    with pytest.raises(InputError, match="one number for all"):
        Newton(d=D, blocks=(SHARED, P), mean=[0.0] * D)
    with pytest.raises(InputError, match="slots of 3"):
        Newton(d=D + 1, blocks=(SHARED, P))
    with pytest.raises(InputError, match="has to know the slot of each arm"):
        policy.select(np.zeros((3, D)), 2)
    with pytest.raises(InputError, match="features"):
        policy.learn(Newton(d=D).select(np.eye(D), 2), Winner(0))


def test_a_dense_policy_is_split_into_blocks():
    generator = np.random.default_rng(10)
    _, full = make(outside=True)
    for _ in range(10):
        of_full = show(generator, [0, 1, 4])[1]
        decision = full.select(of_full, 2)
        full.learn(decision, Winner(decision.arms[0], 0.3))
    divided = full.split((SHARED, P))
    np.testing.assert_array_equal(divided.theta, full.theta)
    np.testing.assert_array_equal(dense_covariance(divided), drop_between_blocks(full.P, SHARED, P))
    np.testing.assert_array_equal(np.flatnonzero(divided.estimate.touched), [0, 1, 4])
    assert divided.observations == full.observations
    assert divided._seen_features == full._seen_features
    np.testing.assert_array_equal(divided.pace, full.pace)


def test_halves_of_matrices_make_whole_ones():
    A = np.random.default_rng(11).normal(size=(5, 4, 4))
    A += A.transpose(0, 2, 1)
    np.testing.assert_array_equal(unpack(pack(A), 4), A)
