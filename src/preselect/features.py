"""Joint feature maps from arms and a context to what a policy is shown, and the paper's feature reduction.

Under the Plackett-Luce model only differences between arms matter: a feature that is the same for every arm cancels in
every probability. That is why `Concatenation` cannot make a linear utility depend on the context, and why main effects,
where they are offered, are those of the arms.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import state
from preselect.arguments import integer, number
from preselect.context import Floats, OneHotContext, StructuredContext, as_floats, as_ids, require_finite
from preselect.errors import InputError, StateFileError

_NO_CONTEXT = np.ones(1)
_NO_CONTEXT.setflags(write=False)


def _with_one(context: ArrayLike, main_effects: bool) -> Floats:
    features = as_floats(context, "context", 1)
    return np.concatenate((_NO_CONTEXT, features)) if main_effects else features


class Kronecker:
    """x_i = z_i ⊗ c, the paper's joint map; with main effects z_i ⊗ (1, c), which adds the arms' own features.

    >>> Kronecker()([[1.0, 2.0]], [5.0, 7.0]).shape
    (1, 4)
    >>> np.asarray(Kronecker(main_effects=True)([[1.0, 2.0]], [5.0, 7.0]))
    array([[ 1.,  5.,  7.,  2., 10., 14.]])
    """

    def __init__(self, *, main_effects: bool = False) -> None:
        self.main_effects = main_effects

    def __call__(self, arms: ArrayLike, context: ArrayLike, *, ids: ArrayLike | None = None) -> StructuredContext:
        return StructuredContext(arms, _with_one(context, self.main_effects), ids)


class OneHot:
    """x_i = e_i ⊗ c: a linear utility of the context for each of `n_arms` known arms, learnt jointly.

    With main effects e_i ⊗ (1, c), each arm has an intercept too. A round may show some of the arms, named by `ids`.

    >>> np.asarray(OneHot(3)([5.0, 7.0], ids=[2, 0]))
    array([[0., 0., 0., 0., 5., 7.],
           [5., 7., 0., 0., 0., 0.]])
    """

    def __init__(self, n_arms: int, *, main_effects: bool = False) -> None:
        self.n_arms = integer(n_arms, "n_arms", 1)
        self.main_effects = main_effects

    def __call__(self, context: ArrayLike, *, ids: ArrayLike | None = None) -> StructuredContext:
        features = _with_one(context, self.main_effects)
        if ids is None:
            return OneHotContext(self.n_arms, features, None)
        shown = as_ids(ids, np.size(ids))
        if np.any(shown >= self.n_arms):
            raise InputError(f"ids must be integers from 0 to {self.n_arms - 1}, got {ids!r:.80}")
        return OneHotContext(self.n_arms, features, shown)


class Concatenation:
    """x_i = (z_i, c). The context's part is the same for all arms and cancels: the choice depends on z_i alone.

    >>> np.asarray(Concatenation()([[1.0, 2.0]], [5.0]))
    array([[1., 2., 5.]])
    """

    def __call__(self, arms: ArrayLike, context: ArrayLike, *, ids: ArrayLike | None = None) -> StructuredContext:
        z, c = as_floats(arms, "arms", 2), as_floats(context, "context", 1)
        return StructuredContext(np.hstack((z, np.tile(c, (len(z), 1)))), _NO_CONTEXT, ids)


class Identity:
    """x_i = z_i: the rows are joint features already. Useful to give arms that come and go their ids."""

    def __call__(self, arms: ArrayLike, *, ids: ArrayLike | None = None) -> StructuredContext:
        return StructuredContext(arms, _NO_CONTEXT, ids)


class Scaling:
    """Scales features by what has been seen of them so far: logarithms to mean 0, and a row of them to length 2.

    For rounds that come one by one, where no data lie ready to fit anything to. Of each value x sign(x) log(1 + |x|) is
    taken, because counts and sizes spread over orders of magnitude; then mean and deviation are brought to 0 and 1, cut
    off at 3. A missing value (NaN) counts as the mean; a feature that has not varied yet is 0. All are multiplied by 2
    and divided by the root of their number, so that many features do not outweigh few: learners' priors are about rows
    of that length.

    >>> scaling = Scaling(2)
    >>> for row in ([1.0, 100.0], [3.0, 300.0], [5.0, np.nan]):
    ...     scaling.learn(row)
    >>> scaling([1.0, np.nan]).round(2).tolist()
    [-1.86, 0.0]
    """

    def __init__(self, size: int) -> None:
        self.size = integer(size, "size", 0)
        self.seen = np.zeros((3, self.size))  # how often, the mean, the sum of squared deviations from it

    def learn(self, values: ArrayLike) -> None:
        """Take in one row (Welford's update)."""
        row = self._row(values)
        there = ~np.isnan(row)
        count, mean, squares = self.seen[:, there]
        away = row[there] - mean
        mean = mean + away / (count + 1.0)
        self.seen[:, there] = count + 1.0, mean, squares + away * (row[there] - mean)

    def __call__(self, values: ArrayLike) -> Floats:
        """One row, or many, scaled."""
        count, mean, squares = self.seen
        deviation = np.sqrt(squares / np.maximum(count, 1.0))
        varied = deviation > 1e-12 * np.abs(mean)
        away = (_logarithm(np.asarray(values, dtype=np.float64)) - mean) / np.where(varied, deviation, np.inf)
        scaled: Floats = np.nan_to_num(away, nan=0.0).clip(-3.0, 3.0) * (2.0 / np.sqrt(max(self.size, 1)))
        return scaled

    def _row(self, values: ArrayLike) -> Floats:
        row = as_floats(values, "values", 1)
        if len(row) != self.size or np.isinf(row).any():
            raise InputError(f"values must be {self.size} numbers, finite or NaN for missing, got {values!r:.80}")
        return _logarithm(row)


def join_arm_features(scaled: Floats, identities: Floats) -> Floats:
    """Scaled features of arms beside who they are, in equal parts, as rows of length 1 on average.

    So a learner's prior says the same about an arm, however much has been said of it.

    >>> join_arm_features(np.array([[2.0], [-2.0]]), np.eye(2)).round(2).tolist()
    [[0.71, 0.71, 0.0], [-0.71, 0.0, 0.71]]
    """
    parts = [part for part in (0.5 * scaled, identities) if part.shape[1]]
    rows: Floats = np.hstack(parts) / np.sqrt(len(parts))
    return rows


def _logarithm(values: Floats) -> Floats:
    return np.sign(values) * np.log1p(np.abs(values))


class Reduction:
    """The paper's preprocessing (Section 6.2), fitted once and then applied: scale, drop what is constant or redundant.

    Scales each feature to [0, 1] by its smallest and largest value, drops those whose variance is then below
    `variance`, and, while some two of the rest correlate by more than `correlation` in absolute value, drops the later
    one of the most correlated pair. Values beyond those seen in `fit` are scaled alike and may leave [0, 1].

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
        """Learn ranges and which columns to keep from the rows of X."""
        features = as_floats(X, "X", 2)
        require_finite(features, "X")
        if len(features) < 2:
            raise InputError(f"X must have at least two rows to fit a reduction, got {len(features)}")
        every = [str(column) for column in range(features.shape[1])] if names is None else list(names)
        if len(every) != features.shape[1]:
            raise InputError(f"names must be {features.shape[1]}, one per column of X, got {len(every)}")
        self.low, self.high = features.min(axis=0), features.max(axis=0)
        scaled = self._scale(features, np.arange(features.shape[1]))
        varied = np.flatnonzero((scaled.var(axis=0) >= self.variance) & (self.high > self.low))
        self.kept = varied[_drop_correlated(scaled[:, varied], self.correlation)]
        self.names = [every[column] for column in self.kept]
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """The kept columns, scaled, of one row or of many."""
        if not len(self.low):
            raise InputError("a reduction must be fitted before it can transform, got none; call fit first")
        features = as_floats(X, "X", 1 if np.ndim(X) == 1 else 2)
        if features.shape[-1] != len(self.low):
            raise InputError(f"X must have {len(self.low)} columns, as in fit, got shape {features.shape}")
        return self._scale(features[..., self.kept], self.kept)

    def _scale(self, features: Floats, columns: NDArray[np.int64]) -> Floats:
        span = (self.high - self.low)[columns]
        return (features - self.low[columns]) / np.where(span > 0, span, 1.0)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted reduction to a file."""
        header = {"variance": self.variance, "correlation": self.correlation, "names": self.names}
        state.write(path, "Reduction", header, {"kept": self.kept, "low": self.low, "high": self.high})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a reduction that `save` wrote."""
        file = state.read(path).expect("Reduction")
        try:
            reduction = cls(variance=file.header["variance"], correlation=file.header["correlation"])
            reduction.names = list(file.header["names"])
            reduction.kept, reduction.low, reduction.high = (file.arrays[name] for name in ("kept", "low", "high"))
        except (KeyError, TypeError, ValueError) as error:
            raise StateFileError(f"{file.path} is not a complete Reduction: {error}") from None
        return reduction


def _drop_correlated(features: Floats, threshold: float) -> list[int]:
    """Columns left after dropping, again and again, the later one of the most correlated pair."""
    left = list(range(features.shape[1]))
    while len(left) > 1:
        correlation = np.triu(np.abs(np.corrcoef(features[:, left], rowvar=False)), 1)
        earlier, later = np.unravel_index(correlation.argmax(), correlation.shape)
        if correlation[earlier, later] <= threshold:
            break
        del left[later]
    return left
