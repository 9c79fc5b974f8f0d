"""Online Newton on the Plackett-Luce likelihood: one step per outcome. How Newton and Thompson learn."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import kernels
from preselect.arguments import boolean, number
from preselect.context import Floats
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

    `outside=True` is for rounds that nobody may win, such as races with a time limit: nobody takes part in each of
    them, with log-utility 0 (the outside option of multinomial logit models). So NoWinner teaches that the chosen arms
    fell short, and a winner was ahead of nobody, too. Give arms a constant feature then, for what they are worth alone.
    """

    def __init__(
        self,
        *,
        d: int,
        mean: ArrayLike,
        precision: ArrayLike,
        discount: float,
        outside: bool,
        choose: str,
        seed: int | None,
    ) -> None:
        super().__init__(d=d, mean=mean, precision=precision, choose=choose, seed=seed)
        self.discount = number(discount, "discount", above=0.0, most=1.0)
        self.outside = boolean(outside, "outside")
        self._refresh_every = max(256, self.d)

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        t, k, numbers = self.observations + 1, len(decision.arms), decision.numbers
        if self.outside:
            t, k, numbers = t + self.no_winners, k + 1, _with_nobody(decision)
        status = kernels.learn_newton(numbers, k, ranking, self._prior, self.discount, t, self._estimate)
        if status != kernels.OK:
            refuse_decision(decision, self._estimate)
        if t % self._refresh_every == 0:
            self._refresh()


def _with_nobody(decision: Decision) -> Floats:
    """The numbers of a decision with one more arm, whose features are zero."""
    zero = np.zeros(1)
    return np.concatenate((decision.scores, zero, decision.widths, zero, decision.rows.ravel(), np.zeros(decision.d)))
