"""Fit weights to all outcomes of logs at once: find the maximum of their posterior, and the curvature there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from preselect.context import Floats, Integers, Mask
from preselect.errors import InputError
from preselect.joint_features import JointFeatures
from preselect.kernels import history
from preselect.logs.logs import Logs
from preselect.logs.ranked import NOBODY, RankedRows, rank_rows

_TOLERANCE, _MOST_STEPS = 1e-7, 100  # a fit ends at a step shorter than this, in standard deviations; the most steps
_CHUNK = 1 << 16  # how many rows' joint features are computed together
_MOST_NUMBERS = 1 << 29  # of all rows: 4 GiB


class _Maximum(NamedTuple):
    """The maximum of a posterior, and what it was found from.

    Parameters
    ----------
    block : array of (1 + 2 d) x d numbers
        theta, then minus the Hessian of the log-posterior there, then its inverse, the covariance.
    steps : int
        How many steps Newton's method took.
    outcomes : int
        How many outcomes taught something.
    without_winner : int
        How many of them had no winner.
    """

    block: Floats
    steps: int
    outcomes: int
    without_winner: int

    @property
    def theta(self) -> Floats:
        """The weights."""
        theta: Floats = self.block[0]
        return theta

    @property
    def covariance(self) -> Floats:
        """The covariance of the weights."""
        covariance: Floats = self.block[1 + self.block.shape[1] :]
        return covariance


def maximise(X: Floats, outcomes: RankedRows, mean: Floats, precision: Floats) -> _Maximum:
    """Find the weights that are most likely given ranked rows of features X and a prior N(mean, 1 / precision).

    Parameters
    ----------
    X : array of N x d numbers
        The joint features of the rows of `outcomes`, in their order.
    outcomes : RankedRows
        The outcomes.
    mean : array of d numbers
        The prior mean of the weights.
    precision : array of d numbers
        Their prior precisions.
    """
    d, T = X.shape[1], len(outcomes.sizes)
    base = np.vstack((mean, np.diag(precision)))
    block = np.vstack((base, np.diag(1.0 / precision)))
    past = X, np.zeros(len(X)), outcomes.sizes, outcomes.lengths, outcomes.ties, T
    steps = history.maximise_posterior(*past, base, 1.0, _TOLERANCE, _MOST_STEPS, block)
    if steps < 0 or not np.isfinite(block).all():
        largest = np.abs(X).max(initial=0.0)
        raise InputError(f"no finite weights fit these logs; their {d} joint features go up to {largest:.3g}")
    firsts = np.cumsum(outcomes.sizes) - outcomes.sizes
    return _Maximum(block, steps, T, int(np.count_nonzero(outcomes.rows[firsts] == NOBODY)))


def join_rows(joint: JointFeatures, logs: Logs, slots: Integers, outcomes: RankedRows) -> Floats:
    """Return the joint features of all rows of some outcomes.

    Parameters
    ----------
    joint : JointFeatures
        How they are made of features of arms and rounds.
    logs : Logs
        The logs.
    slots : array of integers
        The slot of each arm of the logs.
    outcomes : RankedRows
        Which rows, in which order; those of NOBODY are zero.
    """
    if joint.d * len(outcomes.rows) > _MOST_NUMBERS:
        raise InputError(
            f"{len(outcomes.rows)} rows of {joint.d} joint features do not fit into memory; use identity=False, "
            "or fewer rounds or features"
        )
    X, of = np.zeros((len(outcomes.rows), joint.d)), np.repeat(outcomes.rounds, outcomes.sizes)
    for first in range(0, len(X), _CHUNK):
        chunk = first + np.flatnonzero(outcomes.rows[first : first + _CHUNK] != NOBODY)
        rows = outcomes.rows[chunk]
        X[chunk] = joint.rows(slots[logs.arm[rows]], logs.values[rows], logs.contexts[of[chunk]])
    return X


def maximise_logs(
    joint: JointFeatures, logs: Logs, slots: Integers, prior: Floats, outside: bool
) -> tuple[_Maximum, Mask]:
    """Find the weights that are most likely given logs, and which joint features were not zero in them.

    Parameters
    ----------
    joint : JointFeatures
        How joint features are made.
    logs : Logs
        The logs.
    slots : array of integers
        The slot of each arm of the logs.
    prior : array of 2 x d numbers
        Mean and precision of the weights before anything was seen.
    outside : bool
        Whether rounds without a place count as won by nobody.
    """
    outcomes = rank_rows(logs, outside)
    X = join_rows(joint, logs, slots, outcomes)
    seen: Mask = (X != 0.0).any(axis=0)
    return maximise(X, outcomes, *prior), seen
