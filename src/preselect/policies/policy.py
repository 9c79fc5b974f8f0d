"""The two bases of all policies: Policy, and LinearPolicy for utilities that are linear in the features."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from copy import deepcopy
from os import PathLike
from typing import Any, ClassVar, Self, SupportsIndex, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preselect import state
from preselect.arguments import integer
from preselect.context import Context, ContextLike, Floats, Integers, Mask, as_context, as_count, as_mask
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.kernels import choosing
from preselect.kernels.types import CONTRAST, NOT_FINITE, PLAIN, TIED
from preselect.outcomes import NoWinner, Outcome, Void
from preselect.policies import persistence
from preselect.policies.cover import cover
from preselect.policies.estimators import Estimator, update, update_by_race
from preselect.policies.persistence import Arrays
from preselect.scaling import Change

Choice: TypeAlias = tuple[Integers, Floats, Floats]  # k arms, their scores and then their widths, and their rows
Width: TypeAlias = tuple[Floats, float, float, int]  # Sigma, beta, growth, form: see kernels.choosing.choose

_EVERY_ARM: Mask = np.empty(0, dtype=np.bool_)  # the mask that excludes no arm
_INT64 = np.dtype(np.int64)
_MAX_SORTED_BY_INSERTION = 1000
_COVER_DRAWS = 64
_NO_WIDTH: Width = np.empty((0, 0)), 0.0, 0.0, PLAIN
_NO_ROWS = np.empty((0, 0))  # tells the kernel not to copy rows: those of a structured context are not built for it


class Policy(ABC):
    """Chooses k of the arms it is shown and learns from which of them wins.

    A new policy says how arms are scored (`_score`) and what an outcome teaches (`_learn`), and lists in `_state` the
    arrays that make up what it has learnt. Its constructor takes keyword arguments only and keeps each as an attribute
    of the same name; that is what `save` writes. Checking, ties, counting and files are done here.

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

    source: ClassVar[str] = ""  # the publication that describes the method
    kind: ClassVar[str]  # the name of the class in state files; with its module if it is not of this package
    keeps_history: ClassVar[bool] = False  # whether memory grows with every outcome, because the method needs them all
    outside: bool = False  # whether NoWinner is learnt from (outside option)
    _state: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ours = cls.__module__.startswith("preselect.")
        cls.kind = cls.__name__ if ours else f"{cls.__module__}:{cls.__qualname__}"
        persistence.register(cls)

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
            k = as_count(k, n)
        mask = _EVERY_ARM if eligible is None else as_mask(eligible, n, k)
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
        return assemble(context, self._best(scores, list_candidates(eligible, len(scores)), k), scores, widths)

    def _best(self, scores: Floats, arms: Integers, k: int) -> Integers:
        """Return the k of these arms with the largest scores, best first, ties broken at random."""
        if k == 0:
            return arms[:0]
        among = scores[arms]
        threshold = np.partition(among, -k)[-k]
        tolerance = _tie_tolerance(threshold)
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

    @property
    def _outcomes(self) -> int:
        """How many outcomes have been learnt from; those without a winner teach policies with an outside option."""
        return self.observations + self.no_winners if self.outside else self.observations

    @abstractmethod
    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        """Learn from a decision and its outcome; all or nothing.

        `ranking` lists the positions of the ranked arms in `decision.arms`, best first. It is empty for NoWinner, which
        only policies with `outside` learn from.
        """

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything that decides what the policy does next, its random generator included.

        Parameters
        ----------
        path : str or PathLike
            The file, by convention `*.npz`; it is written whole or not at all.
        """
        state.write(path, self.kind, *persistence.collect_state(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a policy of this class that `save` wrote.

        Parameters
        ----------
        path : str or PathLike
            The file. `preselect.load` reads policies of any class.
        """
        return cast(Self, persistence.restore(state.read(path).expect(cls.kind)))

    def widen(self, d: int) -> Self:
        """Return this policy with features added at the end, as if they had been zero in every decision.

        Parameters
        ----------
        d : int
            The number of features after widening, at least as many as before.
        """
        return cast(Self, persistence.widen(self, d))

    def transform(self, change: Change) -> None:  # noqa: B027
        """Express what has been learnt in joint features that have changed; nothing to do if features are ignored."""

    def _arrays(self) -> Arrays:
        """Return what has been learnt, by the names of state files."""
        return {name: getattr(self, name) for name in self._state}

    def _restore_arrays(self, arrays: Arrays) -> None:
        """Overwrite what has been learnt by saved arrays; policies whose arrays grow relax the check of shapes."""
        persistence.restore_in_place({name: getattr(self, name) for name in self._state}, arrays)

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        """Return the arrays of a policy with fewer features, padded with the initial values of this one."""
        return persistence.widen_arrays({name: getattr(self, name) for name in self._state}, arrays)

    __copy__ = deepcopy  # a shallow copy would share arrays, but not counts

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, rounds={self.rounds}, observations={self.observations})"


class Part:
    """An array of the estimate that can be read as an attribute of the policy."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, policy: LinearPolicy | None, owner: type) -> NDArray[Any]:
        if policy is None:  # read from the class, as help does
            return self  # type: ignore[return-value]
        array: NDArray[Any] = getattr(policy.estimate, self._name)
        return array


class LinearPolicy(Policy):
    """Ranks arms by x'theta plus a width, in the log domain, where no utility overflows.

    A subclass sets `estimate`, which holds theta and learns from outcomes, and says in `_width` how it explores.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    seed : int or None
        Seed of the policy's random generator; None for a different one each time.
    """

    d: int
    estimate: Estimator
    theta = Part()
    choose: str = "best"  # or "cover", for policies that can draw from a belief

    def __init__(self, *, d: int, seed: int | None) -> None:
        super().__init__(d=d, seed=seed)
        self._scratch, self._room = np.empty((2, 0)), 0

    def _width(self) -> Width:
        """Return how widths are computed now; without exploration there are none."""
        return _NO_WIDTH

    def _width_of_one(self) -> Width:
        """Return how widths are computed now if only one arm is chosen."""
        return self._width()

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        width = self._width()
        leader = int(self._score_all(context, _NO_WIDTH)[0].argmax()) if width[3] == CONTRAST else -1
        return self._score_all(context, width, leader)

    def _score_all(
        self, context: Context, width: Width, leader: int = -1, least: float = -math.inf
    ) -> tuple[Floats, Floats]:
        """Return score and width of every arm; arms that cannot reach `least` may get minus infinity instead."""
        Sigma, beta, growth, form = width
        X, theta, Sigma = context.contract(self.estimate.theta, Sigma, form == CONTRAST)
        scores, widths = np.empty(len(X)), np.empty(len(X))
        if choosing.score(X, theta, Sigma, beta, growth, form, leader, least, scores, widths) == NOT_FINITE:
            self._refuse(context)
        return scores, widths

    def _choose(self, context: Context, k: int, eligible: Mask) -> Choice:
        if self.choose == "cover":
            return self._cover(context, k, eligible)
        width = Sigma, beta, growth, form = self._width() if k > 1 else self._width_of_one()
        if k > _MAX_SORTED_BY_INSERTION:
            return self._choose_slowly(context, k, eligible, width)
        X, theta, Sigma = context.contract(self.estimate.theta, Sigma, form == CONTRAST)
        if self._room < len(X):
            self._scratch, self._room = np.empty((2, len(X))), len(X)
        arms, bounds = np.empty(k, _INT64), np.empty(2 * k)
        rows = _NO_ROWS if context.is_structured else np.empty((k, self.d))
        status = choosing.choose(X, theta, Sigma, beta, growth, form, eligible, self._scratch, arms, bounds, rows)
        if status == NOT_FINITE:
            self._refuse(context)
        if status == TIED:
            least = float(bounds[k - 1])
            return self._choose_slowly(context, k, eligible, width, least - 2.0 * _tie_tolerance(least))
        return arms, bounds, context.rows(arms) if context.is_structured else rows

    def _choose_slowly(
        self, context: Context, k: int, eligible: Mask, width: Width, least: float = -math.inf
    ) -> Choice:
        """Make the same choice with ties broken at random; `least` is a lower bound of the k-th best score."""
        arms = list_candidates(eligible, context.shape[0])
        if width[3] == CONTRAST:
            leader = self._best(self._score_all(context, _NO_WIDTH)[0], arms, 1)
            scores, widths = self._score_all(context, width, int(leader[0]))
            chosen = np.concatenate((leader, self._best(scores, arms[arms != leader], k - 1)))
        else:
            scores, widths = self._score_all(context, width, least=least)
            chosen = self._best(scores, arms, k)
        return assemble(context, chosen, scores, widths)

    def _cover(self, context: Context, k: int, eligible: Mask) -> Choice:
        """Choose the set whose best arm comes closest to the best of all arms, in expectation over the belief."""
        scores, widths = self._score(context)  # first, because it refuses bad input before anything is drawn
        u = scores - widths
        arms = cover(self._draw(context, u, _COVER_DRAWS), u, eligible, k, self._generator)
        return assemble(context, arms, scores, widths)

    def _draw(self, context: Context, u: Floats, draws: int) -> Floats:
        """Draw the utilities of all arms from the belief, n x draws, given their means u; for choose="cover"."""
        raise NotImplementedError

    def _refuse(self, context: Context) -> None:
        context.require_finite()
        raise InputError(
            f"X has entries up to {context.largest():.3g}, for which utilities are not finite; scale the features"
        )

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        if not self.outside:
            return self._observe(decision.rows, ranking, self._outcomes + 1)
        return update_by_race(self.estimate, decision.rows, ranking, outcome, self._outcomes + 1)

    def _observe(self, rows: Floats, ranking: Integers, t: int) -> None:
        """Learn that the arms with these rows (k x d) came in this order: outcome t, counted from 1."""
        update(self.estimate, rows, ranking, t)

    def transform(self, change: Change) -> None:
        self.estimate.transform(change, self.observations + self.outside * self.no_winners)

    def _arrays(self) -> Arrays:
        return {**self.estimate.arrays(), **super()._arrays()}

    def _restore_arrays(self, arrays: Arrays) -> None:
        self.estimate.restore(arrays)
        super()._restore_arrays(arrays)

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        return {**self.estimate.widen(arrays), **super()._widen_arrays(arrays)}


def _tie_tolerance(score: float) -> float:
    """Return the difference below which scores are tied: they differ by rounding only. The kernels use the same."""
    return 1e-12 * (1.0 + abs(score))


def list_candidates(eligible: Mask, n: int) -> Integers:
    """Return the positions of the arms that may be chosen."""
    return np.flatnonzero(eligible) if eligible.size else np.arange(n)


def sort_by_score(arms: Integers, scores: Floats) -> Integers:
    """Return these arms, best first."""
    return arms[np.argsort(-scores[arms], kind="stable")]


def assemble(context: Context, arms: Integers, scores: Floats, widths: Floats) -> Choice:
    """Return the chosen arms with their scores, widths and rows, given scores and widths of all arms."""
    return arms, np.concatenate((scores[arms], widths[arms])), context.rows(arms)
