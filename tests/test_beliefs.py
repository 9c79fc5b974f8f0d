"""Whether the belief of Newton and Thompson is what it says: as far from the truth as its own precision expects."""

import fidelity
import numpy as np
import pytest

from preselect import Newton, Random, Ranking, Thompson, Winner, load, model
from preselect.policies.estimators import online_newton
from preselect.policies.persistence import collect_state

D = 5


def play(policy, seed, rounds, *, k=3, size=1.0, theta=None, chooser=None, ranking=False):
    """Let the policy learn from rounds with normal features, theta drawn from its prior; yield theta and a decision."""
    generator = np.random.default_rng(seed)
    theta = generator.normal(size=policy.d) if theta is None else theta
    for _ in range(rounds):
        decision = (chooser or policy).select(size * generator.normal(size=(20, policy.d)), k)
        order = model.sample_ranking(decision.rows @ theta, generator)
        policy.learn(decision, Ranking(decision.arms[order]) if ranking else Winner(decision.arms[order[0]]))
        yield theta, decision, order


def surprise(policy, theta):
    """(theta - theta*)' A (theta - theta*) over d: one on average, if the belief is right."""
    return (policy.theta - theta) @ policy.A @ (policy.theta - theta) / policy.d


def mean_surprise(rounds, seeds, size, *, chosen, beta=None, **options):
    found = []
    for seed in seeds:
        policy = Newton(d=D, beta=beta, seed=seed)
        *_, (theta, _, _) = play(
            policy, seed, rounds, size=size, chooser=None if chosen else Random(d=D, seed=seed), **options
        )
        found.append(surprise(policy, theta))
    return np.mean(found)


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("size", [1.0, 3.0])
def test_the_belief_is_as_far_from_the_truth_as_it_expects(size, chosen):
    """After 300 outcomes the mean over 40 draws of theta, each of variance 2/5, has a standard error of 0.1.

    One step per outcome, never revised, has 2 where features are of size 1, and 30 or more where they are of size 3.
    """
    assert 0.7 < mean_surprise(300, range(40), size, chosen=chosen) < 1.5


@pytest.mark.parametrize("size", [1.0, 3.0])
def test_it_is_as_sure_as_the_exact_mode(size):
    apart = []
    for seed in range(3):
        policy, outcomes = Newton(d=D, seed=seed), []
        for truth, decision, order in play(policy, seed, 300, size=size):
            outcomes.append(([order[0]], decision.rows))
            theta = truth
        mode, A = fidelity.maximise(np.zeros(D), np.eye(D), outcomes, theta, 1e-4)
        apart.append((policy.theta - mode) @ A @ (policy.theta - mode) / D)
        assert surprise(policy, theta) < 1.5 * (mode - theta) @ A @ (mode - theta) / D + 0.2
    assert max(apart) < 0.3


@pytest.mark.parametrize("options", [{"k": 2}, {"k": 8}, {"ranking": True}])  # 8 rows are more than d
def test_so_it_is_for_other_outcomes(options):
    assert 0.6 < mean_surprise(200, range(30), 2.0, chosen=True, **options) < 1.6


def test_so_it_is_when_outcomes_have_been_dropped():
    assert 0.6 < mean_surprise(1200, range(12), 3.0, chosen=True) < 1.7


@pytest.mark.parametrize("discount", [1.0, 0.97])
@pytest.mark.parametrize(("k", "ranking"), [(3, False), (3, True), (7, False)])
def test_a_fit_is_the_maximum_of_the_posterior(k, ranking, discount, monkeypatch):
    """Right after it, theta is the mode given all outcomes, and A minus the Hessian there."""
    monkeypatch.setattr(online_newton, "_TOLERANCE", 1e-7)
    policy, outcomes = Newton(d=D, mean=0.5, precision=2.0, discount=discount, seed=0), []
    for _, decision, order in play(policy, 0, 40, size=2.0, k=k, ranking=ranking):
        outcomes.append((order.tolist() if ranking else [order[0]], decision.rows))
        kept = len(outcomes)
        if kept == policy.estimate.fits[0]:
            mode, A = fidelity.maximise(np.full(D, 0.5), 2.0 * np.eye(D), outcomes, np.zeros(D), 1e-7, discount)
            np.testing.assert_allclose(policy.theta, mode, atol=1e-8)
            np.testing.assert_allclose(policy.A, A, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(policy.P @ A, np.eye(D), atol=1e-6)
    assert policy.estimate.fits[0] > 30


@pytest.mark.parametrize("chosen", [True, False])
def test_features_of_size_100_do_not_make_theta_overshoot(chosen):
    """A Newton step from where the likelihood is flat goes a hundred times too far, once in several runs."""
    for seed in range(20):
        policy = Newton(d=D, beta=2.0, seed=seed)
        for theta, _, _ in play(policy, seed, 60, size=100.0, chooser=None if chosen else Random(d=D, seed=seed)):
            assert np.linalg.norm(policy.theta) < 2.0 * np.linalg.norm(theta)


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_a_long_step_ends_at_the_maximum_of_belief_times_likelihood(k):
    """However surprising the outcome: what is left of the slope is worth a small part of a standard deviation."""
    generator, policy = np.random.default_rng(k), Newton(d=6, precision=0.5, seed=0)
    for size in (10.0, 300.0, 1.0):
        theta, A = policy.theta.copy(), policy.A.copy()
        decision = policy.select(size * generator.normal(size=(9, 6)), k)
        loser = int(np.argmin(decision.rows @ policy.theta))
        policy.learn(decision, Winner(decision.arms[loser]))
        if size == 300.0:
            slope = A @ (theta - policy.theta) + model.gradient(decision.rows, policy.theta, [loser])
            A += model.curvature(decision.rows, policy.theta, [loser])
            assert slope @ np.linalg.solve(A, slope) < 0.01


@pytest.mark.parametrize("make", [Newton, Thompson])
@pytest.mark.parametrize("discount", [1.0, 0.95])
def test_a_saved_policy_goes_on_bit_for_bit(make, discount, tmp_path):
    """Between two fits, with outcomes kept; and again after they have been dropped."""
    policy = make(d=D, discount=discount, seed=1)
    for rounds in (77, 190):
        for _ in play(policy, rounds, rounds):
            pass
        policy.save(tmp_path / "policy.npz")
        again, copy = load(tmp_path / "policy.npz"), policy.__copy__()
        assert 0 < policy.estimate.recent.outcomes < 256
        for other in (again, copy):
            for _ in play(other, 5, 40):
                pass
        for _ in play(policy, 5, 40):
            pass
        for other in (again, copy):
            for name, array in collect_state(policy)[1].items():
                assert np.array_equal(array, collect_state(other)[1][name]), name


def test_files_without_outcomes_are_read_and_go_on():
    policy = Newton(d=3, seed=0)
    for _ in play(policy, 0, 30):
        pass
    old = {name: policy._arrays()[name] for name in ("theta", "A", "P", "pace")}
    again = Newton(d=3, seed=0)
    again._restore_arrays(old)
    assert again.estimate.recent.outcomes == 0
    assert np.array_equal(again.estimate.base, np.vstack((policy.theta, policy.A)))
    for _ in play(again, 1, 300, theta=np.array([1.0, -1.0, 0.5]), chooser=Random(d=3, seed=0)):
        pass
    assert np.abs(again.theta - [1.0, -1.0, 0.5]).max() < 0.5


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("lengths", lambda lengths: lengths + 3, "how many of its rows were ranked"),
        ("sizes", lambda sizes: sizes + 1, "but sizes add up to"),
        ("history", lambda rows: rows * np.nan, "not finite"),
        ("history", lambda rows: rows[:, :2], "history has shape"),
    ],
)
def test_damaged_outcomes_are_refused(name, wrong, message):
    policy = Newton(d=3, seed=0)
    for _ in play(policy, 0, 10):
        pass
    arrays = policy._arrays()
    with pytest.raises(ValueError, match=message):
        policy._restore_arrays({**arrays, name: wrong(arrays[name])})


def test_a_wider_policy_has_the_same_outcomes_and_fits_them_as_well():
    policy = Newton(d=3, seed=0)
    for _ in play(policy, 0, 30):
        pass
    wider = policy.widen(4)
    for X in np.random.default_rng(1).normal(size=(40, 6, 3)):
        decision = policy.select(X, 2)
        shown = wider.select(np.column_stack((X, np.zeros(6))), 2)
        assert shown.arms.tolist() == decision.arms.tolist()
        policy.learn(decision, Winner(decision.arms[1]))
        wider.learn(shown, Winner(shown.arms[1]))
    np.testing.assert_allclose(wider.theta, np.append(policy.theta, 0.0), atol=1e-9)
    np.testing.assert_allclose(wider.A[:3, :3], policy.A, rtol=1e-9)


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(online_newton, "_MOST_NUMBERS", 1000)
    many, wide = Newton(d=1, seed=0), Newton(d=8, seed=0)
    for policy, k, most in ((many, 2, 256), (wide, 10, 13)):
        kept = [policy.estimate.recent.outcomes for _ in play(policy, 0, 300, k=k)]
        assert max(kept) == most - 1
        assert kept.count(0) == 300 // most


def test_outcomes_that_are_dropped_are_not_forgotten(monkeypatch):
    """A is the sum over all outcomes, whether 20 of them are kept at a time or all 90."""
    monkeypatch.setattr(online_newton, "_MOST_OUTCOMES", 20)
    traces = []
    for _ in range(2):
        policy = Newton(d=D, beta=2.0, seed=0)
        for _ in play(policy, 0, 90, chooser=Random(d=D, seed=0)):
            pass
        traces.append(np.trace(policy.A))
        monkeypatch.undo()
    assert traces[0] == pytest.approx(traces[1], rel=0.15)


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_with_many_features_no_outcomes_are_kept(tmp_path, discount):
    """A fit would cost more than all the steps between two of them; what a smaller policy kept counts all the same."""
    generator, policy = np.random.default_rng(5), Newton(d=250, discount=discount, seed=0)
    rounds = generator.normal(size=(40, 3, 250)) / 16
    for X in rounds[:20]:
        policy.learn(policy.select(X, 2), Winner(policy.select(X, 2).arms[0]))
    assert policy.estimate.recent.outcomes > 0
    wide = policy.widen(300)
    for X in rounds:
        decision = wide.select(np.hstack((X, np.zeros((3, 50)))), 2)
        wide.learn(decision, Winner(decision.arms[0]))
    assert wide.estimate.recent.outcomes == 0
    assert np.allclose(wide.P @ wide.A, np.eye(300), atol=1e-8)
    wide.save(tmp_path / "state.npz")
    X = generator.normal(size=(9, 300))
    assert np.array_equal(Newton.load(tmp_path / "state.npz").scores(X), wide.scores(X))
