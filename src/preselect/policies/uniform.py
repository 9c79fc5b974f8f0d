"""The baseline that learns nothing."""

from __future__ import annotations

import numpy as np

from preselect.context import Context, Floats, Integers
from preselect.decision import Decision
from preselect.outcomes import Outcome
from preselect.policies.policy import Policy


class Random(Policy):
    """k eligible arms at random: all scores are equal, and ties are broken at random.

    Parameters
    ----------
    d : int, optional
        Number of joint features of an arm, which are ignored; if given, contexts are checked for it.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> len(set(Random(seed=0).select([[0.0], [1.0], [2.0]], k=2).arms.tolist()))
    2
    """

    source = "baseline"

    def __init__(self, *, d: int | None = None, seed: int | None = None) -> None:
        super().__init__(d=d, seed=seed)

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        context.require_finite()
        return np.zeros(context.shape[0]), np.zeros(context.shape[0])

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        pass
