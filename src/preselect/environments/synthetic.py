"""The paper's synthetic rounds (Section 6.1), and variations that each change one thing.

Rounds are drawn many at a time, because drawing them one by one would take longer than the policies do.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import one_of
from preselect.context import Floats
from preselect.decision import Decision
from preselect.environments.regret import regrets
from preselect.errors import InputError
from preselect.outcomes import Outcome, Ranking, Winner

_NUMBERS_AT_A_TIME = 50_000


class Synthetic:
    """The paper's rounds: θ* and arms are uniform on [0, 1]^d, and every round has new arms.

    Outcomes are drawn from the Plackett-Luce model with log-utilities x'θ*.

    Parameters
    ----------
    n : int
        Number of arms, at least 1.
    d : int
        Number of features, at least 1.
    feedback : {"winner", "ranking"}, default "winner"
        What is seen of the chosen arms: the winner, or all of them in order.
    seed : int or SeedSequence, default 0
        Decides θ*, the arms and the outcomes. Equal seeds give equal rounds, whatever is chosen.

    Attributes
    ----------
    theta : array of shape (d,)
        The true parameter θ*.
    """

    name: ClassVar[str] = "paper"
    feedbacks: ClassVar[tuple[str, ...]] = ("winner", "ranking")

    def __init__(self, n: int, d: int, *, feedback: str = "winner", seed: int | np.random.SeedSequence = 0) -> None:
        if n < 1 or d < 1:
            raise InputError(f"n={n} and d={d}; use at least one arm and one feature")
        self.n = n
        self.d = d
        self.feedback = one_of(feedback, "feedback", self.feedbacks)
        self._generator = np.random.Generator(np.random.SFC64(seed))  # numpy's fastest; drawing takes most of the time
        self.theta = self._draw_theta()
        self._rounds = max(1, _NUMBERS_AT_A_TIME // (n * d))
        self._next = self._rounds

    def context(self) -> Floats:
        """Advance to the next round and return the features of its arms, n x d."""
        if self._next == self._rounds:
            self._contexts = self._draw_contexts(self._rounds)
            self._utilities = self._judge(self._contexts)
            # The negative logarithm of an exponential variate is a Gumbel variate, and faster to draw.
            self._perturbed = self._utilities - np.log(self._generator.standard_exponential(self._utilities.shape))
            self._next = 0
        self._now = self._next
        self._next += 1
        shown: Floats = self._contexts[self._now]
        return shown

    def outcome(self, decision: Decision) -> Outcome:
        """The winner among the selected arms, or their ranking, drawn from the model."""
        arms = decision.arms
        perturbed = self._perturbed[self._now][arms]
        if self.feedback == "winner":
            return Winner(arms[perturbed.argmax()])
        return Ranking(arms[np.argsort(-perturbed)])

    def truth(self) -> Floats:
        """True log-utilities of all arms in this round."""
        known: Floats = self._utilities[self._now]
        return known

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """Regret of the best arm and of the set, for each round."""
        return regrets(truths, arms)

    def _draw_theta(self) -> Floats:
        return self._generator.random(self.d)

    def _draw_contexts(self, rounds: int) -> Floats:
        return self._generator.random((rounds, self.n, self.d))

    def _judge(self, contexts: Floats) -> Floats:
        """Return the true log-utilities of all arms, rounds x n."""
        return contexts @ self.theta


class Signed(Synthetic):
    """θ* is uniform on [-1, 1]^d, so that some features lower the utility.

    Parameters
    ----------
    n, d, feedback, seed : int, int, str, int or SeedSequence
        As for `Synthetic`.
    """

    name = "signed"

    def _draw_theta(self) -> Floats:
        return self._generator.uniform(-1.0, 1.0, self.d)


class FixedArms(Synthetic):
    """The same n arms z_i in every round, with features z_i ⊙ c for a new context c, uniform on [0, 1]^d.

    Parameters
    ----------
    n, d, feedback, seed : int, int, str, int or SeedSequence
        As for `Synthetic`.
    """

    name = "fixed-arms"

    def _draw_theta(self) -> Floats:
        self.arms = self._generator.random((self.n, self.d))
        return super()._draw_theta()

    def _draw_contexts(self, rounds: int) -> Floats:
        return self.arms * self._generator.random((rounds, 1, self.d))


class Drifting(Synthetic):
    """θ* moves by normal steps of standard deviation 0.01 per round and feature, reflected at the walls of [0, 1]^d.

    `theta` is θ* after the rounds drawn so far.

    Parameters
    ----------
    n, d, feedback, seed : int, int, str, int or SeedSequence
        As for `Synthetic`.
    """

    name = "drifting"

    def _judge(self, contexts: Floats) -> Floats:
        steps = self._generator.normal(scale=0.01, size=(len(contexts), self.d))
        unfolded = np.mod(self.theta + np.cumsum(steps, axis=0), 2.0)
        path = np.where(unfolded > 1.0, 2.0 - unfolded, unfolded)
        self.theta = path[-1]
        moved: Floats = np.einsum("tnd,td->tn", contexts, path)
        return moved


class Misspecified(Synthetic):
    """Log-utilities that are not linear: x'θ* + sin(2π x'w) / 2, with w uniform on [-1, 1]^d.

    Parameters
    ----------
    n, d, feedback, seed : int, int, str, int or SeedSequence
        As for `Synthetic`.
    """

    name = "misspecified"

    def _draw_theta(self) -> Floats:
        self.wave = self._generator.uniform(-1.0, 1.0, self.d)
        return super()._draw_theta()

    def _judge(self, contexts: Floats) -> Floats:
        return super()._judge(contexts) + 0.5 * np.sin(2.0 * np.pi * (contexts @ self.wave))


VARIATIONS: dict[str, type[Synthetic]] = {
    variation.name: variation for variation in (Synthetic, Signed, FixedArms, Drifting, Misspecified)
}
