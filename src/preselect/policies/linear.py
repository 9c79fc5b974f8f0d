"""Policies whose utility is linear in the features: scores by x'theta plus a width, chosen by the compiled kernels."""

import math
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import number
from preselect.context import (
    Context,
    Floats,
    StructuredContext,
    as_floats,
    require_finite,
    require_finite_context,
)
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.kernels import choosing
from preselect.kernels.types import CONTRAST, NOT_FINITE, PLAIN, TIED
from preselect.policies.policy import Mask, Policy, candidates, described, rounding

_INT64 = np.dtype(np.int64)
_MOST_SORTED_BY_INSERTION = 1000


Width: TypeAlias = tuple[Floats, float, int]  # Sigma, beta, form: what the kernels add to x'theta for exploration
NO_WIDTH: Width = np.empty((0, 0)), 0.0, PLAIN


class LinearPolicy(Policy):
    """Ranks arms by x'theta plus a width, in the log domain, where no utility overflows."""

    d: int
    theta: Floats

    def __init__(self, *, d: int, seed: int | None) -> None:
        super().__init__(d=d, seed=seed)
        self._scratch, self._room = np.empty((2, 0)), 0

    def _width(self) -> Width:
        """How widths are computed now; without exploration there are none."""
        return NO_WIDTH

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        width = self._width()
        leader = int(self._scored(context, NO_WIDTH)[0].argmax()) if width[2] == CONTRAST else -1
        return self._scored(context, width, leader)

    def _scored(
        self, context: Context, width: Width, leader: int = -1, least: float = -math.inf
    ) -> tuple[Floats, Floats]:
        """Score and width of every arm; arms that cannot reach `least` may be given minus infinity instead."""
        X, theta, (Sigma, beta, form) = context, self.theta, width
        if isinstance(X, StructuredContext):
            X, theta, Sigma = _contracted(X, theta, Sigma, form)
        scores, widths = np.empty(len(X)), np.empty(len(X))
        status = choosing.score(X, theta, Sigma, beta, form, leader, least, scores, widths)
        if status == NOT_FINITE:
            self._refuse(context)
        return scores, widths

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        X, theta, width = context, self.theta, self._width()
        if k > _MOST_SORTED_BY_INSERTION:
            return self._choose_slowly(context, k, eligible, width)
        Sigma, beta, form = width
        if isinstance(X, StructuredContext):
            X, theta, Sigma = _contracted(X, theta, Sigma, form)
        if self._room < len(X):
            self._scratch, self._room = np.empty((2, len(X))), len(X)
        arms, numbers = np.empty(k, _INT64), np.empty(k * (2 + self.d))
        status = choosing.choose(X, theta, Sigma, beta, form, eligible, self._scratch, arms, numbers)
        if status == NOT_FINITE:
            self._refuse(context)
        if status == TIED:
            least = float(numbers[k - 1])
            return self._choose_slowly(context, k, eligible, width, least - 2.0 * rounding(least))
        if isinstance(context, StructuredContext):
            numbers[2 * k :] = context.rows(arms).ravel()
        return arms, numbers

    def _choose_slowly(
        self, context: Context, k: int, eligible: Mask, width: Width, least: float = -math.inf
    ) -> tuple[NDArray[np.int64], Floats]:
        """The same choice with ties drawn: with all arms scored that can reach `least`, a score known to be enough."""
        arms = candidates(eligible, context.shape[0])
        if width[2] == CONTRAST:
            leader = self._best(self._scored(context, NO_WIDTH)[0], arms, 1)
            scores, widths = self._scored(context, width, int(leader[0]))
            chosen = np.concatenate((leader, self._best(scores, arms[arms != leader], k - 1)))
        else:
            scores, widths = self._scored(context, width, least=least)
            chosen = self._best(scores, arms, k)
        return described(context, chosen, scores, widths)

    def _refuse(self, context: Context) -> None:
        require_finite_context(context)
        largest = np.abs(np.asarray(context)).max()
        raise InputError(
            f"X must be small enough for finite utilities, got entries up to {largest:.3g}; scale features"
        )


def _contracted(context: StructuredContext, theta: Floats, Sigma: Floats, form: int) -> tuple[Floats, Floats, Floats]:
    """X, theta and Sigma as the kernels take them: the structure of a context is used, not built."""
    require_finite(context.context, "context of X")
    return context.contract(theta, Sigma, form == CONTRAST)


def refuse_decision(decision: Decision, estimate: Floats) -> NoReturn:
    """Say that a decision cannot be learnt from."""
    largest = np.abs(decision.rows).max(), np.abs(estimate).max()
    raise InputError(
        "decision must have rows from which finite estimates follow, got entries up to {:.3g} and estimates up "
        "to {:.3g}; nothing was learnt; scale the features".format(*largest)
    )


def per_feature(values: ArrayLike, argument: str, d: int, *, above: float = -math.inf) -> Floats:
    """One number for every feature, or d numbers, as d numbers above a limit."""
    if isinstance(values, (int, float, np.number)):
        return np.full(d, number(values, argument, above=above))
    array = as_floats(values, argument, 1)
    if len(array) != d:
        raise InputError(f"{argument} must be one number or d={d} of them, got {len(array)}")
    require_finite(array, argument)
    if not np.all(array > above):
        raise InputError(f"{argument} must be above {above}, got {array.min()}")
    return array


def saved(values: ArrayLike) -> float | list[float]:
    """A parameter of `per_feature` as it is kept and saved: one number, or a list."""
    return float(values) if isinstance(values, (int, float, np.number)) else np.asarray(values, float).tolist()
