"""Races replayed from an ASlib scenario: the fastest of the chosen algorithms that solves the instance wins."""

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, StructuredContext
from preselect.decision import Decision
from preselect.environments.aslib import Scenario
from preselect.joint_features import JointFeatures
from preselect.outcomes import NoWinner, Outcome, Winner
from preselect.policies import Policy


class RaceReplay:
    """The instances of a scenario in random order, each once.

    The features are those of `Preselector`: (arm's features, arm's identity) ⊗ (1, instance's features). Features are
    scaled by the instances seen so far, and missing ones count as the mean. If no chosen algorithm solves the instance,
    there is no winner. Ties are broken at random. An outcome says after which share of its time limit the race ended.

    Parameters
    ----------
    scenario : Scenario
        What every algorithm did on every instance.
    charge : bool, default True
        Whether the time to compute an instance's features is added to the time of its race, and counts against the
        cutoff, as it does in practice. The limit of a race is then what the features leave of the cutoff: an algorithm
        that would need longer does not win.
    seed : int or SeedSequence, default 0
        Decides the order of the instances, and between equal algorithms.
    """

    def __init__(self, scenario: Scenario, *, charge: bool = True, seed: int | np.random.SeedSequence = 0) -> None:
        self.scenario = scenario
        generator = np.random.default_rng(seed)
        self._order = generator.permutation(len(scenario.instances))
        self._lots = generator.random(scenario.times.shape)
        self._joint = _join_features(scenario)
        self._round = -1
        self._costs = scenario.charged_costs if charge else scenario.costs
        self._solved = scenario.charged_solved if charge else scenario.solved
        self._limits = np.maximum(scenario.cutoff - scenario.feature_costs * charge, np.finfo(np.float64).tiny)
        self._is_timed = not scenario.quality and scenario.cutoff > 0.0 <= scenario.times.min()
        self._virtual_best = scenario.costs.min(axis=1)
        self.d = self._joint.d

    @staticmethod
    def count_features(scenario: Scenario) -> int:
        """Return the number of joint features, `d`, of races on a scenario.

        Parameters
        ----------
        scenario : Scenario
            What is to be replayed.
        """
        return (len(scenario.algorithms) + len(scenario.algorithm_feature_names)) * (1 + len(scenario.feature_names))

    @property
    def _instance(self) -> int:
        return int(self._order[self._round])

    def context(self) -> StructuredContext:
        """Advance to the next instance and return its algorithms' features."""
        self._round += 1
        values = self.scenario.features[self._instance]
        context = self._joint.show(values)
        self._joint.see(values)
        return context

    def rescale(self, policy: Policy) -> None:
        """Scale the features by the instances seen by now, if that is due; what the policy has learnt follows."""
        change = self._joint.renew()
        if change is not None:
            policy.transform(change)

    def outcome(self, decision: Decision) -> Outcome:
        """The best of the chosen algorithms that solve the instance, and after which share of the limit it did."""
        scenario, i = self.scenario, self._instance
        arms = decision.arms[self._solved[i, decision.arms]]
        if not len(arms):
            return NoWinner(1.0 if self._is_timed else None)
        winner = arms[np.lexsort((self._lots[i, arms], scenario.ranks[i, arms]))[0]]
        return Winner(winner, scenario.times[i, winner] / self._limits[i] if self._is_timed else None)

    def truth(self) -> Floats:
        """The position of the instance in the scenario."""
        return np.array([self._instance])

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """PAR10 (or the loss) of each race, its excess over the virtual best, and k times the PAR10 (or the loss)."""
        instances = truths[:, 0].astype(np.int64)
        best = self._costs[instances[:, None], arms].min(axis=1)
        return {"par10": best, "excess": best - self._virtual_best[instances], "resources": arms.shape[1] * best}


def _join_features(scenario: Scenario) -> JointFeatures:
    n, m = scenario.times.shape[1], len(scenario.algorithm_feature_names)
    joint = JointFeatures(m, scenario.features.shape[1], capacity=n)
    for row in np.empty((n, 0)) if scenario.algorithm_features is None else scenario.algorithm_features:
        joint.add(row)
    joint.renew()
    return joint
