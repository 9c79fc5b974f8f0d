"""Online Newton with one covariance block per arm: what an outcome costs does not depend on the number of arms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import integer, number
from preselect.block_context import BlockContext, Blocks, pack, unpack
from preselect.context import Floats, Integers, Mask
from preselect.errors import InputError
from preselect.kernels import arm_by_arm
from preselect.kernels.types import OK
from preselect.outcomes import Outcome
from preselect.policies.estimators.estimator import Estimator
from preselect.policies.estimators.gaussian import find_root
from preselect.policies.estimators.history import History
from preselect.policies.estimators.online_newton import OnlineNewton
from preselect.policies.persistence import make_block
from preselect.scaling import Change

_SLOTS_AT_A_TIME = 4096  # how many slots to convert to a new scaling together; limits memory


class BlockNewton(Estimator):
    """The belief theta ~ N(theta, P), where P has one block for the shared features and one for each slot.

    An outcome is about the shared features and the slots of k arms. Their blocks make up a small Gaussian belief, which
    learns as OnlineNewton does; then the covariances between blocks are dropped (assumed density filtering). So every
    variance is right after the outcome. What is lost is the correlation between arms that competed: contrasts between
    them seem less certain than they are, by a factor of at most k / (k - 1) in the variance. A step costs O(k (m p + k
    p)^2) for any number of slots.
    """

    def __init__(
        self, d: int, blocks: tuple[int, int], *, mean: ArrayLike, precision: ArrayLike, discount: float
    ) -> None:
        self.shared, self.size = integer(blocks[0], "blocks[0]", 0), integer(blocks[1], "blocks[1]", 1)
        if discount != 1.0:
            raise InputError(f"discount is {discount}, but a policy with blocks cannot forget; use discount=1.0")
        if d < self.shared or (d - self.shared) % self.size:
            raise InputError(f"d={d} is not made up of {self.shared} shared features and slots of {self.size}")
        super().__init__(d)
        self.discount = 1.0
        self.mean, self.precision = _as_one(mean, "mean"), _as_one(precision, "precision", above=0.0)
        slots = (d - self.shared) // self.size
        self.theta[:] = self.mean
        self.P = Blocks(make_block(self.shared, self.shared), make_block(slots, self.size * (self.size + 1) // 2))
        np.fill_diagonal(self.P.shared, 1.0 / self.precision)
        self.P.own[:] = self._prior_block()
        self.touched = np.zeros(slots, dtype=np.bool_)  # slots about which something was learnt
        self.pace = np.zeros(5)  # sums over the races whose time is known: see race_times.watch

    def _prior_block(self) -> Floats:
        return pack(np.eye(self.size) / self.precision)

    @property
    def own(self) -> Floats:
        """The weights of each slot."""
        return self.theta[self.shared :].reshape(-1, self.size)

    def focus(self, rows: Floats, ids: Integers) -> tuple[Estimator, Floats]:
        """Return the small belief that learns from an outcome of these arms, and their rows in its features.

        The first columns of `rows` are the shared features, the others those of the arm's slot.
        """
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(self.touched):
            raise InputError(f"the decision is about slot {ids.max()}, but there are only {len(self.touched)}")
        k, shared, size = len(ids), self.shared, self.size
        active = np.zeros((k, shared + k * size))
        active[:, :shared] = rows[:, :shared]
        active[:, shared:].reshape(k, k, size)[np.arange(k), np.arange(k)] = rows[:, shared:]
        active.setflags(False)  # type: ignore[call-arg]  # as those of decisions are
        return _Focus(self, ids), active

    @property
    def covariance(self) -> Blocks:
        """The blocks of the covariance of theta."""
        return self.P

    def weigh(self, rows: Floats, ids: Integers) -> Floats:
        """Return what each feature of these arms adds to their utilities: shared features, then those of the slot."""
        weights = np.hstack((np.tile(self.theta[: self.shared], (len(ids), 1)), self.own[ids]))
        weighed: Floats = rows * weights
        return weighed

    def find_covariance(self, rows: Floats, ids: Integers) -> Floats:
        """Return the covariance of the utilities of these arms, k x k."""
        shared, own = rows[:, : self.shared], rows[:, self.shared :]
        covariance: Floats = shared @ self.P.shared @ shared.T
        variances = np.einsum("ip,ipq,iq->i", own, unpack(self.P.own[ids], self.size), own)
        return covariance + np.diag(variances)

    def look(self, rows: Floats, ids: Integers) -> tuple[Floats, Floats]:
        """Return the utilities of these arms and their variances."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.weigh(rows, ids).sum(axis=1), self.find_covariance(rows, ids).diagonal()

    def gain(self, rows: Floats, ids: Integers, gradients: Floats, curvatures: Floats) -> None:
        """Update each of these arms separately, given the slope and the curvature of its log-likelihood."""
        arm_by_arm.learn_alone(rows, ids, gradients, curvatures, self.theta, self.P.shared, self.P.own)
        self.touched[ids] = True

    def place(self, rows: Floats, ids: Integers) -> tuple[Integers, Mask]:
        """Return where the features of an outcome are in theta, and which of them are not zero for all arms."""
        own = self.shared + ids[:, None] * self.size + np.arange(self.size)
        known = np.concatenate((rows[:, : self.shared].any(axis=0), (rows[:, self.shared :] != 0.0).ravel()))
        return np.concatenate((np.arange(self.shared), own.ravel())), known

    def forget_slots(self, slots: Integers) -> None:
        """Reset the belief about some slots to the prior."""
        self.own[slots] = self.mean
        self.P.own[slots] = self._prior_block()
        self.touched[slots] = False

    def transform(self, change: Change, t: int) -> None:  # noqa: ARG002
        """Express the evidence in joint features that have changed, block by block; the prior stays.

        The shift of arms' features is the same for all arms. It is left out, because no contrast depends on it.
        """
        of_context = np.diag(np.concatenate(([1.0], change.context[0])))
        of_context[1:, 0] = change.context[1]
        if self.shared:
            of_shared = np.kron(np.diag(change.arms[0]), of_context)
            theta, P = self._map(of_shared, self.theta[None, : self.shared], self.P.shared[None])
            self.theta[: self.shared], self.P.shared[:] = theta[0], P[0]
        touched = np.flatnonzero(self.touched)
        for slots in np.split(touched, range(_SLOTS_AT_A_TIME, len(touched), _SLOTS_AT_A_TIME)):
            theta, P = self._map(of_context, self.own[slots], unpack(self.P.own[slots], self.size))
            self.own[slots], self.P.own[slots] = theta, pack(P)

    def _map(self, L: Floats, theta: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return the mean and covariance of each block after rows x have become L x; see Gaussian._map_belief."""
        A, ridge = np.linalg.inv(P), self.precision * np.eye(len(L))
        evidence = (A @ theta[:, :, None])[:, :, 0] - self.precision * self.mean
        mapped = np.linalg.inv(ridge + L @ (A - ridge) @ L.T)
        moved = (mapped @ (self.precision * self.mean + evidence @ L.T)[:, :, None])[:, :, 0]
        return moved, 0.5 * (mapped + mapped.transpose(0, 2, 1))

    def draw(self, context: BlockContext, u: Floats, draws: int, generator: np.random.Generator) -> Floats:
        """Draw the utilities of all arms jointly from the belief, given their means u: n x draws."""
        drawn: Floats = u[:, None] + np.sqrt(context.own_variances(self.P))[:, None] * generator.standard_normal(
            (len(u), draws)
        )
        if self.shared:
            root = find_root(context.shared_covariance(self.P))
            drawn += context.arms @ (root @ generator.standard_normal((len(root), draws)))
        return drawn

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has been learnt, under the names that state files have for it."""
        blocks = {"shared": self.P.shared, "own": self.P.own}
        return {**super().arrays(), **blocks, "touched": self.touched, "pace": self.pace}

    def widen_blocks(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of a policy with one feature less in each block and in each group of shared features.

        The lower half of a block is kept row after row, so its last row is what is added.
        """
        groups = self.d // self.size
        old = np.delete(np.arange(self.d).reshape(groups, self.size), -1, axis=1).ravel()  # where features were
        shared = old[old < self.shared]
        wider = {name: array.copy() for name, array in self.arrays().items()}
        wider["theta"][old] = arrays["theta"]
        wider["shared"][np.ix_(shared, shared)] = arrays["shared"]
        wider["own"][:, : arrays["own"].shape[1]] = arrays["own"]
        wider |= {name: arrays[name] for name in ("touched", "pace")}
        if "seen" in arrays:
            wider["seen"] = np.zeros(self.d, dtype=np.bool_)
            wider["seen"][old] = arrays["seen"]
        return wider

    def split(self, dense: OnlineNewton) -> dict[str, NDArray[Any]]:
        """Return the arrays of an estimator with these blocks that believes what a dense one does."""
        own = dense.P[self.shared :, self.shared :].reshape(len(self.touched), self.size, -1, self.size)
        blocks = pack(np.einsum("ipiq->ipq", own))
        touched = np.any(blocks != self._prior_block(), axis=1) | np.any(
            dense.theta[self.shared :].reshape(-1, self.size) != self.mean, axis=1
        )
        shared = dense.P[: self.shared, : self.shared].copy()
        return {"theta": dense.theta, "shared": shared, "own": blocks, "touched": touched, "pace": dense.pace}


class _Focus(OnlineNewton):
    """A dense belief about the shared features and some slots; it writes what it learns back to the whole."""

    def __init__(self, whole: BlockNewton, slots: Integers) -> None:
        shared, size = whole.shared, whole.size
        super().__init__(shared + len(slots) * size, mean=0.0, precision=1.0, discount=1.0)
        self._whole, self._slots, self._is_fitted = whole, slots, False
        self.pace = whole.pace
        self.theta[:shared], self.theta[shared:] = whole.theta[:shared], whole.own[slots].ravel()
        self.P[:] = 0.0
        self.P[:shared, :shared] = whole.P.shared
        self._own()[:] = unpack(whole.P.own[slots], size)

    def _own(self) -> Floats:
        """The blocks of the slots, as a view of P."""
        shared, size = self._whole.shared, self._whole.size
        row, number = self.P.strides
        own = self.P[shared:, shared:]
        strides = (size * (row + number), row, number)
        return np.lib.stride_tricks.as_strided(own, (len(self._slots), size, size), strides)

    def learn(self, rows: Floats, ranking: Integers, t: int) -> int:
        return self._write_back(super().learn(rows, ranking, t))

    def learn_race(self, rows: Floats, ranking: Integers, outcome: Outcome, t: int) -> int:
        return self._write_back(super().learn_race(rows, ranking, outcome, t))

    def _write_back(self, status: int) -> int:
        if status == OK:
            whole, shared = self._whole, self._whole.shared
            whole.theta[:shared], whole.own[self._slots] = (
                self.theta[:shared],
                self.theta[shared:].reshape(-1, whole.size),
            )
            whole.P.shared[:] = self.P[:shared, :shared]
            whole.P.own[self._slots] = pack(self._own())
            whole.touched[self._slots] = True
        return status

    def _maximise(self, outcomes: History, base: Floats, tolerance: float) -> int:
        base[1:] = np.linalg.inv(self.P)  # A, which steps do not use
        return super()._maximise(outcomes, base, tolerance)

    def refresh(self) -> None:
        """Do nothing: there is no other copy of the belief to recompute P from."""


def make_newton(
    d: int, blocks: tuple[int, int] | None, mean: ArrayLike, precision: ArrayLike, discount: float
) -> OnlineNewton | BlockNewton:
    """Return an estimator with one covariance, or with blocks of it."""
    if blocks is None:
        return OnlineNewton(d, mean=mean, precision=precision, discount=discount)
    return BlockNewton(d, blocks, mean=mean, precision=precision, discount=discount)


def _as_one(value: ArrayLike, argument: str, **limits: float) -> float:
    if np.ndim(value):
        raise InputError(f"{argument} was given per feature; with blocks give one number for all features")
    return number(value, argument, **limits)
