"""ε-greedy, a baseline of the paper (Section 6.1): Max-Theta that now and then chooses at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import number
from preselect.context import Context, Mask
from preselect.policies.estimators import AveragedSGD, simplify
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy
from preselect.policies.propensities import Propensities, share_evenly, take_best
from preselect.policies.room import Choice, Randomness, Room, assemble, fill_at_random
from preselect.rules import Rules


class EpsilonGreedy(LinearPolicy):
    """Chooses as Max-Theta does with probability 1 - epsilon, otherwise k eligible arms at random.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    epsilon : float, default 0.1
        Probability of a random choice, from 0 to 1.
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
    >>> policy = EpsilonGreedy(d=2, theta_0=[1.0, -1.0], epsilon=0.0)
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
        epsilon: float = 0.1,
        gamma_1: float = 2.0,
        alpha: float = 0.6,
        theta_0: ArrayLike | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.epsilon = number(epsilon, "epsilon", least=0.0, most=1.0)
        self.estimate = AveragedSGD(self.d, gamma_1=gamma_1, alpha=alpha, theta_0=theta_0, seed=self.seed)
        self.gamma_1, self.alpha = self.estimate.gamma_1, self.estimate.alpha
        self.theta_0 = None if theta_0 is None else simplify(theta_0)

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        if not self._explores(randomness):
            return super()._choose(context, k, eligible, randomness, rules)
        scores, widths = self._score(context)
        arms = fill_at_random(Room(eligible, len(scores), k, rules), scores, randomness)
        return assemble(context, arms, scores, widths)

    def explores_with(self, seed: int, round: int) -> bool:  # noqa: ARG002
        return self._explores(Randomness(seed))

    def _explores(self, randomness: Randomness) -> bool:
        return bool(randomness.generator.random() < self.epsilon)

    def _is_randomised(self, size: int) -> bool:  # noqa: ARG002
        return self.epsilon > 0.0

    def _find_propensities(
        self,
        context: Context,
        k: int,
        eligible: Mask,
        draws: int,  # noqa: ARG002
        generator: np.random.Generator,  # noqa: ARG002
    ) -> Propensities:
        best = take_best(self._score(context)[0], eligible, k)
        return best.mix(self.epsilon, share_evenly(eligible, context.shape[0], k))
