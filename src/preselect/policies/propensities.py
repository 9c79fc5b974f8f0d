"""Propensities: the probability that each arm is in the chosen set, exact or estimated from draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from preselect.context import Floats, Integers, Mask
from preselect.policies.room import tie_tolerance

_Draw: TypeAlias = Callable[[int], Floats]  # draws the utilities of n arms, that many times: n x draws


@dataclass(frozen=True, eq=False)
class Propensities:
    """The probability that each arm is in the chosen set.

    Parameters
    ----------
    probabilities : array of n numbers
        The probabilities, which add up to k; 0 for arms that are not eligible.
    standard_errors : array of n numbers
        Their standard errors: 0 if they are exact. A share of draws that is 0 or 1 still has an error.
    draws : int
        How many draws they come from; 0 if they are exact.
    """

    probabilities: Floats
    standard_errors: Floats
    draws: int = 0

    def mix(self, share: float, other: Propensities) -> Propensities:
        """Return the propensities of a policy that follows this one with probability 1 - share, otherwise another one.

        Parameters
        ----------
        share : float
            From 0 to 1.
        other : Propensities
            The propensities of the other policy.
        """
        errors = np.hypot((1.0 - share) * self.standard_errors, share * other.standard_errors)
        mixed = (1.0 - share) * self.probabilities + share * other.probabilities
        return Propensities(mixed, errors, max(self.draws, other.draws))


def list_chosen(found: Propensities | None, arms: Integers) -> tuple[float, ...] | None:
    """Return the propensities of the chosen arms. If sets were drawn, the chosen set counts as one more draw."""
    if found is None:
        return None
    chances = found.probabilities[arms]
    if found.draws:
        chances = (chances * found.draws + 1.0) / (found.draws + 1.0)
    return tuple(chances.tolist())


def make_exact(probabilities: Floats) -> Propensities:
    """Return exact propensities: their standard errors are 0."""
    return Propensities(probabilities, np.zeros(len(probabilities)))


def share_evenly(eligible: Mask, n: int, k: int) -> Propensities:
    """Return the propensities if every set of k eligible arms is as likely as any other."""
    may = eligible if eligible.size else np.ones(n, dtype=np.bool_)
    return make_exact(np.where(may, k / int(may.sum()), 0.0))


def take_best(scores: Floats, eligible: Mask, k: int) -> Propensities:
    """Return the propensities if the best k eligible arms are chosen: 1 or 0, except for ties broken at random."""
    among = np.where(eligible, scores, -np.inf) if eligible.size else scores
    threshold = float(np.partition(among, -k)[-k])
    tolerance = tie_tolerance(threshold)
    above, tied = among > threshold + tolerance, np.abs(among - threshold) <= tolerance
    return make_exact(above + tied * ((k - int(above.sum())) / int(tied.sum())))


def count_sets(sets: Iterable[Integers], n: int) -> Propensities:
    """Estimate the propensities from sets that were drawn."""
    counts, draws = np.zeros(n), 0
    for arms in sets:
        counts[arms] += 1.0
        draws += 1
    return _share(counts, draws)


def count_best(draw: _Draw, arms: Integers, n: int, k: int, draws: int, generator: np.random.Generator) -> Propensities:
    """Estimate the propensities from how often each arm is among the best k of a draw of all utilities."""
    drawn = np.ascontiguousarray((draw(draws) if len(arms) == n else draw(draws)[arms]).T)
    thresholds = np.partition(drawn, len(arms) - k, axis=1)[:, -k, None]
    tolerances = 1e-12 * (1.0 + np.abs(thresholds))
    taken = drawn >= thresholds - tolerances
    counts = np.zeros(n)
    for place in np.flatnonzero(taken.sum(axis=1) > k):  # arms that are alike have equal draws: break ties at random
        tied = np.flatnonzero(np.abs(drawn[place] - thresholds[place]) <= tolerances[place])
        left_out = generator.permutation(tied)[: int(taken[place].sum()) - k]
        taken[place, left_out] = False
    counts[arms] = taken.sum(axis=0)
    return _share(counts, draws)


def count_slots(
    draw: _Draw, arms: Integers, n: int, k: int, draws: int, generator: np.random.Generator
) -> Propensities:
    """Estimate the propensities if every slot takes the best remaining arm of its own draw."""
    free = np.ones((draws, len(arms)), dtype=np.bool_)
    for _ in range(k):
        drawn = _break_ties(draw(draws)[arms].T, generator)
        free[np.arange(draws), np.where(free, drawn, -np.inf).argmax(axis=1)] = False
    counts = np.zeros(n)
    counts[arms] = (~free).sum(axis=0)
    return _share(counts, draws)


def _break_ties(drawn: Floats, generator: np.random.Generator) -> Floats:
    """Return the draws with ties, between arms that are alike, broken at random."""
    noise = generator.random(drawn.shape, dtype=np.float32)
    broken: Floats = drawn + tie_tolerance(float(np.abs(drawn).max())) * noise
    return broken


def _share(counts: Floats, draws: int) -> Propensities:
    smoothed = (counts + 1.0) / (draws + 2.0)
    return Propensities(counts / draws, np.sqrt(smoothed * (1.0 - smoothed) / draws), draws)
