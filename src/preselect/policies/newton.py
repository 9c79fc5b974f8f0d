"""Newton, the default policy: online Newton on the Plackett-Luce likelihood, and upper confidence bounds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from preselect.arguments import number, one_of
from preselect.context import Context, Floats, Integers, Mask
from preselect.decision import Decision
from preselect.kernels.types import CONTRAST, PLAIN
from preselect.outcomes import Outcome
from preselect.policies.belief import BeliefPolicy
from preselect.policies.cover import covers, explores
from preselect.policies.estimators import BlockNewton
from preselect.policies.persistence import Arrays
from preselect.policies.policy import Width
from preselect.policies.propensities import Propensities, count_best, count_sets, make_exact
from preselect.policies.room import Randomness, Room, choose_slowly

_FORMS = {"contrast": CONTRAST, "arm": PLAIN}
_FIRST_BETA = math.sqrt(3.3)


class Newton(BeliefPolicy):
    """Learns with online Newton steps, and chooses by upper confidence bounds on each arm's lead over the leader.

    The estimate is the online Laplace approximation (an extended Kalman filter) known for generalised linear models:
    after each outcome the negative Hessian of the log-likelihood at theta is added to A, and P = inv(A) times the
    gradient is added to theta. Under Plackett-Luce only differences between arms are ever observed, so what matters
    about an arm i is how far it may lie above the leader b, the arm with the largest estimate. The other k - 1 arms are
    chosen by

        u_i - u_b + beta sqrt(q),  q = (x_i - x_b)' P (x_i - x_b),                      bonus="contrast"

    bonus="arm" is the plain form, with u_i and q = x_i' P x_i. It is also the contrast with NOBODY, whose features are
    zero, so with an outside option a set of one is chosen by it.

    With a constant beta an arm that was unlucky at first may never be tried again: its bound stays below the others,
    however long they compete. So by default beta grows for arms about which little has been learnt although much time
    has passed:

        beta = sqrt(3.3 + 8 log(1 + t min(q, 2) / (40 m))),

    where t is the number of outcomes learnt from, and m of the d features were not zero in them. While an arm is learnt
    about as fast as the average feature, q falls like m / t, and beta stays the same. (Bounds of this kind, with the
    logarithm of t over the number of trials of an arm, are known from MOSS and KL-UCB+.) Features that were always zero
    do not count, so that room for future arms changes nothing. A variance above 2 counts as 2, the variance between two
    arms with features of size 1 before the first outcome: larger features are no reason to explore more.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    beta : float, optional
        How many standard deviations of log-utility the bounds lie above the estimate, at least 0; larger values explore
        more. By default it grows as above: from 1.8 to 5.4 for an arm with q = 1 after 1000 outcomes per feature.
    mean : float or d floats, default 0.0
        Prior mean of theta, one number for all features or one for each. For theta uniform on [0, 1]^d use mean=0.5,
        precision=12.
    precision : float or d floats, default 1.0
        Prior precision of theta (one over its variance), above 0. With features of size 1, precision 1 expects
        utilities that differ by factors of about e.
    bonus : "contrast" or "arm", default "contrast"
        Whether the bound is on an arm's lead over the leader or on its own utility.
    discount : float, default 1.0
        Below 1 the policy forgets: what it saw 1 / (1 - discount) outcomes ago counts a third. The prior is kept.
    outside : bool, default False
        Whether NoWinner is learnt from (outside option), for rounds that may end without a winner, such as races with
        a time limit. A virtual arm, NOBODY, competes with log-utility 0; give arms a constant feature. If outcomes
        say `after`, the time counts as well: see preselect.policies.race_times.
    choose : "best" or "cover", default "best"
        "best" takes the k arms with the largest bounds. "cover" builds a set greedily: the one whose best arm comes
        closest in utility to the best of all arms, in expectation over 64 joint draws of theta. Then arms that are good
        or bad together do not fill the set, and beta plays no part. With an outside option, a set of one is chosen as
        with "best": otherwise arms about which little is known would never be tried.
    explore : float, default 0.0
        The share of rounds, from 0 to 1, in which the set is drawn as Thompson sampling does: the best k arms of one
        draw of theta. Then every arm that may be the best has a probability to be chosen (`propensities`), so that
        logs can be used to evaluate other policies.
    blocks : tuple of two int, optional
        (s, p) keeps the covariance in blocks: one of the first s features, which all arms share, and one of every p
        features after them, which are one arm's own. Memory then grows with the number of arms, not with its square.
        A Preselector sets it where it is needed. It requires discount=1, and single numbers as mean and precision.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = Newton(d=2, mean=[1.0, -1.0], seed=0)
    >>> policy.select([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], k=2).arms
    array([1, 2])
    """

    source = "this library"
    _state = ("seen",)

    def __init__(
        self,
        *,
        d: int,
        beta: float | None = None,
        mean: ArrayLike = 0.0,
        precision: ArrayLike = 1.0,
        bonus: str = "contrast",
        discount: float = 1.0,
        outside: bool = False,
        choose: str = "best",
        explore: float = 0.0,
        blocks: tuple[int, int] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            d=d, mean=mean, precision=precision, discount=discount, outside=outside, blocks=blocks, seed=seed
        )
        self.beta = None if beta is None else number(beta, "beta", least=0.0)
        self.bonus = one_of(bonus, "bonus", tuple(_FORMS))
        self._form = _FORMS[self.bonus]
        self.choose = one_of(choose, "choose", ("best", "cover"))
        self.explore = number(explore, "explore", least=0.0, most=1.0)
        self.seen = np.zeros(self.d, dtype=np.bool_)  # features that were not zero in some outcome
        self._seen_features = 0

    def explores_with(self, seed: int, round: int) -> bool:  # noqa: ARG002
        return self.explore > 0.0 and explores(self, Randomness(seed))

    def _is_randomised(self, size: int) -> bool:
        return self.explore > 0.0 or covers(self, size)

    def _find_propensities(
        self, context: Context, k: int, eligible: Mask, draws: int, generator: np.random.Generator
    ) -> Propensities:
        if self.choose == "cover":
            return self._simulate(context, k, eligible, draws, generator, None)
        estimate, n = self._score_all(context)[0], context.shape[0]
        arms = Room(eligible, n, k).list_open()
        drawn = count_best(
            lambda size: self._draw_belief(context, estimate, size, generator), arms, n, k, draws, generator
        )
        return self._find_usual(context, k, eligible, draws, generator).mix(self.explore, drawn)

    def _find_usual(
        self, context: Context, k: int, eligible: Mask, draws: int, generator: np.random.Generator
    ) -> Propensities:
        """Return the propensities of rounds that do not explore: 1 or 0, except for ties broken at random."""
        n, randomness = context.shape[0], Randomness(0)
        chosen = choose_slowly(self, context, k, eligible, randomness)[0]
        if not randomness.is_used:
            return make_exact(np.bincount(chosen, minlength=n).astype(np.float64))
        seeds = generator.integers(1 << 52, size=draws).tolist()
        sets = (choose_slowly(self, context, k, eligible, Randomness(one))[0] for one in seeds)
        return count_sets(sets, n)

    def _width(self) -> Width:
        if self.beta is None:
            growth = self._count_outcomes() / (40.0 * max(self._seen_features, 1))
            return self.estimate.P, _FIRST_BETA, growth, self._form
        return self.estimate.P, self.beta, 0.0, self._form

    def _width_of_one(self) -> Width:
        P, beta, growth, form = self._width()
        return P, beta, growth, PLAIN if self.outside else form  # the contrast with NOBODY, whose features are zero

    def _count_outcomes(self) -> float:
        """Return t, the number of outcomes; with a discount, earlier ones count less, as they do in A."""
        if self.discount == 1.0:
            return self._outcomes
        return (1.0 - self.discount**self._outcomes) / (1.0 - self.discount)

    def _learn(self, decision: Decision, ranking: Integers, outcome: Outcome) -> None:
        super()._learn(decision, ranking, outcome)
        if self._seen_features < self.d and self.beta is None:
            if isinstance(self.estimate, BlockNewton):
                self._see_features(*self.estimate.place(decision._rows, decision._ids))
            else:
                self.seen |= decision._rows.any(axis=0)
                self._seen_features = int(self.seen.sum())

    def adopt(self, block: Floats, seen: Mask, outcomes: int, without_winner: int) -> None:
        super().adopt(block, seen, outcomes, without_winner)
        self.seen[:], self._seen_features = seen, int(np.count_nonzero(seen))

    def _see_features(self, places: Integers, known: Mask) -> None:
        """Remember which features were not zero, given their places in theta."""
        self._seen_features += int(np.count_nonzero(known & ~self.seen[places]))
        self.seen[places] |= known

    def forget_seen(self, places: Integers) -> None:
        """Forget that these features were ever seen."""
        self._seen_features -= int(np.count_nonzero(self.seen[places]))
        self.seen[places] = False

    def _restore_arrays(self, arrays: Arrays) -> None:
        super()._restore_arrays({"seen": self.seen, **arrays})  # old files lack `seen`; their beta is constant
        self._seen_features = int(self.seen.sum())

    def _draw(self, context: Context, u: Floats, draws: int, generator: np.random.Generator) -> Floats:
        return self._draw_belief(context, u, draws, generator)
