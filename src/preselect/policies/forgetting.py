"""Let a policy forget an arm that has left, so that another arm may take its slot."""

from __future__ import annotations

import numpy as np

from preselect.context import Integers
from preselect.policies.estimators import BlockNewton
from preselect.policies.nearby import Nearby
from preselect.policies.newton import Newton
from preselect.policies.policy import LinearPolicy, Policy


def forget_arm(policy: Policy, slot: int, places: Integers) -> bool:
    """Let a policy forget the features of a slot; return whether another arm may take the slot.

    A Gaussian belief keeps all that it knows about other features; other estimates of the slot return to their initial
    values. Policies that keep the history do not forget, because it is about that arm.
    """
    if policy.keeps_history or not (isinstance(policy, LinearPolicy) or not policy._state):
        return False
    if isinstance(policy, LinearPolicy):
        if isinstance(policy.estimate, BlockNewton):
            policy.estimate.forget_slots(np.array([slot]))
        else:
            policy.estimate.forget(places, type(policy)(**policy.parameters).estimate)
    if isinstance(policy, Newton):
        policy.forget_seen(places)
    if isinstance(policy, Nearby):
        policy.past.forget(slot)
    return True
