"""OFU-MNL+ (Lee and Oh 2024, Algorithm 1): optimism with an online mirror descent estimate."""

from __future__ import annotations

import math

import numpy as np

from preselect.arguments import integer, number
from preselect.context import Floats, Integers
from preselect.kernels import learning, likelihood
from preselect.kernels.types import PLAIN
from preselect.policies.estimators import Gaussian
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy, Width
from preselect.scaling import Change


class _MirrorDescent(Gaussian):
    """One step of online mirror descent per outcome, within |w| <= limit; w is theta and H is A."""

    def __init__(self, d: int, *, precision: float, eta: float, limit: float) -> None:
        super().__init__(d, mean=0.0, precision=precision)
        self.eta, self.limit = eta, limit

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:  # noqa: ARG002
        w = learning.mirror_step(rows, ranking, self.eta, self.block)
        if np.linalg.norm(w) > self.limit:
            w = self._project(w, rows, ranking)
        return learning.learn_curvature(rows, ranking, w, self.block)

    def transform(self, change: Change, t: int) -> None:
        w = change.map_weights(self.theta)  # not in proportion to H: steps are longer than Newton's
        super().transform(change, t)
        self.theta[:] = w * min(1.0, self.limit / max(float(np.linalg.norm(w)), self.limit))

    def _project(self, w: Floats, rows: Floats, ranking: Integers) -> Floats:
        """Return the point of the ball nearest to w in the norm of H + eta G(w_t)."""
        ranked = likelihood.rank_rows(rows, ranking)
        _, F = likelihood.differentiate(ranked, likelihood.utilities(ranked, self.theta), ranking)
        values, vectors = np.linalg.eigh(self.A + self.eta * (F.T @ F))
        nearest: Floats = vectors @ _find_nearest(vectors.T @ w, values, self.limit)
        return nearest


class OFUMNL(LinearPolicy):
    """Upper confidence bounds x'w + beta_t sqrt(x' inv(H) x), with w moved by one mirror descent step per outcome.

    With G(w) minus the Hessian of the round's log-likelihood and g its gradient, a round does

        w_{t+1} = argmin over |w| <= bound of -g(w_t)'w + |w - w_t|^2 in the norm of H_t + eta G(w_t), over 2 eta,
        H_{t+1} = H_t + G(w_{t+1}),

    that is, a step to w_t + eta inv(H_t + eta G(w_t)) g(w_t) and, if need be, a projection. H starts at lambda I.
    The constants are the paper's: eta = log(K + 1) / 2 + bound + 1, lambda = 84 sqrt(2) eta d, and beta_t as in
    `radius`. They are made for a proof and explore for a very long time. The paper prints eta and beta_t for bound = 1.

    Adapted: the paper's customer may choose nothing (an outside option), and items have revenues. Here one of the k
    arms wins, so there are K outcomes instead of K + 1; and revenues are equal, so that the best assortment is the top
    k by the bound.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    K : int, default 5
        The number of arms chosen in a round.
    precision : float, optional
        lambda, above 0: H starts at this multiple of the identity. By default the paper's constant.
    scale : float, default 1.0
        Multiplies beta_t, at least 0; smaller values explore less.
    bound : float, optional
        The largest length of w, above 0. The paper assumes 1; the default is sqrt(d), which holds for weights from -1
        to 1.
    delta : float, default 0.05
        The probability, above 0, that the confidence sets fail.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = OFUMNL(d=2, K=2, seed=0)
    >>> round(policy.eta, 3)
    2.761
    """

    source = "Lee and Oh 2024"
    estimate: _MirrorDescent
    A, P = Part(), Part()

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
        super().__init__(d=d, seed=seed)
        self.K = integer(K, "K", 1)
        self.bound = None if bound is None else number(bound, "bound", above=0.0)
        self.precision = None if precision is None else number(precision, "precision", above=0.0)
        self.scale = number(scale, "scale", least=0.0)
        self.delta = number(delta, "delta", above=0.0, most=1.0)
        self._limit = math.sqrt(self.d) if self.bound is None else self.bound
        self.eta = 0.5 * math.log(self.K) + self._limit + 1.0
        self._lambda = 84.0 * math.sqrt(2.0) * self.eta * self.d if self.precision is None else self.precision
        self.estimate = _MirrorDescent(self.d, precision=self._lambda, eta=self.eta, limit=self._limit)

    def radius(self, t: int) -> float:
        """Return beta_t, the radius of the confidence set after t - 1 outcomes (Lemma 1).

        Its last term bounds lambda |w - w_1|^2 over two points of the ball; with bound = 1 it is the paper's 4 lambda.
        """
        t = integer(t, "t", 1)
        log_term = math.log(2.0 * math.sqrt(1.0 + 2.0 * t) / self.delta)
        lam, eta = self._lambda, self.eta
        first = (3.0 * math.log(1.0 + self.K * t) + 3.0) * (
            17.0 / 16.0 * lam + 2.0 * math.sqrt(lam) * log_term + 16.0 * log_term**2
        )
        second = math.sqrt(6.0) * 7.0 / 6.0 * eta * self.d * math.log(1.0 + (t + 1.0) / (2.0 * lam))
        return math.sqrt(2.0 * eta * (first + 2.0 + second) + 4.0 * lam * self._limit**2)

    def _width(self) -> Width:
        return self.estimate.P, self.scale * self.radius(self.observations + 1), 0.0, PLAIN


def _find_nearest(w: Floats, weights: Floats, limit: float) -> Floats:
    """Return the v with |v| = limit and least sum of weights (v - w)^2: w weights / (weights + mu), mu by bisection."""
    low, high = 0.0, weights.max() * np.linalg.norm(w) / limit
    for _ in range(100):
        mu = 0.5 * (low + high)
        if np.linalg.norm(w * weights / (weights + mu)) > limit:
            low = mu
        else:
            high = mu
    nearest: Floats = w * weights / (weights + high)
    return nearest
