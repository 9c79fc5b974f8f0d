"""Epoch-Greedy (Langford and Zhang 2007, Algorithm 1)."""

from __future__ import annotations

import bisect

import numpy as np

from preselect.arguments import integer, number
from preselect.context import Context, Integers, Mask
from preselect.decision import Decision
from preselect.outcomes import Outcome
from preselect.policies.estimators import WholeHistory
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy
from preselect.policies.propensities import Propensities, share_evenly
from preselect.policies.room import Choice, Randomness, Room, assemble, fill_at_random
from preselect.rules import Rules

_LONGEST = 1e18  # epoch, in rounds


class EpochGreedy(LinearPolicy):
    """Plays epochs: one random round, the only one that it learns from, and then some with the best hypothesis so far.

    Epoch l has max(1, floor(c sqrt(l))) rounds of exploitation: the paper's schedule for a finite class of hypotheses,
    with c in place of 1 / sqrt(K log m). It depends on l only, so the number of a round says whether it explores.
    Learning costs O(t k d^2) in exploring rounds, and memory grows with each of them.

    Adapted: the paper's learner chooses one arm and weights its reward by the inverse of its probability. Here k arms
    are drawn and the outcome compares them, so nothing needs to be weighted. The hypothesis of smallest empirical loss
    is the theta that maximises the likelihood of the exploring rounds.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    c : float, default 1.0
        How fast epochs become longer, above 0; larger values exploit more.
    precision : float, default 1e-2
        Precision of the prior around 0 that regularises the likelihood, above 0.
    every : int, default 1
        The estimate is recomputed after that many outcomes of exploring rounds.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = EpochGreedy(d=2, seed=0)
    >>> [policy.explores(t) for t in range(1, 8)]
    [True, False, True, False, True, False, True]
    """

    source = "Langford and Zhang 2007"
    keeps_history = True
    estimate: WholeHistory
    A, P = Part(), Part()

    def __init__(
        self, *, d: int, c: float = 1.0, precision: float = 1e-2, every: int = 1, seed: int | None = None
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.c = number(c, "c", above=0.0)
        self.precision = number(precision, "precision", above=0.0)
        self.estimate = WholeHistory(self.d, precision=self.precision, every=every)
        self.every = self.estimate.every
        self._starts = [1]  # the first round of each epoch, extended when needed

    def explores(self, t: int) -> bool:
        """Return whether round t is the first of an epoch.

        Parameters
        ----------
        t : int
            Number of the round, from 1.
        """
        t = integer(t, "t", 1, 10**9)
        while self._starts[-1] < t:
            epoch = len(self._starts)
            self._starts.append(self._starts[-1] + 1 + max(1, int(min(self.c * epoch**0.5, _LONGEST))))
        return self._starts[bisect.bisect_left(self._starts, t)] == t

    def explores_with(self, seed: int, round: int) -> bool:  # noqa: ARG002
        return self.explores(round)

    def _is_randomised(self, size: int) -> bool:  # noqa: ARG002
        return self.explores(self.rounds + 1)

    def _find_propensities(
        self,
        context: Context,
        k: int,
        eligible: Mask,
        draws: int,  # noqa: ARG002
        generator: np.random.Generator,  # noqa: ARG002
    ) -> Propensities:
        return share_evenly(eligible, context.shape[0], k)

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        if not self.explores(self.rounds + 1):
            return super()._choose(context, k, eligible, randomness, rules)
        scores, widths = self._score(context)
        arms = fill_at_random(Room(eligible, len(scores), k, rules), scores, randomness)
        return assemble(context, arms, scores, widths)

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        if self.explores(decision.round):
            super()._learn(decision, ranking, outcome)
