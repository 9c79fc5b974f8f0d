"""Online Newton on the Plackett-Luce likelihood, one step per outcome: how Newton and Thompson learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import model
from preselect.arguments import number
from preselect.context import Floats, Integers
from preselect.kernels import learning
from preselect.kernels.types import IMPRECISE
from preselect.outcomes import Outcome
from preselect.policies import race_times
from preselect.policies.estimators.gaussian import Gaussian


class OnlineNewton(Gaussian):
    """A gains minus the Hessian of the log-likelihood at theta, and theta gains P times the gradient: O(k d^2).

    This is the Laplace approximation of the posterior, followed from outcome to outcome (an extended Kalman filter),
    for winners, rankings and top-m rankings alike.

    With `discount` below 1, A is multiplied by it before each outcome. The prior is not forgotten: feature after
    feature gets back what the discount took from it, with theta drawn to the prior mean accordingly.
    """

    def __init__(self, d: int, *, mean: ArrayLike, precision: ArrayLike, discount: float) -> None:
        super().__init__(d, mean=mean, precision=precision)
        self.discount = number(discount, "discount", above=0.0, most=1.0)
        self.pace = np.zeros(2)  # races of known time and their total cost, discounted like everything else

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:
        if self.discount < 1.0:
            return learning.discounted_newton(rows, ranking, self.prior, self.discount, t, self.block)
        status = learning.update_newton(rows, ranking, self.block) if self.d >= len(rows) else IMPRECISE
        return learning.recompute_newton(rows, ranking, self.block) if status == IMPRECISE else status

    def add_nobody(self, rows: Floats, ranking: Integers, outcome: Outcome) -> tuple[Floats, Integers, Floats]:
        """Return rows and ranking with NOBODY among the arms, and the pace of races with this one (outside option)."""
        if outcome.after is None:
            order, nobodies = race_times.rank_with_nobody(outcome, ranking, len(rows))
            return race_times.add_nobody(rows, nobodies), order, self.pace
        pace = self.discount * self.pace + (1.0, race_times.measure_cost(outcome))
        if race_times.is_trivial(outcome, pace[1] / pace[0]):
            return race_times.add_nobody(self._merge(rows), 1), race_times.FIRST, pace
        order, nobodies = race_times.rank_with_nobody(outcome, ranking, len(rows))
        return race_times.add_nobody(rows, nobodies), order, pace

    def set_pace(self, pace: Floats) -> None:
        """Remember the pace of races, once the outcome has been learnt."""
        self.pace[:] = pace

    def _merge(self, rows: Floats) -> Floats:
        """Merge the arms into one row: the mean of their rows, weighted by estimated winning probability."""
        return model.winner_probabilities(rows @ self.theta)[None] @ rows

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has been learnt."""
        return {**super().arrays(), "pace": self.pace}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over saved arrays; old files have no pace."""
        super().restore({"pace": self.pace, **arrays})
