"""A policy beside its source's formulas, written down literally: the same choices and estimates in every round."""

import literal
import numpy as np

from preselect import Ranking, Winner

LENGTHS = {"winner": 1, "top-2": 2, "ranking": 3}
OUTCOMES = list(LENGTHS)


def agree(policy, source, outcome, *, rounds=60, n=12, d=4, k=3, compare=()):
    """Play rounds with both; choices and the named arrays must agree in every one. `source` has select and learn."""
    generator = np.random.default_rng(5)
    theta = generator.uniform(-2.0, 2.0, d)
    for t in range(rounds):
        X = generator.uniform(-1.0, 1.0, (n, d))
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
        theta, step = self.mean.copy(), np.inf
        while np.abs(step).max() > 1e-12:
            g = self.precision * (self.mean - theta)
            H = -np.diag(self.precision)
            for sigma, X_S in self.outcomes:
                g = g + literal.gradient(theta, sigma, X_S)
                H = H + literal.hessian(theta, sigma, X_S)
            step = np.linalg.solve(-H, g)
            theta = theta + step / max(1.0, np.abs(step).max())  # far away, Newton's step may be too long
        return theta, -H
