"""Thompson sampling: joint draws from the belief, one for all slots or one per slot."""

import fidelity
import numpy as np
import pytest
from test_newton import LiteralNewton

from preselect import Newton, Thompson, Winner
from preselect.context import as_context


class LiteralThompson(LiteralNewton):
    """Learns as Newton; draws theta as mean + L z with LL' = P."""

    def __init__(self, d, seed, draws, scale):
        super().__init__(d, 0.0, "arm", mean=0.3, precision=2.0)
        self.generator, self.draws, self.scale = np.random.default_rng(seed), draws, scale

    def select(self, X, k):
        L = np.linalg.cholesky(self.P)
        z = self.generator.standard_normal((1 if self.draws == "one" else k, len(self.theta)))
        drawn = [X @ (self.theta + self.scale * L @ row) for row in z]
        if self.draws == "one":
            return self.top(drawn[0], k)
        chosen = []
        for utilities in drawn:
            utilities[chosen] = -np.inf
            chosen.append(int(utilities.argmax()))
        return chosen


@pytest.mark.parametrize("outcome", fidelity.OUTCOMES)
@pytest.mark.parametrize("draws", ["one", "slot"])
def test_choices_and_estimates_are_those_of_the_formulas(draws, outcome):
    policy = Thompson(d=4, draws=draws, scale=0.8, mean=0.3, precision=2.0, seed=9)
    fidelity.agree(policy, LiteralThompson(4, 9, draws, 0.8), outcome, compare=("theta", "A", "P"))


def test_draws_are_joint_over_the_arms():
    """Two arms with equal features always have equal draws; draws per arm would part them."""
    policy = Thompson(d=3, seed=0)
    X = np.array([[1.0, 0.5, 0.0], [1.0, 0.5, 0.0], [0.0, 1.0, 1.0]])
    for _ in range(20):
        decision = policy.select(X, 3)
        scores = dict(zip(decision.arms.tolist(), decision.scores, strict=True))
        assert scores[0] == scores[1]
        assert np.allclose(decision.scores - decision.widths, decision.rows @ policy.theta)


@pytest.mark.parametrize("n", [2, 9])  # drawn in the space of the arms, and of theta
def test_draws_have_the_mean_and_covariance_of_the_belief(n):
    policy = Thompson(d=3, precision=[1.0, 2.0, 4.0], seed=1)
    generator = np.random.default_rng(0)
    for _ in range(30):
        decision = policy.select(generator.random((8, 3)), 3)
        policy.learn(decision, Winner(decision.arms[0]))
    X = generator.random((n, 3))
    draws, expected = (
        policy._draw(as_context(X, 3), X @ policy.theta, 40_000, np.random.default_rng(0)),
        X @ policy.P @ X.T,
    )
    assert np.abs(draws.mean(axis=1) - X @ policy.theta).max() < 4 * np.sqrt(expected.max() / 40_000)
    assert np.abs(np.cov(draws) - expected).max() < 5 * np.sqrt(2 / 40_000) * expected.max()


def test_without_spread_it_is_greedy():
    thompson, greedy = Thompson(d=4, scale=0.0, mean=0.1, seed=0), Newton(d=4, beta=0.0, mean=0.1, seed=0)
    generator = np.random.default_rng(3)
    for _ in range(50):
        X = generator.random((10, 4))
        one, other = thompson.select(X, 3), greedy.select(X, 3)
        assert one.arms.tolist() == other.arms.tolist()
        thompson.learn(one, Winner(one.arms[1]))
        greedy.learn(other, Winner(other.arms[1]))
