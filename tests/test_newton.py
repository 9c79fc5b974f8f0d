"""Newton against its formulas, in plain numpy; forgetting, the prior, ties for the lead, and hard inputs."""

import fidelity
import numpy as np
import pytest

from preselect import InputError, Newton, NoWinner, Outcome, Random, Winner, model


class LiteralNewton(fidelity.LiteralOnlineNewton):
    def __init__(self, d, beta, bonus, discount=1.0, **prior):
        super().__init__(d, discount, **prior)
        self.beta, self.bonus = beta, bonus

    def select(self, X, k):
        u = X @ self.theta
        if self.bonus == "arm":
            return self.top(u + self.beta * self.norms(X, self.A), k)
        leader = int(u.argmax())
        scores = u - u[leader] + self.beta * self.norms(X - X[leader], self.A)
        scores[leader] = np.inf
        return self.top(scores, k)


@pytest.mark.parametrize("outcome", fidelity.OUTCOMES)
@pytest.mark.parametrize("discount", [1.0, 0.7])
@pytest.mark.parametrize("bonus", ["contrast", "arm"])
def test_choices_and_estimates_are_those_of_the_formulas(bonus, discount, outcome):
    policy = Newton(d=4, beta=1.3, bonus=bonus, mean=0.3, precision=2.0, discount=discount, seed=0)
    source = LiteralNewton(4, 1.3, bonus, discount, mean=0.3, precision=2.0)
    fidelity.agree(policy, source, outcome, compare=("theta", "A", "P"))


def test_the_posterior_mode_is_followed_closely():
    """One step per outcome comes close to the maximum over the whole history, which no single step computes."""
    generator = np.random.default_rng(2)
    theta = np.array([1.0, -0.5, 0.7])
    policy, source = Newton(d=3, seed=0), fidelity.LiteralBelief(3)
    for _ in range(300):
        decision = policy.select(generator.uniform(-1.0, 1.0, (8, 3)), 3)
        winner = model.sample_winner(decision.rows @ theta, generator)
        policy.learn(decision, Winner(decision.arms[winner]))
        source.outcomes.append(([winner], decision.rows.copy()))
    mode, A = source.maximum_likelihood()
    assert (policy.theta - mode) @ A @ (policy.theta - mode) < 0.1  # a tenth of a standard deviation, squared, is 0.01
    np.testing.assert_allclose(policy.A, A, rtol=0.15, atol=0.15 * np.abs(A).max())


def test_old_outcomes_count_less_and_the_prior_stays():
    generator = np.random.default_rng(3)
    policy = Newton(d=5, precision=2.0, discount=0.95, seed=0)
    for _ in range(2000):  # the last two features are never seen
        X = np.column_stack((generator.random((6, 3)), np.zeros((6, 2))))
        decision = policy.select(X, 2)
        policy.learn(decision, Winner(decision.arms[0]))
    assert np.all((policy.A.diagonal()[3:] > 2.0 / np.e) & (policy.A.diagonal()[3:] <= 2.0 + 1e-9))
    assert np.trace(policy.A[:3, :3]) < 3 * 2.0 + 0.5 * 3 / (1.0 - 0.95)  # the curvature of 20 outcomes, not of 2000
    np.testing.assert_allclose(policy.P @ policy.A, np.eye(5), atol=1e-8)


def test_after_a_change_forgetting_finds_the_new_weights():
    generator = np.random.default_rng(4)
    errors = {}
    for discount in (1.0, 0.98):
        policy = Newton(d=3, discount=discount, seed=0)
        for t in range(1500):
            theta = np.array([2.0, -2.0, 1.0]) * (1 if t < 1000 else -1)
            decision = policy.select(generator.random((10, 3)), 4)
            policy.learn(decision, Winner(decision.arms[model.sample_winner(decision.rows @ theta, generator)]))
        errors[discount] = np.linalg.norm(policy.theta - theta)
    assert errors[0.98] < 0.5 * errors[1.0]


def test_a_tie_for_the_lead_is_drawn_and_the_companions_contrast_with_it():
    X = np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [0.0, 1.01]])
    leaders = set()
    for seed in range(40):  # theta is zero, so every arm leads, and the companion is the arm farthest from the leader
        arms = Newton(d=2, seed=seed).select(X, 2).arms.tolist()
        leaders.add(arms[0])
        assert arms[1] == np.linalg.norm(X - X[arms[0]], axis=1).argmax()
    assert leaders == {0, 1, 2, 3}


def test_precision_may_differ_by_feature():
    policy = Newton(d=2, precision=[1.0, 100.0], seed=0)
    decision = policy.select([[1.0, 0.0], [0.0, 1.0]], 2)
    policy.learn(decision, Winner(decision.arms[0]))
    assert abs(policy.theta[0]) == pytest.approx(100 * abs(policy.theta[1]))
    with pytest.raises(InputError, match=r"precision has the entry 0\.0, but every entry has to be above 0\.0"):
        Newton(d=2, precision=[1.0, 0.0])
    with pytest.raises(InputError, match="precision has 3 entries; give one number for all features, or d=2 of them"):
        Newton(d=2, precision=[1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="bonus is 'none'; use 'contrast' or 'arm'"):
        Newton(d=2, bonus="none")
    with pytest.raises(InputError, match=r"discount is 1\.1; use a number"):
        Newton(d=2, discount=1.1)


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_utilities_up_to_700_neither_overflow_nor_stop_learning(discount):
    policy = Newton(d=2, mean=[700.0, -700.0], precision=1e-3, discount=discount, seed=0)
    generator = np.random.default_rng(0)
    for _ in range(200):
        decision = policy.select(generator.random((6, 2)), 3)
        policy.learn(decision, Winner(decision.arms[-1]))  # the model is surprised every time
        assert np.all(np.isfinite(policy.theta))
        assert np.all(np.isfinite(decision.scores))
    np.testing.assert_allclose(policy.P @ policy.A, np.eye(2), atol=1e-8)
    assert policy.theta[0] < 700.0


def test_a_decision_that_cannot_be_learnt_from_changes_nothing():
    policy = Newton(d=2, seed=0)
    decision = Random(d=2, seed=0).select([[1e200, 0.0], [0.0, 1.0]], 2)
    before = policy.estimate.block.copy()
    with pytest.raises(InputError, match="the decision cannot be learnt from, because no finite estimate follows"):
        policy.learn(decision, Winner(1))
    assert np.array_equal(policy.estimate.block, before)


def test_the_inverse_stays_exact_over_many_rounds():
    generator = np.random.default_rng(1)
    policy = Newton(d=12, precision=1e-3, seed=0)
    contexts = generator.random((500, 20, 12))
    for t in range(6_000):
        decision = policy.select(contexts[t % 500], 4)
        policy.learn(decision, Winner(decision.arms[t % 4]))
    np.testing.assert_allclose(policy.P @ policy.A, np.eye(12), atol=1e-8)


def test_every_fit_computes_the_inverse_anew():
    policy, generator = Newton(d=6, seed=0), np.random.default_rng(0)
    for t in range(1, 13):
        policy.P[:] *= 1.01  # what rounding would do in the end
        decision = policy.select(generator.random((8, 6)), 3)
        policy.learn(decision, Winner(decision.arms[generator.integers(3)]))
        error = np.abs(policy.P @ policy.A - np.eye(6)).max()
        assert error < 1e-10 if t % 4 == 0 else error > 1e-3


@pytest.mark.parametrize("won", [True, False])
def test_with_an_outside_option_nobody_is_one_more_arm_of_log_utility_zero(won):
    """A round teaches the same as it would with one more arm, of zero features, among the chosen ones."""
    generator = np.random.default_rng(4)
    policy, source = Newton(d=3, outside=True, seed=0), LiteralNewton(3, 2.0, "contrast")
    for _ in range(30):
        decision = policy.select(generator.uniform(-1.0, 1.0, (6, 3)), 2)
        rows = np.vstack((decision.rows, np.zeros(3)))
        nobody = not won and generator.random() < 0.5
        policy.learn(decision, NoWinner() if nobody else Winner(decision.arms[1]))
        source.learn([2] if nobody else [1], rows)
        np.testing.assert_allclose(policy.theta, source.theta, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(policy.A, source.A, rtol=1e-9)


def test_the_prior_stays_where_no_arm_ever_wins():
    """Features get their part of the prior back in turn: outcomes without a winner count as turns, too."""
    policy = Newton(d=4, precision=2.0, discount=0.95, outside=True, seed=0)
    for _ in range(200):
        policy.learn(policy.select([[1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0]], 2), NoWinner())
    unseen = policy.A.diagonal()[1:]
    assert 2.0 / np.e < unseen.min() <= unseen.max() <= 2.0 + 1e-9


def test_with_an_outside_option_arms_that_always_fail_are_abandoned():
    """Without one the failures of the leader teach nothing, and it stays the leader forever."""
    X, able = np.eye(4), 3
    stays, leaves = (Newton(d=4, mean=[1.0, 0.5, 0.2, 0.0], outside=outside, seed=0) for outside in (False, True))
    for policy in (stays, leaves):
        for _ in range(40):
            decision = policy.select(X, 1)
            policy.learn(decision, Winner(able) if able in decision.arms else NoWinner())
    assert stays.select(X, 1).arms[0] == 0
    assert leaves.select(X, 1).arms[0] == able


@pytest.mark.parametrize("bonus", ["contrast", "arm"])
def test_a_set_of_one_competes_with_nobody(bonus):
    """Its width is that of the contrast with NOBODY, whose features are zero; without an outside option it has none."""
    X = np.random.default_rng(1).uniform(-1.0, 1.0, (6, 3))
    policy, source = Newton(d=3, beta=1.5, bonus=bonus, outside=True, seed=0), LiteralNewton(3, 1.5, "arm")
    for lost in (False, True, False, True, True):
        decision = policy.select(X, 1)
        assert decision.arms.tolist() == np.asarray(source.select(X, 1)).tolist()
        assert decision.widths[0] == pytest.approx(1.5 * source.norms(decision.rows, source.A)[0])
        policy.learn(decision, NoWinner() if lost else Winner(decision.arms[0]))
        source.learn([1] if lost else [0], np.vstack((decision.rows, np.zeros(3))))
    assert Newton(d=3, beta=1.5, seed=0).select(X, 1).widths[0] == 0.0


def find_best(policy, seed, rounds=300):
    """Choose one of four arms that win in 60 to 95 of 100 rounds; return the share of the best in the last half."""
    generator, chances, chosen = np.random.default_rng(seed), (0.6, 0.7, 0.8, 0.95), []
    for _ in range(rounds):
        decision = policy.select(np.eye(4), 1)
        (arm,) = decision.arms
        policy.learn(decision, Winner(arm) if generator.random() < chances[arm] else NoWinner())
        chosen.append(arm == 3)
    return np.mean(chosen[rounds // 2 :])


def test_a_set_of_one_explores():
    """By contrast with the leader there would be no width: the first arm that wins would be chosen for ever."""
    shares = [find_best(Newton(d=4, outside=True, seed=seed), seed) for seed in range(12)]
    assert min(shares) > 0.0
    assert np.mean(shares) > 0.7


def test_a_bare_outcome_teaches_nothing():
    policy = Newton(d=3, outside=True, seed=0)
    policy.learn(policy.select(np.eye(3), 2), Outcome())
    assert not policy.theta.any()


def test_outside_is_true_or_false():
    with pytest.raises(InputError, match="outside is 'yes'; use True or False"):
        Newton(d=2, outside="yes")
