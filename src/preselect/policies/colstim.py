"""CoLSTIM (Bengs, Saha and Hüllermeier 2022, Algorithm 1), for k arms instead of two."""

from __future__ import annotations

import math

import numpy as np

from preselect.arguments import number
from preselect.context import Context, Floats, Integers, Mask
from preselect.kernels import likelihood
from preselect.kernels.types import CONTRAST, PLAIN
from preselect.policies.estimators import Gram, WholeHistory
from preselect.policies.part import Part
from preselect.policies.policy import LinearPolicy, Width, update
from preselect.policies.room import Choice, Randomness, Room, choose_best, lead
from preselect.rules import Rules
from preselect.scaling import Change


class CoLSTIM(LinearPolicy):
    """Chooses a leader by randomly perturbed utility, and its toughest competitors by confidence bounds.

    The leader maximises x_i'theta + e_i sqrt(x_i' inv(M) x_i), where the e_i are Gumbel numbers cut off at
    +-`threshold`: with probability p one for each arm, otherwise one that all arms share. Its competitors j maximise
    (x_j - x_i)'theta + c_1 sqrt((x_j - x_i)' inv(M) (x_j - x_i)). M is the sum of zz' over the contrasts z seen so far,
    and theta the maximum likelihood estimate of the whole history. A round costs O(t k d^2), and memory grows with
    every outcome.

    Adapted: the paper duels two arms. Here the leader meets the k - 1 toughest competitors. Each pair that the outcome
    puts in order (the winner of a stage and an arm still in the running) adds its contrast to M. The likelihood is
    Plackett-Luce's, which for two arms is the paper's logistic one. The paper starts with tau random rounds to make M
    invertible; here M starts at `precision` times the identity, which also regularises the likelihood.

    Parameters
    ----------
    d : int
        Number of joint features of an arm.
    c_1 : float, optional
        Width of the competitors' bounds, at least 0. The default is sqrt(d log(t + 1)) in round t; the paper uses
        sqrt(d log T) for T rounds.
    threshold : float, optional
        Where the leader's perturbation is cut off, at least 0; the default is that of c_1.
    p : float, optional
        The probability, from 0 to 1, that the arms' perturbations are independent. The paper's theorem lets it fall as
        1 / sqrt(t). The default is min(1, d log(d (t + 1)) / sqrt(t)) in round t, the value with which Di et al. (2024)
        compare, with t + 1 for their T: it stays at 1 for the first 2000 rounds if d is 5, and for 14 000 if d is 10.
    precision : float, default 1.0
        What M starts with, and the precision of the prior around 0 that regularises the likelihood; above 0.
    every : int, default 1
        The estimate is recomputed after that many outcomes.
    seed : int, optional
        Seed of the policy's random generator; by default a different one each time.

    Examples
    --------
    >>> policy = CoLSTIM(d=2, seed=0)
    >>> len(policy.select([[3.0, 0.0], [0.0, 1.0], [2.0, 0.0]], k=2).arms)
    2
    """

    source = "Bengs, Saha and Hüllermeier 2022"
    keeps_history = True
    _state = ("M", "M_inverse")
    estimate: WholeHistory
    A, P = Part(), Part()

    def __init__(
        self,
        *,
        d: int,
        c_1: float | None = None,
        threshold: float | None = None,
        p: float | None = None,
        precision: float = 1.0,
        every: int = 1,
        seed: int | None = None,
    ) -> None:
        super().__init__(d=d, seed=seed)
        self.c_1 = None if c_1 is None else number(c_1, "c_1", least=0.0)
        self.threshold = None if threshold is None else number(threshold, "threshold", least=0.0)
        self.p = None if p is None else number(p, "p", least=0.0, most=1.0)
        self.precision = number(precision, "precision", above=0.0)
        self.estimate = WholeHistory(self.d, precision=self.precision, every=every)
        self.every = self.estimate.every
        self._gram = Gram(self.d, self.precision)

    @property
    def M(self) -> Floats:
        """The sum of zz' over all contrasts seen so far, plus `precision` times the identity."""
        return self._gram.G

    @property
    def M_inverse(self) -> Floats:
        """The inverse of M."""
        return self._gram.inverse

    def _width(self) -> Width:
        return self._gram.inverse, self._or_default(self.c_1), 0.0, CONTRAST

    def _or_default(self, value: float | None) -> float:
        return math.sqrt(self.d * math.log(self.observations + 2)) if value is None else value

    def _choose(self, context: Context, k: int, eligible: Mask, randomness: Randomness, rules: Rules | None) -> Choice:
        room = Room(eligible, context.shape[0], k, rules)
        estimate, norms = self._score_all(context, (self._gram.inverse, 1.0, 0.0, PLAIN))  # lines of Algorithm 1:
        perturbed = estimate - norms + self._perturb(len(norms), randomness.generator) * norms
        leader = lead(room, perturbed, randomness)  # line 14
        return choose_best(context, room, *self._score_all(context, self._width(), leader), randomness)  # line 15

    def _is_randomised(self, size: int) -> bool:  # noqa: ARG002
        return True

    def _perturb(self, n: int, generator: np.random.Generator) -> Floats:
        """Draw the perturbations of n arms (lines 7 to 13)."""
        t, threshold = self.observations + 1, self._or_default(self.threshold)
        p = self.d * math.log(self.d * (t + 1)) / math.sqrt(t) if self.p is None else self.p
        independent = p >= 1.0 or generator.random() < p  # B_t; certainty costs no random number
        e = generator.gumbel(size=n if independent else 1).clip(-threshold, threshold)
        return np.broadcast_to(e, n)

    def transform(self, change: Change) -> None:
        super().transform(change)
        self._gram.transform(change, self.observations)

    def _observe(self, rows: Floats, ranking: Integers, t: int) -> None:
        ranked = likelihood.rank_rows(rows, ranking)
        ends = ranking[:, 1].tolist() if ranking.ndim == 2 else range(1, len(ranking) + 1)
        contrasts = [ranked[stage] - ranked[end:] for stage, end in enumerate(ends)]
        with self._gram.undo_on_error():
            update(self._gram, np.concatenate(contrasts), ranking, t)
            super()._observe(rows, ranking, t)
