"""OFU-MNL+ (Lee and Oh 2024, Algorithm 1): optimism with an online mirror descent estimate."""

import math

import numpy as np
from numpy.typing import NDArray

from preselect import model
from preselect.arguments import integer, number
from preselect.context import Floats
from preselect.decision import Decision
from preselect.kernels import learning
from preselect.kernels.types import OK, PLAIN
from preselect.policies.gaussian import GaussianPolicy
from preselect.policies.linear import Width, refuse_decision


class OFUMNL(GaussianPolicy):
    """Upper confidence bounds x'w + beta_t sqrt(x' inv(H) x), with w moved by one mirror descent step per outcome.

    With G(w) minus the Hessian of the round's log-likelihood and g its gradient, a round does
        w_{t+1} = argmin over |w| <= bound of -g(w_t)'w + |w - w_t|^2 in the norm of H_t + eta G(w_t), over 2 eta,
        H_{t+1} = H_t + G(w_{t+1}),
    that is, a step to w_t + eta inv(H_t + eta G(w_t)) g(w_t) and, if need be, a projection. H starts at lambda I.
    Constants of the paper: eta = log(K + 1) / 2 + bound + 1, lambda = 84 sqrt(2) eta d, and beta_t of `radius`. They
    are made for a proof and explore for a very long time; `precision` sets another lambda, `scale` multiplies beta_t.

    Adapted: their customer may choose nothing (an outside option) and items have revenues; here one of the k arms wins,
    so there are K outcomes where they have K + 1, and all revenues are equal, for which their best assortment is the
    top k by the bound. They assume |w| <= 1; `bound` says otherwise, and is sqrt(d) unless given, which holds for
    weights between -1 and 1. K is the number of arms that are chosen in a round.

    >>> policy = OFUMNL(d=2, K=2, seed=0)
    >>> round(policy.eta, 3)
    2.761
    """

    source = "Lee and Oh 2024"

    def __init__(
        self,
        *,
        d: int,
        K: int = 5,
        precision: float | None = None,
        scale: float = 1.0,
        bound: float | None = None,
        delta: float = 0.05,
        seed: int | None = None,
    ) -> None:
        self.K = integer(K, "K", 1)
        limit = math.sqrt(integer(d, "d", 1)) if bound is None else number(bound, "bound", above=0.0)
        self.eta = 0.5 * math.log(self.K) + limit + 1.0
        lam = 84.0 * math.sqrt(2.0) * self.eta * d if precision is None else number(precision, "precision", above=0.0)
        super().__init__(d=d, mean=0.0, precision=lam, seed=seed)
        self.precision = None if precision is None else lam  # type: ignore[assignment]
        self.bound = bound
        self.scale = number(scale, "scale", least=0.0)
        self.delta = number(delta, "delta", above=0.0, most=1.0)
        self._lambda, self._limit = lam, limit
        self._refresh_every = max(256, self.d)

    def radius(self, t: int) -> float:
        """beta_t, the radius of the confidence set after t - 1 outcomes (Lemma 1)."""
        log_term = math.log(2.0 * math.sqrt(1.0 + 2.0 * t) / self.delta)
        lam, eta = self._lambda, self.eta
        first = (3.0 * math.log(1.0 + self.K * t) + 3.0) * (
            17.0 / 16.0 * lam + 2.0 * math.sqrt(lam) * log_term + 16.0 * log_term**2
        )
        second = math.sqrt(6.0) * 7.0 / 6.0 * eta * self.d * math.log(1.0 + (t + 1.0) / (2.0 * lam))
        return math.sqrt(2.0 * eta * (first + 2.0 + second) + 4.0 * lam)

    def _width(self) -> Width:
        return self.P, self.scale * self.radius(self.observations + 1), PLAIN

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        rows = decision.rows
        w = learning.mirror_step(rows, ranking, self.eta, self._estimate)
        if np.linalg.norm(w) > self._limit:
            w = self._projected(w, decision, ranking)
        if learning.learn_curvature(rows, ranking, w, self._estimate) != OK:
            refuse_decision(decision, self._estimate)
        if (self.observations + 1) % self._refresh_every == 0:
            self._refresh()

    def _projected(self, w: Floats, decision: Decision, ranking: NDArray[np.int64]) -> Floats:
        """The point of the ball nearest to w in the norm of H + eta G(w_t)."""
        curvature = model.curvature(decision.rows, self.theta, ranking)
        values, vectors = np.linalg.eigh(self.A + self.eta * curvature)
        nearest: Floats = vectors @ _nearest(vectors.T @ w, values, self._limit)
        return nearest


def _nearest(w: Floats, weights: Floats, limit: float) -> Floats:
    """The v with |v| = limit and least sum of weights (v - w)^2; it is w weights / (weights + mu), mu by bisection."""
    low, high = 0.0, weights.max() * np.linalg.norm(w) / limit
    for _ in range(100):
        mu = 0.5 * (low + high)
        if np.linalg.norm(w * weights / (weights + mu)) > limit:
            low = mu
        else:
            high = mu
    nearest: Floats = w * weights / (weights + high)
    return nearest
