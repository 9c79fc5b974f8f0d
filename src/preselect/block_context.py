"""Contexts and covariances of policies that keep one block of their covariance for each arm.

The joint features of an arm are z_i ⊗ c, whose weights all arms share, and e_i ⊗ w c, whose weights are its own. The
latter belong to the arm's *slot* and are 0 for every other arm. Only the shared part and one number per arm are ever
computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import require_finite
from preselect.context import Context, ContextLike, Floats, Integers, Mask, OneHotContext, StructuredContext
from preselect.errors import InputError

_SMALL = 2.0**-20  # scales a column that only carries utilities; a power of two, so that nothing is rounded


@dataclass(frozen=True)
class Blocks:
    """A symmetric block-diagonal matrix: one block for the shared features and one for each slot.

    Parameters
    ----------
    shared : array of shape (m p, m p)
        The block of the shared features.
    own : array of shape (slots, p (p + 1) / 2)
        The block of each slot: its lower half, row after row.
    """

    shared: Floats
    own: Floats

    @property
    def size(self) -> int:
        """How many numbers the blocks hold."""
        return self.shared.size + self.own.size

    def diagonal(self) -> Floats:
        """The diagonal of the whole matrix: of the shared features, then of one slot after the other."""
        rows, columns = _list_lower_half(math.isqrt(2 * self.own.shape[1]))
        return np.concatenate((self.shared.diagonal(), self.own[:, rows == columns].ravel()))


@cache
def _list_lower_half(size: int) -> tuple[Integers, Integers]:
    """Return the row and column indices of the lower half of a matrix, in the order of `Blocks.own`."""
    return np.tril_indices(size)


def pack(blocks: Floats) -> Floats:
    """Return the lower halves of symmetric matrices, one row each."""
    rows, columns = _list_lower_half(blocks.shape[-1])
    return np.ascontiguousarray(blocks[..., rows, columns])


def unpack(lower: Floats, size: int) -> Floats:
    """Return the symmetric matrices whose lower halves are given."""
    rows, columns = _list_lower_half(size)
    blocks = np.empty((*lower.shape[:-1], size, size))
    blocks[..., rows, columns] = lower
    blocks[..., columns, rows] = lower
    return blocks


class BlockContext(StructuredContext):
    """Arms with m features and a slot each, and one context of p numbers.

    For learning, an arm is a row of the m p shared features and the p features of its slot; its id is the number of the
    slot.

    Parameters
    ----------
    arms : array of n x m numbers
        The features of the arms.
    slots : array of n distinct integers
        The slot of each arm.
    context : array of p numbers
        The features of the round.
    weight : float
        w: what the context is multiplied by in an arm's own features.
    n_slots : int
        How many slots there are; d = (m + n_slots) p.
    """

    has_blocks: ClassVar[bool] = True
    ids: Integers

    def __init__(self, arms: Floats, slots: Integers, context: Floats, weight: float, n_slots: int) -> None:
        self.arms, self.ids, self.context = arms, slots, context
        self.own = weight * context
        self.shape = (len(arms), (arms.shape[1] + n_slots) * len(context))

    def rows(self, arms: Integers) -> Floats:
        """Return the shared features of some arms, followed by those of their own slots, one row each."""
        shared = (self.arms[arms][:, :, None] * self.context).reshape(len(arms), -1)
        return np.hstack((shared, np.tile(self.own, (len(arms), 1))))

    def contract(
        self, theta: Floats, Sigma: Any, contrasts: bool = False, eligible: Mask | None = None, leader: int = -1, /
    ) -> tuple[NDArray[Any], Floats, Floats]:
        """Return a problem with m + 3 features; the last three stand for the arms' own slots.

        They are the utility that the slot adds, and the standard deviation that it adds: in one column for the leader,
        in another for all other arms. Slots are independent, so both variances add up in a contrast with the leader. By
        default the leader is the best of the eligible arms.
        """
        require_finite(self.context, "the context of X")
        m, size = self.arms.shape[1], len(self.context)
        weights = theta[: m * size].reshape(m, size) @ self.context
        own = (theta[m * size :].reshape(-1, size) @ self.own)[self.ids]
        X = np.zeros((len(own), m + 3))
        X[:, :m], X[:, m] = self.arms, _SMALL * own
        contracted = np.concatenate((weights, [1.0 / _SMALL, 0.0, 0.0]))
        if not Sigma.size:
            return X, contracted, np.empty((0, 0))
        X[:, m + 1] = np.sqrt(self.own_variances(Sigma))
        if contrasts:
            leader = leader if leader >= 0 else _find_leader(self.arms @ weights + own, eligible)
            X[leader, m + 2], X[leader, m + 1] = X[leader, m + 1], 0.0
        return X, contracted, self._contract_shared(Sigma)

    def own_variances(self, Sigma: Blocks) -> Floats:
        """Return the variance that the own slot adds to each arm's utility: one pass over all blocks."""
        rows, columns = _list_lower_half(len(self.own))
        squares = self.own[rows] * self.own[columns] * np.where(rows == columns, 1.0, 2.0)
        variances: Floats = np.maximum((Sigma.own @ squares)[self.ids], 0.0)
        return variances

    def shared_covariance(self, Sigma: Blocks) -> Floats:
        """Return the m x m covariance of the weights of the arms' features in this context."""
        m, size = self.arms.shape[1], len(self.context)
        half = (Sigma.shared.reshape(-1, size) @ self.context).reshape(m, size, m)
        covariance: Floats = np.einsum("apb,p->ab", half, self.context)
        return covariance

    def _contract_shared(self, Sigma: Blocks) -> Floats:
        m = self.arms.shape[1]
        contracted = np.zeros((m + 3, m + 3))
        contracted[:m, :m] = self.shared_covariance(Sigma)
        contracted[m + 1, m + 1] = contracted[m + 2, m + 2] = 1.0
        return contracted

    def utilities(self, thetas: Floats) -> Floats:
        """Return x'θ of every arm for each of M vectors θ, the rows of an M x d array: n x M."""
        return np.stack([X @ w for X, w, _ in (self.contract(theta, np.empty(0)) for theta in thetas)], axis=1)

    def covariance(self, P: Any) -> Floats:
        """Return the covariance of the utilities, n x n."""
        covariance: Floats = self.arms @ self.shared_covariance(P) @ self.arms.T
        covariance[np.diag_indices(len(self.arms))] += self.own_variances(P)
        return covariance

    def largest(self) -> float:
        """Return the largest absolute value of a joint feature."""
        return float(np.abs(self.context).max() * max(1.0, np.abs(self.arms).max(initial=0.0)))


def _find_leader(u: Floats, eligible: Mask | None) -> int:
    """Return the eligible arm with the largest utility; the first one if there are several."""
    if eligible is not None and eligible.size:
        u = np.where(eligible, u, -np.inf)
    return int(u.argmax())


def as_block_context(X: ContextLike, d: int | None, shared: int, size: int) -> Context:
    """Return X in the form that a policy with blocks needs: arms whose slots are known."""
    if isinstance(X, OneHotContext) and not shared and len(X.context) == size:
        slots = np.arange(X.n_arms) if X.ids is None else X.ids
        X = BlockContext(np.empty((len(slots), 0)), slots, X.context, 1.0, X.n_arms)
    if not isinstance(X, BlockContext):
        raise InputError(
            "a policy with blocks has to know the slot of each arm: give it a BlockContext or OneHot features, "
            "or use a Preselector"
        )
    if X.shape[1] != d or X.arms.shape[1] * len(X.context) != shared or not len(X.ids):
        raise InputError(f"X has {X.shape[0]} arms and {X.shape[1]} joint features, but the policy has d={d}")
    return X
