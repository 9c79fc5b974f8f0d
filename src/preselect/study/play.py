"""One repetition: a policy on an environment, context → select → outcome → learn."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats
from preselect.environments import Environment
from preselect.policies import Policy

_ROUNDS_AT_A_TIME = 256


@dataclass(frozen=True)
class Repetition:
    """The environment's measures, summed up to each checkpoint, and the seconds spent in the policy and in all."""

    sums: dict[str, Floats]
    policy_seconds: float
    seconds: float


def play(policy: Policy, environment: Environment, k: int, checkpoints: NDArray[np.int64]) -> Repetition:
    """Play up to the last checkpoint."""
    horizon = int(checkpoints[-1])
    added: dict[str, list[Floats]] = {}
    began, policy_seconds = perf_counter(), 0.0
    for first in range(0, horizon, _ROUNDS_AT_A_TIME):
        rounds = min(_ROUNDS_AT_A_TIME, horizon - first)
        arms, truths, seconds = _play_rounds(policy, environment, k, rounds)
        policy_seconds += seconds
        for measure, values in environment.measure(truths, arms).items():
            added.setdefault(measure, []).append(values)
    sums = {measure: np.concatenate(values).cumsum()[checkpoints - 1] for measure, values in added.items()}
    return Repetition(sums, policy_seconds, perf_counter() - began)


def _play_rounds(
    policy: Policy, environment: Environment, k: int, rounds: int
) -> tuple[NDArray[np.int64], Floats, float]:
    """Play some rounds; return the arms chosen in each, each round's truth, and the seconds spent in the policy."""
    arms, truths, seconds = np.empty((rounds, k), dtype=np.int64), [], 0.0
    for t in range(rounds):
        context = environment.context()
        start = perf_counter()
        decision = policy.select(context, k)
        chosen = perf_counter()
        outcome = environment.outcome(decision)
        ended = perf_counter()
        policy.learn(decision, outcome)
        seconds += perf_counter() - ended + chosen - start
        arms[t] = decision.arms
        truths.append(environment.truth())
    return arms, np.array(truths), seconds
