"""What a policy is shown in a round: a plain n x d array, or arms and context kept apart (Kronecker structure)."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_AS_THEY_ARE = (np.dtype(np.float64), np.dtype(np.float32))


def as_floats(values: ArrayLike, argument: str, ndim: int) -> Floats:
    """A C-contiguous float64 array with the given number of axes, or a clear error."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf" or isinstance(values, np.ma.MaskedArray):
            raise ValueError
        floats = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{argument} must be real numbers with {ndim} axes, got {values!r:.80}") from None
    if array.ndim != ndim:
        meaning = ", one row per arm" if ndim == 2 else ""
        raise InputError(f"{argument} must have {ndim} axes{meaning}, got shape {array.shape}")
    return floats


def as_integers(values: ArrayLike, argument: str, expectation: str) -> Integers:
    """A one-dimensional int64 array, or a clear error that says what was expected."""
    try:
        array = np.asarray(values)
        whole = array.astype(np.int64) if array.size else np.empty(0, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{argument} must be {expectation}, got {values!r:.80}") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or not np.array_equal(whole, array):
        raise InputError(f"{argument} must be {expectation}, got {values!r:.80}")
    return whole


def require_finite(values: NDArray[Any], argument: str) -> None:
    """Raise an error that names the first entry which is NaN or infinite."""
    finite = np.isfinite(values)
    if not finite.all():
        place = tuple(np.argwhere(~finite)[0].tolist())
        raise InputError(f"{argument} must be finite, got {values[place]} at {list(place)}")


class StructuredContext:
    """Arms z_1 .. z_n and one context c, standing for the n x d array with rows z_i ⊗ c that is never built.

    Policies take it wherever they take a plain array. `ids` says who the arms are, for policies that tell arms apart by
    identity; without it, arms are known by their position. Outcomes always name positions.

    >>> shown = StructuredContext([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    >>> shown.shape
    (2, 4)
    >>> np.asarray(shown)
    array([[ 1., 10.,  2., 20.],
           [ 3., 30.,  4., 40.]])
    """

    def __init__(self, arms: ArrayLike, context: ArrayLike, ids: ArrayLike | None = None) -> None:
        self.arms = as_floats(arms, "arms", 2)
        self.context = as_floats(context, "context", 1)
        self.shape = (self.arms.shape[0], self.arms.shape[1] * self.context.shape[0])
        self.ids = None if ids is None else as_ids(ids, self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.rows(np.arange(self.shape[0])).astype(dtype or np.float64, copy=False)

    def rows(self, arms: Integers) -> Floats:
        """The joint features of some arms, built."""
        return (self.arms[arms][:, :, None] * self.context).reshape(len(arms), self.shape[1])

    def identify(self, arms: Integers) -> Integers:
        """Who some arms are."""
        return arms if self.ids is None else self.ids[arms]

    def contract(self, theta: Floats, Sigma: Floats, contrasts: bool = False) -> tuple[Floats, Floats, Floats]:  # noqa: ARG002
        """A smaller problem (X, theta, Sigma) with the same utilities x'θ and, unless Sigma is empty, x'Σx.

        With `contrasts`, also the forms of differences between arms are the same.
        With Θ the d_a x d_c matrix of θ, z_i'(Θc) = x_i'θ; and z_i'Σ_c z_i = x_i'Σx_i, where Σ_c contracts Σ with c on
        both sides: O(d²) once instead of n times.
        """
        size = len(self.context)
        if Sigma.size:
            half = (Sigma.reshape(-1, size) @ self.context).reshape(-1, size, Sigma.shape[0] // size)
            Sigma = np.ascontiguousarray(self.context @ half)
        return self.arms, theta.reshape(-1, size) @ self.context, Sigma

    def utilities(self, thetas: Floats) -> Floats:
        """x'θ of every arm for each of M vectors θ, the rows of an M x d array: n x M."""
        return self.arms @ (thetas.reshape(len(thetas), -1, len(self.context)) @ self.context).T

    def covariance(self, P: Floats) -> Floats:
        """X P X', n x n: the covariance of the utilities if P is that of θ."""
        z, _, contracted = self.contract(P[0], P)
        covariance: Floats = z @ contracted @ z.T
        return covariance

    def require_finite(self) -> None:
        """Raise an error that names the first entry which is NaN or infinite."""
        require_finite(self.arms, "arms of X")
        require_finite(self.context, "context of X")


class OneHotContext(StructuredContext):
    """Arms without features, each with weights of its own for the context c: rows e_i ⊗ c, of `n_arms` known arms."""

    def __init__(self, n_arms: int, context: Floats, ids: Integers | None) -> None:
        self.n_arms = n_arms
        self.context = context
        self.ids = ids
        self.shape = (n_arms if ids is None else len(ids), n_arms * len(context))

    def rows(self, arms: Integers) -> Floats:
        """The joint features of some arms, built."""
        rows = np.zeros((len(arms), self.n_arms, len(self.context)))
        rows[np.arange(len(arms)), self.identify(arms)] = self.context
        return rows.reshape(len(arms), -1)

    def contract(self, theta: Floats, Sigma: Floats, contrasts: bool = False) -> tuple[Floats, Floats, Floats]:
        """Utility and root of x'Σx as the two features of each arm: only the diagonal blocks of Σ are looked at.

        Contrasts need all blocks, and each arm has a feature of its own.
        """
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
        """x'θ of every arm for each of M vectors θ, the rows of an M x d array: n x M."""
        u: Floats = (thetas.reshape(len(thetas), self.n_arms, -1) @ self.context).T
        return u if self.ids is None else u[self.ids]

    def covariance(self, P: Floats) -> Floats:
        """X P X', n x n: the covariance of the utilities if P is that of θ."""
        return self.contract(P[0], P, True)[2]

    def require_finite(self) -> None:
        """Raise an error that names the first entry which is NaN or infinite."""
        require_finite(self.context, "context of X")


Context: TypeAlias = Floats | NDArray[np.float32] | StructuredContext


def as_context(X: ArrayLike | StructuredContext, d: int | None) -> Context:
    """The context as policies use it: structured as it is, otherwise C-contiguous float64 or float32 with d columns."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype in _AS_THEY_ARE and X.flags.c_contiguous:
        context: Context = X
    elif isinstance(X, StructuredContext):
        context = X
    else:
        context = as_floats(X, "X", 2)
    n, columns = context.shape
    if columns != d and d is not None:
        raise InputError(f"X must have d={d} columns, one per feature, got shape ({n}, {columns})")
    if n == 0:
        raise InputError(f"X must have at least one row, one per arm, got shape ({n}, {columns})")
    return context


def as_ids(ids: ArrayLike, n: int) -> Integers:
    """Identities of n arms."""
    array = as_integers(ids, "ids", f"{n} distinct integers, one per arm, none negative")
    if len(array) != n or np.any(array < 0) or len(np.unique(array)) < n:
        raise InputError(f"ids must be {n} distinct integers, one per arm, none negative, got {ids!r:.80}")
    return array


def require_finite_context(context: Context) -> None:
    """Raise an error that names the first entry of the context which is NaN or infinite."""
    if isinstance(context, StructuredContext):
        context.require_finite()
    else:
        require_finite(context, "X")
