"""What a simulation, a replay or any other source of rounds must offer."""

from typing import Protocol

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

    def utilities(self) -> Floats | None:
        """True log-utilities of all arms in this round, or None where nobody knows them."""
