"""A policy beside its source's formulas, written down literally: the same choices and estimates in every round."""

import literal
import numpy as np

from preselect import Ranking, Winner

LENGTHS = {"winner": 1, "top-2": 2, "ranking": 3}
OUTCOMES = list(LENGTHS)


def agree(policy, source, outcome, *, rounds=60, n=12, d=4, k=3, compare=()):
    """Play rounds with both; choices and the named arrays must agree in every one. `source` has select and learn.

    Its `generator` is set to that of the policy's next decision.
    """
    generator = np.random.default_rng(5)
    theta = generator.uniform(-2.0, 2.0, d)
    for t in range(rounds):
        X = generator.uniform(-1.0, 1.0, (n, d))
        source.generator = np.random.default_rng(policy.next_seed)
        expected = source.select(X, k)
        decision = policy.select(X, k)
        assert decision.arms.tolist() == list(expected), f"round {t + 1}"
        noisy = decision.rows @ theta + generator.gumbel(size=k)
        sigma = np.argsort(-noisy)[: LENGTHS[outcome]].tolist()
        named = decision.arms[sigma]
        policy.learn(decision, Winner(named[0]) if outcome == "winner" else Ranking(named))
        source.learn(sigma, decision.rows)
        for name in compare:
            np.testing.assert_allclose(getattr(policy, name), getattr(source, name), rtol=1e-6, atol=1e-8)


class LiteralBelief:
    """theta, A and inv(A), and the sums over the outcomes that most sources build on."""

    def __init__(self, d, mean=0.0, precision=1.0):
        self.mean, self.precision = np.full(d, mean), np.full(d, precision)
        self.theta = self.mean.copy()
        self.A = np.diag(self.precision)
        self.outcomes = []

    @property
    def P(self):
        return np.linalg.inv(self.A)

    def top(self, scores, k):
        return np.argsort(-scores, kind="stable")[:k].tolist()

    def norms(self, Z, M):
        """sqrt(z' inv(M) z) for every row z."""
        return np.array([np.sqrt(z @ np.linalg.solve(M, z)) for z in Z])

    def maximum_likelihood(self):
        """Newton's method on the sum of all log-likelihoods and the log prior, from the prior mean to convergence."""
        return maximise(self.mean, np.diag(self.precision), self.outcomes, self.mean, 1e-7)


def maximise(mean, precision, outcomes, theta, tolerance, discount=1.0):
    """Newton's method on Gaussian times likelihoods: theta after the first step below tolerance, in standard
    deviations, and minus the Hessian before it. Steps that lead downhill are halved."""
    weights = [discount ** (len(outcomes) - 1 - t) for t in range(len(outcomes))]

    def value(theta):
        logs = sum(w * literal.log_likelihood(theta, *outcome) for w, outcome in zip(weights, outcomes, strict=True))
        return logs - 0.5 * (theta - mean) @ precision @ (theta - mean)

    while True:
        g, A = precision @ (mean - theta), precision
        for w, outcome in zip(weights, outcomes, strict=True):
            g, A = g + w * literal.gradient(theta, *outcome), A - w * literal.hessian(theta, *outcome)
        step, length = np.linalg.solve(A, g), 1.0
        while value(theta + length * step) < value(theta) - 1e-10 * abs(value(theta)):
            length /= 2
        theta = theta + length * step
        if g @ step <= tolerance**2 and length == 1.0:
            return theta, A


class LiteralOnlineNewton(LiteralBelief):
    """One Newton step per outcome, more if it is long; and fits to the latest outcomes, 4 and more of them apart."""

    def __init__(self, d, discount=1.0, **prior):
        super().__init__(d, **prior)
        self.discount, self.base = discount, (self.theta, self.A)
        self.t, self.fitted, self.due = 0, 0, 4

    def learn(self, sigma, X_S):
        self.t += 1
        if self.discount < 1.0:
            self.fade()
        self.step(sigma, X_S)
        self.outcomes.append((sigma, X_S.copy()))
        if len(self.outcomes) == self.due:
            self.fit()

    def step(self, sigma, X_S):
        A = self.A - literal.hessian(self.theta, sigma, X_S)
        moved = np.linalg.solve(A, literal.gradient(self.theta, sigma, X_S))
        if np.ptp(X_S @ moved) <= 2.0 and len(X_S) <= len(self.theta):
            self.theta, self.A = self.theta + moved, A
        else:
            self.theta, self.A = maximise(self.theta, self.A, [(sigma, X_S)], self.theta, 0.1)

    def fit(self):
        (theta, A), left = self.base, self.discount ** len(self.outcomes)
        prior = np.diag((1 - left) * self.precision)
        mean = np.linalg.solve(left * A + prior, left * A @ theta + prior @ self.mean)
        self.theta, self.A = maximise(mean, left * A + prior, self.outcomes, self.theta, 0.1, self.discount)
        memory = self.t if self.discount == 1.0 else min(self.t, 1 / (1 - self.discount))
        self.fitted, self.due = len(self.outcomes), len(self.outcomes) + max(4, int(memory / 3))

    def fade(self):
        """0.7 of four features: two have their turn in a round, and lose 0.7^2 between turns. A fit restores all."""
        lost, g = 1.0 - self.discount ** min(2, len(self.outcomes) - self.fitted + 1), np.zeros(4)
        self.A = self.discount * self.A
        for a in ((0, 1), (2, 3))[self.t % 2]:
            self.A[a, a] += lost * self.precision[a]
            g[a] = lost * self.precision[a] * (self.mean[a] - self.theta[a])
        self.theta = self.theta + np.linalg.solve(self.A, g)
