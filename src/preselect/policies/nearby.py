"""Nearby, for races: a linear model of each arm, corrected by what happened in the nearest races."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from preselect.arguments import integer, number
from preselect.block_context import BlockContext
from preselect.context import Context, Floats, Integers, Mask
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.kernels.types import PLAIN
from preselect.outcomes import NoWinner, Outcome
from preselect.policies.belief import BeliefPolicy
from preselect.policies.estimators import ArmByArm, BlockNewton
from preselect.policies.past_races import PastRaces, list_places
from preselect.policies.persistence import Arrays
from preselect.policies.room import Choice, Randomness, Room, assemble, best, sort_by_score
from preselect.rules import Rules
from preselect.scaling import Change

_MOST_UTILITY = 8.0  # the limit of utilities whose worths are corrected
_SIZES = (64, 12)  # how many neighbours the first and the second correction use
_CAUTION = 0.5  # the first arm of a set lacks this share of its width; the last has all of it
_FIRST = 3  # races before there are corrections
_OVERDUE = 3  # once every arm could have raced this often, an arm that never did gets a race
_EARLY, _TRIVIAL, _FAILURE = 0.1, 1e-3, 10.0  # as in race_times
_MOST_RACES = 1_000_000
_NO_RIVAL, _NOBODY, _EARLY_ARM = 1, 2, 4  # rivals as bits, see kernels.neighbours: none, NOBODY, both virtual arms


class Nearby(BeliefPolicy):
    """Learns one linear model per arm with online Newton steps, and corrects utilities by the nearest past races.

    *The line*, a linear model. Every arm has its own belief N(theta, P) about its weights and learns alone, as in
    online logistic regression (an extended Kalman filter): the other arms of a race count as rivals of known worth. A
    time limit gives utilities an absolute zero (see preselect.policies.race_times; EARLY has utility 0 here). So the
    covariances between arms, which Newton keeps, are worth little; without them a race costs O(k p²) for p features of
    a round.

    *The neighbours.* Before arms are chosen, the worths v = exp(u) of the line are corrected by the outcomes of the
    nearest past races. The corrected worths maximise a local likelihood: the Plackett-Luce likelihood of the K nearest
    races, weighted by 1 - d² / h² (Epanechnikov), with a gamma prior around the line. Hunter's (2004) minorise-maximise
    steps find them, first with K = 64, then with K = 12 around that result. `alpha` is the weight of the prior, in
    races: an arm without races nearby keeps the worth of its line. Tied arms count as if each were the first of its tie
    (Breslow). Distances are measured between scaled contexts.

    Arms are chosen by utility plus width, where the width is 0.3 + 0.7 exp(-t / 100) standard errors of the line after
    t races. Arms join the set one by one: half the width counts for the first, all of it for the last, so that some are
    chosen to win and some to be learnt about. Because widths shrink, arms that are added late might never race. So once
    every arm could have raced three times, the last place goes to an arm that has never raced.

    At most `memory` races are kept, the latest ones; a saved state has about 8 (p + 2 k) bytes for each.

    `blocks` says which features describe a round, and which weights belong to which arm; a Preselector sets it by
    itself. Without it there are no neighbours. `estimates` and `explain` of a Preselector use only the line.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    alpha : float, default 2.0
        The weight of the line against the neighbours, as a number of races of an arm; above 0.
    memory : int, default 5000
        How many races are kept, from 1 to a million.
    outside : bool, default False
        Whether NoWinner is learnt from (outside option), as in Newton. Times of races count as well.
    blocks : tuple of two int, optional
        (s, p): how many features all arms share, and how many after them describe the round, once for each arm.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> from preselect import Preselector
    >>> preselector = Preselector(["a", "b", "c"], ["size"], policy="nearby", nobody_may_win=True, seed=0)
    >>> for size in [1.0, 9.0] * 10:
    ...     preselector.learn(preselector.select([size], k=2), outcome=NoWinner(after=1.0))
    >>> preselector.policy
    Nearby(d=6, rounds=20, observations=0)
    """

    source = "this library; Hunter 2004"
    prefers_blocks = True

    def __init__(
        self,
        *,
        d: int,
        alpha: float = 2.0,
        memory: int = 5000,
        outside: bool = False,
        blocks: tuple[int, int] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, mean=0.0, precision=1.0, discount=1.0, outside=outside, blocks=blocks, seed=seed)
        self.alpha = number(alpha, "alpha", above=0.0)
        self.memory = integer(memory, "memory", 1, _MOST_RACES)
        self.past = PastRaces(0 if self.blocks is None else self.blocks[1], self.memory)

    def _make_estimate(self, **parameters: Any) -> ArmByArm | BlockNewton:
        return ArmByArm(self.d) if self.blocks is None else BlockNewton(self.d, self.blocks, **parameters)

    # --- choosing -----------------------------------------------------------------------------------------------------

    def _score(self, context: Context) -> tuple[Floats, Floats]:
        scores, errors = self._score_all(context, (self.estimate.covariance, 1.0, 0.0, PLAIN))
        widths = (0.3 + 0.7 * math.exp(-self._outcomes / 100.0)) * errors
        return self._correct(context, scores - errors) + widths, widths

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        scores, widths = self._score(context)
        room = Room(eligible, len(scores), k, rules)
        overdue = self._find_overdue(context, k)
        while room.left:
            caution = _CAUTION * (k - 1 - len(room.arms)) / max(k - 1, 1)
            may_join = room.list_open()
            if room.left == 1 and overdue[may_join].any():
                may_join = may_join[overdue[may_join]]
            room.take(int(best(scores - caution * widths, may_join, 1, randomness)[0]))
        return assemble(context, sort_by_score(room.arms, scores), scores, widths)

    def _find_overdue(self, context: Context, k: int) -> Mask:
        """Return which arms have never raced, although every arm could have raced several times."""
        if not isinstance(context, BlockContext) or self._outcomes * k < _OVERDUE * len(context.ids):
            return np.zeros(context.shape[0], dtype=np.bool_)
        overdue: Mask = ~self.estimate.touched[context.ids]
        return overdue

    def _correct(self, context: Context, u: Floats) -> Floats:
        """Return the utilities of all arms in a context, corrected by the nearest past races."""
        if not isinstance(context, BlockContext) or self.past.count <= _FIRST:
            return u
        worths = np.ones(len(self.estimate.touched))
        worths[context.ids] = _find_worths(u)
        self.past.correct(context.own, worths, self.alpha, _SIZES)
        return np.log(worths[context.ids])

    # --- learning -----------------------------------------------------------------------------------------------------

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        rows, ids, estimate = decision.rows, decision.ids, self.estimate
        u, variances = estimate.look(rows, ids)
        if not (np.isfinite(u).all() and np.isfinite(variances).all()):
            raise InputError(
                f"the decision cannot be learnt from, because no finite estimate follows: its features go up to "
                f"{np.abs(rows).max():.3g}; nothing was learnt; scale the features"
            )
        pace = estimate.pace.copy()
        ranked, rivals = self._judge(ranking, outcome, pace)
        gradients, curvatures = _learn_alone(_find_worths(u), ranking, ranked, rivals)
        order = np.lexsort((gradients, *rows.T))  # a fixed order: steps on shared features depend on it
        estimate.gain(rows[order], ids[order], gradients[order], curvatures[order])
        estimate.pace[:] = pace
        if self.blocks is not None:
            self.past.append(rows[0, self.blocks[0] :], ids, ranking[: max(ranked, 0)], ranked, rivals)

    def _judge(self, ranking: Integers, outcome: Outcome, pace: Floats) -> tuple[int, int]:
        """Return how many arms of a race count as ranked, and its rivals; add the cost of the race to `pace`."""
        after, rivals = outcome.after, _NOBODY if self.outside else _NO_RIVAL
        if after is None or not self.outside:
            return len(ranking), rivals
        cost = _FAILURE if isinstance(outcome, NoWinner) else min(after, 1.0)
        pace[:2] += 1.0, cost
        if cost < _TRIVIAL * min(pace[1] / pace[0], 1.0):
            return -1, _NOBODY
        return len(ranking), _EARLY_ARM | (_NOBODY if cost > _EARLY else 0)

    # --- state --------------------------------------------------------------------------------------------------------

    def transform(self, change: Change) -> None:
        super().transform(change)
        if self.blocks is not None:
            self.past.transform(change)

    def _arrays(self) -> Arrays:
        return {**super()._arrays(), **self.past.arrays()}

    def _restore_arrays(self, arrays: Arrays) -> None:
        super()._restore_arrays(arrays)
        self.past.restore(arrays, 0 if self.blocks is None else len(self.estimate.touched))

    def _widen_block_arrays(self, arrays: Arrays) -> Arrays:
        contexts = np.pad(arrays["contexts"], ((0, 0), (0, 1)))  # the new feature counts as its mean in earlier races
        return {**arrays, **super()._widen_block_arrays(arrays), "contexts": contexts}

    def _widen_arrays(self, arrays: Arrays) -> Arrays:
        return {**arrays, **super()._widen_arrays(arrays)}


def _find_worths(u: Floats) -> Floats:
    worths: Floats = np.exp(np.minimum(np.maximum(u, -_MOST_UTILITY), _MOST_UTILITY))
    return worths


def _learn_alone(v: Floats, ranking: Integers, ranked: int, rivals: int) -> tuple[Floats, Floats]:
    """Return slope and curvature of a race's log-likelihood in each arm's utility, with those of the others fixed.

    >>> g, H = _learn_alone(np.ones(3), np.array([2]), 1, 4)
    >>> g.round(12).tolist(), H.round(12).tolist()
    ([-0.2, -0.2, 0.8], [0.16, 0.16, 0.16])
    """
    if ranked < 0:  # some unknown arm was first; log V is replaced by its tangent
        share, q = v / v.sum(), v.sum() / (v.sum() + 1.0)
        return share * (1.0 - q), share**2 * (q * (1.0 - q))
    order, places = list_places(ranking)
    gradients, curvatures, running = np.zeros(len(v)), np.zeros(len(v)), np.ones(len(v), dtype=np.bool_)
    gradients[order] = 1.0
    for place in places.tolist() or [0]:
        running[order[:place]] = False
        for rival in (0, 1, 2):
            if rivals >> rival & 1:
                p = np.where(running, v, 0.0) / (v[running].sum() + rival)
                gradients -= p
                curvatures += p * (1.0 - p)
    return gradients, curvatures
