"""What a policy is shown in a round: a plain n x d array, or arms and context kept apart (Kronecker structure)."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect.errors import InputError

Floats: TypeAlias = NDArray[np.float64]

_AS_THEY_ARE = (np.dtype(np.float64), np.dtype(np.float32))


def as_floats(values: ArrayLike, argument: str, ndim: int) -> Floats:
    """A C-contiguous float64 array with the given number of axes, or a clear error."""
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{argument} must be numeric with {ndim} axes, got {values!r:.80}") from None
    if array.ndim != ndim or np.ndim(values) != ndim:
        raise InputError(f"{argument} must have {ndim} axes, got shape {np.shape(values)}")
    return array


def require_finite(values: NDArray[Any], argument: str) -> None:
    """Raise an error that names the first entry which is NaN or infinite."""
    finite = np.isfinite(values)
    if not finite.all():
        place = tuple(np.argwhere(~finite)[0].tolist())
        raise InputError(f"{argument} must be finite, got {values[place]} at {list(place)}")


class StructuredContext:
    """Arms z_1 .. z_n and one context c, standing for the n x d array with rows z_i ⊗ c that is never built.

    Policies take it wherever they take a plain array. `ids` says who the arms are, for policies that tell arms apart by
    identity; without it, arms are known by their position.

    >>> shown = StructuredContext([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    >>> shown.shape
    (2, 4)
    >>> np.asarray(shown)
    array([[ 1., 10.,  2., 20.],
           [ 3., 30.,  4., 40.]])
    """

    __slots__ = ("arms", "context", "ids", "shape")

    def __init__(self, arms: ArrayLike, context: ArrayLike, ids: ArrayLike | None = None) -> None:
        self.arms = as_floats(arms, "arms", 2)
        self.context = as_floats(context, "context", 1)
        self.shape = (self.arms.shape[0], self.arms.shape[1] * self.context.shape[0])
        self.ids = None if ids is None else _as_ids(ids, self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.rows(np.arange(self.shape[0])).astype(dtype or np.float64, copy=False)

    def rows(self, arms: NDArray[np.int64]) -> Floats:
        """The joint features of some arms, built."""
        return (self.arms[arms][:, :, None] * self.context).reshape(len(arms), self.shape[1])

    def identify(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Who some arms are."""
        return arms if self.ids is None else self.ids[arms]

    def contract_vector(self, theta: Floats) -> Floats:
        """Θc, so that z_i'Θc = x_i'θ."""
        return theta.reshape(-1, len(self.context)) @ self.context

    def contract_matrix(self, Sigma: Floats) -> Floats:
        """Σ with c contracted on both sides, so that z_i'Σ_c z_i = x_i'Σx_i: O(d²) once instead of n times."""
        size = len(self.context)
        half = (Sigma.reshape(-1, size) @ self.context).reshape(-1, size, Sigma.shape[0] // size)
        return np.ascontiguousarray(self.context @ half)


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


def require_finite_context(context: Context) -> None:
    """Raise an error that names the first entry of the context which is NaN or infinite."""
    if isinstance(context, StructuredContext):
        require_finite(context.arms, "arms of X")
        require_finite(context.context, "context of X")
    else:
        require_finite(context, "X")


def _as_ids(ids: ArrayLike, n: int) -> NDArray[np.int64]:
    array = np.asarray(ids)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise InputError(f"ids must be {n} integers, one per arm, got {ids!r:.80}")
    if n and (array.min() < 0 or len(np.unique(array)) < n):
        raise InputError(f"ids must be distinct and not negative, got {ids!r:.80}")
    return array.astype(np.int64)
