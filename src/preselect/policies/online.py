"""Online Newton on the Plackett-Luce likelihood: one step per outcome. How Newton and Thompson learn."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import kernels
from preselect.arguments import number
from preselect.decision import Decision
from preselect.policies.gaussian import GaussianPolicy
from preselect.policies.linear import refuse_decision


class OnlineNewton(GaussianPolicy):
    """A gains minus the Hessian of the log-likelihood at theta, and theta gains P times the gradient: O(k d^2).

    This is the Laplace approximation of the posterior, followed from outcome to outcome (an extended Kalman filter),
    for winners, rankings and top-m rankings alike.

    `discount` below 1 forgets: before each outcome A is multiplied by it, so that what was seen 1 / (1 - discount)
    outcomes ago counts a third. The prior is not forgotten: feature after feature is given back what the discount took
    from it, with theta drawn to the prior mean accordingly.
    """

    def __init__(
        self, *, d: int, mean: ArrayLike, precision: ArrayLike, discount: float, choose: str, seed: int | None
    ) -> None:
        super().__init__(d=d, mean=mean, precision=precision, choose=choose, seed=seed)
        self.discount = number(discount, "discount", above=0.0, most=1.0)
        self._refresh_every = max(256, self.d)

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        t, k = self.observations + 1, len(decision.arms)
        status = kernels.learn_newton(decision.numbers, k, ranking, self._prior, self.discount, t, self._estimate)
        if status != kernels.OK:
            refuse_decision(decision, self._estimate)
        if t % self._refresh_every == 0:
            self._refresh()
