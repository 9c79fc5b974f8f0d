"""Maximum likelihood over the whole history, recomputed after every outcome: what the MNL bandits build on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import integer
from preselect.context import Floats, Integers
from preselect.kernels import history, likelihood
from preselect.kernels.types import NOT_FINITE, OK
from preselect.policies.estimators.gaussian import Gaussian
from preselect.policies.persistence import widen_arrays

_TOLERANCE, _MOST_STEPS = 1e-5, 50


class WholeHistory(Gaussian):
    """theta maximises the likelihood of all outcomes so far times the prior; A is minus the Hessian there.

    Without the prior N(mean, 1 / precision) there would be no maximum in the first rounds. Newton's method starts from
    the last estimate; a round costs O(t k d^2) and memory grows with every outcome, which is what these methods need.
    With `every` above 1 the estimate is recomputed only after that many outcomes. An outcome whose features are larger
    than any before is tried at once, all the same: one from which no finite estimate follows has to be refused, because
    no later outcome could be learnt from after it.
    """

    def __init__(self, d: int, *, mean: ArrayLike = 0.0, precision: ArrayLike, every: int) -> None:
        super().__init__(d, mean=mean, precision=precision)
        self.every = integer(every, "every", 1)
        self.outcomes, self._rows, self._largest = 0, 0, 0.0
        self._history = np.empty((0, d))  # the ranked rows of all outcomes, with room for more, as in the next two
        self._sizes, self._lengths = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    @property
    def history(self) -> Floats:
        """The rows of all outcomes, one outcome after another, each in the order of its ranking."""
        return self._history[: self._rows]

    @property
    def sizes(self) -> Integers:
        """The number of rows of each outcome."""
        return self._sizes[: self.outcomes]

    @property
    def lengths(self) -> Integers:
        """The number of ranked arms of each outcome."""
        return self._lengths[: self.outcomes]

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:  # noqa: ARG002
        k, outcome = len(rows), self.outcomes
        self._make_room(k)
        self._history[self._rows : self._rows + k] = likelihood.rank_rows(rows, ranking)
        self._sizes[outcome], self._lengths[outcome] = k, len(ranking)
        if not self._fit(outcome + 1, float(np.abs(rows).max())):
            return NOT_FINITE
        self._rows += k
        self.outcomes += 1
        return OK

    def _fit(self, outcomes: int, largest: float) -> bool:
        """Maximise over the first outcomes if it is due, or only try to; whether a finite estimate follows."""
        due = outcomes % self.every == 0
        if not due and largest <= self._largest:
            return True
        steps = history.maximise_posterior(
            self._history,
            self._sizes,
            self._lengths,
            outcomes,
            self.prior,
            _TOLERANCE,
            _MOST_STEPS,
            self.block if due else self.block.copy(),
        )
        if steps >= 0:
            self._largest = max(self._largest, largest)
        return steps >= 0

    def _make_room(self, k: int) -> None:
        """Make room for one more outcome with k rows, by doubling."""
        if self._rows + k > len(self._history):
            self._history = _lengthen(self._history, 2 * (self._rows + k))
        if self.outcomes == len(self._sizes):
            self._sizes = _lengthen(self._sizes, 2 * self.outcomes + 1)
            self._lengths = _lengthen(self._lengths, 2 * self.outcomes + 1)

    def refresh(self) -> None:
        """Do nothing: every fit inverts A."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has been learnt, the history included."""
        return {**super().arrays(), "history": self.history, "sizes": self.sizes, "lengths": self.lengths}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over saved arrays; the history may be of any length."""
        history, sizes, lengths = (arrays[name] for name in ("history", "sizes", "lengths"))
        if history.ndim != 2 or history.shape[1] != self.d or sizes.sum() != len(history) or len(sizes) != len(lengths):
            raise ValueError(f"history has shape {history.shape}, sizes {sizes.shape} and lengths {lengths.shape}")
        self._history, self._sizes, self._lengths = history, sizes, lengths
        self._rows, self.outcomes, self._largest = len(history), len(sizes), float(np.abs(history).max(initial=0.0))
        super().restore(arrays)

    def widen(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of an estimator with fewer features, with zeros for the new ones in the history."""
        history = arrays["history"]
        added = np.zeros((len(history), self.d - history.shape[1]))
        return {**arrays, **widen_arrays(super().arrays(), arrays), "history": np.hstack((history, added))}


def _lengthen(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
