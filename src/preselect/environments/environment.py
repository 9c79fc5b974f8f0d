"""`Environment`: what a simulation, a replay or any other source of rounds has to provide."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from preselect.context import ContextLike, Floats
from preselect.decision import Decision
from preselect.outcomes import Outcome


class Environment(Protocol):
    """A sequence of rounds: `context` begins one, `outcome` ends it.

    An environment draws everything random before it sees the decision. Policies that play with equal seeds therefore
    meet the same arms and the same random numbers. An environment of your own, for `preselect.study.run`, may leave out
    `measure`: it is then judged by regret, and `truth` returns the log-utilities of all arms.

    Attributes
    ----------
    d : int
        Number of features.
    """

    d: int

    def context(self) -> ContextLike:
        """Advance to the next round and return the features of its arms."""

    def outcome(self, decision: Decision) -> Outcome:
        """Return how the round ends if these arms are chosen.

        Parameters
        ----------
        decision : Decision
            The chosen arms, as returned by `Policy.select` for this round's context.
        """

    def truth(self) -> Floats:
        """The data with which `measure` judges a choice in this round, such as the true log-utilities of all arms."""

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """Return what each of some rounds adds to the totals by which policies are judged.

        Parameters
        ----------
        truths : array of shape (rounds, ...)
            What `truth` returned in each round.
        arms : integer array of shape (rounds, k)
            The arms chosen in each round.

        Returns
        -------
        dict
            For each measure an array with one number per round.
        """
