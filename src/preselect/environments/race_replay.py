"""Replay races of an ASlib scenario: the fastest of the chosen algorithms that solve the instance wins."""

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import number
from preselect.context import Floats, Integers, StructuredContext
from preselect.decision import Decision
from preselect.environments.aslib import Scenario
from preselect.joint_features import JointFeatures
from preselect.outcomes import NoWinner, Outcome, Winner
from preselect.policies import Policy
from preselect.race.budget import Budget


class RaceReplay:
    """The instances of a scenario in random order, each once.

    The features are those of `Preselector`: (arm's features, arm's identity) ⊗ (1, instance's features). Features are
    scaled by the instances seen so far, and missing ones count as the mean. If no chosen algorithm solves the instance,
    there is no winner. Ties are broken at random. An outcome says after which share of its time limit the race ended.

    After-races are replayed as `RaceSession` runs them: k arms at a time, until the first of them has solved the
    instance or the time of the best arm so far has passed. If a scenario has no usable times, for example because it
    has qualities instead, every run takes the whole limit, and CPU times are in units of the limit.

    Parameters
    ----------
    scenario : Scenario
        What every algorithm did on every instance.
    charge : bool, default True
        Whether the time to compute an instance's features is added to the time of its race and counts against the
        cutoff, as it does in practice. A race then has only the rest of the cutoff as its limit, and an algorithm that
        would need longer does not win.
    seed : int or SeedSequence, default 0
        Decides the order of the instances, and between equal algorithms.
    after : float, default 0
        The budget of after-races, as a share of the CPU time of the races so far.
    """

    def __init__(
        self, scenario: Scenario, *, charge: bool = True, seed: int | np.random.SeedSequence = 0, after: float = 0.0
    ) -> None:
        self.scenario = scenario
        self._budget = Budget(number(after, "after", least=0.0), least=0.0)
        self._cpu = np.zeros(2)  # CPU time of the race, and of its after-race
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

    def show_blocks(self) -> tuple[int, int]:
        """Show the slots of arms from now on, as a policy with blocks needs; return its argument `blocks`."""
        self._joint.has_blocks = True
        return self._joint.blocks

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
        """Renew the scaling of features if that is due, and convert what the policy has learnt to it."""
        change = self._joint.renew()
        if change is not None:
            policy.transform(change)

    def outcome(self, decision: Decision) -> Outcome:
        """The best of the chosen algorithms that solve the instance, and after which share of the limit."""
        self._cpu[:] = len(decision.arms) * self._find_time(decision.arms), 0.0
        return self._judge(decision.arms)

    def run_on(self, policy: Policy, context: StructuredContext, decision: Decision) -> tuple[Decision, Outcome] | None:
        """Play an after-race; return the race of all arms that have run, None if there is no after-race.

        Parameters
        ----------
        policy : Policy
            The policy, which suggests the arms about which least is known.
        context : StructuredContext
            What `context` returned.
        decision : Decision
            The arms that have raced.
        """
        if not self._budget.share:
            return None
        seconds, n = self._find_time(decision.arms), self.scenario.times.shape[1]
        self._budget.earn(self._cpu[0], seconds)
        others = np.setdiff1d(np.arange(n), decision.arms)
        more = policy.suggest(context, others, self._budget.count_arms(seconds), seed=self._round)
        if not len(more):
            return None
        self._cpu[1] = self._charge(more, len(decision.arms), seconds)
        together = policy.extend(decision, context, more)
        return together, self._judge(together.arms)

    def _charge(self, arms: Integers, k: int, seconds: float) -> float:
        """Charge for arms that run, k at a time, for this many seconds or until the first has solved the instance."""
        used = 0.0
        for group in np.split(arms, range(k, len(arms), k)):
            seconds = min(seconds, self._find_time(group))
            used += len(group) * seconds
        self._budget.left -= used
        return used

    def _find_time(self, arms: Integers) -> float:
        """Return how long a race of these arms takes: until the first has solved the instance, or to the limit."""
        if not self._is_timed:
            return 1.0
        i = self._instance
        return float(self.scenario.times[i, arms[self._solved[i, arms]]].min(initial=self._limits[i]))

    def _judge(self, arms: Integers) -> Outcome:
        scenario, i = self.scenario, self._instance
        able = arms[self._solved[i, arms]]
        if not len(able):
            return NoWinner(1.0 if self._is_timed else None)
        winner = able[np.lexsort((self._lots[i, able], scenario.ranks[i, able]))[0]]
        return Winner(winner, scenario.times[i, winner] / self._limits[i] if self._is_timed else None)

    def truth(self) -> Floats:
        """The position of the instance in the scenario, and the CPU time of its race and of its after-race."""
        return np.array([self._instance, *self._cpu])

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """PAR10 (or the loss) of each race, its excess over the virtual best, and the costs of races and after-races.

        `resources` are k times the PAR10 (or the loss), plus the CPU time of the after-race where times are compared.
        """
        instances, cpu, extra = truths[:, 0].astype(np.int64), truths[:, 1], truths[:, 2]
        best = self._costs[instances[:, None], arms].min(axis=1)
        excess, resources = best - self._virtual_best[instances], arms.shape[1] * best + self._is_timed * extra
        return {"par10": best, "excess": excess, "resources": resources, "cpu": cpu, "extra": extra}


def _join_features(scenario: Scenario) -> JointFeatures:
    n, m = scenario.times.shape[1], len(scenario.algorithm_feature_names)
    joint = JointFeatures(m, scenario.features.shape[1], capacity=n)
    for row in np.empty((n, 0)) if scenario.algorithm_features is None else scenario.algorithm_features:
        joint.add(row)
    joint.renew()
    return joint
