"""Max-Theta, the paper's greedy baseline (Section 6.1): CPPL without confidence widths."""

from __future__ import annotations

from numpy.typing import ArrayLike

from preselect.policies.estimators import AveragedSGD, simplify
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy


class MaxTheta(LinearPolicy):
    """Always the k arms with the largest estimated utility; theta is estimated by averaged SGD as in CPPL.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    gamma_1 : float, default 2.0
        Length of the first gradient step, above 0, in units of theta per unit of gradient.
    alpha : float, default 0.6
        How fast steps shrink: step t is gamma_1 t^-alpha. Above 0.5 and below 1.
    theta_0 : float or d floats, optional
        The first estimate, one number for all features or one for each. Drawn uniformly from [0, 1]^d by default.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = MaxTheta(d=2, theta_0=[1.0, -1.0])
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "El Mesaoudi-Paul, Bengs and Hüllermeier 2020"
    estimate: AveragedSGD
    theta_hat, theta_bar = Part(), Part()

    def __init__(
        self,
        *,
        d: int,
        gamma_1: float = 2.0,
        alpha: float = 0.6,
        theta_0: ArrayLike | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.estimate = AveragedSGD(self.d, gamma_1=gamma_1, alpha=alpha, theta_0=theta_0, seed=self.seed)
        self.gamma_1, self.alpha = self.estimate.gamma_1, self.estimate.alpha
        self.theta_0 = None if theta_0 is None else simplify(theta_0)
