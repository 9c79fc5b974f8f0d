"""What a preselector has learnt: weights of arms and of their features, with standard deviations."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from preselect.context import Floats
from preselect.policies.policy import LinearPolicy
from preselect.preselector import Preselector

_INTERCEPT = "1"  # the context feature that is always 1


@dataclass(frozen=True)
class Weights:
    """Weights and their standard deviations: rows for the arms' features and then the arms, columns for (1, context).

    Parameters
    ----------
    features : list of str
        The features of the arms.
    arms : list of str
        The arms with weights of their own; empty if arms have no identity.
    columns : list of str
        "1", the intercept, and the context features.
    values : array
        The weights, of shape (features and arms, columns), in units of log-utility per scaled feature.
    deviations : array
        Their standard deviations, of the same shape.
    """

    features: list[str]
    arms: list[str]
    columns: list[str]
    values: Floats
    deviations: Floats

    def ratios(self) -> Floats:
        """Divide each weight's distance from 0 by its standard deviation; 0 where the deviation is 0."""
        ratios: Floats = np.zeros_like(self.values)
        np.divide(np.abs(self.values), self.deviations, out=ratios, where=self.deviations > 0.0)
        return ratios

    def keep(self, arms: Collection[str], *, most: int) -> Self:
        """Keep only these arms, and only the `most` context features with the largest ratios."""
        kept = [position for position, arm in enumerate(self.arms) if arm in arms]
        rows = [*range(len(self.features)), *(len(self.features) + position for position in kept)]
        largest = self.ratios()[rows, 1:].max(axis=0, initial=0.0)
        columns = [0, *sorted((1 + np.argsort(-largest, kind="stable")[:most]).tolist())]
        return replace(
            self,
            arms=[self.arms[position] for position in kept],
            columns=[self.columns[position] for position in columns],
            values=self.values[np.ix_(rows, columns)],
            deviations=self.deviations[np.ix_(rows, columns)],
        )


def read_weights(preselector: Preselector) -> Weights | None:
    """Read the weights of a policy that estimates their standard deviations; None for other policies.

    Parameters
    ----------
    preselector : Preselector
        The preselector whose policy is read; it is not changed.
    """
    policy = preselector.policy
    if not (isinstance(policy, LinearPolicy) and hasattr(policy, "P")):
        return None
    features, columns = list(preselector.features), [_INTERCEPT, *preselector.context]
    arms, slots = (preselector.arms, preselector.slots) if preselector.identity else ([], [])
    # not CPPL's Sigma, which is 0 instead of large for what was never seen
    deviations = np.sqrt(np.maximum(policy.P.diagonal(), 0.0))
    # joint features are (arm's features, identity) ⊗ (1, context), with a row of identity for every slot
    rows = [*range(len(features)), *(len(features) + slot for slot in slots)]
    shaped = [array.reshape(-1, len(columns))[rows] for array in (policy.theta, deviations)]
    return Weights(features, arms, columns, *shaped)
