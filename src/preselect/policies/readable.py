"""The base of `Policy`, with everything but playing rounds: scores, propensities, saving and loading."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from os import PathLike
from typing import Any, ClassVar, Self, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike

from preselect import state
from preselect.arguments import as_integers, integer, show
from preselect.context import Context, ContextLike, Floats, Integers, Mask, as_count, as_mask
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.guard import Guarded
from preselect.policies import persistence
from preselect.policies.persistence import Arrays
from preselect.policies.propensities import Propensities, count_sets
from preselect.policies.room import Choice, Randomness, Room, best
from preselect.rules import Rules, check_size
from preselect.scaling import Change

MAX_SEED = 2**256 - 1
EVERY_ARM: Mask = np.empty(0, dtype=np.bool_)  # the mask that excludes no arm
_MAX_DRAWS = 10_000_000


class ReadablePolicy(Guarded, ABC):
    """What every policy can do besides playing rounds: show scores and propensities, be saved and loaded."""

    d: int | None
    kind: ClassVar[str]  # the name of the class in state files, with its module if that is not of this package
    has_blocks: ClassVar[bool] = False  # whether it can keep a covariance in blocks, for any number of arms
    prefers_blocks: ClassVar[bool] = False  # whether a Preselector keeps blocks even if there are few arms
    keeps_history: ClassVar[bool] = False  # whether memory grows with every outcome, because the method needs them all
    outside: bool = False  # whether NoWinner is learnt from (outside option)
    _state: ClassVar[tuple[str, ...]] = ()
    _columns: int | None  # how many features the rows of decisions have
    _root: int  # the seed of round t is _root + t - 1
    has_log_utilities: ClassVar[bool] = True  # if not, an arm's utility is its chance of winning

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ours = cls.__module__.startswith("preselect.")
        cls.kind = cls.__name__ if ours else f"{cls.__module__}:{cls.__qualname__}"
        persistence.register(cls)

    # --- reading ---------------------------------------------------------------------------------------------------

    def explores_with(self, seed: int, round: int) -> bool:  # noqa: ARG002
        """Return whether the decision with this seed and number is made at random on purpose.

        Parameters
        ----------
        seed : int
            The seed of the decision.
        round : int
            Its number, from 1.
        """
        return False

    def scores(self, X: ContextLike) -> Floats:
        """Return the score by which each arm of X would be ranked now, apart from random numbers.

        For most policies scores are estimated log-utilities plus widths, which are for exploration and say nothing
        about how good an arm is. A leader, which is chosen whatever the others' widths are, has the largest score.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        """
        with self._guard:
            return self._score(self._see(X))[0]

    def suggest(self, X: ContextLike, among: ArrayLike, many: SupportsIndex, *, seed: SupportsIndex = 0) -> Integers:
        """Return the arms about which least is known in X, the least known first; ties are broken at random.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        among : array of integers
            Positions of the arms to return some of.
        many : int
            How many arms to return, at least 0; all of them if there are fewer.
        seed : int, default 0
            The seed for breaking ties.
        """
        context, randomness = self._see(X), Randomness(integer(seed, "seed", 0))
        expectation = f"distinct positions from 0 to {context.shape[0] - 1}"
        arms = as_integers(among, "among", expectation)
        if len(np.unique(arms)) < len(arms) or np.any((arms < 0) | (arms >= context.shape[0])):
            raise InputError(f"among should be {expectation}, not {show(among)}")
        many = min(integer(many, "many", 0), len(arms))
        with self._guard:
            return best(self._find_uncertainties(context), arms, many, randomness)

    def _find_uncertainties(self, context: Context) -> Floats:
        """Return how little is known about each arm, in any unit: by default, the width of its score."""
        return self._score(context)[1]

    @abstractmethod
    def _see(self, X: ContextLike) -> Context:
        """Return X as the policy uses it."""

    @abstractmethod
    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        """Choose k eligible arms that obey the rules; random numbers follow from the decision's seed."""

    @abstractmethod
    def _score(self, context: Context) -> tuple[Floats, Floats]:
        """Return score and width of every arm; raise an InputError if the context is not finite."""

    def _check(self, n: int, k: SupportsIndex, eligible: ArrayLike | None, rules: Rules | None) -> tuple[int, Mask]:
        """Check the arguments of a choice among n arms; return k and the mask of eligible arms."""
        if type(k) is not int or not 1 <= k <= n:
            k = as_count(k, n)
        mask = EVERY_ARM if eligible is None else as_mask(eligible, n, k)
        if rules is not None:
            if not isinstance(rules, Rules):
                raise InputError(f"rules is {show(rules)}; use Rules(...)")
            rules.check(n, k, mask)
            check_size(rules, Room(mask, n, k, rules).size, n, mask)
        return k, mask

    # --- propensities -------------------------------------------------------------------------------------------------

    def propensities(
        self,
        X: ContextLike,
        k: SupportsIndex,
        *,
        eligible: ArrayLike | None = None,
        rules: Rules | None = None,
        draws: SupportsIndex = 1000,
        seed: SupportsIndex = 0,
    ) -> Propensities | None:
        """Return the probability, over all seeds, that each arm is in the set that would be chosen now.

        Logs of a randomised policy can be used to evaluate others if they record how likely each choice was. Returns
        None if the policy is random in breaking ties only.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        k : int
            How many arms to choose, from 1 to n.
        eligible : array of n booleans, or of positions, optional
            The arms that may be chosen; by default all.
        rules : Rules, optional
            Rules for the set as a whole.
        draws : int, default 1000
            How many sets to draw if the probabilities cannot be computed; errors fall with the square root of this
            number.
        seed : int, default 0
            The seed of these draws.
        """
        context = self._see(X)
        draws, seed = integer(draws, "draws", 1, _MAX_DRAWS), integer(seed, "seed", 0, MAX_SEED)
        k, mask = self._check(context.shape[0], k, eligible, rules)
        context.require_finite()
        with self._guard:
            if not self._is_randomised(Room(mask, context.shape[0], k, rules).size):
                return None
            if rules is None:
                return self._find_propensities(context, k, mask, draws, np.random.default_rng(seed))
            return self._simulate(context, k, mask, draws, np.random.default_rng(seed), rules)

    def _is_randomised(self, size: int) -> bool:  # noqa: ARG002
        """Return whether the next decision, about a set of this size, is random in more than breaking ties."""
        return False

    def _find_propensities(
        self, context: Context, k: int, eligible: Mask, draws: int, generator: np.random.Generator
    ) -> Propensities:
        """Return the propensities of a randomised policy, by simulation unless a subclass can compute them."""
        return self._simulate(context, k, eligible, draws, generator, None)

    def _simulate(
        self,
        context: Context,
        k: int,
        eligible: Mask,
        draws: int,
        generator: np.random.Generator,
        rules: Rules | None,
    ) -> Propensities:
        """Estimate the propensities by making the choice again and again."""
        seeds = generator.integers(1 << 52, size=draws).tolist()
        sets = (self._choose(context, k, eligible, Randomness(seed), rules)[0] for seed in seeds)
        return count_sets(sets, context.shape[0])

    def extend(self, decision: Decision, X: ContextLike, arms: ArrayLike) -> Decision:
        """Return a decision for `learn` with further arms of the context, which competed alongside the chosen ones.

        They follow the chosen arms. Their scores and widths are NaN, because they were not chosen.

        Parameters
        ----------
        decision : Decision
            What `select` returned.
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm, as they were shown.
        arms : array of integers
            Positions of the further arms in X: distinct, and not chosen.
        """
        if not isinstance(decision, Decision):
            raise InputError(f"the decision has to be one that select returned, not {show(decision)}")
        context, more = self._see(X), as_integers(arms, "arms", "positions of arms")
        if decision.d != self._columns and self.d is not None:
            raise InputError(f"the decision is about {decision.d} features, but this policy has d={self._columns}")
        every = np.concatenate((decision.arms, more))
        if np.any((every < 0) | (every >= context.shape[0])) or len(np.unique(every)) < len(every):
            raise InputError(f"arms should be distinct positions in X of arms that were not chosen, not {show(arms)}")
        bounds = np.full((2, len(every)), np.nan)
        bounds[:, : len(decision.arms)] = decision.scores, decision.widths
        rows, ids = context.describe(more)
        parts = bounds.ravel(), np.concatenate((decision.rows, rows)), np.concatenate((decision.ids, ids))
        return Decision(every, *parts, decision.round)

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
        with self._guard:
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
        return persistence.widen(self, d)

    def transform(self, change: Change) -> None:
        """Express what has been learnt in joint features that have changed; nothing to do if features are ignored."""

    def _arrays(self) -> Arrays:
        """Return what has been learnt, under the names that state files use."""
        return {name: getattr(self, name) for name in self._state}

    def _restore_arrays(self, arrays: Arrays) -> None:
        """Overwrite what has been learnt with saved arrays; policies whose arrays grow relax the check of shapes."""
        persistence.restore_in_place({name: getattr(self, name) for name in self._state}, arrays)

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        """Return the arrays of a policy with fewer features, padded with the initial values of this one."""
        return persistence.widen_arrays({name: getattr(self, name) for name in self._state}, arrays)
