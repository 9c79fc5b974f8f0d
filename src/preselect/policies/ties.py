"""What a ranking with ties teaches a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from preselect.context import Integers
from preselect.errors import InputError

if TYPE_CHECKING:
    from preselect.policies.policy import Policy


def settle_ties(policy: Policy, ranking: Integers, k: int) -> Integers:
    """Return what a ranking of k arms with ties teaches a policy, without ties that say nothing.

    A last tie of all remaining arms says nothing, unless there is an outside option, which they have beaten.

    >>> from preselect.policies import Newton
    >>> settle_ties(Newton(d=1), np.array([[2, 1], [0, 3], [1, 3]]), 3)
    array([2])
    """
    if not policy.learns_ties:
        name = type(policy).__name__
        raise InputError(f"{name} does not learn from ties; rank the arms without ties, or give the winner alone")
    kept = ranking if policy.outside else ranking[: np.searchsorted(ranking[:, 1], k)]
    found = kept[:, 0].copy() if np.array_equal(kept[:, 1], np.arange(1, len(kept) + 1)) else kept
    found.setflags(write=False)  # read-only, like all rankings: kernels are compiled for one kind of array
    return found
