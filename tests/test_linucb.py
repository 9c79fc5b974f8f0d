"""LinUCB against the formulas of its source: A, b, theta = inv(A) b, and the bound."""

import fidelity
import numpy as np
import pytest

from preselect import LinUCB, Winner


class LiteralLinUCB(fidelity.LiteralBelief):
    def __init__(self, d, alpha, precision):
        super().__init__(d, precision=precision)
        self.alpha, self.b = alpha, np.zeros(d)

    def select(self, X, k):
        return self.top(X @ self.theta + self.alpha * self.norms(X, self.A), k)

    def learn(self, sigma, X_S):
        for place, x in enumerate(X_S):
            self.A = self.A + np.outer(x, x)
            self.b = self.b + (1.0 if place == sigma[0] else 0.0) * x
        self.theta = np.linalg.solve(self.A, self.b)


@pytest.mark.parametrize("outcome", fidelity.OUTCOMES)
def test_choices_and_estimates_are_those_of_the_formulas(outcome):
    policy = LinUCB(d=4, alpha=0.7, precision=1.5, seed=0)
    fidelity.agree(policy, LiteralLinUCB(4, 0.7, 1.5), outcome, compare=("theta", "A", "P", "b"))


def test_now_and_then_the_inverse_is_computed_anew():
    policy, generator = LinUCB(d=6, seed=0), np.random.default_rng(0)
    assert policy.estimate.refresh_every == 256
    policy.estimate.refresh_every = 5
    for t in range(1, 11):
        policy.P[:] *= 1.01  # what rounding would do in the end
        decision = policy.select(generator.random((8, 6)), 3)
        policy.learn(decision, Winner(decision.arms[0]))
        error = np.abs(policy.P @ policy.A - np.eye(6)).max()
        assert error < 1e-10 if t % 5 == 0 else error > 1e-3
