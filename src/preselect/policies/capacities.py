"""How many joint features a policy can have, and how it gets more; with blocks, any number of arms."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers
from preselect.errors import InputError
from preselect.joint_features import JointFeatures
from preselect.policies.belief import BeliefPolicy
from preselect.policies.newton import Newton
from preselect.policies.policy import Policy
from preselect.scaling import Change

_MOST_FEATURES = 5000  # the most features of a full covariance, and of the shared block
_MANY = 1000  # with more, a full covariance takes over 16 MB, and over a millisecond per outcome


def make(kind: type[Policy], parameters: dict[str, Any], joint: JointFeatures, covariance: str | None) -> Policy:
    """Return a policy for these joint features, with its covariance in blocks if that is necessary."""
    blocks = _choose_blocks(kind, parameters, joint, covariance)
    joint.has_blocks = blocks is not None
    found = {**parameters, "d": joint.d}
    return kind(**found if blocks is None else {**found, "blocks": blocks})


def _choose_blocks(
    kind: type[Policy], parameters: dict[str, Any], joint: JointFeatures, covariance: str | None
) -> tuple[int, int] | None:
    """Return the blocks in which a policy has to keep its covariance; None if it keeps all of it."""
    possible = kind.has_blocks and joint.capacity > 0 and parameters.get("discount", 1.0) == 1.0
    possible &= not any(np.ndim(parameters.get(name, 0.0)) for name in ("mean", "precision"))
    if covariance == "blocks" and not possible:
        raise InputError(
            f"{kind.__name__} with these arguments cannot keep covariance='blocks': use newton or thompson, with "
            "identity=True, discount=1, and one number each as mean and precision"
        )
    wanted = covariance == "blocks" or (covariance is None and (kind.prefers_blocks or joint.d > _MANY))
    blocks = joint.blocks if possible and wanted else None
    _check(joint.d if blocks is None else blocks[0])
    return blocks


def widen(policy: Policy, joint: JointFeatures, covariance: str | None) -> Policy:
    """Return the policy with room for twice as many arms, in blocks if a full covariance would be too large.

    Raises an InputError, and changes nothing, if even that is too large. Because room is doubled, an arm that joins
    costs O(p^2) on average.
    """
    before = joint.capacity
    joint.make_room(2 * before)
    try:
        policy = _split(policy, joint, covariance)
        return policy.widen(joint.d)
    except InputError:
        joint.make_room(before)
        raise


def _split(policy: Policy, joint: JointFeatures, covariance: str | None) -> Policy:
    """Return the policy; divide its covariance into blocks if that is necessary and not done yet."""
    if joint.has_blocks:
        _check(joint.blocks[0])
        return policy
    blocks = _choose_blocks(type(policy), policy.parameters, joint, covariance)
    if blocks is not None and isinstance(policy, BeliefPolicy):
        policy, joint.has_blocks = policy.split(blocks), True
    return policy


def _check(d: int) -> None:
    if d > _MOST_FEATURES:
        raise InputError(
            f"arms and context make {d} joint features, and at most {_MOST_FEATURES} are possible; use identity=False, "
            "or fewer features, or newton or thompson without discount, which have no limit to the number of arms"
        )


def add_context(policy: Policy, joint: JointFeatures, covariance: str | None) -> Policy:
    """Return the policy with joint features for one more feature of the context, as if it had never been known.

    If that is impossible, nothing changes.
    """
    wider = deepcopy(joint)
    change = wider.add_context()
    parameters = {name: value for name, value in policy.parameters.items() if name != "blocks"}
    blocks = _choose_blocks(type(policy), parameters, wider, "blocks" if joint.has_blocks else covariance)
    if blocks is not None and isinstance(policy, BeliefPolicy):
        divided = policy if joint.has_blocks else policy.split(joint.blocks)
        policy = divided.widen_blocks(wider.d, blocks)
    elif policy.d is not None:
        policy = _rearrange(policy.widen(wider.d), _Rearrangement(joint.d, joint.blocks[1]))
    policy.transform(change)
    joint.add_context()
    joint.has_blocks = blocks is not None
    return policy


def _rearrange(policy: Policy, change: _Rearrangement) -> Policy:
    policy.transform(change)
    if isinstance(policy, Newton):
        policy.seen[:] = change.map_rows(policy.seen)
    return policy


class _Rearrangement(Change):
    """Moves features that were added at the end: one to the end of each group."""

    _order: Integers

    def __init__(self, d: int, columns: int) -> None:
        old, added = np.arange(d).reshape(-1, columns), d + np.arange(d // columns)
        object.__setattr__(self, "_order", np.column_stack((old, added)).ravel())

    def map_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        mapped: NDArray[Any] = rows[..., self._order]
        return mapped

    def map_matrix(self, matrix: Floats) -> Floats:
        mapped: Floats = matrix[np.ix_(self._order, self._order)]
        return mapped

    def map_weights(self, theta: Floats) -> Floats:
        return self.map_rows(theta)
