"""Races replayed from tables: every round is an instance, the fastest of the chosen algorithms that solves it wins."""

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, OneHotContext, StructuredContext
from preselect.decision import Decision
from preselect.environments.aslib import Scenario, par10
from preselect.features import Scaling, arm_features
from preselect.outcomes import NoWinner, Outcome, Winner


class Races:
    """The instances of a scenario in random order, each once.

    The joint features are those of `Preselector`: (arm's features, arm's identity) ⊗ (1, instance's features), with the
    features scaled by what has been seen of them so far; missing ones count as the mean. Nobody wins where no chosen
    algorithm solves the instance. Ties are broken by luck.

    With `charge` the time for computing an instance's features is added to that of its race, and counts against the
    cutoff, as it would in use.
    """

    def __init__(self, scenario: Scenario, *, charge: bool = True, seed: int | np.random.SeedSequence = 0) -> None:
        self.scenario = scenario
        self._generator = np.random.default_rng(seed)
        self._order = self._generator.permutation(len(scenario.instances))
        self._luck = self._generator.random(scenario.times.shape)
        self._scaling = Scaling(scenario.features.shape[1])
        self._arms = _arms(scenario)
        self._round = -1
        self._costs = charged(scenario) if charge else scenario.costs
        self._has_clock = not scenario.quality and scenario.cutoff > 0.0 <= scenario.times.min()
        self._virtual_best = scenario.costs.min(axis=1)
        self.d = (len(scenario.algorithms) if self._arms is None else self._arms.shape[1]) * (1 + self._scaling.size)

    def context(self) -> StructuredContext:
        """Go on to the next instance."""
        self._round += 1
        values = self.scenario.features[self._instance]
        context = np.concatenate(([1.0], self._scaling(values)))
        self._scaling.learn(values)
        if self._arms is None:
            return OneHotContext(len(self.scenario.algorithms), context, None)
        return StructuredContext(self._arms, context)

    @property
    def _instance(self) -> int:
        return int(self._order[self._round])

    def outcome(self, decision: Decision) -> Outcome:
        """The best of the chosen algorithms that solve the instance."""
        scenario, i = self.scenario, self._instance
        arms = decision.arms[scenario.solved[i, decision.arms]]
        if not len(arms):
            return NoWinner(1.0 if self._has_clock else None)
        winner = arms[np.lexsort((self._luck[i, arms], scenario.ranks[i, arms]))[0]]
        return Winner(winner, scenario.times[i, winner] / scenario.cutoff if self._has_clock else None)

    def truth(self) -> Floats:
        """The number of the instance."""
        return np.array([self._instance])

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """Time of the race, ten times the cutoff if nobody solved it; what it lacks; and the time of all its cores."""
        instances = truths[:, 0].astype(np.int64)
        best = self._costs[instances[:, None], arms].min(axis=1)
        return {"par10": best, "excess": best - self._virtual_best[instances], "resources": arms.shape[1] * best}


def charged(scenario: Scenario) -> Floats:
    """Costs of runs that begin after an instance's features have been computed."""
    if scenario.quality:
        return scenario.costs
    times = scenario.times + scenario.feature_costs[:, None]
    return par10(times, scenario.solved & (times <= scenario.cutoff), scenario.cutoff)


def _arms(scenario: Scenario) -> Floats | None:
    """What tells arms apart: their features, scaled, and who they are; none if it is only who they are."""
    if scenario.algorithm_features is None:
        return None
    scaling = Scaling(scenario.algorithm_features.shape[1])
    for row in scenario.algorithm_features:
        scaling.learn(row)
    return arm_features(scaling(scenario.algorithm_features), np.eye(len(scenario.algorithms)))
