"""What a simulation, a replay or any other source of rounds must offer."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from preselect.context import Context, Floats
from preselect.decision import Decision
from preselect.outcomes import Outcome


class Environment(Protocol):
    """A sequence of rounds: `context` goes on to the next one, `outcome` ends it.

    An environment draws all its luck before it sees the decision, so that policies played on equal seeds meet the same
    arms and the same luck (common random numbers).
    """

    d: int

    def context(self) -> Context:
        """Go on to the next round and show its arms."""

    def outcome(self, decision: Decision) -> Outcome:
        """What the decision leads to in this round."""

    def truth(self) -> Floats:
        """What is to be known of this round to judge a choice: the true log-utilities of all arms, for instance."""

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """What each of some rounds adds to the sums that policies are judged by, given its truth and the choice."""
