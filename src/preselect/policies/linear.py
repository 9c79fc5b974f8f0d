"""The base of policies whose utility is linear in the features: x'theta plus a width, chosen by compiled kernels."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.context import Context, Floats, Integers
from preselect.errors import InputError
from preselect.kernels import choosing
from preselect.kernels.types import CONTRAST, NOT_FINITE, PLAIN, TIED
from preselect.policies.estimators import Estimator
from preselect.policies.policy import Arrays, Choice, Mask, Policy, bound_rounding, list_candidates, pack

_INT64 = np.dtype(np.int64)
_MOST_SORTED_BY_INSERTION = 1000
_COVER_DRAWS = 64

Width: TypeAlias = tuple[Floats, float, int]  # Sigma, beta, form: what the kernels add to x'theta for exploration
_NO_WIDTH: Width = np.empty((0, 0)), 0.0, PLAIN
_NO_ROWS = np.empty((0, 0))  # tells the kernel not to copy rows: those of a structured context are not built for it


class Part:
    """An array of the estimate that can be read as an attribute of the policy."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, policy: LinearPolicy | None, owner: type) -> NDArray[Any]:
        if policy is None:  # read from the class, as help does
            return self  # type: ignore[return-value]
        array: NDArray[Any] = getattr(policy.estimate, self._name)
        return array


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
    estimate: Estimator
    theta = Part()
    choose: str = "best"  # or "cover", for policies that can draw from a belief

    def __init__(self, *, d: int, seed: int | None) -> None:
        super().__init__(d=d, seed=seed)
        self._scratch, self._room = np.empty((2, 0)), 0

    def _observe(self, rows: Floats, ranking: Integers) -> None:
        self.estimate.learn(rows, ranking, self.observations + 1)

    def _width(self) -> Width:
        """Return how widths are computed now; without exploration there are none."""
        return _NO_WIDTH

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        width = self._width()
        leader = int(self._score_all(context, _NO_WIDTH)[0].argmax()) if width[2] == CONTRAST else -1
        return self._score_all(context, width, leader)

    def _score_all(
        self, context: Context, width: Width, leader: int = -1, least: float = -math.inf
    ) -> tuple[Floats, Floats]:
        """Return score and width of every arm; arms that cannot reach `least` may get minus infinity instead."""
        Sigma, beta, form = width
        X, theta, Sigma = context.contract(self.estimate.theta, Sigma, form == CONTRAST)
        scores, widths = np.empty(len(X)), np.empty(len(X))
        if choosing.score(X, theta, Sigma, beta, form, leader, least, scores, widths) == NOT_FINITE:
            self._refuse(context)
        return scores, widths

    def _choose(self, context: Context, k: int, eligible: Mask) -> Choice:
        if self.choose == "cover":
            return self._cover(context, k, eligible)
        width = Sigma, beta, form = self._width()
        if k > _MOST_SORTED_BY_INSERTION:
            return self._choose_slowly(context, k, eligible, width)
        X, theta, Sigma = context.contract(self.estimate.theta, Sigma, form == CONTRAST)
        if self._room < len(X):
            self._scratch, self._room = np.empty((2, len(X))), len(X)
        arms, bounds = np.empty(k, _INT64), np.empty(2 * k)
        rows = _NO_ROWS if context.is_structured else np.empty((k, self.d))
        status = choosing.choose(X, theta, Sigma, beta, form, eligible, self._scratch, arms, bounds, rows)
        if status == NOT_FINITE:
            self._refuse(context)
        if status == TIED:
            least = float(bounds[k - 1])
            return self._choose_slowly(context, k, eligible, width, least - 2.0 * bound_rounding(least))
        return arms, bounds, context.rows(arms) if context.is_structured else rows

    def _choose_slowly(
        self, context: Context, k: int, eligible: Mask, width: Width, least: float = -math.inf
    ) -> Choice:
        """Make the same choice with ties drawn, scoring all arms that can reach `least`, a score known to be enough."""
        arms = list_candidates(eligible, context.shape[0])
        if width[2] == CONTRAST:
            leader = self._best(self._score_all(context, _NO_WIDTH)[0], arms, 1)
            scores, widths = self._score_all(context, width, int(leader[0]))
            chosen = np.concatenate((leader, self._best(scores, arms[arms != leader], k - 1)))
        else:
            scores, widths = self._score_all(context, width, least=least)
            chosen = self._best(scores, arms, k)
        return pack(context, chosen, scores, widths)

    def _cover(self, context: Context, k: int, eligible: Mask) -> Choice:
        """Choose the set whose best arm comes closest to the best of all arms, in expectation over the belief.

        Greedily, the mean over joint draws of utilities of max over the set of v_i / max v.
        """
        scores, widths = self._score(context)  # first, because it refuses bad input before anything is drawn
        arms = np.empty(k, dtype=np.int64)
        choosing.cover(self._draw(context, scores - widths, _COVER_DRAWS), scores - widths, eligible, arms)
        return pack(context, arms, scores, widths)

    def _draw(self, context: Context, u: Floats, draws: int) -> Floats:
        """Draw the utilities of all arms from the belief, n x draws, given their means u; for choose="cover"."""
        raise NotImplementedError

    def _refuse(self, context: Context) -> None:
        context.require_finite()
        raise InputError(
            f"X has entries up to {context.largest():.3g}, for which utilities are not finite; scale the features"
        )

    def _arrays(self) -> Arrays:
        return {**self.estimate.arrays(), **super()._arrays()}

    def _restore_arrays(self, arrays: Arrays) -> None:
        self.estimate.restore(arrays)
        super()._restore_arrays(arrays)

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        return {**self.estimate.widen(arrays), **super()._widen_arrays(arrays)}
