"""OFU-MNL+ against the formulas of its source: mirror descent with projection, H at the new point, the radius."""

import fidelity
import literal
import numpy as np
import pytest
import scipy.optimize

from preselect import OFUMNL


class LiteralOFUMNL(fidelity.LiteralBelief):
    """Lee and Oh 2024, Algorithm 1, with equal revenues and K outcomes instead of K + 1."""

    def __init__(self, d, K, lam, scale, bound, delta):
        super().__init__(d, precision=lam)
        self.K, self.lam, self.scale, self.bound, self.delta = K, lam, scale, bound, delta
        self.eta = 0.5 * np.log(K) + bound + 1
        self.t = 1
        self.projections = 0

    def select(self, X, k):
        return self.top(X @ self.theta + self.scale * self.beta() * self.norms(X, self.A), k)

    def beta(self):
        t, lam, eta, d = self.t, self.lam, self.eta, len(self.theta)
        log = np.log(2 * np.sqrt(1 + 2 * t) / self.delta)
        return np.sqrt(
            2 * eta * (
                (3 * np.log(1 + self.K * t) + 3) * (17 / 16 * lam + 2 * np.sqrt(lam) * log + 16 * log**2)
                + 2
                + np.sqrt(6) * 7 / 6 * eta * d * np.log(1 + (t + 1) / (2 * lam))
            )
            + lam * (2 * self.bound)**2  # lambda |w - w_1|^2, both in the ball; their 4 lambda has bound = 1
        )  # fmt: skip

    def learn(self, sigma, X_S):
        g = literal.gradient(self.theta, sigma, X_S)
        H_tilde = self.A - self.eta * literal.hessian(self.theta, sigma, X_S)

        def loss(w):
            return -g @ w + (w - self.theta) @ H_tilde @ (w - self.theta) / (2 * self.eta)

        def slope(w):
            return -g + H_tilde @ (w - self.theta) / self.eta

        w = self.theta + self.eta * np.linalg.solve(H_tilde, g)
        if np.linalg.norm(w) > self.bound:
            self.projections += 1
            inside = {"type": "ineq", "fun": lambda w: self.bound**2 - w @ w, "jac": lambda w: -2 * w}
            w = scipy.optimize.minimize(
                loss, w * self.bound / np.linalg.norm(w), jac=slope, constraints=[inside], method="SLSQP", tol=1e-14
            ).x
        self.theta = w
        self.A = self.A - literal.hessian(self.theta, sigma, X_S)
        self.t += 1


@pytest.mark.parametrize("outcome", fidelity.OUTCOMES)
@pytest.mark.parametrize("bound", [3.0, 0.4])
def test_choices_and_estimates_are_those_of_the_formulas(bound, outcome):
    policy = OFUMNL(d=4, K=3, precision=1.5, scale=0.01, bound=bound, delta=0.1, seed=0)
    source = LiteralOFUMNL(4, 3, 1.5, 0.01, bound, 0.1)
    fidelity.agree(policy, source, outcome, compare=("theta", "A", "P"))
    assert source.projections < 60 if bound == 3.0 else source.projections > 10  # both branches are played


def test_the_constants_are_the_papers():
    policy = OFUMNL(d=4, K=3, bound=1.0, seed=0)
    assert policy.eta == pytest.approx(0.5 * np.log(3) + 2)
    assert policy.A[0, 0] == pytest.approx(84 * np.sqrt(2) * policy.eta * 4)
    assert policy._width()[1] == policy.radius(1)


@pytest.mark.parametrize("bound", [0.5, 1.0, 3.0])
def test_the_radius_is_the_papers_and_grows_with_the_ball(bound):
    policy, source = OFUMNL(d=4, K=3, bound=bound, seed=0), LiteralOFUMNL(4, 3, 0.0, 1.0, bound, 0.05)
    source.lam = policy.A[0, 0]
    for source.t in (1, 10, 1000):
        assert policy.radius(source.t) == pytest.approx(source.beta(), rel=1e-12)
