"""Joint feature maps, which combine features of arms and context for a policy, and the paper's feature reduction.

Under the Plackett-Luce model only differences between arms matter: a feature that is the same for every arm cancels in
every probability. That is why `Concatenation` cannot make a linear utility depend on the context, and why the only main
effects on offer are those of the arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import state
from preselect.arguments import as_floats, boolean, distinct_names, integer, number, require_finite
from preselect.context import Floats, OneHotContext, StructuredContext, as_ids
from preselect.errors import InputError, StateFileError

_NO_CONTEXT = np.ones(1)
_NO_CONTEXT.setflags(write=False)


def _prepare_context(context: ArrayLike, main_effects: bool) -> Floats:
    features = as_floats(context, "context", 1)
    return np.concatenate((_NO_CONTEXT, features)) if main_effects else features


class Kronecker:
    """The paper's joint map: x_i = z_i ⊗ c, every product of a feature of the arm and a feature of the context.

    Call it with the features of the arms (n x m), the features of the context, and optionally the `ids` of the arms;
    it returns what a policy's `select` takes.

    Parameters
    ----------
    main_effects : bool, default False
        Whether to use z_i ⊗ (1, c), which adds the arms' own features.

    Examples
    --------
    >>> Kronecker()([[1.0, 2.0]], [5.0, 7.0]).shape
    (1, 4)
    >>> np.asarray(Kronecker(main_effects=True)([[1.0, 2.0]], [5.0, 7.0]))
    array([[ 1.,  5.,  7.,  2., 10., 14.]])
    """

    def __init__(self, *, main_effects: bool = False) -> None:
        self.main_effects = boolean(main_effects, "main_effects")

    def __call__(self, arms: ArrayLike, context: ArrayLike, *, ids: ArrayLike | None = None) -> StructuredContext:
        return StructuredContext(arms, _prepare_context(context, self.main_effects), ids)


class OneHot:
    """Own weights for each of a fixed number of arms, whose utilities are linear in the context: x_i = e_i ⊗ c.

    Call it with the features of the context. If a round shows only some of the arms, `ids` says which.

    Parameters
    ----------
    n_arms : int
        How many arms there are.
    main_effects : bool, default False
        Whether to use e_i ⊗ (1, c), which gives each arm an intercept.

    Examples
    --------
    >>> np.asarray(OneHot(3)([5.0, 7.0], ids=[2, 0]))
    array([[0., 0., 0., 0., 5., 7.],
           [5., 7., 0., 0., 0., 0.]])
    """

    def __init__(self, n_arms: int, *, main_effects: bool = False) -> None:
        self.n_arms = integer(n_arms, "n_arms", 1)
        self.main_effects = boolean(main_effects, "main_effects")

    def __call__(self, context: ArrayLike, *, ids: ArrayLike | None = None) -> StructuredContext:
        features = _prepare_context(context, self.main_effects)
        if ids is None:
            return OneHotContext(self.n_arms, features, None)
        shown = as_ids(ids, None)
        if np.any(shown >= self.n_arms):
            raise InputError(f"ids has {shown.max()}, but the {self.n_arms} arms are 0 to {self.n_arms - 1}")
        return OneHotContext(self.n_arms, features, shown)


class Concatenation:
    """The features of the arm, then those of the context: x_i = (z_i, c).

    The context's part is the same for all arms and cancels, so the choice depends on z_i alone. Call it with the
    features of the arms (n x m), the features of the context, and optionally the `ids` of the arms.

    >>> np.asarray(Concatenation()([[1.0, 2.0]], [5.0]))
    array([[1., 2., 5.]])
    """

    def __call__(self, arms: ArrayLike, context: ArrayLike, *, ids: ArrayLike | None = None) -> StructuredContext:
        z, c = as_floats(arms, "arms", 2), as_floats(context, "context", 1)
        return StructuredContext(np.hstack((z, np.tile(c, (len(z), 1)))), _NO_CONTEXT, ids)


class Identity:
    """The features of the arms are the joint features: x_i = z_i.

    Call it with the features of the arms (n x d), and with their `ids` if arms come and go.

    >>> np.asarray(Identity()([[1.0, 2.0]], ids=[7]))
    array([[1., 2.]])
    """

    def __call__(self, arms: ArrayLike, *, ids: ArrayLike | None = None) -> StructuredContext:
        return StructuredContext(arms, _NO_CONTEXT, ids)


class Reduction:
    """The paper's preprocessing (Section 6.2): scale to [0, 1], then drop what is constant or redundant.

    Each feature is scaled by its smallest and largest value. Those whose variance is then below `variance` are dropped;
    and while any two of the rest correlate by more than `correlation` in absolute value, the later one of the most
    correlated pair is dropped. Values outside the range seen in `fit` are scaled in the same way and end up outside [0,
    1].

    Parameters
    ----------
    variance : float, default 0.01
        The smallest variance, after scaling, with which a feature is kept.
    correlation : float, default 0.95
        The largest absolute correlation of two features that are both kept, from 0 to 1.

    Examples
    --------
    >>> reduction = Reduction().fit([[0.0, 1.0, 5.0], [1.0, 3.0, 5.0], [0.0, 1.1, 5.0]], names=["a", "b", "c"])
    >>> reduction.names
    ['a']
    >>> reduction.transform([[0.5, 9.0, 9.0]])
    array([[0.5]])
    """

    def __init__(self, *, variance: float = 0.01, correlation: float = 0.95) -> None:
        self.variance = number(variance, "variance", least=0.0)
        self.correlation = number(correlation, "correlation", least=0.0, most=1.0)
        self.names: list[str] = []
        self.kept: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.low: Floats = np.empty(0)
        self.high: Floats = np.empty(0)

    def fit(self, X: ArrayLike, names: Sequence[str] | None = None) -> Self:
        """Learn the ranges, and which columns to keep.

        Parameters
        ----------
        X : array of shape (n, m)
            The data, one row each; at least two rows.
        names : sequence of str, optional
            The names of the columns; their positions by default.
        """
        features = as_floats(X, "X", 2)
        require_finite(features, "X")
        if len(features) < 2:
            raise InputError(f"a reduction is fitted to at least 2 rows; X has {len(features)}")
        every = (
            [str(column) for column in range(features.shape[1])] if names is None else distinct_names(names, "names")
        )
        if len(every) != features.shape[1]:
            raise InputError(
                f"names has {len(every)} entries, but X has {features.shape[1]} columns; give one name per column"
            )
        self.low, self.high = features.min(axis=0), features.max(axis=0)
        scaled = self._scale(features, np.arange(features.shape[1]))
        varied = np.flatnonzero((scaled.var(axis=0) >= self.variance) & (self.high > self.low))
        self.kept = varied[_drop_correlated(scaled[:, varied], self.correlation)]
        self.names = [every[column] for column in self.kept]
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Scale the columns that are kept.

        Parameters
        ----------
        X : array of shape (m,) or (n, m)
            One row or several, with the same columns as in `fit`.
        """
        if not len(self.low):
            raise InputError("the reduction has not been fitted; call fit first")
        features = as_floats(X, "X", 1, 2)
        if features.shape[-1] != len(self.low):
            raise InputError(f"the last axis of X has length {features.shape[-1]}; in fit it was {len(self.low)}")
        return self._scale(features[..., self.kept], self.kept)

    def _scale(self, features: Floats, columns: NDArray[np.int64]) -> Floats:
        span = (self.high - self.low)[columns]
        return (features - self.low[columns]) / np.where(span > 0, span, 1.0)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted reduction to a file.

        Parameters
        ----------
        path : str or path
            The file. One that exists is replaced whole or not at all.
        """
        header = {"variance": self.variance, "correlation": self.correlation, "names": self.names}
        state.write(path, "Reduction", header, {"kept": self.kept, "low": self.low, "high": self.high})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a reduction that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        """
        file = state.read(path).expect("Reduction")
        try:
            reduction = cls(variance=file.header["variance"], correlation=file.header["correlation"])
            reduction.names = distinct_names(file.header["names"], "names")
            reduction.kept, reduction.low, reduction.high = (file.arrays[name] for name in ("kept", "low", "high"))
            _require_fitted(reduction)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StateFileError(f"{file.path} is not a complete Reduction: {error}") from None
        return reduction


def _require_fitted(reduction: Reduction) -> None:
    """Raise a ValueError unless the arrays of a file belong together."""
    low, high, kept = reduction.low, reduction.high, reduction.kept
    if not low.dtype == high.dtype == np.float64 or kept.dtype != np.int64:
        raise ValueError("kept, low or high is not an array of numbers")
    if low.ndim != 1 or low.shape != high.shape or not np.all(np.isfinite(low) & (low <= high) & np.isfinite(high)):
        raise ValueError("low and high need one number per column")
    if kept.shape != (len(reduction.names),) or np.any((kept < 0) | (kept >= len(low))):
        raise ValueError("kept needs one column per name")


def _drop_correlated(features: Floats, threshold: float) -> list[int]:
    """The columns that are left when the later one of the most correlated pair is dropped again and again."""
    left = list(range(features.shape[1]))
    while len(left) > 1:
        correlation = np.triu(np.abs(np.corrcoef(features[:, left], rowvar=False)), 1)
        earlier, later = np.unravel_index(correlation.argmax(), correlation.shape)
        if correlation[earlier, later] <= threshold:
            break
        del left[later]
    return left
