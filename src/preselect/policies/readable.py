"""What can be read of a policy: its scores, and what it leaves to chance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import as_integers, integer, show
from preselect.context import Context, ContextLike, Floats, Integers, as_context
from preselect.errors import InputError
from preselect.guard import Guarded
from preselect.policies.choices import best
from preselect.randomness import Randomness


class ReadablePolicy(Guarded, ABC):
    """The part of every policy that says how it ranks arms and what it leaves to chance."""

    d: int | None
    has_log_utilities: ClassVar[bool] = True  # else an arm's utility is its chance to win

    def explores_with(self, seed: int, round: int) -> bool:  # noqa: ARG002
        """Return whether the decision of this seed and number is one of those that are made at random on purpose.

        Parameters
        ----------
        seed : int
            The seed of the decision.
        round : int
            Its number, from 1.
        """
        return False

    def scores(self, X: ContextLike) -> Floats:
        """Return what each arm of X would be ranked by now, apart from chance.

        Mostly estimated log-utilities plus widths, which are for exploration and say nothing about how good an arm is.
        A leader that is chosen whatever the others' widths are has the largest score.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        """
        with self._guard:
            return self._score(self._see(X))[0]

    def suggest(self, X: ContextLike, among: ArrayLike, many: SupportsIndex, *, seed: SupportsIndex = 0) -> Integers:
        """Return the arms about which least is known in X, the least known first; ties are broken at random.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        among : array of integers
            Positions of the arms to return some of.
        many : int
            How many arms to return, at least 0; all of them if there are fewer.
        seed : int, default 0
            Decides between arms about which equally little is known.
        """
        context, randomness = self._see(X), Randomness(integer(seed, "seed", 0))
        expectation = f"distinct positions from 0 to {context.shape[0] - 1}"
        arms = as_integers(among, "among", expectation)
        if len(np.unique(arms)) < len(arms) or np.any((arms < 0) | (arms >= context.shape[0])):
            raise InputError(f"among should be {expectation}, not {show(among)}")
        many = min(integer(many, "many", 0), len(arms))
        with self._guard:
            return best(self._find_uncertainties(context), arms, many, randomness)

    def _find_uncertainties(self, context: Context) -> Floats:
        """Return how little is known about each arm, in any unit: by default, how much is added to explore it."""
        return self._score(context)[1]

    def _see(self, X: ContextLike) -> Context:
        return as_context(X, self.d)

    @abstractmethod
    def _score(self, context: Context) -> tuple[Floats, Floats]:
        """Return score and width of every arm; raise an InputError if the context is not finite."""
