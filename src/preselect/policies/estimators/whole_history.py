"""The estimator of UCB-MNL, TS-MNL and others: maximum likelihood over the whole history, after every outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import integer
from preselect.context import Floats, Integers
from preselect.kernels import history
from preselect.kernels.types import NOT_FINITE, OK
from preselect.policies.estimators.gaussian import Gaussian
from preselect.policies.estimators.history import History
from preselect.policies.persistence import restore_in_place, widen_arrays
from preselect.scaling import Change

_TOLERANCE, _MOST_STEPS = 1e-5, 50  # a fit ends at a step shorter than this, in standard deviations; the most steps


class WholeHistory(Gaussian):
    """theta maximises the likelihood of all outcomes so far times the prior; A is minus the Hessian there.

    Without the prior N(mean, 1 / precision) there would be no maximum in the first rounds. Newton's method starts from
    the last estimate; a round costs O(t k d^2) and memory grows with every outcome, which is what these methods need.
    With `every` above 1 the estimate is recomputed only after that many outcomes. But an outcome whose features are
    larger than any before is tried at once: if no finite estimate follows, it has to be refused, because no later
    outcome could be learnt from after it.
    """

    def __init__(self, d: int, *, mean: ArrayLike = 0.0, precision: ArrayLike, every: int) -> None:
        super().__init__(d, mean=mean, precision=precision)
        self.every = integer(every, "every", 1)
        self.base = self.block[: 1 + d].copy()  # the prior, as the kernels read it
        self.history, self._largest = History(d), 0.0

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:  # noqa: ARG002
        self.history.append(rows, ranking)
        if self._fit(float(np.abs(rows).max())):
            return OK
        self.history.drop_last()
        return NOT_FINITE

    def _fit(self, largest: float) -> bool:
        """Fit theta if that is due, otherwise only check that it is possible; return whether theta is finite."""
        due = self.history.outcomes % self.every == 0
        if not due and largest <= self._largest:
            return True
        found = self._maximise(self.block if due else self.block.copy())
        if found:
            self._largest = max(self._largest, largest)
        return found

    def _maximise(self, estimate: Floats) -> bool:
        """Fit theta to all outcomes; return whether the estimate is finite."""
        past = self.history.arguments()
        return history.maximise_posterior(*past, self.base, 1.0, _TOLERANCE, _MOST_STEPS, estimate) >= 0

    def transform(self, change: Change, t: int) -> None:  # noqa: ARG002
        """Express the history in joint features that have changed, and maximise the likelihood again."""
        self.history.transform(change)
        self._largest = float(np.abs(self.history.arrays()["history"]).max(initial=0.0))
        if self.history.outcomes:
            self.theta[:] = change.map_weights(self.theta)
            self._maximise(self.block)

    def refresh(self) -> None:
        """Do nothing: every fit inverts A."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has been learnt, the history included."""
        return {**super().arrays(), **self.history.arrays()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore saved arrays; the history may be of any length."""
        restore_in_place(super().arrays(), arrays)
        self.history.restore(arrays)
        self._largest = float(np.abs(arrays["history"]).max(initial=0.0))

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of an estimator with fewer features, with zeros for the new ones in the history."""
        return {**widen_arrays(super().arrays(), arrays), **self.history.widen(arrays)}
