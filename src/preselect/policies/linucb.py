"""LinUCB (Li, Chu, Langford and Schapire 2010), with one theta shared by all arms, and winning as the reward."""

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import number
from preselect.decision import Decision
from preselect.kernels import learning
from preselect.kernels.types import OK, PLAIN
from preselect.policies.gaussian import GaussianPolicy
from preselect.policies.linear import Width, refuse_decision


class LinUCB(GaussianPolicy):
    """Ridge regression of winning on the features, and upper confidence bounds x'theta + alpha sqrt(x' inv(A) x).

    A is `precision` times the identity plus the sum of xx' over all arms tried, b the sum of reward times x, and
    theta = inv(A) b. Their hybrid model, with weights shared by all arms beside weights of each arm, is this one on
    joint features that hold both: the shared ones and one-hot ⊗ context. Their disjoint model is one-hot ⊗ context.

    Adapted: they try one arm and see its reward; here k arms are tried, the k best by the bound, and each is an
    observation: reward 1 for the winner (of a ranking, the first), 0 for the others. Scores are therefore chances to
    win rather than log-utilities, and depend on the company that arms were tried in.

    >>> policy = LinUCB(d=2, alpha=0.0, seed=0)
    >>> from preselect.outcomes import Winner
    >>> policy.learn(policy.select([[1.0, 0.0], [0.0, 1.0]], k=2), Winner(1))
    >>> policy.scores([[1.0, 0.0], [0.0, 1.0]])
    array([0. , 0.5])
    """

    source = "Li, Chu, Langford and Schapire 2010"
    _state = (*GaussianPolicy._state, "b")

    def __init__(self, *, d: int, alpha: float = 1.0, precision: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d=d, mean=0.0, precision=number(precision, "precision", above=0.0), seed=seed)
        self.alpha = number(alpha, "alpha", least=0.0)
        self.b = np.zeros(self.d)
        self._refresh_every = max(256, self.d)

    def _width(self) -> Width:
        return self.P, self.alpha, PLAIN

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        rewards = np.zeros(len(decision.arms))
        rewards[ranking[0]] = 1.0
        if learning.learn_rewards(decision.rows, rewards, self.b, self._estimate) != OK:
            refuse_decision(decision, self._estimate)
        if (self.observations + 1) % self._refresh_every == 0:
            self._refresh()
