"""Maximum likelihood over the whole history, found anew after every outcome: what the MNL bandits build on."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import integer
from preselect.decision import Decision
from preselect.kernels import history, likelihood
from preselect.policies.gaussian import GaussianPolicy
from preselect.policies.linear import refuse_decision

_TOLERANCE, _MOST_STEPS = 1e-5, 50


class WholeHistory(GaussianPolicy):
    """theta maximises the likelihood of all outcomes so far, A is minus the Hessian there and P its inverse.

    The plain maximum does not exist in the first rounds, so it is that of the likelihood times the prior
    N(mean, 1 / precision). Newton's method starts from the estimate before; a round costs O(t k d^2) and memory grows
    with every outcome, which is what these methods ask for. `every` refits after so many outcomes only.
    """

    _state = (*GaussianPolicy._state, "history", "sizes", "lengths")
    keeps_history = True

    def __init__(
        self,
        *,
        d: int,
        mean: ArrayLike = 0.0,
        precision: ArrayLike,
        every: int = 1,
        choose: str = "best",
        seed: int | None,
    ) -> None:
        super().__init__(d=d, mean=mean, precision=precision, choose=choose, seed=seed)
        self.every = integer(every, "every", 1)
        self._rows, self._outcomes = 0, 0
        self.history = np.empty((0, self.d))  # the rows of all outcomes, ranked; there may be room for more
        self.sizes, self.lengths = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        k = len(decision.arms)
        self._make_room(k)
        self.history[self._rows : self._rows + k] = likelihood.rank_rows(decision.rows, ranking)
        self.sizes[self._outcomes], self.lengths[self._outcomes] = k, len(ranking)
        if (self._outcomes + 1) % self.every == 0 and self._fit(self._outcomes + 1) < 0:
            refuse_decision(decision, self._estimate)
        self._rows += k
        self._outcomes += 1

    def _fit(self, outcomes: int) -> int:
        """Newton's method on the first outcomes; answers the steps taken, -1 if there is no finite maximum."""
        return history.maximise_posterior(
            self.history, self.sizes, self.lengths, outcomes, self._prior, _TOLERANCE, _MOST_STEPS, self._estimate
        )

    def _make_room(self, k: int) -> None:
        """Room for one more outcome with k rows; it grows by doubling."""
        if self._rows + k > len(self.history):
            self.history = _longer(self.history, 2 * (self._rows + k))
        if self._outcomes == len(self.sizes):
            self.sizes = _longer(self.sizes, 2 * self._outcomes + 1)
            self.lengths = _longer(self.lengths, 2 * self._outcomes + 1)

    def _collect_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = super()._collect_state()
        arrays["history"] = self.history[: self._rows]
        arrays["sizes"], arrays["lengths"] = self.sizes[: self._outcomes], self.lengths[: self._outcomes]
        return header, arrays

    def _set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        history, sizes, lengths = (arrays[name] for name in ("history", "sizes", "lengths"))
        if history.ndim != 2 or history.shape[1] != self.d or sizes.sum() != len(history) or len(sizes) != len(lengths):
            raise ValueError(f"history has shape {history.shape}, sizes {sizes.shape} and lengths {lengths.shape}")
        self.history, self.sizes, self.lengths = history, sizes, lengths
        self._rows, self._outcomes = len(history), len(sizes)
        super()._set_state(arrays)

    def _widened(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        fixed = {name: array for name, array in arrays.items() if name not in ("history", "sizes", "lengths")}
        history = arrays["history"]
        added = np.zeros((len(history), self.d - history.shape[1]))
        return {**arrays, **super()._widened(fixed), "history": np.hstack((history, added))}


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
