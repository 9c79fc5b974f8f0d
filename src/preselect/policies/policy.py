"""The two bases of all policies: `Policy` decides rounds and learns from them; `LinearPolicy` has linear utilities."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import integer, show
from preselect.block_context import as_block_context
from preselect.context import Context, ContextLike, Floats, Integers, Mask, as_context
from preselect.decision import Decision, make_decision
from preselect.errors import InputError
from preselect.kernels import choosing, pruning
from preselect.kernels.types import CONTRAST, NOT_FINITE, OK, PLAIN, TIED
from preselect.outcomes import NoWinner, Outcome, Ranking, Void
from preselect.policies.cover import draw_set
from preselect.policies.estimators import Estimator
from preselect.policies.part import Part as Part
from preselect.policies.persistence import Arrays
from preselect.policies.readable import EVERY_ARM, MAX_SEED, ReadablePolicy
from preselect.policies.room import Choice, Randomness, Room, choose_best, choose_slowly, put_first
from preselect.policies.ties import settle_ties
from preselect.randomness import make_root
from preselect.rules import Rules
from preselect.scaling import Change

Width: TypeAlias = tuple[Any, float, float, int]  # Sigma, beta, growth, form: see kernels.choosing.choose

_INT64 = np.dtype(np.int64)
_MAX_SORTED_BY_INSERTION = 1000
_NO_WIDTH: Width = np.empty((0, 0)), 0.0, 0.0, PLAIN
_NOTHING = np.empty(0)  # set apart: see kernels.pruning.set_apart
_NO_ROWS = np.empty((0, 0))  # tells the kernel not to copy rows, which a structured context does not build


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
    learns_ties: ClassVar[bool] = False  # whether `_learn` understands rankings with ties
    blocks: tuple[int, int] | None = None  # how many features arms share, and how many are an arm's own: see Newton

    def __init__(self, *, d: int | None, seed: int | None) -> None:
        self.d = None if d is None else integer(d, "d", 1)
        self._columns = self.d  # how many features the rows of decisions have
        self.seed = None if seed is None else integer(seed, "seed", 0, MAX_SEED)
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
            Rules for the set as a whole: arms to include, limits of groups, a budget.

        Returns
        -------
        Decision
            The chosen arms with their scores, widths and rows; give it to `learn` once the outcome is known.
        """
        self._guard.acquire()  # not `with`, which takes twice as long in every round
        try:
            decision = self._decide(X, k, self._root + self.rounds, eligible, rules)
            self.rounds += 1
            return decision
        finally:
            self._guard.release()

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
        """Choose as `select` does, but change nothing: the same state, arguments and seed give the same decision.

        Parameters
        ----------
        X : array of n x d numbers, or a StructuredContext
            The joint features of each arm.
        k : int
            How many arms to choose, from 1 to n.
        seed : int
            The seed of this decision's random numbers, at least 0.
        eligible : array of n booleans, or of positions, optional
            The arms that may be chosen; by default all.
        rules : Rules, optional
            Rules for the set as a whole.
        """
        seed = integer(seed, "seed", 0, MAX_SEED)
        with self._guard:
            return self._decide(X, k, seed, eligible, rules)

    def _decide(
        self, X: ContextLike, k: SupportsIndex, seed: int, eligible: ArrayLike | None, rules: Rules | None
    ) -> Decision:
        context = self._see(X)
        n, mask = context.shape[0], EVERY_ARM
        if eligible is not None or rules is not None or type(k) is not int or not 1 <= k <= n:
            k, mask = self._check(n, k, eligible, rules)
        return make_decision(*self._choose(context, k, mask, Randomness(seed), rules), self.rounds + 1, seed)

    def _see(self, X: ContextLike) -> Context:
        return as_context(X, self.d) if self.blocks is None else as_block_context(X, self.d, *self.blocks)

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        """Choose the k eligible arms with the largest scores that obey the rules; ties are broken at random."""
        return choose_best(context, Room(eligible, context.shape[0], k, rules), *self._score(context), randomness)

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
        arms = decision._arms  # properties cost more than all of these checks
        if decision._rows.shape[1] != self._columns and self.d is not None:
            raise InputError(f"the decision is about {decision.d} features, but this policy has d={self._columns}")
        ranking = outcome.positions(arms)
        if ranking.ndim == 2:
            ranking = settle_ties(self, ranking, len(arms))
        self._guard.acquire()  # as in `select`
        try:
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
        finally:
            self._guard.release()

    @property
    def _outcomes(self) -> int:
        """How many outcomes have been learnt from; with an outside option, those without a winner count, too."""
        return self.observations + self.no_winners if self.outside else self.observations

    @abstractmethod
    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        """Learn from a decision and its outcome; all or nothing.

        `ranking` lists the positions of the ranked arms in `decision.arms`, best first. It is empty for NoWinner, which
        only policies with `outside` learn from. With ties, which only policies with `learns_ties` learn from, it has a
        second column: the place in the ranking where the arm's tie ends.
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, rounds={self.rounds}, observations={self.observations})"


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
    learns_ties = True
    estimate: Estimator
    theta = Part()
    choose: str = "best"  # "best", or "cover" if the policy can draw from a belief
    explore: float = 0.0  # the share of rounds whose set is drawn from the belief

    def __init__(self, *, d: int, seed: int | None) -> None:
        super().__init__(d=integer(d, "d", 1), seed=seed)

    def _width(self) -> Width:
        """Return how widths are computed now; without exploration there are none."""
        return _NO_WIDTH

    def _width_of_one(self) -> Width:
        """Return how widths are computed now if only one arm is chosen."""
        return self._width()

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        width = self._width()
        if width[3] != CONTRAST:
            return self._score_all(context, width)
        leader = int(self._score_all(context)[0].argmax())
        return put_first(leader, *self._score_all(context, width, leader))

    def _score_all(
        self, context: Context, width: Width = _NO_WIDTH, leader: int = -1, least: float = -math.inf
    ) -> tuple[Floats, Floats]:
        """Return score and width of every arm; arms that cannot reach `least` may get minus infinity instead."""
        Sigma, beta, growth, form = width
        X, theta, Sigma = context.contract(self.estimate.theta, Sigma, form == CONTRAST, None, leader)
        scores, widths = np.empty(len(X)), np.empty(len(X))
        if choosing.score(X, theta, Sigma, beta, growth, form, leader, least, scores, widths) == NOT_FINITE:
            self._refuse(context)
        return scores, widths

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        if self.choose == "cover" or self.explore > 0.0:
            drawn = draw_set(self, context, k, eligible, randomness, rules)
            if drawn is not None:
                return drawn
        if rules is not None or k > _MAX_SORTED_BY_INSERTION:
            return choose_slowly(self, context, k, eligible, randomness, rules)
        Sigma, beta, growth, form = self._width() if k > 1 else self._width_of_one()
        X, theta, Sigma = context.contract(self.estimate.theta, Sigma, form == CONTRAST, eligible)
        has_many = form == CONTRAST and len(X) > 8 * len(theta) and k > 1  # else it costs more time than it saves
        apart = pruning.set_apart(Sigma, theta) if has_many else _NOTHING
        arms, bounds = np.empty(k, _INT64), np.empty(2 * k)
        rows = _NO_ROWS if context.is_structured else np.empty((k, self.d))
        status = choosing.choose(X, theta, Sigma, beta, growth, form, apart, eligible, arms, bounds, rows)
        if status == NOT_FINITE:
            self._refuse(context)
        if status == TIED:
            return choose_slowly(self, context, k, eligible, randomness, None, bounds.item(k - 1))
        return (arms, bounds, *context.describe(arms)) if context.is_structured else (arms, bounds, rows, arms)

    def _draw(self, context: Context, u: Floats, draws: int, generator: np.random.Generator) -> Floats:
        """Draw the utilities of all arms from the belief, n x draws, given their means u."""
        raise NotImplementedError

    def _refuse(self, context: Context) -> None:
        context.require_finite()
        raise InputError(
            f"X has entries up to {context.largest():.3g}, for which utilities are not finite; scale the features"
        )

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        rows, t = decision._rows, self._outcomes + 1
        if self.blocks is None and not self.outside:
            return self._observe(rows, ranking, t)
        estimate, rows = self.estimate.focus(rows, decision._ids)
        return update(estimate, rows, ranking, t, outcome if self.outside else None)

    def _observe(self, rows: Floats, ranking: Integers, t: int) -> None:
        """Learn from outcome t, counted from 1: the arms with these rows (k x d) came in this order."""
        update(self.estimate, rows, ranking, t)

    def transform(self, change: Change) -> None:
        self.estimate.transform(change, self._outcomes)

    def _arrays(self) -> Arrays:
        return {**self.estimate.arrays(), **super()._arrays()}

    def _restore_arrays(self, arrays: Arrays) -> None:
        self.estimate.restore(arrays)
        super()._restore_arrays(arrays)

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        return {**self.estimate.widen(arrays), **super()._widen_arrays(arrays)}


def update(estimate: Estimator, rows: Floats, ranking: Integers, t: int, race: Outcome | None = None) -> None:
    """Let an estimator learn from outcome t; if that fails, it stays as it was. Refresh it after every few outcomes.

    If the outcome ended a race, give it as `race`: it also says whether nobody won, and how long the winner took.
    """
    status = estimate.learn(rows, ranking, t) if race is None else estimate.learn_race(rows, ranking, race, t)
    if status != OK:
        raise InputError(
            f"the decision cannot be learnt from, because no finite estimate follows: its features go up to "
            f"{np.abs(rows).max():.3g}, the estimate so far up to {np.abs(estimate.block).max():.3g}; nothing was "
            "learnt; scale the features"
        )
    if t % estimate.refresh_every == 0:
        estimate.refresh()
