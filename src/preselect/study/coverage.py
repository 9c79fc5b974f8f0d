"""A study of confidence widths: do they contain the truth, and how far is the estimate from it?

The paper derives its widths from Lemma 1, a bound on the tail of an F-distribution with d and t - d degrees of freedom:

    P(W >= 4 (d + 2 sqrt(d x) + 2 x) / (3 d)) <= exp(-x) + exp(-3 (t - d) / 2^8).

W is the Wald statistic, Eq. (11): (θ - θ*)' Σ^-1 (θ - θ*) / d, with the estimate θ after t outcomes and its estimated
covariance Σ. The widths use x = log t. The paper says that this holds for independent outcomes, and that it is an
approximation for a learner that chooses what it sees. This study measures how good the approximation is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from preselect.context import ContextLike, Floats, as_context
from preselect.decision import Decision
from preselect.environments import VARIATIONS, Environment, Synthetic
from preselect.errors import InputError
from preselect.outcomes import Outcome
from preselect.policies import CPPL, Newton, Policy, registry
from preselect.study.plan import Measure, Setting, SettingData
from preselect.study.synthetic import SyntheticPlan, SyntheticSetting

VARIATIONS_WITH_THETA = ("paper", "signed", "fixed-arms")  # θ* stays the same, and gives the utilities

_MEASURES = {
    "missed": Measure(
        "Widths that do not contain the truth",
        "the share of arms whose true utility (Newton: true lead over the leader) is outside estimate ± width",
        "rounds' worth of arms missed",
    ),
    "too_low": Measure(
        "Bounds that are too low",
        "the share of arms whose true utility, or lead, is above the upper bound, so that they may be overlooked",
        "rounds' worth of arms missed above",
    ),
    "error": Measure("Distance of the estimate", "the distance of the estimate from θ*", "sum of ‖θ − θ*‖"),
    "wald": Measure(
        "Wald statistic",
        "(θ − θ*)' Σ⁻¹ (θ − θ*) / d, from outcome 2 d on: 1 on average if the covariance is right",
        "sum of the Wald statistic",
    ),
    "beyond": Measure(
        "Tail of Lemma 1",
        "1 if the Wald statistic is beyond the bound of Lemma 1 for x = log t, from outcome 2 d on",
        "rounds beyond the bound of Lemma 1",
    ),
}


@dataclass(frozen=True)
class CoveragePlan(SyntheticPlan):
    """Measures how often widths contain the truth, and how estimates approach it, in the paper's synthetic rounds.

    Parameters
    ----------
    settings : tuple of SyntheticSetting, default (20, 5, 3) and (20, 10, 5)
        Problem sizes.
    policies : tuple of str, default ("cppl", "newton")
        CPPL or Newton, with parameters or without.
    repetitions : int, default 50
        Repetitions of each policy in each setting.
    horizon : int, default 4000
        Rounds of a repetition.
    feedback : {"winner", "ranking"}, default "winner"
        What is observed of the chosen arms.
    variation : {"paper", "signed", "fixed-arms"}, default "paper"
        How rounds are made.
    seed : int, default 0
        Seed of all random numbers.
    block : int, default 5
        Repetitions that are computed and written together.
    """

    kind = "coverage"
    title = "Study of widths and estimates"
    measures = _MEASURES

    settings: tuple[SyntheticSetting, ...] = (SyntheticSetting(20, 5, 3), SyntheticSetting(20, 10, 5))
    policies: tuple[str, ...] = ("cppl", "newton")
    repetitions: int = 50
    horizon: int = 4000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variation not in VARIATIONS_WITH_THETA:
            known = ", ".join(VARIATIONS_WITH_THETA)
            raise InputError(f"variation is {self.variation!r}, which has no fixed θ* to compare with; use {known}")

    def check(self) -> dict[Setting, SettingData]:
        """Check the plan as every study does, and that the policies have widths that claim to contain the truth."""
        for policy in self.policies:
            if not issubclass(registry.parse(policy)[0], (CPPL, Newton)):
                raise InputError(f"{policy} has no widths that claim to contain the truth; use cppl or newton")
        return super().check()

    def make_environment(self, setting: SyntheticSetting, seed: np.random.SeedSequence) -> Environment:
        """Return the rounds of one repetition."""
        return _ComparedRounds(VARIATIONS[self.variation](setting.n, setting.d, feedback=self.feedback, seed=seed))


class _ComparedRounds:
    """Synthetic rounds in which the policy's beliefs are compared with the truth."""

    def __init__(self, rounds: Synthetic) -> None:
        self._rounds, self.d = rounds, rounds.d
        self._policy: CPPL | Newton
        self._found: Floats

    def rescale(self, policy: CPPL | Newton) -> None:
        """Remember the policy; studies call this before each round."""
        self._policy = policy

    def context(self) -> ContextLike:
        """Advance to the next round."""
        self._shown = self._rounds.context()
        return self._shown

    def outcome(self, decision: Decision) -> Outcome:
        """Compare beliefs with the truth, then let the round end."""
        self._found = _compare_with_truth(self._policy, self._shown, self._rounds.theta)
        return self._rounds.outcome(decision)

    def truth(self) -> Floats:
        """The result of the comparison, in the order of the measures."""
        return self._found

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:  # noqa: ARG002
        """The measures of some rounds."""
        return dict(zip(_MEASURES, truths.T, strict=True))


def _compare_with_truth(policy: CPPL | Newton, X: Floats, theta: Floats) -> Floats:
    """Return the measures of a round, given the true θ*."""
    errors, widths = _find_errors(policy, X, theta)
    wald, threshold = _find_wald(policy, theta), _bound_wald(policy.d, policy.observations)
    distance = float(np.linalg.norm(policy.theta - theta))
    return np.array([np.mean(np.abs(errors) > widths), np.mean(errors > widths), distance, wald, wald > threshold])


def _find_errors(policy: CPPL | Newton, X: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Return how much the truth exceeds each estimate, and the widths, which should be larger."""
    widths, estimates, truths = policy._score(as_context(X, policy.d))[1], X @ policy.theta, X @ theta
    if isinstance(policy, CPPL):  # |v - v*| <= c, Eq. (13) and below, divided by v
        return np.expm1(truths - estimates), np.expm1(widths)
    if policy.bonus == "arm":
        return truths - estimates, widths
    leader = int(estimates.argmax())
    leads = (truths - truths[leader]) - (estimates - estimates[leader])
    return np.delete(leads, leader), np.delete(widths, leader)


def _find_wald(policy: Policy, theta: Floats) -> float:
    """Return the Wald statistic, Eq. (11); 0 while the covariance of CPPL may be singular."""
    if not isinstance(policy, (CPPL, Newton)) or policy.observations < 2 * policy.d:
        return 0.0
    error = policy.theta - theta
    covariance = policy.Sigma if isinstance(policy, CPPL) else policy.estimate.covariance
    return float(error @ np.linalg.solve(covariance, error)) / policy.d


def _bound_wald(d: int, t: int) -> float:
    """Return the bound that the Wald statistic exceeds with probability about 1 / t at most (Lemma 1, x = log t).

    >>> round(_bound_wald(5, 100), 2)
    6.35
    """
    x = math.log(max(t, 1))
    return 4.0 * (d + 2.0 * math.sqrt(d * x) + 2.0 * x) / (3.0 * d)
