"""CoLSTIM (Bengs, Saha and Hüllermeier 2022, Algorithm 1), for k arms instead of two."""

import math

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import number
from preselect.context import Context, Floats
from preselect.decision import Decision
from preselect.kernels import learning, likelihood
from preselect.kernels.types import CONTRAST, PLAIN
from preselect.policies.gaussian import refresh
from preselect.policies.history import WholeHistory
from preselect.policies.linear import Width
from preselect.policies.policy import Mask, candidates, described


class CoLSTIM(WholeHistory):
    """A leader by perturbed utility, and the toughest competitors that confidence bounds allow.

    The leader maximises x_i'theta + e_i sqrt(x_i' inv(M) x_i), where the e_i are Gumbel numbers cut off at
    +-`threshold`. Its competitors j maximise (x_j - x_i)'theta + c_1 sqrt((x_j - x_i)' inv(M) (x_j - x_i)). M is the
    sum of zz' over the contrasts z seen so far, and theta the maximum likelihood estimate of the whole history.

    Adapted: they duel two arms. Here the leader meets the k - 1 toughest competitors; each pair of which the outcome
    says who is better, the winner of a stage against each arm still running, adds its contrast to M; the likelihood is
    Plackett-Luce's, which for two arms is their logistic one. Their first tau rounds at random, which make M
    invertible, are replaced by M starting at `precision` times the identity, which also regularises the likelihood.
    threshold and c_1 are sqrt(d log T) in their experiments; the default is the same with the current round for T.

    >>> policy = CoLSTIM(d=2, seed=0)
    >>> len(policy.select([[3.0, 0.0], [0.0, 1.0], [2.0, 0.0]], k=2).arms)
    2
    """

    source = "Bengs, Saha and Hüllermeier 2022"
    _state = (*WholeHistory._state, "M", "M_inverse")

    def __init__(
        self,
        *,
        d: int,
        c_1: float | None = None,
        threshold: float | None = None,
        precision: float = 1.0,
        every: int = 1,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, precision=number(precision, "precision", above=0.0), every=every, seed=seed)
        self.c_1 = None if c_1 is None else number(c_1, "c_1", least=0.0)
        self.threshold = None if threshold is None else number(threshold, "threshold", least=0.0)
        self.M, self.M_inverse = self.A.copy(), self.P.copy()
        self._refresh_every = max(256, self.d)

    def _width(self) -> Width:
        return self.M_inverse, self._default(self.c_1), CONTRAST

    def _default(self, value: float | None) -> float:
        return math.sqrt(self.d * math.log(self.observations + 2)) if value is None else value

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        arms = candidates(eligible, context.shape[0])
        estimate, norms = self._scored(context, (self.M_inverse, 1.0, PLAIN))
        threshold = self._default(self.threshold)
        e = self._generator.gumbel(size=len(norms)).clip(-threshold, threshold)
        leader = self._best(estimate - norms + e * norms, arms, 1)
        scores, widths = self._scored(context, self._width(), int(leader[0]))
        others = self._best(scores, arms[arms != leader], k - 1)
        return described(context, np.concatenate((leader, others)), scores, widths)

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        super()._observe(decision, ranking)
        ranked = likelihood.rank_rows(decision.rows, ranking)
        contrasts = [ranked[stage] - ranked[stage + 1 :] for stage in range(len(ranking))]
        learning.gain_gram(np.concatenate(contrasts), self.M, self.M_inverse)
        if (self.observations + 1) % self._refresh_every == 0:
            refresh(self.M, self.M_inverse)
