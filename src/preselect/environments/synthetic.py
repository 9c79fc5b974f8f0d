"""The paper's synthetic rounds (Section 6.1), and variations that change one thing each.

θ* and the arms are uniform on the unit cube, fresh arms in every round, outcomes drawn from the Plackett-Luce model.
Rounds are made many at a time, which keeps the cost of a round below that of a policy.
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
    """θ* and arms uniform on [0, 1]^d, fresh arms in every round: the paper's setting."""

    name: ClassVar[str] = "paper"
    feedbacks: ClassVar[tuple[str, ...]] = ("winner", "ranking")

    def __init__(self, n: int, d: int, *, feedback: str = "winner", seed: int | np.random.SeedSequence = 0) -> None:
        if n < 1 or d < 1:
            raise InputError(f"n={n} and d={d}; use at least one arm and one feature")
        self.n = n
        self.d = d
        self.feedback = one_of(feedback, "feedback", self.feedbacks)
        self._generator = np.random.Generator(np.random.SFC64(seed))  # numpy's fastest: rounds are mostly this
        self.theta = self._draw_theta()
        self._rounds = max(1, _NUMBERS_AT_A_TIME // (n * d))
        self._next = self._rounds

    def context(self) -> Floats:
        """Go on to the next round and show its arms."""
        if self._next == self._rounds:
            self._contexts = self._draw_contexts(self._rounds)
            self._utilities = self._judge(self._contexts)
            # minus the logarithm of an exponential number is a Gumbel number, and made faster
            self._perturbed = self._utilities - np.log(self._generator.standard_exponential(self._utilities.shape))
            self._next = 0
        self._now = self._next
        self._next += 1
        shown: Floats = self._contexts[self._now]
        return shown

    def outcome(self, decision: Decision) -> Outcome:
        """The selected arm that luck favours most, or all of them in its order: a draw from the model."""
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
        """Regret of the best arm and of the set."""
        return regrets(truths, arms)

    def _draw_theta(self) -> Floats:
        return self._generator.random(self.d)

    def _draw_contexts(self, rounds: int) -> Floats:
        return self._generator.random((rounds, self.n, self.d))

    def _judge(self, contexts: Floats) -> Floats:
        """Log-utilities, rounds x n."""
        return contexts @ self.theta


class Signed(Synthetic):
    """θ* uniform on [-1, 1]^d: some features are bad to have."""

    name = "signed"

    def _draw_theta(self) -> Floats:
        return self._generator.uniform(-1.0, 1.0, self.d)


class FixedArms(Synthetic):
    """The same n arms z_i in every round, and a fresh context c uniform on [0, 1]^d: features z_i ⊙ c."""

    name = "fixed-arms"

    def _draw_theta(self) -> Floats:
        self.arms = self._generator.random((self.n, self.d))
        return super()._draw_theta()

    def _draw_contexts(self, rounds: int) -> Floats:
        return self.arms * self._generator.random((rounds, 1, self.d))


class Drifting(Synthetic):
    """θ* walks through [0, 1]^d by normal steps of 0.01 per round and feature, reflected at the walls."""

    name = "drifting"

    def _judge(self, contexts: Floats) -> Floats:
        steps = self._generator.normal(scale=0.01, size=(len(contexts), self.d))
        unfolded = np.mod(self.theta + np.cumsum(steps, axis=0), 2.0)
        path = np.where(unfolded > 1.0, 2.0 - unfolded, unfolded)
        self.theta = path[-1]
        moved: Floats = np.einsum("tnd,td->tn", contexts, path)
        return moved


class Misspecified(Synthetic):
    """Utilities that no θ explains: x'θ* + sin(2π x'w) / 2 with w uniform on [-1, 1]^d."""

    name = "misspecified"

    def _draw_theta(self) -> Floats:
        self.wave = self._generator.uniform(-1.0, 1.0, self.d)
        return super()._draw_theta()

    def _judge(self, contexts: Floats) -> Floats:
        return super()._judge(contexts) + 0.5 * np.sin(2.0 * np.pi * (contexts @ self.wave))


VARIATIONS: dict[str, type[Synthetic]] = {
    variation.name: variation for variation in (Synthetic, Signed, FixedArms, Drifting, Misspecified)
}
