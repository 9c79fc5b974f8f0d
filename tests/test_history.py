"""Policies on the maximum likelihood of the whole history: UCB-MNL, TS-MNL, CoLSTIM and Epoch-Greedy."""

import fidelity
import numpy as np
import pytest

from preselect import TSMNL, UCBMNL, CoLSTIM, Decision, EpochGreedy, InputError, Winner, model
from preselect.kernels import history
from preselect.kernels.types import NOT_FINITE


class LiteralUCBMNL(fidelity.LiteralBelief):
    """Oh and Iyengar 2021, Algorithm 1, with equal revenues and no outside option."""

    def __init__(self, d, kappa, precision):
        super().__init__(d, precision=precision)
        self.kappa, self.V, self.t = kappa, precision * np.eye(d), 1

    def select(self, X, k):
        d, t = X.shape[1], self.t
        alpha = 1 / (2 * self.kappa) * np.sqrt(2 * d * np.log(1 + t / d) + 2 * np.log(t))
        return self.top(X @ self.theta + alpha * self.norms(X, self.V), k)

    def learn(self, sigma, X_S):
        self.outcomes.append((sigma, X_S))
        self.theta, self.A = self.maximum_likelihood()
        self.V = self.V + X_S.T @ X_S
        self.t += 1


@pytest.mark.parametrize("outcome", fidelity.OUTCOMES)
def test_ucb_mnl_is_its_source(outcome):
    policy = UCBMNL(d=4, kappa=0.4, precision=1.5, seed=0)
    fidelity.agree(policy, LiteralUCBMNL(4, 0.4, 1.5), outcome, rounds=25, compare=("theta", "V"))
    np.testing.assert_allclose(policy.V @ policy.V_inverse, np.eye(4), atol=1e-10)


class LiteralCoLSTIM(fidelity.LiteralBelief):
    """Bengs, Saha and Hüllermeier 2022, Algorithm 1, with k - 1 competitors; lines by their numbers.

    c_1, C_thresh and p_t are numbers or functions of t.
    """

    def __init__(self, d, c_1, C_thresh, p):
        super().__init__(d)
        self.inputs = (c_1, C_thresh, p)
        self.M, self.t, self.B = np.eye(d), 1, []

    def select(self, X, k):
        c_1, C_thresh, p_t = (value(self.t) if callable(value) else value for value in self.inputs)
        B_t = 1 if p_t >= 1 else int(self.generator.random() < p_t)  # line 7: Ber(p_t)
        e = [self.generator.gumbel() for _ in (X if B_t == 1 else [0])]  # lines 8 to 12: one for each arm, or for all
        e = e if B_t == 1 else e * len(X)
        e = np.array([min(C_thresh, max(-C_thresh, e_i)) for e_i in e])  # line 13
        i_t = int(np.argmax(X @ self.theta + e * self.norms(X, self.M)))  # line 14
        z = X - X[i_t]
        toughness = z @ self.theta + c_1 * self.norms(z, self.M)  # line 15
        toughness[i_t] = -np.inf
        self.B.append(B_t)
        return [i_t, *self.top(toughness, k - 1)]

    def learn(self, sigma, X_S):
        self.outcomes.append((sigma, X_S))
        self.theta, self.A = self.maximum_likelihood()  # line 6 of the next round
        running = list(range(len(X_S)))
        for winner in sigma:
            running.remove(winner)
            for loser in running:
                z = X_S[winner] - X_S[loser]
                self.M = self.M + np.outer(z, z)  # line 16
        self.t += 1


@pytest.mark.parametrize("outcome", fidelity.OUTCOMES)
def test_colstim_is_its_source(outcome):
    policy = CoLSTIM(d=4, c_1=0.6, threshold=1.2, p=0.5, seed=3)
    source = LiteralCoLSTIM(4, 0.6, 1.2, 0.5)
    fidelity.agree(policy, source, outcome, rounds=25, compare=("theta", "M"))
    assert 5 < sum(source.B) < 20  # both kinds of perturbation are played


def test_colstim_has_its_sources_schedules_by_default():
    """With one feature p_t is below 1 from the start; with three it is 1 for hundreds of rounds."""
    for d, rounds in ((1, 40), (3, 15)):
        root = lambda t, d=d: np.sqrt(d * np.log(t + 1))  # noqa: E731
        source = LiteralCoLSTIM(d, root, root, lambda t, d=d: d * np.log(d * (t + 1)) / np.sqrt(t))
        fidelity.agree(CoLSTIM(d=d, seed=8), source, "winner", rounds=rounds, d=d, compare=("theta", "M"))
        assert 5 < sum(source.B) < 35 if d == 1 else all(source.B)


def test_colstim_shares_perturbations_more_and_more_often():
    policy, generator = CoLSTIM(d=2, seed=0), np.random.default_rng(0)
    for t in (400, 4000):
        policy.observations = t - 1
        apart = np.mean([len(set(policy._perturb(3, generator).tolist())) > 1 for _ in range(3000)])
        assert apart == pytest.approx(2 * np.log(2 * (t + 1)) / np.sqrt(t), abs=4 * np.sqrt(0.25 / 3000))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_a_shared_perturbation_never_lets_the_middle_arm_lead(p):
    """With theta = 0 and norms 1, 2, 3 the sign of a shared perturbation decides: the longest arm or the shortest."""
    policy = CoLSTIM(d=3, p=p, threshold=50.0, seed=5)
    leads = np.zeros(3)
    for _ in range(4000):
        leads[policy.select(np.diag([1.0, 2.0, 3.0]), 2).arms[0]] += 1 / 4000
    e = np.random.default_rng(0).gumbel(size=(200_000, 3)) * [1.0, 2.0, 3.0]
    apart = np.bincount(e.argmax(axis=1), minlength=3) / 200_000
    shared = np.array([np.exp(-1), 0.0, 1 - np.exp(-1)])  # a Gumbel number is negative with probability 1/e
    np.testing.assert_allclose(leads, p * apart + (1 - p) * shared, atol=4 * np.sqrt(0.25 / 4000))
    assert (leads[1] == 0.0) == (p == 0.0)


def test_colstim_for_two_arms_is_a_duel_under_the_logistic_model():
    policy = CoLSTIM(d=2, precision=1e-9, seed=0)
    wins = 0
    for t in range(40):
        decision = policy.select([[1.0, 0.0], [0.0, 0.0]], 2)
        winner = int(t % 4 == 0)
        wins += winner == 0
        policy.learn(decision, Winner(winner))
    assert policy.theta[0] == pytest.approx(np.log(wins / (40 - wins)), rel=1e-6)


class LiteralEpochGreedy(fidelity.LiteralBelief):
    """Langford and Zhang 2007: explore once, then exploit floor(c sqrt(l)) times what the exploring rounds taught."""

    def __init__(self, d, c, precision):
        super().__init__(d, precision=precision)
        self.c = c
        self.epoch, self.left = 0, 0

    def select(self, X, k):
        if self.left:
            self.left -= 1
            self.exploring = False
            return self.top(X @ self.theta, k)
        self.epoch += 1
        self.left = max(1, int(self.c * np.sqrt(self.epoch)))
        self.exploring = True
        arms = self.generator.permutation(len(X))[:k]
        return arms[np.argsort(-(X @ self.theta)[arms], kind="stable")].tolist()

    def learn(self, sigma, X_S):
        if self.exploring:
            self.outcomes.append((sigma, X_S))
            self.theta, self.A = self.maximum_likelihood()


@pytest.mark.parametrize("outcome", fidelity.OUTCOMES)
def test_epoch_greedy_is_its_source(outcome):
    policy = EpochGreedy(d=4, c=1.7, precision=0.1, seed=4)
    source = LiteralEpochGreedy(4, 1.7, 0.1)
    fidelity.agree(policy, source, outcome, rounds=60, compare=("theta",))
    assert len(policy.estimate.history.arrays()["sizes"]) == source.epoch > 10


def test_ts_mnl_draws_from_the_posterior_itself():
    """In one dimension the posterior is known by quadrature, and after few outcomes it is not Gaussian."""
    policy = TSMNL(d=1, precision=0.05, seed=0)
    x = np.array([[2.0], [0.0], [-1.0]])
    for _ in range(3):
        decision = policy.select(x, 3)
        policy.learn(decision, Winner(0))
    grid = np.linspace(-10.0, 30.0, 20_001)
    logs = np.array([3 * model.log_likelihood(x[:, 0] * theta, [0]) for theta in grid]) - 0.5 * 0.05 * grid**2
    density = np.exp(logs - logs.max())
    density /= density.sum()
    mean, gaussian_mean = density @ grid, policy.theta[0]
    deviation = np.sqrt(density @ (grid - mean) ** 2)
    draws = np.concatenate(
        [policy._draw_theta(2000, np.random.default_rng(i), policy.draw.copy())[:, 0] for i in range(10)]
    )
    tolerance = 0.05 * deviation  # 20 000 draws, hardly correlated; the Gaussian is off by much more
    assert draws.mean() == pytest.approx(mean, abs=tolerance)
    assert np.std(draws) == pytest.approx(deviation, abs=tolerance)
    assert abs(gaussian_mean - mean) > 3 * tolerance


def test_ts_mnl_corrects_for_the_tails_of_its_proposals_in_many_dimensions():
    """Without outcomes the posterior is the prior: |theta|^2 has mean d and variance 2 d, whatever is proposed."""
    policy = TSMNL(d=6, seed=0)
    squares = (policy._draw_theta(4000, np.random.default_rng(0), policy.draw.copy()) ** 2).sum(axis=1)
    assert squares.mean() == pytest.approx(6.0, abs=0.25)  # 4000 draws, hardly correlated: the error is about 0.06
    assert squares.var() == pytest.approx(12.0, abs=2.0)


def test_ts_mnl_takes_the_top_k_of_its_draw():
    policy = TSMNL(d=3, seed=2)
    generator = np.random.default_rng(1)
    for _ in range(30):
        X = generator.random((9, 3))
        drawn = policy._draw_theta(1, np.random.default_rng(policy.next_seed), policy.draw.copy())[0]
        decision = policy.select(X, 3)
        assert decision.arms.tolist() == np.argsort(-(X @ drawn))[:3].tolist()
        np.testing.assert_allclose(decision.scores, decision.rows @ drawn)
        policy.learn(decision, Winner(decision.arms[0]))


def test_the_posterior_is_the_sum_of_its_parts():
    generator = np.random.default_rng(1)
    sizes, lengths = np.array([3, 5, 4]), np.array([1, 3, 4])
    rows, offsets, theta = (generator.normal(size=size) for size in ((12, 2), 12, 2))
    base = np.array([[0.5, -1.0], [2.0, 0.7], [0.7, 3.0]])
    expected = -0.5 * (theta - base[0]) @ base[1:] @ (theta - base[0])
    for age, part, length in zip((2, 1, 0), np.split(rows @ theta + offsets, [3, 8]), lengths, strict=True):
        expected += 0.9**age * model.log_likelihood(part, range(length))
    assert history._log_posterior(rows, offsets, sizes, lengths, None, 3, base, 0.9, theta) == pytest.approx(
        expected, rel=1e-12
    )


def test_the_estimate_is_drawn_to_the_mean_of_the_prior():
    policy = TSMNL(d=3, mean=[1.0, -1.0, 0.5], precision=[4.0, 1.0, 2.0], seed=0)
    generator = np.random.default_rng(2)
    slope = np.zeros(3)
    decisions = [policy.select(generator.normal(size=(6, 3)), 3) for _ in range(20)]
    for decision in decisions:
        policy.learn(decision, Winner(decision.arms[1]))
    for decision in decisions:
        slope += model.gradient(decision.rows, policy.theta, [1])
    np.testing.assert_allclose(slope, policy.precision * (policy.theta - policy.mean), atol=1e-6)


def test_the_maximum_is_found_where_plain_newton_would_diverge():
    generator = np.random.default_rng(0)
    rows = 100.0 * generator.normal(size=(60, 3))
    offsets, sizes, lengths = generator.normal(size=60), np.full(20, 3), np.ones(20, dtype=np.int64)
    prior, estimate = np.vstack((np.zeros(3), 1e-3 * np.eye(3))), np.zeros((7, 3))
    steps = history.maximise_posterior(rows, offsets, sizes, lengths, None, 20, prior, 1.0, 1e-8, 50, estimate)
    assert 0 < steps < 50
    best = history._log_posterior(rows, offsets, sizes, lengths, None, 20, prior, 1.0, estimate[0])
    for _ in range(200):
        near = estimate[0] + 0.05 * generator.normal(size=3)
        assert history._log_posterior(rows, offsets, sizes, lengths, None, 20, prior, 1.0, near) <= best


def test_refitting_less_often_learns_the_same_in_the_end():
    generator = np.random.default_rng(6)
    always, seldom = UCBMNL(d=3, seed=0), UCBMNL(d=3, every=10, seed=0)
    for _ in range(40):
        decision = always.select(generator.random((8, 3)), 3)
        for policy in (always, seldom):
            policy.learn(decision, Winner(decision.arms[0]))
    np.testing.assert_allclose(always.theta, seldom.theta, atol=1e-6)


@pytest.mark.parametrize("make", [UCBMNL, CoLSTIM])
@pytest.mark.parametrize("failing", ["Gram matrix", "likelihood"])
def test_an_outcome_is_learnt_by_both_estimators_or_by_none(make, failing, monkeypatch):
    """The squares of these rows overflow, and the likelihood takes them all the same; then the other way round."""
    policy = make(d=2, seed=0)
    decision = policy.select([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], 2)
    policy.learn(decision, Winner(decision.arms[0]))
    before = {name: value.copy() for name, value in policy._arrays().items()}
    rows = np.array([[1e154, 0.0], [-1e154, 1e154]] if failing == "Gram matrix" else [[1.0, 0.0], [0.0, 2.0]])
    with monkeypatch.context() as patch:
        if failing == "likelihood":
            patch.setattr(policy.estimate, "learn", lambda *_: NOT_FINITE)
        with pytest.raises(InputError, match="nothing was learnt; scale the features"):
            policy.learn(Decision(np.arange(2), np.zeros(4), rows, np.arange(2), 2), Winner(1))
    assert policy.observations == 1
    for name, value in policy._arrays().items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    policy.learn(decision, Winner(decision.arms[1]))  # and it goes on
    assert policy.observations == policy.estimate.history.outcomes == 2


@pytest.mark.parametrize("make", [UCBMNL, CoLSTIM, TSMNL])
def test_rows_that_cannot_be_fitted_are_refused_before_the_fit_is_due(make):
    policy = make(d=2, every=4, seed=0)
    decision = policy.select([[1.0, 0.0], [0.0, 1.0]], 2)
    huge = Decision(np.arange(2), np.zeros(4), np.array([[1e160, 0.0], [0.0, 1.0]]), np.arange(2), 2)
    policy.learn(decision, Winner(0))
    with pytest.raises(InputError, match="nothing was learnt"):
        policy.learn(huge, Winner(1))
    for _ in range(7):
        policy.learn(decision, Winner(0))
    assert policy.theta[0] > 0.5
    assert policy.observations == policy.estimate.history.outcomes == 8


def test_trying_an_outcome_early_does_not_move_the_estimate_before_its_time():
    policy = UCBMNL(d=2, every=3, seed=0)
    for size in (1.0, 10.0):
        policy.learn(policy.select([[size, 0.0], [0.0, size]], 2), Winner(0))
        np.testing.assert_array_equal(policy.theta, [0.0, 0.0])
    policy.learn(policy.select([[1.0, 0.0], [0.0, 1.0]], 2), Winner(0))
    assert policy.theta[0] > 0.0
