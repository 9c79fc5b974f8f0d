"""Three measures of what a policy would have won, and how each of them is estimated.

Let S be the set that was shown, chosen with probability μ(S) by the policy that kept the logs, and p_i the probability
that arm i is in it. The policy to evaluate chooses S with probability π(S), and arm i is in its set with probability
π_i. All of them depend on the context of the round.

**picks**: in how many rounds some arm would have been picked, where it is possible to pick none. With w = π(S) / μ(S)

    E[w r(S)] = sum_S π(S) r(S),

where r, the probability that some arm of S is picked, may depend on anything. This needs the probability of the *set*.

**wins**: how many rounds its arms would have won, each of them among the competitors that the logs showed it with. With
w_i = π_i / p_i and y_i = 1 if arm i won

    E[sum_{i in S} w_i y_i] = sum_i π_i P(i wins | i is shown, with others as in the logs),

so the probabilities of single arms are enough. Nothing is assumed about how arms compete. This is not what would happen
if all arms of the other policy were shown together, because then they would compete with each other. The policy that
kept the logs has as many wins as there are rounds with a winner.

**hits**: in how many rounds the arm that would win among all arms of the round is shown. That is never observed, so
only a model can estimate it: the sum of v_i over the set, divided by the sum over all arms.

Doubly robust: with any prediction q that does not depend on what was shown in the round,

    picks  E_π[q(S)] + w (r - q(S_t)),        wins  sum_i π_i q_i + sum_{i in S_t} w_i (y_i - q_i)

has the same expectation, and varies less the better q is. The model is fitted to other rounds.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from preselect.context import Floats, Integers
from preselect.offline.choosing import Choice
from preselect.offline.logged_rounds import LoggedRound


class Weighted(NamedTuple):
    """A round weighted by inverse propensities: the sum of weights, of weighted wins, and of weighted predictions."""

    weight: float
    wins: float
    predicted: float


class Picks:
    """The share of rounds in which some arm is picked."""

    name: ClassVar[str] = "picks"
    needs: ClassVar[str] = "set_propensity"
    needs_sets: ClassVar[bool] = True
    meaning: ClassVar[str] = "share of rounds in which some arm is picked"

    def predict(self, one: LoggedRound, choice: Choice) -> Floats:
        """Return what the model expects of a choice, for each vector of the model's weights."""
        expected: Floats = self._rate(one, choice.sets).mean(axis=0)
        return expected

    def predict_logged(self, one: LoggedRound) -> Floats:
        """Return what the model expects of the arms that were shown, for each vector of its weights."""
        expected: Floats = self._rate(one, one.shown[None])[0]
        return expected

    def weigh(self, one: LoggedRound, choice: Choice) -> Weighted:
        """Return the round with the weight of its set."""
        w = choice.weigh(one.shown) / one.set_propensity
        return Weighted(w, w * one.won.sum(), w * self.predict_logged(one)[0])

    def expect(self, one: LoggedRound) -> float:  # noqa: ARG002
        """Return the average of the weight."""
        return 1.0

    def _rate(self, one: LoggedRound, sets: Integers) -> Floats:
        total = one.v[sets].sum(axis=1)
        rates: Floats = total / (1.0 + total)
        return rates


class Wins:
    """Rounds won by the policy's arms, each against the competition of the logs."""

    name: ClassVar[str] = "wins"
    needs: ClassVar[str] = "propensity"
    needs_sets: ClassVar[bool] = False
    meaning: ClassVar[str] = "rounds won by its arms per round, each of them against the competition of the logs"

    def __init__(self, outside: bool) -> None:
        self._outside = float(outside)

    def predict(self, one: LoggedRound, choice: Choice) -> Floats:
        """Return what the model expects of a choice, for each vector of the model's weights."""
        expected: Floats = choice.probabilities @ self._expect_each(one)
        return expected

    def predict_logged(self, one: LoggedRound) -> Floats:
        """Return what the model expects of the arms that were shown, for each vector of its weights."""
        expected: Floats = self._expect_each(one)[one.shown].sum(axis=0)
        return expected

    def weigh(self, one: LoggedRound, choice: Choice) -> Weighted:
        """Return the round with the weights of its arms."""
        w = choice.probabilities[one.shown] / one.propensities
        return Weighted(float(w.sum()), float(w @ one.won), float(w @ self._expect_each(one)[one.shown, 0]))

    def expect(self, one: LoggedRound) -> float:
        """Return the average of the sum of the weights."""
        return float(len(one.shown))

    def _expect_each(self, one: LoggedRound) -> Floats:
        """Each arm's chance against competitors that are shown as often as in earlier rounds."""
        others = (len(one.shown) - 1.0) * (one.habits @ one.v) / one.habits.sum()
        chances: Floats = one.v / (one.v + others + self._outside)
        return chances


class Hits:
    """The share of rounds in which the arm that would win among all arms is shown; by a model only."""

    name: ClassVar[str] = "hits"
    needs_sets: ClassVar[bool] = False
    meaning: ClassVar[str] = "share of rounds in which the arm that would win among all arms is shown"

    def predict(self, one: LoggedRound, choice: Choice) -> Floats:
        """Return what the model expects of a choice, for each vector of the model's weights."""
        expected: Floats = choice.probabilities @ (one.v / one.v.sum(axis=0))
        return expected

    def predict_logged(self, one: LoggedRound) -> Floats:
        """Return what the model expects of the arms that were shown, for each vector of its weights."""
        expected: Floats = one.v[one.shown].sum(axis=0) / one.v.sum(axis=0)
        return expected

    def expect(self, one: LoggedRound) -> float:  # noqa: ARG002
        """Return the most that a round can bring."""
        return 1.0
