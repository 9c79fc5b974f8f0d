"""The paper's two greedy baselines (Section 6.1): CPPL without confidence widths."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import number
from preselect.context import Context, Floats
from preselect.policies.averaged import AveragedSGD
from preselect.policies.policy import Mask, by_score, candidates, described


class MaxTheta(AveragedSGD):
    """Max-Theta: always the k arms with the largest estimated utility.

    >>> policy = MaxTheta(d=2, theta_0=[1.0, -1.0])
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "El Mesaoudi-Paul, Bengs and Hüllermeier 2020"

    def __init__(
        self,
        *,
        d: int,
        gamma_1: float = 2.0,
        alpha: float = 0.6,
        theta_0: ArrayLike | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, gamma_1=gamma_1, alpha=alpha, theta_0=theta_0, seed=seed)


class EpsilonGreedy(AveragedSGD):
    """ε-greedy: the choice of Max-Theta with probability 1 - epsilon, otherwise k eligible arms at random.

    >>> policy = EpsilonGreedy(d=2, theta_0=[1.0, -1.0], epsilon=0.0)
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "El Mesaoudi-Paul, Bengs and Hüllermeier 2020"

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
        super().__init__(d=d, gamma_1=gamma_1, alpha=alpha, theta_0=theta_0, seed=seed)
        self.epsilon = number(epsilon, "epsilon", least=0.0, most=1.0)

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        greedy = super()._choose(context, k, eligible)  # first, because it refuses bad input before anything is drawn
        if self._generator.random() >= self.epsilon:
            return greedy
        scores, widths = self._score(context)
        arms = self._generator.permutation(candidates(eligible, len(scores)))[:k]
        return described(context, by_score(arms, scores), scores, widths)
