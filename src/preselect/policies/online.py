"""Online Newton on the Plackett-Luce likelihood: one step per outcome. How Newton and Thompson learn."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import kernels
from preselect.arguments import boolean, number
from preselect.context import Floats
from preselect.decision import Decision
from preselect.outcomes import Outcome
from preselect.policies import clocks
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
    Outcomes that say how long the round took teach more: see `preselect.policies.clocks`.
    """

    _state: ClassVar[tuple[str, ...]] = (*GaussianPolicy._state, "pace")

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
        self.pace = np.zeros(3)  # races whose time was told, what they cost in all, and how many taught nothing

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        self._step(decision, decision.numbers, len(decision.arms), ranking, self.observations + 1)

    def _observe_with_nobody(self, decision: Decision, ranking: NDArray[np.int64], outcome: Outcome) -> None:
        races, costs, trivial = self.pace.tolist()
        t = self.observations + self.no_winners - int(trivial) + 1
        teaches = True
        if outcome.after is not None:
            cost = clocks.cost(outcome)
            races, costs = self.discount * races + 1.0, self.discount * costs + cost
            teaches = not clocks.is_trivial(cost, costs / races)
        if teaches:
            order, added = clocks.ranked(outcome, ranking, len(decision.arms))
            self._step(decision, _with_clocks(decision, added), len(decision.arms) + added, order, t)
        self.pace[:] = races, costs, trivial + (not teaches)

    def _step(self, decision: Decision, numbers: Floats, k: int, ranking: NDArray[np.int64], t: int) -> None:
        status = kernels.learn_newton(numbers, k, ranking, self._prior, self.discount, t, self._estimate)
        if status != kernels.OK:
            refuse_decision(decision, self._estimate)
        if t % self._refresh_every == 0:
            self._refresh()


def _with_clocks(decision: Decision, clocks: int) -> Floats:
    """The numbers of a decision with more arms, whose features are zero."""
    zeros = np.zeros(clocks)
    return np.concatenate(
        (decision.scores, zeros, decision.widths, zeros, decision.rows.ravel(), np.zeros(clocks * decision.d))
    )
