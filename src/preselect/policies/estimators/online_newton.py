"""The estimator of Newton and Thompson: online Newton on the Plackett-Luce likelihood, one step per outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import number
from preselect.context import Floats, Integers
from preselect.kernels import history, learning
from preselect.kernels.types import IMPRECISE, LONG, NOT_FINITE, OK
from preselect.outcomes import Outcome
from preselect.policies import race_times
from preselect.policies.estimators.estimator import Estimator
from preselect.policies.estimators.gaussian import Gaussian
from preselect.policies.estimators.history import NO_OFFSETS, History
from preselect.policies.persistence import restore_in_place, widen_arrays
from preselect.scaling import Change

_MOST_FEATURES = 256  # with more, no outcomes are kept: a fit would cost more than all steps between two fits
_MOST_OUTCOMES = 256  # how many outcomes are kept
_MOST_NUMBERS = 1_000_000  # how many numbers the rows of these outcomes may hold together
_LEAST_INTERVAL = 4  # outcomes between fits
_SQUARE = 64  # with many features d^2 / 64 outcomes between fits, because a fit costs O(d^3)
_GROWTH = 3  # never fewer outcomes between fits than a third of all so far
_TOLERANCE, _MOST_STEPS = 0.1, 50  # a fit ends at a step shorter than this, in standard deviations; the most steps
_FINE = 1e-6  # _TOLERANCE of a fit without a new outcome, which must change nothing if repeated


class OnlineNewton(Gaussian):
    """After each outcome theta moves to the maximum of belief times likelihood, and A gains the curvature there.

    This is the Laplace approximation of the posterior, updated by every outcome, for winners, rankings and top-m
    rankings alike. A step costs O(k d^2). It takes the curvature of an outcome at an early estimate, and if that were
    never revised, the belief would become far too sure. So the latest outcomes are kept, and now and then theta is
    fitted to all of them exactly, starting from `base`, the belief before them; A is then minus the Hessian at theta.
    When 256 outcomes, or a million numbers, are kept, the belief becomes the new base and they are dropped. With more
    than 256 features fits would cost too much, so there are none, and the belief is surer than it should be.

    With `discount` below 1, A is multiplied by it before each outcome. The prior is not forgotten: one feature after
    another gets back what the discount took from its prior precision, which pulls theta to the prior mean.
    """

    def __init__(self, d: int, *, mean: ArrayLike, precision: ArrayLike, discount: float) -> None:
        super().__init__(d, mean=mean, precision=precision)
        self.discount = number(discount, "discount", above=0.0, most=1.0)
        self.pace = np.zeros(5)  # sums over the races whose time is known: see race_times.watch
        self.base = self.block[: 1 + d].copy()  # theta and A before the outcomes that are kept
        self._is_fitted = d <= _MOST_FEATURES
        self.recent, self._latest = History(d), History(d)
        self.fits = np.array([0, self._interval(0)])  # how many outcomes were kept at the last fit, and at the next

    def _interval(self, t: int) -> int:
        """Return how many outcomes there are between outcome t, at which theta was fitted, and the next fit."""
        memory = t if self.discount == 1.0 else min(t, int(1.0 / (1.0 - self.discount)))
        return max(_LEAST_INTERVAL, self.d * self.d // _SQUARE, memory // _GROWTH)

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:
        return self._learn(rows, ranking, NO_OFFSETS, t)

    def learn_race(self, rows: Floats, ranking: Integers, outcome: Outcome, t: int) -> int:
        """Learn from a race, as `preselect.policies.race_times` describes it."""
        with np.errstate(over="ignore", invalid="ignore"):
            u = rows @ self.theta
        if not np.isfinite(u).all():
            return NOT_FINITE
        race, pace = race_times.watch(rows, ranking, outcome, u, self.pace, self.discount)
        status = self._learn(*race, t)
        if status == OK:
            self.pace[:] = pace
        return status

    def _learn(self, rows: Floats, ranking: Integers, offsets: Floats, t: int) -> int:
        outcome = rows, ranking, offsets
        status = self._step(*outcome) if self.discount == 1.0 else self._fade_and_step(*outcome, t)
        if status == OK and self._is_fitted:
            self.recent.append(*outcome)
            if self.recent.outcomes >= self.fits.item(1) or self._is_full():
                self._fit(t, _TOLERANCE)
        return status

    def _step(self, rows: Floats, ranking: Integers, offsets: Floats) -> int:
        status = learning.update_newton(rows, ranking, offsets, self.block) if self.d >= len(rows) else IMPRECISE
        if status == LONG:
            status = learning.proximal_newton(rows, ranking, offsets, self.block)
        if status == IMPRECISE:
            self._latest.clear()
            self._latest.append(rows, ranking, offsets)
            status = self._maximise(self._latest, self.block[: 1 + self.d], _TOLERANCE)
        return status

    def _fade_and_step(self, rows: Floats, ranking: Integers, offsets: Floats, t: int) -> int:
        before = self.block.copy()
        since = self.recent.outcomes - int(self.fits[0]) + 1 if self._is_fitted else t
        status = learning.fade(self.prior, self.discount, t, since, self.block)
        if status == OK:
            status = self._step(rows, ranking, offsets)
        if status != OK:
            self.block[:] = before
        return status

    def _is_full(self) -> bool:
        return self.recent.outcomes >= _MOST_OUTCOMES or self.recent.length * self.d >= _MOST_NUMBERS

    def _fit(self, t: int, tolerance: float) -> None:
        """Fit theta and A to the outcomes that are kept; drop them if there are enough."""
        self._maximise(self.recent, self._fade_base(), tolerance)
        if self._is_full():
            self.base[:] = self.block[: 1 + self.d]
            self.recent.clear()
        self.fits[:] = self.recent.outcomes, self.recent.outcomes + self._interval(t)

    def _maximise(self, outcomes: History, base: Floats, tolerance: float) -> int:
        past = outcomes.arguments()
        steps = history.maximise_posterior(*past, base, self.discount, tolerance, _MOST_STEPS, self.block)
        return NOT_FINITE if steps < 0 else OK

    def _fade_base(self) -> Floats:
        """Return the belief in `base` as the discount has left it, with the prior in place of what is lost."""
        left = self.discount**self.recent.outcomes
        if left == 1.0:
            return self.base
        mean, precision = self.prior
        A = left * self.base[1:] + (1.0 - left) * np.diag(precision)
        theta = np.linalg.solve(A, left * self.base[1:] @ self.base[0] + (1.0 - left) * precision * mean)
        return np.vstack((theta, A))

    def transform(self, change: Change, t: int) -> None:
        """Express base and outcomes in joint features that have changed, and fit theta and A to them."""
        if not self._is_fitted:
            return super().transform(change, t)
        self.base[0], self.base[1:] = self._map_belief(change, self.base[0], self.base[1:])
        self.recent.transform(change)
        self.theta[:] = change.map_weights(self.theta)
        return self._fit(t, _FINE)

    def forget(self, places: Integers, fresh: Estimator) -> None:
        """Reset the belief about some features to the prior. The result is the new base, and outcomes are dropped."""
        super().forget(places, fresh)
        self.base[0], self.base[1:] = self.theta, self.A
        self.recent.clear()
        self.fits[:] = 0, self._interval(0)

    def adopt(self, block: Floats, outcomes: int) -> None:
        """Replace the belief by theta, A and P that were fitted to this many outcomes elsewhere; it is the new base."""
        self.block[:] = block
        self.base[:] = block[: 1 + self.d]
        self.recent.clear()
        self.fits[:] = 0, self._interval(outcomes)

    def refresh(self) -> None:
        """Recompute P from A, unless fits do that."""
        if not self._is_fitted:
            super().refresh()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has been learnt, with the outcomes that are kept."""
        return {**self._fixed(), **self.recent.arrays()}

    def _fixed(self) -> dict[str, NDArray[Any]]:
        """Return the arrays whose size does not change."""
        return {**super().arrays(), "pace": self.pace, "base": self.base, "fits": self.fits}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore saved arrays. Old files have a shorter `pace` and no outcomes; their belief becomes the base."""
        base = np.vstack((arrays["theta"], arrays["A"]))
        pace = arrays.get("pace", self.pace)
        pace = np.append(pace, np.zeros(3)) if pace.shape == (2,) else pace
        arrays = {"base": base, "fits": self.fits, **self.recent.arrays(), **arrays, "pace": pace}
        restore_in_place(self._fixed(), arrays)
        if self._is_fitted:
            self.recent.restore(arrays)

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of an estimator with fewer features, with zeros for the new ones in the outcomes."""
        return {**widen_arrays(self._fixed(), arrays), **self.recent.widen(arrays)}
