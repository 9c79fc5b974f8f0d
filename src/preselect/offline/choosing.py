"""Train policies on some rounds of logs, and find what they would choose in others."""

from __future__ import annotations

from functools import cache
from inspect import signature
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from preselect.arguments import join_names
from preselect.context import Floats, Integers
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.logs import Logs
from preselect.outcomes import NoWinner, Outcome, Ranking
from preselect.policies import Newton, Policy, Random, Thompson, registry
from preselect.preselector import Preselector


class Choice(NamedTuple):
    """What a policy would choose in a round.

    Parameters
    ----------
    probabilities : array of n floats
        The probability that each arm is in the set.
    sets : array of draws x k integers
        Sets that the policy chose, as positions among the n arms; a single one if it does not choose at random.
    even : float, optional
        The probability of each set, if all are equally likely.
    """

    probabilities: Floats
    sets: Integers
    even: float | None = None

    def weigh(self, arms: Integers) -> float:
        """Return the probability of a set: exact if it is known, otherwise its share of the draws."""
        if self.even is not None:
            return self.even
        return float((np.sort(self.sets, axis=1) == np.sort(arms)).all(axis=1).mean())


class Chooser:
    """A preselector that chooses in the rounds of logs.

    Parameters
    ----------
    name : str
        Its name in messages.
    preselector : Preselector
        A preselector that knows the arms and features of the logs.
    logs : Logs
        The rounds.
    """

    def __init__(self, name: str, preselector: Preselector, logs: Logs) -> None:
        _check_fits(name, preselector, logs)
        self._preselector, self._logs = preselector, logs
        self._slots = np.array([preselector._find(arm) for arm in logs.arms], dtype=np.int64)

    def show(self, t: int) -> Any:
        """Return what its policy is shown of the arms of round t."""
        logs, rows = self._logs, slice(self._logs.starts[t], self._logs.starts[t + 1])
        joint = self._preselector._joint
        return joint.show_rows(self._slots[logs.arm[rows]], logs.values[rows], logs.contexts[t])

    def choose(self, t: int, k: int, draws: int, seed: int, need_sets: bool) -> Choice:
        """Return what it would choose if k arms were shown in round t."""
        policy, shown = self._preselector.policy, self.show(t)
        found = policy.propensities(shown, k, draws=draws, seed=seed)
        if found is None:
            arms = policy.decide(shown, k, seed).arms
            return Choice(np.bincount(arms, minlength=shown.shape[0]).astype(np.float64), arms[None])
        sets = _draw_sets(policy, shown, k, draws, seed) if need_sets else np.empty((0, k), dtype=np.int64)
        even = 1.0 / comb(shown.shape[0], k) if type(policy) is Random else None
        return Choice(found.probabilities, sets, even)

    def learn(self, nobody_may_win: bool) -> None:
        """Learn from all rounds, one after the other."""
        joint, policy, logs = self._preselector._joint, self._preselector.policy, self._logs
        joint.see_all(logs.contexts)
        for t, one in enumerate(logs.rounds()):
            rows = one.rows.start + np.flatnonzero(logs.shown[one.rows])
            outcome = _read_outcome(logs.places[rows])
            if isinstance(outcome, NoWinner) and not nobody_may_win:
                continue
            slots, k = self._slots[logs.arm[rows]], len(rows)
            features = joint.rows(slots, logs.values[rows], logs.contexts[t])
            policy.learn(Decision(np.arange(k), np.full(2 * k, np.nan), features, slots, t + 1), outcome)


def train(policy: str, logs: Logs, options: dict[str, Any], seed: int) -> Preselector:
    """Return a preselector that has learnt from logs: all at once if its policy can, otherwise round by round.

    Parameters
    ----------
    policy : str
        The policy by name.
    logs : Logs
        What to learn from.
    options : dict
        identity and nobody_may_win, as a Preselector takes them.
    seed : int
        The seed of its choices.
    """
    make, parameters = registry.parse(policy)
    if issubclass(make, (Newton, Thompson)) and "blocks" not in parameters:
        return Preselector.fit(logs, policy=policy, seed=seed, **options)
    known = {**options, "nobody_may_win": options["nobody_may_win"] and "outside" in signature(make).parameters}
    made = Preselector(logs.describe_arms(), logs.context, policy=policy, seed=seed, **known)
    Chooser(policy, made, logs).learn(options["nobody_may_win"])
    return made


def _draw_sets(policy: Policy, shown: Any, k: int, draws: int, seed: int) -> Integers:
    generator = np.random.default_rng((seed, 1))
    if type(policy) is Random:  # as if it had chosen `draws` times; derived classes may choose otherwise
        n = int(shown.shape[0])
        return _list_sets(n, k) if comb(n, k) <= draws else np.argsort(generator.random((draws, n)), axis=1)[:, :k]
    return np.stack([policy.decide(shown, k, one).arms for one in generator.integers(1 << 52, size=draws).tolist()])


@cache
def _list_sets(n: int, k: int) -> Integers:
    """Return all sets of k of n arms, a row for each.

    >>> _list_sets(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.array([*combinations(range(n), k)], dtype=np.int64)


def _read_outcome(places: Integers) -> Outcome:
    """Return the outcome of a round, given the places of its arms; 0 means no place.

    >>> _read_outcome(np.array([0, 2, 1, 2]))
    Ranking(arms=(2, (1, 3)))
    """
    ranked = [np.flatnonzero(places == place).tolist() for place in np.unique(places[places > 0])]
    if not ranked:
        return NoWinner()
    return Ranking([arms[0] if len(arms) == 1 else arms for arms in ranked])


def _check_fits(name: str, preselector: Preselector, logs: Logs) -> None:
    missing = [arm for arm in logs.arms if arm not in preselector._roster]
    if missing:
        raise InputError(f"{name} does not know the arms {join_names(missing)} of these logs; add them to it first")
    for what, ours, theirs in (
        ("features of rounds", preselector.context, logs.context),
        ("features of arms", preselector.features, logs.features),
    ):
        if list(ours) != list(theirs):
            raise InputError(
                f"{name} has the {what} {join_names(ours)}, but the logs have {join_names(theirs)}; "
                "they have to be the same, in the same order"
            )
