"""One repetition: a policy on an environment, context → select → outcome → learn."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats
from preselect.environments import Environment
from preselect.errors import InputError
from preselect.policies import Policy
from preselect.study.regret import regrets

_ROUNDS_AT_A_TIME = 256


@dataclass(frozen=True)
class Repetition:
    """Cumulative regret at the checkpoints, and seconds spent in the policy and in all."""

    best_arm: Floats
    top_k: Floats
    policy_seconds: float
    seconds: float


def play(policy: Policy, environment: Environment, k: int, checkpoints: NDArray[np.int64]) -> Repetition:
    """Play up to the last checkpoint. Regret needs an environment that knows the true utilities."""
    horizon = int(checkpoints[-1])
    best_arm, top_k = np.empty(horizon), np.empty(horizon)
    began, policy_seconds = perf_counter(), 0.0
    for first in range(0, horizon, _ROUNDS_AT_A_TIME):
        rounds = min(_ROUNDS_AT_A_TIME, horizon - first)
        arms, truths = np.empty((rounds, k), dtype=np.int64), []
        for t in range(rounds):
            context = environment.context()
            start = perf_counter()
            decision = policy.select(context, k)
            chosen = perf_counter()
            outcome = environment.outcome(decision)
            ended = perf_counter()
            policy.learn(decision, outcome)
            policy_seconds += perf_counter() - ended + chosen - start
            arms[t] = decision.arms
            truths.append(environment.utilities())
        if truths[0] is None:
            raise InputError("environment must know the true utilities for regret to be measured, it gives None")
        block = slice(first, first + rounds)
        best_arm[block], top_k[block] = regrets(np.array(truths), arms)
    at = checkpoints - 1
    return Repetition(best_arm.cumsum()[at], top_k.cumsum()[at], policy_seconds, perf_counter() - began)
