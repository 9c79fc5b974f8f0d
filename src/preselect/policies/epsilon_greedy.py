"""ε-greedy, a baseline of the paper (Section 6.1): Max-Theta that now and then chooses at random."""

from __future__ import annotations

from numpy.typing import ArrayLike

from preselect.arguments import number
from preselect.context import Context, Mask
from preselect.policies.estimators import AveragedSGD, simplify
from preselect.policies.policy import Choice, LinearPolicy, Part, assemble, list_candidates, sort_by_score


class EpsilonGreedy(LinearPolicy):
    """The choice of Max-Theta with probability 1 - epsilon, otherwise k eligible arms at random.

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
        self.estimate = AveragedSGD(self.d, gamma_1=gamma_1, alpha=alpha, theta_0=theta_0, generator=self._generator)
        self.gamma_1, self.alpha = self.estimate.gamma_1, self.estimate.alpha
        self.theta_0 = None if theta_0 is None else simplify(theta_0)

    def _choose(self, context: Context, k: int, eligible: Mask) -> Choice:
        greedy = super()._choose(context, k, eligible)  # first, because it refuses bad input before anything is drawn
        if self._generator.random() >= self.epsilon:
            return greedy
        scores, widths = self._score(context)
        arms = self._generator.permutation(list_candidates(eligible, len(scores)))[:k]
        return assemble(context, sort_by_score(arms, scores), scores, widths)
