"""Fit the model to logs, and measure how well it predicts rounds that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from preselect.arguments import number
from preselect.context import Floats
from preselect.errors import InputError
from preselect.kernels import likelihood
from preselect.logs import Logs
from preselect.logs.ranked import RankedRows
from preselect.preselector import Preselector
from preselect.race.calibration import CalibrationBin, bin_predictions

_LEAST_HELD_OUT = 10


class Score(NamedTuple):
    """How well a model predicts rounds that it has not seen.

    Parameters
    ----------
    name : str
        "the model", "popularity" (arms without features or context) or "uniform" (all arms are equally likely).
    log_likelihood : float
        Mean logarithm of the probability that it gave to what happened; 0 would be perfect.
    standard_error : float
        Standard error of that mean.
    lead : float
        The model's mean minus this one.
    lead_error : float
        Standard error of the lead, over the same rounds.
    """

    name: str
    log_likelihood: float
    standard_error: float
    lead: float
    lead_error: float


@dataclass(frozen=True)
class Fit:
    """A model fitted to logs.

    Parameters
    ----------
    preselector : Preselector
        Fitted to all rounds. It can choose, and continues to learn.
    rounds : int
        How many rounds the logs have.
    outcomes : int
        How many of them taught something.
    held_out : int
        How many rounds the model was tested on, after it had been fitted to those before them; 0 if it was not tested.
    scores : tuple of Score
        How well it predicted them: the model, popularity, uniform.
    calibration : list of CalibrationBin
        Whether arms won these rounds as often as was predicted.
    """

    preselector: Preselector
    rounds: int
    outcomes: int
    held_out: int
    scores: tuple[Score, ...]
    calibration: list[CalibrationBin]


def fit(logs: Logs, *, held_out: float = 0.2, **options: Any) -> Fit:
    """Fit a preselector to logs; fit another one to their beginning, and test it on the remaining rounds.

    Parameters
    ----------
    logs : Logs
        What `preselect.logs.read` returns, in the order in which rounds were played.
    held_out : float, default 0.2
        The share of rounds, at the end, to test on; 0 for no test.
    **options
        policy, identity, nobody_may_win and seed, as `Preselector.fit` takes them.
    """
    share = number(held_out, "held_out", least=0.0, below=1.0)
    preselector = Preselector.fit(logs, **options)
    policy, last = preselector.policy, round(share * len(logs))
    outcomes = policy.observations + policy.no_winners
    if last < _LEAST_HELD_OUT:
        if share > 0.0:
            raise InputError(f"{last} of {len(logs)} rounds are too few to test on; hold out a larger share, or 0")
        return Fit(preselector, len(logs), outcomes, 0, (), [])
    past, rest = logs.take(0, len(logs) - last), logs.take(len(logs) - last, len(logs))
    scores, bins = _test(past, rest, options)
    return Fit(preselector, len(logs), outcomes, last, scores, bins)


def _test(past: Logs, rest: Logs, options: dict[str, Any]) -> tuple[tuple[Score, ...], list[CalibrationBin]]:
    model = Preselector.fit(past, **options)
    plain = {**options, "identity": True}
    popular = Preselector.fit(_drop_features(past), **plain)
    outcomes, u = model._weigh_logs(rest)
    _, by_popularity = popular._weigh_logs(_drop_features(rest))
    found = {"the model": u, "popularity": by_popularity, "uniform": np.zeros(len(u))}
    likelihoods = {name: _score_outcomes(outcomes, each) for name, each in found.items()}
    if len(outcomes.sizes) < 2:
        raise InputError("fewer than 2 of the held-out rounds have an outcome; hold out a larger share, or 0")
    ours = likelihoods["the model"]
    scores = tuple(Score(name, *_average(each), *_average(ours - each)) for name, each in likelihoods.items())
    return scores, bin_predictions(_pair_predictions(outcomes, u))


def _drop_features(logs: Logs) -> Logs:
    """Return the logs without context and features of arms."""
    T, N = len(logs), len(logs.arm)
    return replace(logs, features=(), context=(), values=np.empty((N, 0)), contexts=np.empty((T, 0)))


def _average(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _score_outcomes(outcomes: RankedRows, u: Floats) -> Floats:
    """Return the log-likelihood of each outcome, given the log-utilities of its rows."""
    found, first = np.empty(len(outcomes.sizes)), 0
    for t, (size, length) in enumerate(zip(outcomes.sizes.tolist(), outcomes.lengths.tolist(), strict=True)):
        ranking = np.arange(length)
        if outcomes.ties is not None and outcomes.ties[first]:
            ranking = np.stack((ranking, outcomes.ties[first : first + length]), axis=1)
        found[t] = likelihood.log_likelihood(u[first : first + size], ranking)
        first += size
    return found


def _pair_predictions(outcomes: RankedRows, u: Floats) -> Floats:
    """Return, for every row of outcomes with one winner, its chance to win and whether it won."""
    of = np.repeat(np.arange(len(outcomes.sizes)), outcomes.sizes)
    firsts = np.cumsum(outcomes.sizes) - outcomes.sizes
    shifted = np.exp(u - np.maximum.reduceat(u, firsts)[of])
    won = np.zeros(len(u))
    won[firsts] = 1.0
    kept = np.ones(len(u), dtype=np.bool_) if outcomes.ties is None else (outcomes.ties[firsts] < 2)[of]
    pairs: Floats = np.stack((shifted / np.add.reduceat(shifted, firsts)[of], won), axis=1)[kept]
    return pairs
