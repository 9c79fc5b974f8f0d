"""Contexts, which policies are shown: rows of features, or arms and a context kept apart (Kronecker structure).

Policies see a `Context` and do not ask which kind it is; `as_context` wraps plain arrays.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.arguments import as_floats, as_integers, integer, require_finite, show
from preselect.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)


class Context(Protocol):
    """The n arms of a round, each with d joint features."""

    is_structured: ClassVar[bool]  # whether `contract` gives something smaller than the rows
    shape: tuple[int, int]  # (n, d)

    def describe(self, arms: Integers) -> tuple[Floats, Integers]:
        """Return the joint features of some arms, one row each, and their ids, as `identify` does."""

    def identify(self, arms: Integers) -> Integers:
        """Return the ids of some arms; their positions if the context names no ids."""

    def contract(
        self,
        theta: Floats,
        Sigma: Any,
        contrasts: bool = False,
        eligible: Mask | None = None,
        leader: int = -1,
        /,
    ) -> tuple[NDArray[Any], Floats, Floats]:
        """Return a problem (X, theta, Sigma) with the same utilities x'θ and, unless Sigma is empty, x'Σx.

        With `contrasts`, differences between arms keep their variances, too, or at least differences from the leader.
        By default the leader is the best eligible arm.
        """

    def utilities(self, thetas: Floats) -> Floats:
        """Return x'θ of every arm for each of M vectors θ, the rows of an M x d array: n x M."""

    def covariance(self, P: Floats) -> Floats:
        """Return X P X', n x n: the covariance of the utilities if P is that of θ."""

    def largest(self) -> float:
        """Return the largest absolute value of a joint feature."""

    def require_finite(self) -> None:
        """Raise an InputError that names the first entry which is NaN or infinite."""


class _ArrayContext:
    """A plain n x d array of float64 or float32, C-contiguous.

    One is made in every round. It has no constructor, which halves the time: `as_context` sets the attributes.
    """

    __slots__ = ("X", "shape")

    is_structured: ClassVar[bool] = False
    X: NDArray[Any]
    shape: tuple[int, int]

    def describe(self, arms: Integers) -> tuple[Floats, Integers]:
        return self.X[arms].astype(np.float64, copy=False), arms

    def identify(self, arms: Integers) -> Integers:
        return arms

    def contract(self, theta: Floats, Sigma: Any, *_: Any) -> tuple[NDArray[Any], Floats, Floats]:
        return self.X, theta, Sigma

    def utilities(self, thetas: Floats) -> Floats:
        return np.asarray(self.X, dtype=np.float64) @ thetas.T

    def covariance(self, P: Floats) -> Floats:
        X = np.asarray(self.X, dtype=np.float64)
        covariance: Floats = X @ P @ X.T
        return covariance

    def largest(self) -> float:
        return float(np.abs(self.X).max())

    def require_finite(self) -> None:
        require_finite(self.X, "X")


class StructuredContext:
    """Arms z_1 .. z_n and one context c: the n x d array with rows z_i ⊗ c, which is never built.

    Policies take it wherever they take a plain array. Outcomes always name arms by position.

    Parameters
    ----------
    arms : array of n x a numbers
        The features of each arm.
    context : array of c numbers
        The features of the round; this makes d = a c joint features.
    ids : array of n distinct non-negative integers, optional
        Which arms these are, for policies such as MM that know arms by identity. By default an arm is known by its
        position.

    Examples
    --------
    >>> shown = StructuredContext([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    >>> shown.shape
    (2, 4)
    >>> np.asarray(shown)
    array([[ 1., 10.,  2., 20.],
           [ 3., 30.,  4., 40.]])
    """

    is_structured: ClassVar[bool] = True

    def __init__(self, arms: ArrayLike, context: ArrayLike, ids: ArrayLike | None = None) -> None:
        self.arms = as_floats(arms, "arms", 2)
        self.context = as_floats(context, "context", 1)
        self.shape = (self.arms.shape[0], self.arms.shape[1] * self.context.shape[0])
        self.ids = None if ids is None else as_ids(ids, self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.rows(np.arange(self.shape[0])).astype(dtype or np.float64, copy=False)

    def rows(self, arms: Integers) -> Floats:
        """Return the joint features of some arms, one row each."""
        return (self.arms[arms][:, :, None] * self.context).reshape(len(arms), self.shape[1])

    def identify(self, arms: Integers) -> Integers:
        """Return the ids of some arms; their positions if there are no ids."""
        return arms if self.ids is None else self.ids[arms]

    def describe(self, arms: Integers) -> tuple[Floats, Integers]:
        """Return the joint features of some arms, one row each, and their ids."""
        return self.rows(arms), self.identify(arms)

    def contract(self, theta: Floats, Sigma: Any, *_: Any) -> tuple[NDArray[Any], Floats, Floats]:
        """Return a smaller problem (X, theta, Sigma) with the same utilities x'θ and, unless Sigma is empty, x'Σx.

        With Θ the a x c matrix of θ, z_i'(Θc) = x_i'θ; and z_i'Σ_c z_i = x_i'Σx_i, where Σ_c contracts Σ with c on
        both sides: O(d²) once instead of n times. Differences between arms keep their variances as well.
        """
        require_finite(self.context, "the context of X")
        size = len(self.context)
        if Sigma.size:
            half = (Sigma.reshape(-1, size) @ self.context).reshape(-1, size, Sigma.shape[0] // size)
            Sigma = np.ascontiguousarray(self.context @ half)
        return self.arms, theta.reshape(-1, size) @ self.context, Sigma

    def utilities(self, thetas: Floats) -> Floats:
        """Return x'θ of every arm for each of M vectors θ, the rows of an M x d array: n x M."""
        return self.arms @ (thetas.reshape(len(thetas), -1, len(self.context)) @ self.context).T

    def covariance(self, P: Floats) -> Floats:
        """Return X P X', n x n: the covariance of the utilities if P is that of θ."""
        z, _, contracted = self.contract(P[0], P)
        covariance: Floats = z @ contracted @ z.T
        return covariance

    def largest(self) -> float:
        """Return the largest absolute value of a joint feature."""
        return float(np.abs(self.arms).max() * np.abs(self.context).max())

    def require_finite(self) -> None:
        """Raise an InputError that names the first entry which is NaN or infinite."""
        require_finite(self.arms, "the arms of X")
        require_finite(self.context, "the context of X")


class OneHotContext(StructuredContext):
    """Arms out of `n_arms`, without features, each with its own weights for the context c: rows e_i ⊗ c."""

    def __init__(self, n_arms: int, context: Floats, ids: Integers | None) -> None:
        self.n_arms = n_arms
        self.context = context
        self.ids = ids
        self.shape = (n_arms if ids is None else len(ids), n_arms * len(context))

    def rows(self, arms: Integers) -> Floats:
        """Return the joint features of some arms, one row each."""
        rows = np.zeros((len(arms), self.n_arms, len(self.context)))
        rows[np.arange(len(arms)), self.identify(arms)] = self.context
        return rows.reshape(len(arms), -1)

    def contract(
        self, theta: Floats, Sigma: Any, contrasts: bool = False, *_: Any
    ) -> tuple[NDArray[Any], Floats, Floats]:
        """Return a problem in which each arm has two features, its utility and the root of its x'Σx.

        Only the diagonal blocks of Σ are read. With `contrasts` all of them are, and the arms become one-hot.
        """
        require_finite(self.context, "the context of X")
        size, shown = len(self.context), slice(None) if self.ids is None else self.ids
        u = (theta.reshape(-1, size) @ self.context)[shown]
        if not Sigma.size:
            return np.ascontiguousarray(u[:, None]), np.ones(1), Sigma
        if contrasts:
            half = (Sigma.reshape(-1, size) @ self.context).reshape(self.n_arms, size, self.n_arms)[shown][:, :, shown]
            return np.eye(len(u)), u, np.ascontiguousarray(self.context @ half)
        blocks = np.einsum("ipiq->ipq", Sigma.reshape(self.n_arms, size, self.n_arms, size))[shown]
        forms = np.einsum("ipq,p,q->i", blocks, self.context, self.context)
        return np.column_stack((u, np.sqrt(np.maximum(forms, 0.0)))), np.array([1.0, 0.0]), np.diag([0.0, 1.0])

    def utilities(self, thetas: Floats) -> Floats:
        """Return x'θ of every arm for each of M vectors θ, the rows of an M x d array: n x M."""
        u: Floats = (thetas.reshape(len(thetas), self.n_arms, -1) @ self.context).T
        return u if self.ids is None else u[self.ids]

    def covariance(self, P: Floats) -> Floats:
        """Return X P X', n x n: the covariance of the utilities if P is that of θ."""
        return self.contract(P[0], P, True)[2]

    def largest(self) -> float:
        """Return the largest absolute value of a joint feature."""
        return float(np.abs(self.context).max())

    def require_finite(self) -> None:
        """Raise an InputError that names the first entry which is NaN or infinite."""
        require_finite(self.context, "the context of X")


ContextLike: TypeAlias = ArrayLike | StructuredContext


def as_context(X: ContextLike, d: int | None) -> Context:
    """Return X as policies use it, with d features (any number of them if d is None) and at least one arm."""
    context: Context
    if type(X) is np.ndarray and X.ndim == 2 and (X.dtype is _DOUBLE or X.dtype is _SINGLE) and X.flags.c_contiguous:
        context = _ArrayContext()
        context.X = X
        context.shape = X.shape
    elif isinstance(X, StructuredContext):
        context = X
    else:
        context = _ArrayContext()
        context.X = as_floats(X, "X", 2)
        context.shape = context.X.shape
    n, columns = context.shape
    if columns != d and d is not None:
        raise InputError(f"X has {columns} columns, but the policy has d={d} features: give every arm a row of {d}")
    if n == 0:
        raise InputError(f"X has no rows (its shape is {(n, columns)}); give it one row per arm")
    return context


def as_ids(ids: ArrayLike, n: int | None) -> Integers:
    """Return the ids of arms as integers; raise an InputError unless there are n of them, if n is given."""
    expectation = f"{'' if n is None else f'{n} '}distinct non-negative integers, one per arm"
    array = as_integers(ids, "ids", expectation)
    n = len(array) if n is None else n
    if len(array) != n or np.any(array < 0) or len(np.unique(array)) < n:
        raise InputError(f"ids should be {expectation}, not {show(ids)}")
    return array


def as_count(k: SupportsIndex, n: int) -> int:
    """Return k, how many of n arms to choose."""
    count = integer(k, "k", 1)
    if count > n:
        raise InputError(f"k={count}, but X has only {n} arms")
    return count


def as_mask(eligible: ArrayLike, n: int, k: int) -> Mask:
    """Return which of n arms may be chosen, as booleans, and check that at least k may."""
    expectation = f"{n} booleans, or distinct positions from 0 to {n - 1}"
    try:
        array = np.asarray(eligible)
    except ValueError:
        raise InputError(f"eligible should be {expectation}, not {show(eligible)}") from None
    mask = np.zeros(n, dtype=np.bool_)
    if array.dtype == np.bool_ and array.shape == (n,):
        mask[:] = array
    else:
        positions = as_integers(eligible, "eligible", expectation)
        if np.any((positions < 0) | (positions >= n)) or len(np.unique(positions)) < len(positions):
            raise InputError(f"eligible should be {expectation}, not {show(eligible)}")
        mask[positions] = True
    count = int(mask.sum())
    if count < k:
        raise InputError(f"k={k}, but eligible leaves only {count} of the {n} arms")
    return mask
