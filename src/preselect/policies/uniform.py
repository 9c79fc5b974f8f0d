"""`Random`, the baseline that learns nothing."""

from __future__ import annotations

import numpy as np

from preselect.context import Context, Floats, Integers, Mask
from preselect.decision import Decision
from preselect.outcomes import Outcome
from preselect.policies.policy import Policy
from preselect.policies.propensities import Propensities, share_evenly


class Random(Policy):
    """Chooses k eligible arms at random: all scores are equal, and ties are broken at random.

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
    learns_ties = True  # as from everything: nothing

    def __init__(self, *, d: int | None = None, seed: int | None = None) -> None:
        super().__init__(d=d, seed=seed)

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        context.require_finite()
        return np.zeros(context.shape[0]), np.zeros(context.shape[0])

    def explores_with(self, seed: int, round: int) -> bool:  # noqa: ARG002
        return True

    def _is_randomised(self, size: int) -> bool:  # noqa: ARG002
        return True

    def _find_propensities(
        self,
        context: Context,
        k: int,
        eligible: Mask,
        draws: int,  # noqa: ARG002
        generator: np.random.Generator,  # noqa: ARG002
    ) -> Propensities:
        return share_evenly(eligible, context.shape[0], k)

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        pass
