"""The base of policies whose utilities are linear in the features."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from preselect.arguments import integer
from preselect.context import Context, Floats, Integers, Mask
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.kernels import choosing, pruning
from preselect.kernels.types import CONTRAST, NOT_FINITE, PLAIN, TIED
from preselect.outcomes import Outcome
from preselect.policies.choices import Choice, assemble, fill, lead, put_first, tie_tolerance
from preselect.policies.cover import cover
from preselect.policies.estimators import Estimator, update, update_by_race
from preselect.policies.part import Part
from preselect.policies.persistence import Arrays
from preselect.policies.policy import Policy
from preselect.randomness import Randomness
from preselect.rules import Room, Rules
from preselect.scaling import Change

Width: TypeAlias = tuple[Any, float, float, int]  # Sigma, beta, growth, form: see kernels.choosing.choose

_INT64 = np.dtype(np.int64)
_MAX_SORTED_BY_INSERTION = 1000
_COVER_DRAWS = 64
NO_WIDTH: Width = np.empty((0, 0)), 0.0, 0.0, PLAIN
_NOTHING = np.empty(0)  # set apart: see kernels.pruning.set_apart
_NO_ROWS = np.empty((0, 0))  # tells the kernel not to copy rows: those of a structured context are not built for it


class LinearPolicy(Policy):
    """Ranks arms by x'theta plus a width, in the log domain, where no utility overflows.

    A subclass sets `estimate`, which holds theta and learns from outcomes, and says in `_width` how it explores.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    seed : int or None
        Seed of the policy's random generator; None for a different one each time.
    """

    d: int
    learns_ties = True
    estimate: Estimator
    theta = Part()
    choose: str = "best"  # or "cover", for policies that can draw from a belief

    def __init__(self, *, d: int, seed: int | None) -> None:
        super().__init__(d=integer(d, "d", 1), seed=seed)

    def _width(self) -> Width:
        """Return how widths are computed now; without exploration there are none."""
        return NO_WIDTH

    def _width_of_one(self) -> Width:
        """Return how widths are computed now if only one arm is chosen."""
        return self._width()

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        width = self._width()
        if width[3] != CONTRAST:
            return self._score_all(context, width)
        leader = int(self._score_all(context, NO_WIDTH)[0].argmax())
        return put_first(leader, *self._score_all(context, width, leader))

    def _score_all(
        self, context: Context, width: Width, leader: int = -1, least: float = -math.inf
    ) -> tuple[Floats, Floats]:
        """Return score and width of every arm; arms that cannot reach `least` may get minus infinity instead."""
        Sigma, beta, growth, form = width
        X, theta, Sigma = context.contract(self.estimate.theta, Sigma, form == CONTRAST, None, leader)
        scores, widths = np.empty(len(X)), np.empty(len(X))
        if choosing.score(X, theta, Sigma, beta, growth, form, leader, least, scores, widths) == NOT_FINITE:
            self._refuse(context)
        return scores, widths

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        if self.choose == "cover" and self._covers(Room(eligible, context.shape[0], k, rules).size):
            return self._cover(context, k, eligible, randomness, rules)
        if rules is not None:
            return self._choose_slowly(context, Room(eligible, context.shape[0], k, rules), randomness)
        Sigma, beta, growth, form = self._width() if k > 1 else self._width_of_one()
        if k > _MAX_SORTED_BY_INSERTION:
            return self._choose_slowly(context, Room(eligible, context.shape[0], k), randomness)
        X, theta, Sigma = context.contract(self.estimate.theta, Sigma, form == CONTRAST, eligible)
        has_many = form == CONTRAST and len(X) > 8 * len(theta) and k > 1  # else it costs more than it saves
        apart = pruning.set_apart(Sigma, theta) if has_many else _NOTHING
        arms, bounds = np.empty(k, _INT64), np.empty(2 * k)
        rows = _NO_ROWS if context.is_structured else np.empty((k, self.d))
        status = choosing.choose(X, theta, Sigma, beta, growth, form, apart, eligible, arms, bounds, rows)
        if status == NOT_FINITE:
            self._refuse(context)
        if status == TIED:
            least = float(bounds[k - 1])
            room = Room(eligible, context.shape[0], k)
            return self._choose_slowly(context, room, randomness, least - 2.0 * tie_tolerance(least))
        return arms, bounds, context.rows(arms) if context.is_structured else rows

    def _choose_slowly(self, context: Context, room: Room, randomness: Randomness, least: float = -math.inf) -> Choice:
        """Make the same choice, with rules or with ties; `least` is a lower bound of the k-th best score."""
        width = self._width() if room.size > 1 else self._width_of_one()
        if width[3] == CONTRAST:
            leader = lead(room, self._score_all(context, NO_WIDTH)[0], randomness)
            scores, widths = self._score_all(context, width, int(leader[0]))
            chosen = np.concatenate((leader, fill(room, scores, randomness)))
            put_first(int(leader[0]), scores, widths, chosen)
        else:
            scores, widths = self._score_all(context, width, least=least)
            chosen = fill(room, scores, randomness)
        return assemble(context, chosen, scores, widths)

    def _covers(self, size: int) -> bool:
        """Return whether a set of this size is chosen as a whole; a set of one that can teach something explores."""
        return self.choose == "cover" and (size > 1 or not self.outside)

    def _cover(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        """Choose the set whose best arm comes closest to the best of all arms, in expectation over the belief."""
        scores, widths = self._score(context)  # first, because it refuses bad input before anything is drawn
        u = scores - widths
        draws = self._draw(context, u, _COVER_DRAWS, randomness.generator)
        arms = cover(draws, u, eligible, k, randomness, rules)
        return assemble(context, arms, scores, widths)

    def _draw(self, context: Context, u: Floats, draws: int, generator: np.random.Generator) -> Floats:
        """Draw the utilities of all arms from the belief, n x draws, given their means u; for choose="cover"."""
        raise NotImplementedError

    def _refuse(self, context: Context) -> None:
        context.require_finite()
        raise InputError(
            f"X has entries up to {context.largest():.3g}, for which utilities are not finite; scale the features"
        )

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        if not self.outside:
            return self._observe(decision.rows, ranking, self._outcomes + 1)
        return update_by_race(self.estimate, decision.rows, ranking, outcome, self._outcomes + 1)

    def _observe(self, rows: Floats, ranking: Integers, t: int) -> None:
        """Learn that the arms with these rows (k x d) came in this order: outcome t, counted from 1."""
        update(self.estimate, rows, ranking, t)

    def transform(self, change: Change) -> None:
        self.estimate.transform(change, self.observations + self.outside * self.no_winners)

    def _arrays(self) -> Arrays:
        return {**self.estimate.arrays(), **super()._arrays()}

    def _restore_arrays(self, arrays: Arrays) -> None:
        self.estimate.restore(arrays)
        super()._restore_arrays(arrays)

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        return {**self.estimate.widen(arrays), **super()._widen_arrays(arrays)}
