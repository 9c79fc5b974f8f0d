"""What a policy believes about arms, apart from exploration: utilities, their standard errors, chances of winning."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from preselect.block_context import BlockContext
from preselect.context import Context, ContextLike, Floats, Integers
from preselect.model import winner_probabilities
from preselect.policies.policy import LinearPolicy, Policy


class Belief(NamedTuple):
    """Utilities of some arms and their standard errors, which are None if the policy has none."""

    utilities: Floats
    errors: Floats | None


def believe(policy: Policy, X: ContextLike, among: Integers) -> Belief:
    """Return what a policy believes about all arms of X.

    Standard errors are those of the differences from the mean of the arms `among`; if nobody may win, those of the
    utilities themselves, which are differences from the utility 0 of NOBODY.
    """
    context = policy._see(X)
    scores, widths = policy._score(context)
    if not isinstance(policy, LinearPolicy):
        return Belief(scores - widths, None)
    estimate = policy.estimate
    u = context.contract(estimate.theta, np.empty((0, 0)))
    utilities: Floats = u[0] @ u[1]
    if estimate.covariance is None:
        return Belief(utilities, None)
    variances = _find_variances(context, estimate.theta, estimate.covariance, None if policy.outside else among)
    return Belief(utilities, np.sqrt(np.maximum(variances, 0.0)))


def weigh(policy: Policy, rows: Floats, ids: Integers) -> tuple[Belief, Floats] | None:
    """Return what a policy believes about a set, given its joint features, and what each of them adds to the utilities.

    Errors are of the difference from the mean of the set, or from NOBODY. None if the policy has no weights.
    """
    if not isinstance(policy, LinearPolicy):
        return None
    estimate = policy.estimate
    contributions = estimate.weigh(rows, ids)
    covariance = estimate.find_covariance(rows, ids)
    if covariance is not None and not policy.outside:
        covariance = covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None] + covariance.mean()
    errors = None if covariance is None else np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    return Belief(contributions.sum(axis=1), errors), contributions


def weigh_features(policy: Policy, rows: Floats) -> Belief | None:
    """Return how much each row adds to the utility of an arm, by a policy's estimate; None if it has no weights."""
    if not isinstance(policy, LinearPolicy):
        return None
    nobody = np.zeros(len(rows), dtype=np.int64)  # any arm will do: the rows are zero for features of a single arm
    covariance = policy.estimate.find_covariance(rows, nobody)
    errors = None if covariance is None else np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    return Belief(policy.estimate.weigh(rows, nobody).sum(axis=1), errors)


def predict(policy: Policy, u: Floats) -> tuple[Floats, float | None]:
    """Return each arm's estimated chance of winning in a set, and the chance that nobody wins, if that may happen.

    The chances are exp(u), with 1 for nobody, divided by their sum; or u itself, if utilities are chances already.
    """
    if not policy.has_log_utilities:
        shares = np.maximum(u, 0.0)
        return (shares / shares.sum() if shares.any() else np.full(len(u), 1.0 / len(u))), None
    if not policy.outside:
        return winner_probabilities(u), None
    chances = winner_probabilities(np.append(u, 0.0))
    return chances[:-1], float(chances[-1])


def _find_variances(context: Context, theta: Floats, Sigma: Any, among: Integers | None) -> Floats:
    """Return the variance of each utility; if `among` is given, of its difference from the mean of those arms."""
    if isinstance(context, BlockContext):
        return _find_block_variances(context, Sigma, among)
    X, _, contracted = context.contract(theta, Sigma, True)
    centred = np.asarray(X, dtype=np.float64)
    if among is not None:
        centred = centred - centred[among].mean(axis=0)
    variances: Floats = np.einsum("ia,ia->i", centred @ contracted, centred)
    return variances


def _find_block_variances(context: BlockContext, Sigma: Any, among: Integers | None) -> Floats:
    """As `_find_variances`, for blocks: an arm's own variance v becomes v (1 - 2 / m) + the sum of all m / m^2."""
    own, Z = context.own_variances(Sigma), context.arms
    if among is not None:
        m, inside = len(among), np.zeros(len(own))
        inside[among] = 1.0
        own = own * (1.0 - 2.0 * inside / m) + own[among].sum() / m**2
        Z = Z - Z[among].mean(axis=0)
    variances: Floats = own + np.einsum("ia,ia->i", Z @ context.shared_covariance(Sigma), Z)
    return variances
