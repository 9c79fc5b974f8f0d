"""The yardstick that learns nothing."""

import numpy as np
from numpy.typing import NDArray

from preselect.context import Context, Floats, require_finite_context
from preselect.decision import Decision
from preselect.policies.policy import Policy


class Random(Policy):
    """k eligible arms at random: all scores are equal, and ties are broken at random.

    >>> len(set(Random(seed=0).select([[0.0], [1.0], [2.0]], k=2).arms.tolist()))
    2
    """

    source = "yardstick"

    def __init__(self, *, d: int | None = None, seed: int | None = None) -> None:
        super().__init__(d=d, seed=seed)

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        require_finite_context(context)
        return np.zeros(context.shape[0]), np.zeros(context.shape[0])

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        pass
