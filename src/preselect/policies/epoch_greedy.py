"""Epoch-Greedy (Langford and Zhang 2007, Algorithm 1)."""

import bisect

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import number
from preselect.context import Context, Floats
from preselect.decision import Decision
from preselect.policies.history import WholeHistory
from preselect.policies.policy import Mask, by_score, candidates, described


class EpochGreedy(WholeHistory):
    """Epochs of one round at random, from which alone is learnt, and a few with the best hypothesis so far.

    Epoch l has max(1, floor(c sqrt(l))) rounds of exploitation: their schedule for a finite class of hypotheses, with c
    in the place of 1 / sqrt(K log m). It depends on l only, so that the number of a round says whether it explores.

    Adapted: their learner chooses one arm and sees its reward, weighted by the inverse of its probability; here k arms
    are drawn and the outcome compares them, so nothing needs to be weighted. The hypothesis of smallest empirical loss
    is the theta that maximises the likelihood of the exploring rounds, with a small ridge `precision`.

    >>> policy = EpochGreedy(d=2, seed=0)
    >>> [policy.explores(t) for t in range(1, 8)]
    [True, False, True, False, True, False, True]
    """

    source = "Langford and Zhang 2007"

    def __init__(
        self, *, d: int, c: float = 1.0, precision: float = 1e-2, every: int = 1, seed: int | None = None
    ) -> None:
        super().__init__(d=d, precision=number(precision, "precision", above=0.0), every=every, seed=seed)
        self.c = number(c, "c", above=0.0)
        self._starts = [1]  # the first round of each epoch, as far as was needed

    def explores(self, t: int) -> bool:
        """Whether round t is the first of an epoch."""
        while self._starts[-1] < t:
            epoch = len(self._starts)
            self._starts.append(self._starts[-1] + 1 + max(1, int(self.c * epoch**0.5)))
        return self._starts[bisect.bisect_left(self._starts, t)] == t

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        if not self.explores(self.rounds + 1):
            return super()._choose(context, k, eligible)
        scores, widths = self._score(context)
        arms = self._generator.permutation(candidates(eligible, len(scores)))[:k]
        return described(context, by_score(arms, scores), scores, widths)

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        if self.explores(decision.round):
            super()._observe(decision, ranking)
