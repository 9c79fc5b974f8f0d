"""The values that a service returns: decisions, estimates, explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from preselect.named.estimates import Estimate, Estimates, FeatureWeight
from preselect.named.explanations import ArmExplanation, Explanation


@dataclass(frozen=True)
class ServedDecision:
    """A decision that a service made and keeps. Its id is enough to report the outcome, from any process.

    Parameters
    ----------
    id : str
        Its id in the service.
    names : tuple of str
        The chosen arms, best first.
    scores : tuple of float or None
        The scores by which the policy ranked the arms; None for a score that is not finite.
    status : str
        "waiting", "told", "expired" or "void".
    round : int
        Number of the decision, counted from 1.
    version : int
        The version of the state that chose: how many changes the preselector had seen.
    propensities : tuple of float or None
        The probability with which each arm was chosen, if it was asked for and the policy is random.
    explanation : Explanation or None
        Why the arms were chosen, if that was asked for.
    outcome : mapping or None
        What was reported: its kind, the names, and when.
    """

    id: str
    names: tuple[str, ...]
    scores: tuple[float | None, ...]
    status: str
    round: int
    version: int
    propensities: tuple[float, ...] | None = None
    explanation: Explanation | None = None
    outcome: Mapping[str, Any] | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Self:
        """Make a decision from what the service answered.

        Parameters
        ----------
        answer : mapping
            The body of the answer.
        """
        propensities, explanation = answer.get("propensities"), answer.get("explanation")
        return cls(
            answer["id"],
            tuple(answer["names"]),
            tuple(answer["scores"]),
            answer["status"],
            answer["round"],
            answer["version"],
            None if propensities is None else tuple(propensities),
            None if explanation is None else _read_explanation(explanation),
            answer.get("outcome"),
        )


def read_estimates(answer: Mapping[str, Any]) -> Estimates:
    """Make estimates from what the service answered."""
    return Estimates(
        {name: _read_estimate(one) for name, one in answer["arms"].items()}, answer["nobody"], tuple(answer["arms"])
    )


def read_feature_weights(answer: Mapping[str, Any]) -> dict[str, FeatureWeight]:
    """Make weights from what the service answered."""
    return {name: FeatureWeight(one["weight"], one["standard_error"]) for name, one in answer["features"].items()}


def _read_explanation(answer: Mapping[str, Any]) -> Explanation:
    arms = tuple(
        ArmExplanation(arm["name"], arm["role"], _read_estimate(arm), arm["contributions"]) for arm in answer["arms"]
    )
    return Explanation(arms, answer["nobody"], answer["policy"], answer["round"], answer["changes"])


def _read_estimate(found: Mapping[str, Any]) -> Estimate:
    return Estimate(*(found[name] for name in ("utility", "standard_error", "lower", "upper", "chance")))
