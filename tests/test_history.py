"""Policies on the maximum likelihood of the whole history: UCB-MNL, TS-MNL, CoLSTIM and Epoch-Greedy."""

import fidelity
import numpy as np
import pytest

from preselect import TSMNL, UCBMNL, CoLSTIM, EpochGreedy, Winner, model
from preselect.kernels import history


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
    """Bengs, Saha and Hüllermeier 2022, Algorithm 1, with k - 1 competitors."""

    def __init__(self, d, seed, c_1, threshold):
        super().__init__(d)
        self.generator, self.c_1, self.threshold, self.M = np.random.default_rng(seed), c_1, threshold, np.eye(d)

    def select(self, X, k):
        e = np.minimum(self.threshold, np.maximum(-self.threshold, self.generator.gumbel(size=len(X))))
        i = int(np.argmax(X @ self.theta + e * self.norms(X, self.M)))
        toughness = (X - X[i]) @ self.theta + self.c_1 * self.norms(X - X[i], self.M)
        toughness[i] = -np.inf
        return [i, *self.top(toughness, k - 1)]

    def learn(self, sigma, X_S):
        self.outcomes.append((sigma, X_S))
        self.theta, self.A = self.maximum_likelihood()
        running = list(range(len(X_S)))
        for winner in sigma:
            running.remove(winner)
            for loser in running:
                z = X_S[winner] - X_S[loser]
                self.M = self.M + np.outer(z, z)


@pytest.mark.parametrize("outcome", fidelity.OUTCOMES)
def test_colstim_is_its_source(outcome):
    policy = CoLSTIM(d=4, c_1=0.6, threshold=1.2, seed=3)
    fidelity.agree(policy, LiteralCoLSTIM(4, 3, 0.6, 1.2), outcome, rounds=25, compare=("theta", "M"))


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

    def __init__(self, d, seed, c, precision):
        super().__init__(d, precision=precision)
        self.generator, self.c = np.random.default_rng(seed), c
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
    source = LiteralEpochGreedy(4, 4, 1.7, 0.1)
    fidelity.agree(policy, source, outcome, rounds=60, compare=("theta",))
    assert len(policy.estimate.sizes) == source.epoch > 10


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
    draws = np.concatenate([policy._draw_theta(2000)[:, 0] for _ in range(10)])
    tolerance = 0.05 * deviation  # 20 000 draws, hardly correlated; the Gaussian is off by much more
    assert draws.mean() == pytest.approx(mean, abs=tolerance)
    assert np.std(draws) == pytest.approx(deviation, abs=tolerance)
    assert abs(gaussian_mean - mean) > 3 * tolerance


def test_ts_mnl_takes_the_top_k_of_its_draw():
    policy = TSMNL(d=3, seed=2)
    generator = np.random.default_rng(1)
    for _ in range(30):
        X = generator.random((9, 3))
        decision = policy.select(X, 3)
        assert decision.arms.tolist() == np.argsort(-(X @ policy.draw))[:3].tolist()
        np.testing.assert_allclose(decision.scores, decision.rows @ policy.draw)
        policy.learn(decision, Winner(decision.arms[0]))


def test_the_maximum_is_found_where_plain_newton_would_diverge():
    generator = np.random.default_rng(0)
    rows = 100.0 * generator.normal(size=(60, 3))
    sizes, lengths = np.full(20, 3), np.ones(20, dtype=np.int64)
    prior, estimate = np.stack((np.zeros(3), np.full(3, 1e-3))), np.zeros((7, 3))
    steps = history.maximise_posterior(rows, sizes, lengths, 20, prior, 1e-8, 50, estimate)
    assert 0 < steps < 50
    best = history._log_posterior(rows, sizes, lengths, 20, prior, estimate[0])
    for _ in range(200):
        near = estimate[0] + 0.05 * generator.normal(size=3)
        assert history._log_posterior(rows, sizes, lengths, 20, prior, near) <= best


def test_refitting_less_often_learns_the_same_in_the_end():
    generator = np.random.default_rng(6)
    always, seldom = UCBMNL(d=3, seed=0), UCBMNL(d=3, every=10, seed=0)
    for _ in range(40):
        decision = always.select(generator.random((8, 3)), 3)
        for policy in (always, seldom):
            policy.learn(decision, Winner(decision.arms[0]))
    np.testing.assert_allclose(always.theta, seldom.theta, atol=1e-6)
