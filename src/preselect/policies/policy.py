"""The base of all policies."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from os import PathLike
from typing import Any, ClassVar, Self, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike

from preselect import state
from preselect.arguments import as_integers, integer, show
from preselect.context import Context, ContextLike, Integers, Mask, as_count, as_mask
from preselect.decision import Decision, make_decision
from preselect.errors import InputError
from preselect.outcomes import NoWinner, Outcome, Ranking, Void
from preselect.policies import persistence
from preselect.policies.choices import Choice, assemble, fill
from preselect.policies.part import Part as Part
from preselect.policies.persistence import Arrays
from preselect.policies.propensities import Propensities, count_sets
from preselect.policies.readable import ReadablePolicy
from preselect.policies.ties import settle_ties
from preselect.randomness import Randomness, make_root
from preselect.rules import Room, Rules
from preselect.scaling import Change

_MAX_SEED = 2**256 - 1
_MAX_DRAWS = 10_000_000
_EVERY_ARM: Mask = np.empty(0, dtype=np.bool_)  # the mask that excludes no arm


class Policy(ReadablePolicy):
    """Chooses k of the arms it is shown and learns from which of them wins.

    A new policy says how arms are scored (`_score`) and what an outcome teaches (`_learn`), and lists in `_state` the
    arrays that make up what it has learnt. Its constructor takes keyword arguments only and keeps each as an attribute
    of the same name; that is what `save` writes. Checking, ties, counting and files are done here.

    Several threads may use one policy: `select`, `decide`, `learn`, `scores`, `save` and copies wait for each other.
    Attributes are read without waiting.

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
    has_blocks: ClassVar[bool] = False  # whether it can keep a covariance in blocks: any number of arms
    prefers_blocks: ClassVar[bool] = False  # whether a Preselector keeps blocks even if there are few arms
    keeps_history: ClassVar[bool] = False  # whether memory grows with every outcome, because the method needs them all
    learns_ties: ClassVar[bool] = False  # whether `_learn` understands rankings with ties
    outside: bool = False  # whether NoWinner is learnt from (outside option)
    _state: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ours = cls.__module__.startswith("preselect.")
        cls.kind = cls.__name__ if ours else f"{cls.__module__}:{cls.__qualname__}"
        persistence.register(cls)

    def __init__(self, *, d: int | None, seed: int | None) -> None:
        self.d = None if d is None else integer(d, "d", 1)
        self._columns = self.d  # how many features the rows of decisions have
        self.seed = None if seed is None else integer(seed, "seed", 0, _MAX_SEED)
        self.rounds = self.observations = self.no_winners = self.voids = 0
        self._root = make_root(self.seed)  # the seed of round t is _root + t - 1

    # --- choosing -----------------------------------------------------------------------------------------------------

    def select(
        self, X: ContextLike, k: SupportsIndex, *, eligible: ArrayLike | None = None, rules: Rules | None = None
    ) -> Decision:
        """Choose k of the n arms in X, best first.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm. All have to be finite, also those of arms that are not eligible.
        k : int
            How many arms to choose, from 1 to n.
        eligible : array of n booleans, or of positions, optional
            The arms that may be chosen; by default all.
        rules : Rules, optional
            What the set has to obey as a whole: arms to include, limits of groups, a budget.

        Returns
        -------
        Decision
            The chosen arms with their scores, widths and rows; give it to `learn` once the outcome is known.
        """
        with self._guard:
            decision = self._decide(X, k, self._root + self.rounds, eligible, rules)
            self.rounds += 1
        return decision

    @property
    def next_seed(self) -> int:
        """The seed with which `select` would decide now."""
        return self._root + self.rounds

    def decide(
        self,
        X: ContextLike,
        k: SupportsIndex,
        seed: SupportsIndex,
        *,
        eligible: ArrayLike | None = None,
        rules: Rules | None = None,
    ) -> Decision:
        """Choose as `select` does, and change nothing: the same state, arguments and seed give the same decision.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        k : int
            How many arms to choose, from 1 to n.
        seed : int
            The seed of all that is left to chance in this decision, at least 0.
        eligible : array of n booleans, or of positions, optional
            The arms that may be chosen; by default all.
        rules : Rules, optional
            What the set has to obey as a whole.
        """
        seed = integer(seed, "seed", 0, _MAX_SEED)
        with self._guard:
            return self._decide(X, k, seed, eligible, rules)

    def _decide(
        self, X: ContextLike, k: SupportsIndex, seed: int, eligible: ArrayLike | None, rules: Rules | None
    ) -> Decision:
        context = self._see(X)
        n, mask = context.shape[0], _EVERY_ARM
        if eligible is not None or rules is not None or type(k) is not int or not 1 <= k <= n:
            k, mask = self._check(n, k, eligible, rules)
        arms, bounds, rows = self._choose(context, k, mask, Randomness(seed), rules)
        return make_decision(arms, bounds, rows, context.identify(arms), self.rounds + 1, seed)

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
        """Return the probability of each arm to be in the set that would be chosen now, over all seeds.

        Logs of a randomised policy can be used to evaluate others, if they say how likely each choice was. None if
        nothing but ties is left to chance.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        k : int
            How many arms to choose, from 1 to n.
        eligible : array of n booleans, or of positions, optional
            The arms that may be chosen; by default all.
        rules : Rules, optional
            What the set has to obey as a whole.
        draws : int, default 1000
            How many sets to draw where the probabilities are not known; their errors fall with its square root.
        seed : int, default 0
            The seed of these draws.
        """
        context = self._see(X)
        draws, seed = integer(draws, "draws", 1, _MAX_DRAWS), integer(seed, "seed", 0, _MAX_SEED)
        k, mask = self._check(context.shape[0], k, eligible, rules)
        context.require_finite()
        with self._guard:
            if not self._is_randomised(Room(mask, context.shape[0], k, rules).size):
                return None
            if rules is None:
                return self._find_propensities(context, k, mask, draws, np.random.default_rng(seed))
            return self._simulate(context, k, mask, draws, np.random.default_rng(seed), rules)

    def _is_randomised(self, size: int) -> bool:  # noqa: ARG002
        """Return whether more than ties is left to chance in the next decision, about a set of this size."""
        return False

    def _find_propensities(
        self, context: Context, k: int, eligible: Mask, draws: int, generator: np.random.Generator
    ) -> Propensities:
        """Return the propensities of a policy that is randomised; a policy that knows them better says so here."""
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
        """Return the propensities by making the choice again and again."""
        seeds = generator.integers(1 << 52, size=draws).tolist()
        sets = (self._choose(context, k, eligible, Randomness(seed), rules)[0] for seed in seeds)
        return count_sets(sets, context.shape[0])

    def _check(self, n: int, k: SupportsIndex, eligible: ArrayLike | None, rules: Rules | None) -> tuple[int, Mask]:
        """Return k and the mask of eligible arms, once all arguments of a choice among n arms are right."""
        if type(k) is not int or not 1 <= k <= n:
            k = as_count(k, n)
        mask = _EVERY_ARM if eligible is None else as_mask(eligible, n, k)
        if rules is not None:
            if not isinstance(rules, Rules):
                raise InputError(f"rules is {show(rules)}; use Rules(...)")
            rules.check(n, k, mask)
        return k, mask

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        """Choose the k eligible arms with the largest scores that obey the rules; ties are broken at random."""
        scores, widths = self._score(context)
        arms = fill(Room(eligible, len(scores), k, rules), scores, randomness)
        return assemble(context, arms, scores, widths)

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
            raise InputError(f"the decision has to be one that select returned, not {show(decision)}")
        if not isinstance(outcome, Outcome):
            raise InputError(f"the outcome has to be a Winner, Ranking, NoWinner or Void, not {show(outcome)}")
        if decision.d != self._columns and self.d is not None:
            raise InputError(f"the decision is about {decision.d} features, but this policy has d={self._columns}")
        ranking = outcome.positions(decision.arms)
        if ranking.ndim == 2:
            ranking = settle_ties(self, ranking, len(decision.arms))
        with self._guard:
            if ranking.size:
                self._learn(decision, ranking, outcome)
                self.observations += 1
            elif isinstance(outcome, Ranking):  # all arms are tied
                self.observations += 1
            elif isinstance(outcome, NoWinner):
                if self.outside:
                    self._learn(decision, ranking, outcome)
                self.no_winners += 1
            elif isinstance(outcome, Void):
                self.voids += 1

    def extend(self, decision: Decision, X: ContextLike, arms: ArrayLike) -> Decision:
        """Return a decision with further arms of its context, which competed besides the chosen ones: for `learn`.

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
        parts = bounds.ravel(), np.concatenate((decision.rows, context.rows(more)))
        return Decision(every, *parts, np.concatenate((decision.ids, context.identify(more))), decision.round)

    @property
    def _outcomes(self) -> int:
        """How many outcomes have been learnt from; those without a winner teach policies with an outside option."""
        return self.observations + self.no_winners if self.outside else self.observations

    @abstractmethod
    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        """Learn from a decision and its outcome; all or nothing.

        `ranking` lists the positions of the ranked arms in `decision.arms`, best first. It is empty for NoWinner, which
        only policies with `outside` learn from. With ties, which only policies with `learns_ties` learn from, it has a
        second column: the place in the ranking where the arm's tie ends.
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
        return cast(Self, persistence.widen(self, d))

    def transform(self, change: Change) -> None:
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, rounds={self.rounds}, observations={self.observations})"
