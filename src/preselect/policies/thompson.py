"""Thompson sampling (Thompson 1933; for linear utilities Agrawal and Goyal 2013) with the Plackett-Luce likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import number, one_of
from preselect.context import Context, Floats, Integers, Mask
from preselect.policies.belief import BeliefPolicy
from preselect.policies.cover import cover_belief, covers
from preselect.policies.propensities import Propensities, count_best, count_slots
from preselect.policies.room import Choice, Randomness, Room, assemble, best, choose_best, sort_by_score
from preselect.rules import Rules


class Thompson(BeliefPolicy):
    """Draws theta from the belief of online Newton, once for all slots or once for each, and takes the best arms.

    A draw is one theta for all arms, because arms share it: separate draws for each arm would be independent although
    beliefs about arms are not. The belief is Newton's. Adapted: Agrawal and Goyal choose one arm and see a reward;
    their Gaussian posterior comes from linear regression, and its standard deviations are multiplied by R sqrt(9 d
    log(t / delta)) for the proof, here by `scale`.

    The width of a chosen arm is the draw minus the estimate, which may be negative. `scores` returns the plain
    estimates.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    draws : "one" or "slot", default "one"
        "one" takes the top k of one draw; "slot" fills slot after slot with the best arm left in a new draw.
    scale : float, default 1.0
        Multiplies the standard deviations of the belief, at least 0; larger values explore more, 0 is greedy.
    mean : float or d floats, default 0.0
        Prior mean of theta, one number for all features or one for each.
    precision : float or d floats, default 1.0
        Prior precision of theta (one over its variance), above 0. With features of size 1, precision 1 expects
        utilities that differ by factors of about e.
    discount : float, default 1.0
        Below 1 the policy forgets: what it saw 1 / (1 - discount) outcomes ago counts a third. The prior is kept.
    outside : bool, default False
        Whether NoWinner is learnt from (outside option), for rounds that may end without a winner, such as races with
        a time limit. A virtual arm, NOBODY, competes with log-utility 0; give arms a constant feature. If outcomes
        say `after`, the time counts as well: see preselect.policies.race_times.
    choose : "best" or "cover", default "best"
        "best" takes the best arms of the draws. "cover" builds a set greedily: the one whose best arm comes closest in
        utility to the best of all arms, in expectation over 64 joint draws of theta. With an outside option, a set of
        one is chosen as with "best": otherwise arms about which little is known would never be tried.
    blocks : tuple of two int, optional
        (s, p) keeps the covariance in blocks: one of the first s features, which all arms share, and one of every p
        features after them, which are one arm's own. Memory then grows with the number of arms, not with its square.
        A Preselector sets it where it is needed. It requires discount=1, and single numbers as mean and precision.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = Thompson(d=2, mean=[1.0, -1.0], precision=1e6, seed=0)
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "Agrawal and Goyal 2013"

    def __init__(
        self,
        *,
        d: int,
        draws: str = "one",
        scale: float = 1.0,
        mean: ArrayLike = 0.0,
        precision: ArrayLike = 1.0,
        discount: float = 1.0,
        outside: bool = False,
        choose: str = "best",
        blocks: tuple[int, int] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            d=d, mean=mean, precision=precision, discount=discount, outside=outside, blocks=blocks, seed=seed
        )
        self.draws = one_of(draws, "draws", ("one", "slot"))
        self.scale = number(scale, "scale", least=0.0)
        self.choose = one_of(choose, "choose", ("best", "cover"))

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        room = Room(eligible, context.shape[0], k, rules)
        if covers(self, room.size):
            return cover_belief(self, context, k, eligible, randomness, rules)
        estimate = self._score(context)[0]  # first, because it refuses bad input before anything is drawn
        if self.draws == "one":
            drawn = self._draw(context, estimate, 1, randomness.generator)[:, 0]
            return choose_best(context, room, drawn, drawn - estimate, randomness)
        by_slot = self._draw(context, estimate, room.size, randomness.generator)
        arms, drawn = _fill_slots(room, by_slot, randomness)
        return assemble(context, arms, drawn, drawn - estimate)

    def _is_randomised(self, size: int) -> bool:  # noqa: ARG002
        return self.scale > 0.0

    def _find_propensities(
        self, context: Context, k: int, eligible: Mask, draws: int, generator: np.random.Generator
    ) -> Propensities:
        if self.choose == "cover":
            return self._simulate(context, k, eligible, draws, generator, None)
        estimate, n = self._score(context)[0], context.shape[0]
        count = count_best if self.draws == "one" else count_slots
        arms = Room(eligible, n, k).list_open()
        return count(lambda size: self._draw(context, estimate, size, generator), arms, n, k, draws, generator)

    def _draw(self, context: Context, u: Floats, draws: int, generator: np.random.Generator) -> Floats:
        """Draw utilities from the belief with its standard deviations scaled: n x draws."""
        drawn = self._draw_belief(context, u, draws, generator)
        drawn -= u[:, None]
        drawn *= self.scale
        drawn += u[:, None]
        return drawn


def _fill_slots(room: Room, by_slot: Floats, randomness: Randomness) -> tuple[Integers, Floats]:
    """Fill slot after slot with the best arm of a draw, a column of `by_slot`; return arms and what was drawn for them.

    Arms to include have the first slots, but stand where their draws put them.
    """
    drawn = by_slot[:, 0].copy()
    for slot in range(room.size):
        if slot == len(room.arms):
            room.take(int(best(by_slot[:, slot], room.list_open(), 1, randomness)[0]))
        drawn[room.arms[slot]] = by_slot[room.arms[slot], slot]
    return room.arms if room.rules is None else sort_by_score(room.arms, drawn), drawn
