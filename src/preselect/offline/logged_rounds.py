"""Prepare rounds of logs for an evaluation: what was shown, how likely that was, who won, and what a model expects."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from preselect.context import Floats, Integers
from preselect.errors import InputError
from preselect.logs import Logs
from preselect.offline.choosing import Chooser
from preselect.policies.belief import BeliefPolicy
from preselect.preselector import Preselector

_BELIEFS = 100  # how many weights are drawn from the model's belief
_LARGEST = 300.0  # limit of a log-utility, so that its exponential is finite


class LoggedRound(NamedTuple):
    """A round of the logs, prepared for an evaluation.

    Parameters
    ----------
    shown : array of k integers
        Which of the n arms were shown.
    won : array of k floats
        The share of the win that each of them had: 1 for a winner, less for arms that are tied, 0 for the others.
    propensities : array of k floats
        The probability with which each of them was shown.
    set_propensity : float
        The probability with which they were shown together.
    v : array of n x draws floats
        Utilities of the arms by the model: those of its best weights, then those of weights drawn from its belief.
    habits : array of n floats
        How often each of the n arms was shown in earlier rounds.
    """

    shown: Integers
    won: Floats
    propensities: Floats
    set_propensity: float
    v: Floats
    habits: Floats


def fill_in_propensities(logs: Logs) -> Logs:
    """Return the logs with both propensities for rounds that showed a single arm, if either one is known."""
    shown = np.add.reduceat(logs.shown, logs.starts[:-1], dtype=np.int64)
    rounds = np.flatnonzero(shown == 1)
    rows = np.flatnonzero(logs.shown & np.repeat(shown == 1, np.diff(logs.starts)))
    p, together = logs.propensities.copy(), logs.set_propensities.copy()
    p[rows] = np.where(np.isnan(p[rows]), together[rounds], p[rows])
    together[rounds] = np.where(np.isnan(together[rounds]), p[rows], together[rounds])
    return replace(logs, propensities=p, set_propensities=together)


def have_all_propensities(logs: Logs, kept: Integers, column: str) -> bool:
    """Return whether all of these rounds have this propensity; raise an error if only some have it.

    Parameters
    ----------
    logs : Logs
        The logs.
    kept : array of integers
        Which rounds.
    column : "propensity" or "set_propensity"
        Which propensity.
    """
    missing = np.isnan(logs.set_propensities)
    if column == "propensity":
        unknown = np.isnan(logs.propensities) & logs.shown
        missing = np.add.reduceat(unknown, logs.starts[:-1], dtype=np.int64) > 0
    missing = missing[kept]
    if missing.any() and not missing.all():
        label = logs.labels[kept[np.flatnonzero(missing)[0]]]
        raise InputError(
            f"{int(missing.sum())} of {len(kept)} rounds have no {column}, the first of them round {label}; leave them "
            "out, or ask for the model's opinion (by_model=True, --by-model)"
        )
    return not missing.any()


def list_rounds(logs: Logs, kept: Integers, past: Logs, model: Preselector, seed: int) -> list[LoggedRound]:
    """Return some rounds of logs.

    Parameters
    ----------
    logs : Logs
        The logs.
    kept : array of integers
        Which rounds.
    past : Logs
        Earlier rounds, of the same arms.
    model : Preselector
        Fitted to the earlier rounds.
    seed : int
        The seed of weights drawn from the model's belief.
    """
    chooser, thetas = Chooser("the model", model, logs), _draw_weights(model, seed)
    habits: Floats = 1.0 + np.bincount(past.arm[past.shown], minlength=len(logs.arms)).astype(np.float64)
    return [_read_round(logs, t, chooser.show(t).utilities(thetas), habits) for t in kept.tolist()]


def _read_round(logs: Logs, t: int, u: Floats, habits: Floats) -> LoggedRound:
    rows = slice(logs.starts[t], logs.starts[t + 1])
    shown = np.flatnonzero(logs.shown[rows])
    places, p = logs.places[rows][shown], logs.propensities[rows][shown]
    best = (places > 0) & (places == np.min(places, where=places > 0, initial=places.max()))
    v = np.exp(np.clip(u, -_LARGEST, _LARGEST))
    won, together = best / max(int(best.sum()), 1), float(logs.set_propensities[t])
    return LoggedRound(shown, won, p, together, v, habits[logs.arm[rows]])


def _draw_weights(model: Preselector, seed: int) -> Floats:
    """Return the model's weights in the first row, and weights drawn from its belief below."""
    estimate = cast(BeliefPolicy, model.policy).estimate
    generator = np.random.default_rng(seed)
    drawn = generator.multivariate_normal(estimate.theta, estimate.covariance, size=_BELIEFS, method="cholesky")
    return np.vstack((estimate.theta, drawn))
