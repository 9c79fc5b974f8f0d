"""TS-MNL (Cheung and Simchi-Levi 2017): Thompson sampling from the posterior of the multinomial logit model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import integer, one_of
from preselect.context import Context, Floats, Integers, Mask
from preselect.decision import Decision
from preselect.kernels import history
from preselect.outcomes import Outcome
from preselect.policies.cover import cover_belief
from preselect.policies.estimators import WholeHistory, simplify
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy
from preselect.policies.room import Choice, Randomness, Room, choose_best
from preselect.rules import Rules
from preselect.scaling import Change

_TAILS = 5.0  # degrees of freedom of the proposals


class TSMNL(LinearPolicy):
    """Draws theta from the posterior given the whole history, and takes the k best arms of the draw.

    The posterior follows from the prior N(mean, 1 / precision) and the Plackett-Luce likelihood, and is not Gaussian.
    Metropolis-Hastings steps draw from it, starting from the last draw, with independent proposals from a t
    distribution shaped like the Laplace approximation, whose tails reach farther than the posterior's. A round costs
    O(t k d^2), and memory grows with every outcome.

    Adapted: the paper's customer may choose nothing (an outside option), products have revenues, and each round solves
    for the best assortment under the drawn model. Here one of the k arms wins and revenues are equal, so that the best
    assortment is the top k of the draw. The paper allows any prior.

    The width of a chosen arm is the draw minus the estimate, which may be negative. `scores` returns the
    estimates that have the largest posterior density.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    mean : float or d floats, default 0.0
        Prior mean of theta, one number for all features or one for each.
    precision : float or d floats, default 1.0
        Prior precision of theta (one over its variance), above 0.
    steps : int, default 5
        Metropolis-Hastings steps for each draw.
    every : int, default 1
        The estimate, around which draws are proposed, is recomputed after that many outcomes.
    choose : "best" or "cover", default "best"
        "best" takes the k best arms of one draw. "cover" builds a set greedily: the one whose best arm comes closest in
        utility to the best of all arms, in expectation over 64 draws of theta.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = TSMNL(d=2, mean=[1.0, -1.0], precision=1e6, seed=0)
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "Cheung and Simchi-Levi 2017"
    keeps_history = True
    _state = ("draw",)
    estimate: WholeHistory
    A, P = Part(), Part()

    def __init__(
        self,
        *,
        d: int,
        mean: ArrayLike = 0.0,
        precision: ArrayLike = 1.0,
        steps: int = 5,
        every: int = 1,
        choose: str = "best",
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.steps = integer(steps, "steps", 1, 1_000_000)
        self.choose = one_of(choose, "choose", ("best", "cover"))
        self.estimate = WholeHistory(self.d, mean=mean, precision=precision, every=every)
        self.mean, self.precision, self.every = simplify(mean), simplify(precision), self.estimate.every
        self.draw = self.estimate.theta.copy()

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        if self.choose == "cover":
            return cover_belief(self, context, k, eligible, randomness, rules)
        estimate = self._score(context)[0]  # first, because it refuses bad input before anything is drawn
        drawn = self._draw(context, estimate, 1, randomness.generator)[:, 0]
        return choose_best(context, Room(eligible, len(estimate), k, rules), drawn, drawn - estimate, randomness)

    def _is_randomised(self, size: int) -> bool:  # noqa: ARG002
        return True

    def transform(self, change: Change) -> None:
        super().transform(change)
        self.draw[:] = change.map_weights(self.draw)

    def _draw(self, context: Context, u: Floats, draws: int, generator: np.random.Generator) -> Floats:  # noqa: ARG002
        """Draw utilities from the posterior: n x draws."""
        return context.utilities(self._draw_theta(draws, generator, self.draw.copy()))

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        super()._learn(decision, ranking, outcome)
        self._draw_theta(1, np.random.default_rng((self._root, self._outcomes)), self.draw)

    def _draw_theta(self, draws: int, generator: np.random.Generator, start: Floats) -> Floats:
        """Draw theta from the posterior, once for each row returned; the chain begins at `start` and updates it."""
        steps, belief = draws * self.steps, self.estimate
        normal = belief.draw_deviations(steps, generator)
        proposals = belief.theta + normal * np.sqrt(_TAILS / generator.chisquare(_TAILS, (steps, 1)))
        chances = np.log(generator.random(steps))
        drawn = np.empty((draws, self.d))
        history.metropolis(
            *belief.history.arguments(), belief.base, belief.block, _TAILS, proposals, chances, start, drawn
        )
        return drawn
