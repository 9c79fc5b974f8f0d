"""The base of all policies: select, learn, score, save, load. One policy per file beside this one."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from os import PathLike
from typing import Any, ClassVar, Self, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import state
from preselect.arguments import integer
from preselect.context import Context, ContextLike, Floats, Integers, as_context, as_integers
from preselect.decision import Decision
from preselect.errors import InputError, StateFileError
from preselect.outcomes import NoWinner, Outcome, Void
from preselect.policies.estimators.estimator import restore_in_place, widen_arrays

Mask: TypeAlias = NDArray[np.bool_]
Arrays: TypeAlias = dict[str, NDArray[Any]]
Choice: TypeAlias = tuple[Integers, Floats, Floats]  # k arms, their scores and then their widths, and their rows

_EVERY_ARM: Mask = np.empty(0, dtype=np.bool_)  # the mask that excludes no arm
_COUNTS = ("rounds", "observations", "no_winners", "voids")


class Policy(ABC):
    """Chooses k of the arms it is shown and learns from which of them wins.

    A new policy says how arms are scored (`_score`) and what an outcome teaches (`_observe`, or `_learn` if it takes
    more than the rows of the arms), and lists in `_state` its arrays that make up what it has learnt. Its constructor
    takes keyword arguments only and keeps each as an attribute of the same name; that is what `save` writes. Checking,
    ties, counting and files are done here.

    Parameters
    ----------
    d : int or None
        Number of joint features of an arm; None for policies that ignore features.
    seed : int or None
        Seed of the policy's random generator; None for a different one each time.

    Attributes
    ----------
    rounds, observations, no_winners, voids : int
        How many decisions were made, and how many outcomes of each kind were learnt from or counted.
    """

    source: ClassVar[str] = ""  # who described the method
    kind: ClassVar[str]  # the name of the class in state files; with its module if it is not of this package
    keeps_history: ClassVar[bool] = False  # whether memory grows with every outcome, because the method needs them all
    outside: bool = False  # whether NoWinner is learnt from (outside option)
    _state: ClassVar[tuple[str, ...]] = ()
    _kinds: ClassVar[dict[str, type[Policy]]] = {}

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

    # --- choosing -----------------------------------------------------------------------------------------------------

    def select(self, X: ContextLike, k: SupportsIndex, *, eligible: ArrayLike | None = None) -> Decision:
        """Choose k of the n arms in X, best first.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm. All have to be finite, also those of arms that are not eligible.
        k : int
            How many arms to choose, from 1 to n.
        eligible : array of n booleans, or of positions, optional
            The arms that may be chosen; by default all.

        Returns
        -------
        Decision
            The chosen arms with their scores, widths and rows; give it to `learn` once the outcome is known.
        """
        context = as_context(X, self.d)
        n = context.shape[0]
        if type(k) is not int or not 1 <= k <= n:
            k = _as_count(k, n)
        mask = _EVERY_ARM if eligible is None else _as_mask(eligible, n, k)
        arms, bounds, rows = self._choose(context, k, mask)
        self.rounds += 1
        return Decision(arms, bounds, rows, context.identify(arms), self.rounds)

    def scores(self, X: ContextLike) -> Floats:
        """Return what each arm of X would be ranked by now, apart from chance.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        """
        return self._score(as_context(X, self.d))[0]

    @abstractmethod
    def _score(self, context: Context) -> tuple[Floats, Floats]:
        """Return score and width of every arm; raise an InputError if the context is not finite."""

    def _choose(self, context: Context, k: int, eligible: Mask) -> Choice:
        """Choose the k eligible arms with the largest scores; ties are broken at random."""
        scores, widths = self._score(context)
        return pack(context, self._best(scores, list_candidates(eligible, len(scores)), k), scores, widths)

    def _best(self, scores: Floats, arms: Integers, k: int) -> Integers:
        """Return the k of these arms with the largest scores, best first, ties broken at random."""
        if k == 0:
            return arms[:0]
        among = scores[arms]
        threshold = np.partition(among, -k)[-k]
        tolerance = bound_rounding(threshold)
        above, tied = arms[among > threshold + tolerance], arms[np.abs(among - threshold) <= tolerance]
        if len(tied) > k - len(above):
            tied = self._generator.permutation(tied)[: k - len(above)]
        return sort_by_score(np.concatenate((above, tied)), scores)

    # --- learning -----------------------------------------------------------------------------------------------------

    def learn(self, decision: Decision, outcome: Outcome) -> None:
        """Learn from the outcome of a decision.

        Parameters
        ----------
        decision : Decision
            What `select` returned, in this round or an earlier one; or another policy's decision on the same features.
        outcome : Winner, Ranking, NoWinner or Void
            How the round ended. All outcomes are counted; Void teaches nothing, and NoWinner only policies with an
            outside option.
        """
        if not isinstance(decision, Decision):
            raise InputError(f"the decision has to be one that select returned, not {decision!r:.80}")
        if not isinstance(outcome, Outcome):
            raise InputError(f"the outcome has to be a Winner, Ranking, NoWinner or Void, not {outcome!r:.80}")
        if self.d is not None and decision.d != self.d:
            raise InputError(f"the decision is about {decision.d} features, but this policy has d={self.d}")
        ranking = outcome.positions(decision.arms)
        if ranking.size:
            self._learn(decision, ranking, outcome)
            self.observations += 1
        elif isinstance(outcome, NoWinner):
            if self.outside:
                self._learn(decision, ranking, outcome)
            self.no_winners += 1
        elif isinstance(outcome, Void):
            self.voids += 1

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:  # noqa: ARG002
        """Learn from a decision, whose arms at the positions `ranking` came first; all or nothing.

        The ranking is empty for NoWinner, which only policies with `outside` are shown.
        """
        self._observe(decision.rows, ranking)

    def _observe(self, rows: Floats, ranking: Integers) -> None:
        """Learn that of arms with these rows (k x d) those at the positions `ranking` came first; all or nothing."""
        raise NotImplementedError

    # --- state --------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that decides what the policy does next, its random generator included.

        Parameters
        ----------
        path : str or PathLike
            The file, by convention `*.npz`; it is written whole or not at all.
        """
        state.write(path, self.kind, *self._collect_state())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a policy of this class that `save` wrote.

        Parameters
        ----------
        path : str or PathLike
            The file. `preselect.load` reads policies of any class.
        """
        return cls._restore(state.read(path).expect(cls.kind))

    def widen(self, d: int) -> Self:
        """Return this policy with features added at the end, as if they had been there and zero in every decision.

        Parameters
        ----------
        d : int
            The number of features after widening, at least as many as before.
        """
        header, arrays = self._collect_state()
        if self.d is None:
            raise InputError("this policy has no d, so there are no features to add to; make it with d=...")
        if integer(d, "d", 1) < self.d:
            raise InputError(f"d={d}, but the policy already has {self.d} features; widening only adds some")
        lists = [name for name, value in header["parameters"].items() if isinstance(value, list)]
        if lists:
            raise InputError(f"{', '.join(lists)} was given per feature, so it says nothing about the features to add")
        wider = type(self)(**{**header["parameters"], "d": d})
        wider._take_over(header, wider._widen_arrays(arrays))
        return wider

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, rounds={self.rounds}, observations={self.observations})"

    def _collect_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return what `save` writes: plain values, and arrays."""
        header = {
            "parameters": self.parameters,
            "counts": {name: getattr(self, name) for name in _COUNTS},
            "generator": self._generator.bit_generator.state,
        }
        return header, self._arrays()

    @classmethod
    def _restore(cls, file: state.StateFile) -> Self:
        try:
            policy = cls(**file.header["parameters"])
            policy._take_over(file.header, file.arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise StateFileError(f"{file.path} is not a complete {cls.__name__} state: {error}") from None
        return policy

    def _take_over(self, header: dict[str, Any], arrays: Arrays) -> None:
        """Continue from what `_collect_state` of another policy of this kind returned."""
        self._generator.bit_generator.state = header["generator"]
        for name in _COUNTS:
            setattr(self, name, int(header["counts"][name]))
        self._restore_arrays(arrays)

    def _arrays(self) -> Arrays:
        """Return what has been learnt, by the names of state files."""
        return {name: getattr(self, name) for name in self._state}

    def _restore_arrays(self, arrays: Arrays) -> None:
        """Take over saved arrays; policies whose arrays grow relax the check of shapes."""
        restore_in_place({name: getattr(self, name) for name in self._state}, arrays)

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        """Return the arrays of a policy with fewer features, filled up with those that this one started with."""
        return widen_arrays({name: getattr(self, name) for name in self._state}, arrays)


def load(path: str | PathLike[str]) -> Policy:
    """Read any policy that `save` wrote.

    Parameters
    ----------
    path : str or PathLike
        The file. A policy class of your own must have been imported.
    """
    file = state.read(path)
    if file.kind not in Policy._kinds:
        raise StateFileError(f"{file.path} holds a {file.kind}, which is no policy that has been imported")
    return Policy._kinds[file.kind]._restore(file)


def bound_rounding(score: float) -> float:
    """Return the difference below which scores are tied: they differ by rounding only. The kernels use the same."""
    return 1e-12 * (1.0 + abs(score))


def list_candidates(eligible: Mask, n: int) -> Integers:
    """Return the positions of the arms that may be chosen."""
    return np.flatnonzero(eligible) if eligible.size else np.arange(n)


def sort_by_score(arms: Integers, scores: Floats) -> Integers:
    """Return these arms, best first."""
    return arms[np.argsort(-scores[arms], kind="stable")]


def pack(context: Context, arms: Integers, scores: Floats, widths: Floats) -> Choice:
    """Return chosen arms with their scores, widths and rows, given scores and widths of all arms."""
    return arms, np.concatenate((scores[arms], widths[arms])), context.rows(arms)


def _as_count(k: SupportsIndex, n: int) -> int:
    count = integer(k, "k", 1)
    if count > n:
        raise InputError(f"k={count}, but X has only {n} arms")
    return count


def _as_mask(eligible: ArrayLike, n: int, k: int) -> Mask:
    expectation = f"{n} booleans, or distinct positions from 0 to {n - 1}"
    try:
        array = np.asarray(eligible)
    except ValueError:
        raise InputError(f"eligible should be {expectation}, not {eligible!r:.80}") from None
    mask = np.zeros(n, dtype=np.bool_)
    if array.dtype == np.bool_ and array.shape == (n,):
        mask[:] = array
    else:
        positions = as_integers(eligible, "eligible", expectation)
        if np.any((positions < 0) | (positions >= n)) or len(np.unique(positions)) < len(positions):
            raise InputError(f"eligible should be {expectation}, not {eligible!r:.80}")
        mask[positions] = True
    count = int(mask.sum())
    if count < k:
        raise InputError(f"k={k}, but eligible leaves only {count} of the {n} arms")
    return mask
