"""The paper's formulas, written down literally: the oracle for CPPL, and what `make bench` measures against.

Every line follows the paper's notation and order (Section 5 and Appendix A): utilities by exp, explicit
means S_t and V_t, matrix root by SciPy, operator norm by SVD, one arm at a time. Nothing is shared with the library.
The only addition is the ridge: the paper inverts S_t, which is singular in the first rounds.
"""

import numpy as np
import scipy.linalg


def log_likelihood(theta, sigma, X_S):
    """Eq. (5), and (7) for a winner: sigma lists positions in S, best first, all of it or the first m."""
    total = 0.0
    for i, rest in stages(sigma, len(X_S)):
        total += theta @ X_S[i] - np.log(sum(np.exp(theta @ X_S[j]) for j in rest))
    return total


def stages(sigma, size):
    """(arm placed next, arms still there) for each place of the ranking."""
    rest = list(range(size))
    for i in sigma:
        yield i, list(rest)
        rest.remove(i)


def sums(theta, X_rest):
    """a_i, b_i and c_i of Appendix A for the arms still there."""
    weights = np.exp(X_rest @ theta)
    return weights @ X_rest, weights.sum(), (X_rest.T * weights) @ X_rest


def gradient(theta, sigma, X_S):
    """Appendix A: sum over stages of x - a/b."""
    total = np.zeros(len(theta))
    for i, rest in stages(sigma, len(X_S)):
        a, b, _ = sums(theta, X_S[rest])
        total += X_S[i] - a / b
    return total


def hessian(theta, sigma, X_S):
    """Appendix A: sum over stages of aa'/b^2 - c/b."""
    total = np.zeros((len(theta), len(theta)))
    for _, rest in stages(sigma, len(X_S)):
        a, b, c = sums(theta, X_S[rest])
        total += np.outer(a, a) / b**2 - c / b
    return total


class LiteralCPPL:
    """Algorithm 1."""

    def __init__(self, theta_0, gamma_1, alpha, omega, ridge):
        self.gamma_1, self.alpha, self.omega = gamma_1, alpha, omega
        self.theta_hat = theta_0.copy()  # line 1
        self.theta_bar = theta_0.copy()  # line 2
        self.t = 1
        d = len(theta_0)
        self.hessians = -ridge * np.eye(d)
        self.outer_products = np.zeros((d, d))

    def upper_bounds(self, X):
        """v_hat + c for every arm, with the estimates of the round before."""
        t, d, seen = self.t, len(self.theta_bar), max(self.t - 1, 1)
        S = self.hessians / seen
        V = self.outer_products / seen
        Sigma = np.linalg.inv(S) @ V @ np.linalg.inv(S) / seen
        root = np.real(scipy.linalg.sqrtm(Sigma)) if self.t > 1 else np.zeros((d, d))
        bounds = np.empty(len(X))
        for i, x in enumerate(X):
            v = np.exp(x @ self.theta_bar)
            M = np.exp(2 * x @ self.theta_bar) * np.outer(x, x)
            I = np.linalg.svd(root @ M @ root, compute_uv=False)[0]
            c = self.omega * np.sqrt((2 * np.log(t) + d + 2 * np.sqrt(d * np.log(t))) * I)
            bounds[i] = v + c
        return bounds

    def select(self, X, k):
        """Line 6: the sum is separable, so the best set is the k largest terms."""
        return np.argsort(-self.upper_bounds(X), kind="stable")[:k]

    def learn(self, sigma, X_S):
        """Line 8, then the terms of S_t and V_t at the new average."""
        t = self.t
        self.theta_hat = self.theta_hat + self.gamma_1 * t**-self.alpha * gradient(self.theta_hat, sigma, X_S)
        self.theta_bar = (t - 1) * self.theta_bar / t + self.theta_hat / t
        g = gradient(self.theta_bar, sigma, X_S)
        self.hessians = self.hessians + hessian(self.theta_bar, sigma, X_S)
        self.outer_products = self.outer_products + np.outer(g, g)
        self.t += 1
