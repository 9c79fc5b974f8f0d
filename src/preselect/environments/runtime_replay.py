"""Replay rounds from a table of run times, as in the paper's second study (Section 6.2)."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import one_of
from preselect.context import Floats, StructuredContext
from preselect.decision import Decision
from preselect.environments.regret import regrets
from preselect.environments.runtime_table import RuntimeTable
from preselect.features import Kronecker
from preselect.outcomes import NoWinner, Outcome, Ranking, Winner


class RuntimeReplay:
    """The instances of a table in random order, each once, with utilities exp(-λ seconds).

    The features are the paper's: arm ⊗ instance, after its preprocessing (see `RuntimeTable.joint_features`). Regret is
    measured as in the synthetic study.

    Parameters
    ----------
    table : RuntimeTable
        Run times and features.
    scale : float, default 10.0
        λ, in 1/seconds: how much a second costs. The default is the paper's.
    feedback : {"winner", "ranking", "race"}, default "ranking"
        What is seen of the chosen arms. A winner or a ranking is drawn from the Plackett-Luce model. In a race the arm
        with the shortest run time wins, and no arm if none of them solved the instance.
    seed : int or SeedSequence, default 0
        Decides the order of the instances and what is drawn.
    """

    feedbacks: ClassVar[tuple[str, ...]] = ("winner", "ranking", "race")

    def __init__(
        self,
        table: RuntimeTable,
        *,
        scale: float = 10.0,
        feedback: str = "ranking",
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.table = table
        self.feedback = one_of(feedback, "feedback", self.feedbacks)
        generator = np.random.default_rng(seed)
        self._order = generator.permutation(len(table.instances))
        self._utilities = table.log_utilities(scale)
        self._perturbed = self._utilities + generator.gumbel(size=self._utilities.shape)
        self._arms, self._contexts = table.joint_features
        self._join = Kronecker()
        self._round = -1
        self.d = self._arms.shape[1] * self._contexts.shape[1]

    @property
    def _instance(self) -> int:
        return int(self._order[self._round])

    def context(self) -> StructuredContext:
        """Advance to the next instance and return its arms' features."""
        self._round += 1
        return self._join(self._arms, self._contexts[self._instance])

    def outcome(self, decision: Decision) -> Outcome:
        """A draw from the model, or the result of the race. Tables have no cutoff, so a race has no finishing time."""
        arms, i = decision.arms, self._instance
        if self.feedback == "race":
            finishing = arms[self.table.solved[i, arms]]
            return Winner(finishing[self.table.seconds[i, finishing].argmin()]) if len(finishing) else NoWinner()
        ranked = arms[np.argsort(-self._perturbed[i, arms])]
        return Winner(ranked[0]) if self.feedback == "winner" else Ranking(ranked)

    def truth(self) -> Floats:
        """True log-utilities of all arms in this round."""
        known: Floats = self._utilities[self._instance]
        return known

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """Regret of the best arm and of the set, for each round."""
        return regrets(truths, arms)
