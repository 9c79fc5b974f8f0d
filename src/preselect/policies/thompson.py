"""Thompson sampling (Thompson 1933; for linear utilities Agrawal and Goyal 2013) with the Plackett-Luce likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import boolean, number, one_of
from preselect.context import Context, Floats, Integers, Mask
from preselect.policies.estimators import OnlineNewton, simplify
from preselect.policies.policy import Choice, LinearPolicy, Part, assemble, list_candidates


class Thompson(LinearPolicy):
    """Draws theta from the belief of online Newton, once for all slots or once for each, and takes the best arms.

    A draw is one theta for all arms, because arms share it: draws per arm would be independent where beliefs are not.
    The belief is that of Newton. Adapted: Agrawal and Goyal choose one arm and see a reward, and their Gaussian
    posterior is that of linear regression, with standard deviations multiplied by R sqrt(9 d log(t / delta)) for their
    proof; here by `scale`.

    The width of a chosen arm is how far the draw lies above the estimate, and may be negative. `scores` returns the
    plain estimates.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    draws : "one" or "slot", default "one"
        "one" takes the top k of one draw; "slot" fills slot after slot with the best arm left in a new draw.
    scale : float, default 1.0
        Multiplies the standard deviations of the belief, at least 0; more explores more, 0 is greedy.
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
        "best" takes the best arms of the draws; "cover" a set, greedily: the one whose best arm comes closest to the
        best of all arms in utility, in expectation over 64 joint draws of theta.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = Thompson(d=2, mean=[1.0, -1.0], precision=1e6, seed=0)
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "Agrawal and Goyal 2013"
    estimate: OnlineNewton
    A, P, pace = Part(), Part(), Part()

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
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.draws = one_of(draws, "draws", ("one", "slot"))
        self.scale = number(scale, "scale", least=0.0)
        self.choose = one_of(choose, "choose", ("best", "cover"))
        self.estimate = OnlineNewton(self.d, mean=mean, precision=precision, discount=discount)
        self.mean, self.precision = simplify(mean), simplify(precision)
        self.discount, self.outside = self.estimate.discount, boolean(outside, "outside")

    def _choose(self, context: Context, k: int, eligible: Mask) -> Choice:
        if self.choose == "cover":
            return self._cover(context, k, eligible)
        estimate = self._score(context)[0]  # first, because it refuses bad input before anything is drawn
        candidates = list_candidates(eligible, len(estimate))
        if self.draws == "one":
            drawn = self._draw(context, estimate, 1)[:, 0]
            arms = self._best(drawn, candidates, k)
        else:
            arms, drawn = self._fill_slots(self._draw(context, estimate, k), candidates)
        return assemble(context, arms, drawn, drawn - estimate)

    def _draw(self, context: Context, u: Floats, draws: int) -> Floats:
        """Draw utilities from the belief with its standard deviations scaled: n x draws."""
        return u[:, None] + self.scale * (self.estimate.draw(context, u, draws, self._generator) - u[:, None])

    def _fill_slots(self, by_slot: Floats, left: Integers) -> tuple[Integers, Floats]:
        """Return the best arm left in each draw, a column of `by_slot`; and the draw by which each was chosen."""
        n, k = by_slot.shape
        arms, drawn = np.empty(k, dtype=np.int64), np.empty(n)
        for slot in range(k):
            arms[slot : slot + 1] = self._best(by_slot[:, slot], left, 1)
            drawn[arms[slot]] = by_slot[arms[slot], slot]
            left = left[left != arms[slot]]
        return arms, drawn
