"""Replay rounds of a table of choices: of the k arms that are shown, the one that was ranked best wins."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import one_of
from preselect.context import Floats, Integers, StructuredContext
from preselect.decision import Decision
from preselect.environments.baselines import best_fixed_set
from preselect.errors import InputError
from preselect.joint_features import JointFeatures
from preselect.logs import Logs
from preselect.outcomes import NoWinner, Outcome, Ranking, Winner
from preselect.scaling import Scaling


class ChoiceReplay:
    """The rounds of a table of choices in random order, each once. Its arms are those that were shown there.

    It is assumed that people choose among fewer arms as they did among all: of the k arms that a policy shows, the one
    with the best place wins. If none of them has a place, there is no winner. Ties are broken at random.

    The features are those of `Preselector`: (arm's features, arm's identity) ⊗ (1, context), scaled by the whole table,
    and missing ones count as the mean. Features of an arm may differ from round to round.

    Parameters
    ----------
    logs : Logs
        The table, as `preselect.logs.read` returns it.
    identity : bool, default True
        Whether every arm has weights of its own, besides those of its features.
    feedback : {"winner", "ranking"}, default "winner"
        What is seen of the arms that are shown: the best one, or all that have a place, in order.
    seed : int or SeedSequence, default 0
        Decides the order of the rounds, and between equal arms.
    """

    feedbacks: ClassVar[tuple[str, ...]] = ("winner", "ranking")

    def __init__(
        self,
        logs: Logs,
        *,
        identity: bool = True,
        feedback: str = "winner",
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.logs = logs
        self.feedback = one_of(feedback, "feedback", self.feedbacks)
        generator = np.random.default_rng(seed)
        self._order = generator.permutation(len(logs))
        self._lots = generator.random(len(logs.arm))
        self._joint = _join_features(logs, identity)
        self._costs = _cost_rows(logs)
        self._round = -1
        self.d = self._joint.d

    @property
    def _rows(self) -> Integers:
        return _list_shown(self.logs, int(self._order[self._round]))

    def context(self) -> StructuredContext:
        """Advance to the next round and return the features of its arms."""
        self._round += 1
        rows = self._rows
        slots = self.logs.arm[rows]
        if self.logs.features:
            for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
                self._joint.change(slot, self.logs.values[row])
        return self._joint.show(self.logs.contexts[self._order[self._round]], slots)

    def outcome(self, decision: Decision) -> Outcome:
        """The best of the shown arms, or all of them that have a place."""
        rows = self._rows[decision.arms]
        places = self.logs.places[rows]
        ranked = np.lexsort((self._lots[rows], places))
        placed = decision.arms[ranked[places[ranked] > 0]]
        if not len(placed):
            return NoWinner()
        return Winner(placed[0]) if self.feedback == "winner" else Ranking(placed)

    def truth(self) -> Floats:
        """The position of the round in the table."""
        return np.array([float(self._order[self._round])])

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """For each round, whether the best arm was missed, and how many arms are better than all that were shown."""
        rounds = truths[:, 0].astype(np.int64).tolist()
        rows = [_list_shown(self.logs, t)[chosen] for t, chosen in zip(rounds, arms, strict=True)]
        return {name: costs[np.array(rows)].min(axis=1) for name, costs in self._costs.items()}


def _list_shown(logs: Logs, t: int) -> Integers:
    """Return the rows of the arms that were shown in a round."""
    first = int(logs.starts[t])
    return first + np.flatnonzero(logs.shown[first : logs.starts[t + 1]])


def _cost_rows(logs: Logs) -> dict[str, Floats]:
    """Return the cost of each row, by measure: what a round would add if only this arm were shown."""
    better = np.zeros(len(logs.arm))
    for t in range(len(logs)):
        rows = _list_shown(logs, t)
        places = np.where(logs.places[rows] > 0, logs.places[rows], np.iinfo(np.int64).max)
        better[rows] = np.searchsorted(np.sort(places), places)
    # arms without a place come after all that have one; in a round without any place no arm can be missed
    return {"misses": (better > 0).astype(np.float64), "better": better}


def choice_baselines(logs: Logs, k: int) -> dict[str, dict[str, float]]:
    """Return the totals of choices that learn nothing, by measure and name.

    They are a random set (in expectation) and two sets that are chosen in hindsight: the k arms of the round that are
    best on average over the whole table and, if all rounds have the same arms, the best fixed set.

    Parameters
    ----------
    logs : Logs
        The table.
    k : int
        How many arms are shown.
    """
    return {name: _total_baselines(logs, costs, k) for name, costs in _cost_rows(logs).items()}


def _total_baselines(logs: Logs, costs: Floats, k: int) -> dict[str, float]:
    counts = np.maximum(np.bincount(logs.arm[logs.shown], minlength=len(logs.arms)), 1)
    means = np.bincount(logs.arm[logs.shown], costs[logs.shown], minlength=len(logs.arms)) / counts
    found = {"random set": 0.0, "best on average": 0.0}
    for t in range(len(logs)):
        rows = _list_shown(logs, t)
        found["random set"] += _expect_least(costs[rows], k)
        found["best on average"] += float(costs[rows[np.argsort(means[logs.arm[rows]], kind="stable")[:k]]].min())
    if int(logs.shown.sum()) == len(logs) * len(logs.arms):
        shown = np.flatnonzero(logs.shown)
        by_arm = costs[shown[np.lexsort((logs.arm[shown], np.repeat(np.arange(len(logs)), len(logs.arms))))]]
        found["best fixed set"] = best_fixed_set(by_arm.reshape(len(logs), -1), k).cost * len(logs)
    return found


def _expect_least(costs: Floats, k: int) -> float:
    """Return the expected least cost of k arms drawn at random.

    >>> _expect_least(np.array([0.0, 1.0, 1.0]), 2)
    0.3333333333333333
    """
    n = len(costs)
    # the cost at index j, in descending order, is the least in C(j, k - 1) of the C(n, k) sets
    chances = np.array([math.comb(j, k - 1) for j in range(n)]) / math.comb(n, k)
    return float(np.sort(costs)[::-1] @ chances)


def _join_features(logs: Logs, identity: bool) -> JointFeatures:
    if not identity and not logs.features:
        raise InputError("without identities arms differ by their features only, but the table has no column arm.NAME")
    joint = JointFeatures(len(logs.features), len(logs.context), capacity=len(logs.arms) * identity)
    last = dict(zip(logs.arm.tolist(), logs.values, strict=True))
    for arm in range(len(logs.arms)):
        joint.add(last[arm])
    joint.see_all(logs.contexts)
    joint.arm_scaling = Scaling.fit(logs.values)  # all rounds, because arms' features may change
    return joint
