"""CPPL, the paper's algorithm (El Mesaoudi-Paul, Bengs and Hüllermeier 2020, Algorithm 1)."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from preselect.arguments import number
from preselect.kernels.types import LOGARITHM
from preselect.policies.estimators import Sandwich, simplify
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy, Width


class CPPL(LinearPolicy):
    """Upper confidence bounds on contextualised Plackett-Luce utilities, estimated by averaged SGD.

    The defaults are the paper's. Two identities make it cheap without changing it: M in the confidence width has rank
    one, so the operator norm is exp(2 x'theta) x' Sigma x; and t^-1 S^-1 V S^-1 equals A^-1 B A^-1 with sums A, B in
    place of the means S, V. Arms are ranked by log(v + c) = x'theta + log1p(omega sqrt(... x' Sigma x)).

    Choices that the paper leaves open: A starts at `ridge` times the identity, because the paper's S is singular
    in the first rounds; the width in round t uses the estimates of round t - 1; before the first observation it is zero
    for every arm, so the first choice is by utility alone; ties are broken at random.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    gamma_1 : float, default 2.0
        Length of the first gradient step, above 0, in units of theta per unit of gradient.
    alpha : float, default 0.6
        How fast steps shrink: step t is gamma_1 t^-alpha. Above 0.5 and below 1.
    omega : float, default 1.0
        Multiplies the confidence widths, at least 0; larger values explore more, 0 is Max-Theta.
    ridge : float, default 1e-3
        A starts at this multiple of the identity, at least 1e-6 (less would cost digits). It hardly matters for regret.
    theta_0 : float or d floats, optional
        The first estimate, one number for all features or one for each. Drawn uniformly from [0, 1]^d by default.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = CPPL(d=2, seed=0)
    >>> decision = policy.select([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], k=2)
    >>> decision.arms
    array([2, 0])
    """

    source = "El Mesaoudi-Paul, Bengs and Hüllermeier 2020"
    estimate: Sandwich
    theta_hat, theta_bar, A, B, P, Sigma = Part(), Part(), Part(), Part(), Part(), Part()

    def __init__(
        self,
        *,
        d: int,
        gamma_1: float = 2.0,
        alpha: float = 0.6,
        omega: float = 1.0,
        ridge: float = 1e-3,
        theta_0: ArrayLike | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.omega = number(omega, "omega", least=0.0)
        self.ridge = number(ridge, "ridge", least=1e-6)
        self.estimate = Sandwich(
            self.d, ridge=self.ridge, gamma_1=gamma_1, alpha=alpha, theta_0=theta_0, seed=self.seed
        )
        self.gamma_1, self.alpha = self.estimate.gamma_1, self.estimate.alpha
        self.theta_0 = None if theta_0 is None else simplify(theta_0)

    def _width(self) -> Width:
        # c_{t,i} / v_{t,i}, below Eq. (13), without the square root of x' Sigma x; Eq. (13) is exp(x'theta)
        log_t = math.log(self.observations + 1)
        beta = self.omega * math.sqrt(2.0 * log_t + self.d + 2.0 * math.sqrt(self.d * log_t))
        return self.estimate.Sigma, beta, 0.0, LOGARITHM
