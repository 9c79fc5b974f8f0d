"""Online Newton on the Plackett-Luce likelihood: one step per outcome. How Newton and Thompson learn."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import model
from preselect.arguments import boolean, number
from preselect.context import Floats
from preselect.decision import Decision
from preselect.kernels import learning
from preselect.kernels.types import OK
from preselect.outcomes import Outcome
from preselect.policies import race_times
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
    Outcomes that say how long the round took teach more: see `preselect.policies.race_times`.
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
        self.pace = np.zeros(2)  # races whose time was told, and what they cost in all; forgotten as the rest is

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        t = self.observations + 1
        if self.outside:
            t += self.no_winners
        status = learning.learn_newton(decision.rows, ranking, self._prior, self.discount, t, self._estimate)
        if status != OK:
            refuse_decision(decision, self._estimate)
        if t % self._refresh_every == 0:
            self._refresh()

    def _observe_with_nobody(self, decision: Decision, ranking: NDArray[np.int64], outcome: Outcome) -> None:
        pace, trivial = self.pace, False
        if outcome.after is not None:
            cost = race_times.cost_of(outcome)
            races, costs = pace = self.discount * self.pace + (1.0, cost)
            trivial = race_times.is_trivial(cost, costs / races)
        if trivial:
            rows, order, added = self._together(decision.rows), np.zeros(1, dtype=np.int64), 1
        else:
            rows, (order, added) = decision.rows, race_times.ranked(outcome, ranking, len(decision.arms))
        self._observe(_with_clocks(decision, rows, added), order)
        self.pace[:] = pace

    def _together(self, rows: Floats) -> Floats:
        """Arms as one, for when it is not looked at which of them won: their mean by how likely each is to be it."""
        return model.winner_probabilities(rows @ self.theta)[None] @ rows

    def _set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._set_state({"pace": self.pace, **arrays})  # files of before there were clocks have none


def _with_clocks(decision: Decision, rows: Floats, count: int) -> Decision:
    """The same round with these arms and clocks, whose features are zero."""
    k = len(rows) + count
    places, zeros = np.arange(k), np.zeros(k)
    rows = np.concatenate((rows, np.zeros((count, decision.d))))
    return Decision.of(arms=places, rows=rows, scores=zeros, widths=zeros, ids=places, round=decision.round)
