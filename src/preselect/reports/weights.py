"""What a preselector has learnt, to be read: the weights of arms and their features, and how sure the policy is."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from preselect.context import Floats
from preselect.policies import CPPL
from preselect.policies.gaussian import GaussianPolicy
from preselect.preselector import Preselector

INTERCEPT = "1"  # the context feature that is always 1


@dataclass(frozen=True)
class Weights:
    """Weights and their standard deviations: rows of the arms' features, then of the arms, by (1, context)."""

    features: list[str]
    arms: list[str]
    columns: list[str]
    values: Floats
    deviations: Floats

    def ratios(self) -> Floats:
        """How many standard deviations each weight is away from 0; 0 where there is no deviation."""
        ratios: Floats = np.zeros_like(self.values)
        np.divide(np.abs(self.values), self.deviations, out=ratios, where=self.deviations > 0.0)
        return ratios

    def only(self, arms: Collection[str], *, most: int) -> Self:
        """Those of some arms, and of the context features with the largest ratio there, at most so many."""
        kept = [place for place, arm in enumerate(self.arms) if arm in arms]
        rows = [*range(len(self.features)), *(len(self.features) + place for place in kept)]
        largest = self.ratios()[rows, 1:].max(axis=0, initial=0.0)
        columns = [0, *sorted((1 + np.argsort(-largest, kind="stable")[:most]).tolist())]
        return replace(
            self,
            arms=[self.arms[place] for place in kept],
            columns=[self.columns[place] for place in columns],
            values=self.values[np.ix_(rows, columns)],
            deviations=self.deviations[np.ix_(rows, columns)],
        )


def weights_of(chooser: Preselector) -> Weights | None:
    """The weights of a policy that knows how sure it is of them; None for others."""
    policy = chooser.policy
    if not isinstance(policy, (GaussianPolicy, CPPL)):
        return None
    arms = chooser.arms if chooser.identity else []
    rows, columns = len(chooser.features) + len(arms), [INTERCEPT, *chooser.context]
    # CPPL's Sigma would not do: it is 0, and not large, for what was never seen
    deviations = np.sqrt(np.maximum(np.diagonal(policy.P), 0.0))
    # joint features are (arm's features, identity) ⊗ (1, context); behind the arms there may be room for more
    shaped = [array.reshape(-1, len(columns))[:rows].copy() for array in (policy.theta, deviations)]
    return Weights(list(chooser.features), arms, columns, *shaped)
