"""What every policy is: select, learn, score, save, load. One policy per file beside this one."""

import inspect
from abc import ABC, abstractmethod
from os import PathLike
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import state
from preselect.arguments import integer
from preselect.context import Context, Floats, StructuredContext, as_context, as_integers
from preselect.decision import Decision
from preselect.errors import InputError, StateFileError
from preselect.outcomes import NoWinner, Outcome, Void

Mask = NDArray[np.bool_]

EVERY_ARM: Mask = np.empty(0, dtype=np.bool_)  # the mask that excludes nobody


class Policy(ABC):
    """Chooses k of the arms it is shown and learns from who wins.

    A new policy says how arms are scored (`_score`) and what an outcome teaches (`_observe`), and lists in `_state` the
    arrays that make up what it has learnt. Its constructor takes keyword arguments only and keeps each as an attribute
    of the same name; that is what `save` writes. Checking, ties, counting and files are done here. A policy that sets
    `outside` is taught by `_observe_with_nobody` instead, also of rounds that nobody won.
    """

    source: ClassVar[str] = ""  # who described the method
    kind: ClassVar[str]  # the name of the class in state files; with its module if it is not of this package
    keeps_history: ClassVar[bool] = False  # whether memory grows with every outcome, because the method needs them all
    outside: bool = False  # whether nobody takes part, so that NoWinner teaches something
    _state: ClassVar[tuple[str, ...]] = ()
    _kinds: ClassVar[dict[str, type["Policy"]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ours = cls.__module__.startswith("preselect.")
        cls.kind = cls.__name__ if ours else f"{cls.__module__}:{cls.__qualname__}"
        Policy._kinds[cls.kind] = cls

    def __init__(self, *, d: int | None, seed: int | None) -> None:
        self.d = None if d is None else integer(d, "d", 1)
        self.seed = None if seed is None else integer(seed, "seed", 0)
        self.rounds = 0
        self.observations = 0
        self.no_winners = 0
        self.voids = 0
        self._generator = np.random.default_rng(self.seed)

    def select(
        self, X: ArrayLike | StructuredContext, k: SupportsIndex, *, eligible: ArrayLike | None = None
    ) -> Decision:
        """Choose k of the n arms shown as rows of X, best first.

        `eligible` restricts the choice: n booleans, or the positions of the arms that may be chosen. All rows must be
        finite, those of other arms too.
        """
        context = as_context(X, self.d)
        n, d = context.shape
        if type(k) is not int or not 1 <= k <= n:
            k = _as_count(k, n)
        mask = EVERY_ARM if eligible is None else _as_mask(eligible, n, k)
        arms, numbers = self._choose(context, k, mask)
        self.rounds += 1
        ids = context.identify(arms) if isinstance(context, StructuredContext) else arms
        return Decision(arms, numbers, d, ids, self.rounds)

    def learn(self, decision: Decision, outcome: Outcome) -> None:
        """Take in the outcome of a decision, which may be an old one, or another policy's on the same features."""
        if not isinstance(decision, Decision):
            raise InputError(f"decision must be what select returned, got {decision!r:.80}")
        if not isinstance(outcome, Outcome):
            raise InputError(f"outcome must be Winner, Ranking, NoWinner or Void, got {outcome!r:.80}")
        if self.d is not None and decision.d != self.d:
            raise InputError(f"decision must have d={self.d} features, got {decision.d}")
        ranking = outcome.positions(decision.arms)
        if ranking.size:
            if self.outside:
                self._observe_with_nobody(decision, ranking, outcome)
            else:
                self._observe(decision, ranking)
            self.observations += 1
        elif isinstance(outcome, NoWinner):
            if self.outside:
                self._observe_with_nobody(decision, ranking, outcome)
            self.no_winners += 1
        elif isinstance(outcome, Void):
            self.voids += 1

    def scores(self, X: ArrayLike | StructuredContext) -> Floats:
        """What each arm of X would be ranked by now, chance apart."""
        return self._score(as_context(X, self.d))[0]

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that decides what the policy does next, its generator included."""
        state.write(path, self.kind, *self._collect_state())

    def _collect_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What `save` writes: plain values, and arrays."""
        header = {
            "parameters": self.parameters,
            "counts": {name: getattr(self, name) for name in _COUNTS},
            "generator": self._generator.bit_generator.state,
        }
        return header, {name: getattr(self, name) for name in self._state}

    def widen(self, d: int) -> Self:
        """This policy with features added at the end, up to d of them.

        It goes on as if the new ones had been there, and zero, in every decision so far.
        """
        header, arrays = self._collect_state()
        if self.d is None:
            raise InputError("a policy must have been made with d to be extended, got None")
        if integer(d, "d", 1) < self.d:
            raise InputError(f"d must be at least the {self.d} features that there are, got {d}")
        lists = [name for name, value in header["parameters"].items() if isinstance(value, list)]
        if lists:
            raise InputError(f"{', '.join(lists)} must be one number for a policy to be extended, got one per feature")
        wider = type(self)(**{**header["parameters"], "d": d})
        wider._take(header, wider._widened(arrays))
        return wider

    def _widened(self, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Arrays of a policy with fewer features, with what this one started with for the features added."""
        widened = {}
        for name, array in arrays.items():
            widened[name] = getattr(self, name).copy()
            widened[name][tuple(slice(size) for size in array.shape)] = array
        return widened

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, rounds={self.rounds}, observations={self.observations})"

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a policy of this class that `save` wrote."""
        return cls._restore(state.read(path).expect(cls.kind))

    @classmethod
    def _restore(cls, file: state.StateFile) -> Self:
        try:
            policy = cls(**file.header["parameters"])
            policy._take(file.header, file.arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise StateFileError(f"{file.path} is not a complete {cls.__name__} state: {error}") from None
        return policy

    def _take(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `_collect_state` of another policy of this kind gave."""
        self._generator.bit_generator.state = header["generator"]
        for name in _COUNTS:
            setattr(self, name, int(header["counts"][name]))
        self._set_state(arrays)

    def _set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over saved arrays; policies whose arrays grow relax the check of shapes."""
        for name in self._state:
            expected = getattr(self, name)
            if arrays[name].shape != expected.shape or arrays[name].dtype != expected.dtype:
                raise ValueError(f"{name} has shape {arrays[name].shape}, expected {expected.shape}")
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} has entries that are not finite")
            expected[...] = arrays[name]

    @abstractmethod
    def _score(self, context: Context) -> tuple[Floats, Floats]:
        """Score and width of every arm; checks that the context is finite."""

    @abstractmethod
    def _observe(self, decision: Decision, ranking: NDArray[np.int64]) -> None:
        """Learn that the selected arms at these positions came first, in this order; all or nothing."""

    def _observe_with_nobody(self, decision: Decision, ranking: NDArray[np.int64], outcome: Outcome) -> None:  # noqa: ARG002
        """Learn the same where nobody takes part, whose position is k; the ranking is empty if nobody won."""
        self._observe(decision, ranking if ranking.size else np.array([len(decision.arms)]))

    def _choose(self, context: Context, k: int, eligible: Mask) -> tuple[NDArray[np.int64], Floats]:
        """The k eligible arms with the largest scores, ties broken at random, and their scores, widths and rows."""
        scores, widths = self._score(context)
        return described(context, self._best(scores, candidates(eligible, len(scores)), k), scores, widths)

    def _best(self, scores: Floats, arms: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """The k of these arms with the largest scores, best first, ties broken at random."""
        if k == 0:
            return arms[:0]
        among = scores[arms]
        threshold = np.partition(among, -k)[-k]
        tolerance = rounding(threshold)
        above, tied = arms[among > threshold + tolerance], arms[np.abs(among - threshold) <= tolerance]
        if len(tied) > k - len(above):
            tied = self._generator.permutation(tied)[: k - len(above)]
        return by_score(np.concatenate((above, tied)), scores)


def rounding(score: float) -> float:
    """Scores that differ by less than this are tied: they differ by rounding only. The kernels use the same."""
    return 1e-12 * (1.0 + abs(score))


def candidates(eligible: Mask, n: int) -> NDArray[np.int64]:
    """Positions of the arms that may be chosen."""
    return np.flatnonzero(eligible) if eligible.size else np.arange(n)


def by_score(arms: NDArray[np.int64], scores: Floats) -> NDArray[np.int64]:
    """These arms, best first."""
    return arms[np.argsort(-scores[arms], kind="stable")]


def described(
    context: Context, arms: NDArray[np.int64], scores: Floats, widths: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """Chosen arms, and the block of their scores, widths and rows, given scores and widths of all arms."""
    return arms, np.concatenate((scores[arms], widths[arms], rows_of(context, arms).ravel()))


_COUNTS = ("rounds", "observations", "no_winners", "voids")


def load(path: str | PathLike[str]) -> Policy:
    """Read any policy that `save` wrote; a policy class of your own must have been imported."""
    file = state.read(path)
    if file.kind not in Policy._kinds:
        raise StateFileError(f"{file.path} holds a {file.kind}, which is no policy that has been imported")
    return Policy._kinds[file.kind]._restore(file)


def rows_of(context: Context, arms: NDArray[np.int64]) -> Floats:
    """Joint features of some arms."""
    if isinstance(context, StructuredContext):
        return context.rows(arms)
    return context[arms].astype(np.float64, copy=False)


def _as_count(k: SupportsIndex, n: int) -> int:
    count = integer(k, "k", 1)
    if count > n:
        raise InputError(f"k must be from 1 to n={n}, the number of arms in X, got {count}")
    return count


def _as_mask(eligible: ArrayLike, n: int, k: int) -> Mask:
    expectation = f"n={n} booleans or distinct positions from 0 to {n - 1}"
    try:
        array = np.asarray(eligible)
    except ValueError:
        raise InputError(f"eligible must be {expectation}, got {eligible!r:.80}") from None
    mask = np.zeros(n, dtype=np.bool_)
    if array.dtype == np.bool_ and array.shape == (n,):
        mask[:] = array
    else:
        positions = as_integers(eligible, "eligible", expectation)
        if np.any((positions < 0) | (positions >= n)) or len(np.unique(positions)) < len(positions):
            raise InputError(f"eligible must be {expectation}, got {eligible!r:.80}")
        mask[positions] = True
    count = int(mask.sum())
    if count < k:
        raise InputError(f"eligible must leave at least k={k} arms, got {count}")
    return mask
