"""Calibration: whether arms win as often as was predicted when they were chosen."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from preselect.context import Floats
from preselect.policies.race_times import predict_chances
from preselect.store.apply import NO_WINNER, WINNER
from preselect.store.rounds import Round

_BINS = 10


class CalibrationBin(NamedTuple):
    """Predictions of similar size: from, to, how many, their mean, how often the arm won, its standard error."""

    low: float
    high: float
    size: int
    predicted: float
    observed: float
    standard_error: float


def calibrate(rounds: Iterable[Round], outside: bool) -> list[CalibrationBin]:
    """Sort the predictions of all rounds into ten bins of equal width; empty bins are left out."""
    every = np.array([pair for one in rounds for pair in _predict(one, outside)], dtype=np.float64).reshape(-1, 2)
    positions = np.minimum((every[:, 0] * _BINS).astype(np.int64), _BINS - 1)
    return [_bin(position, every[positions == position]) for position in np.unique(positions).tolist()]


def _predict(past: Round, outside: bool) -> list[tuple[float, bool]]:
    """Each participant's estimated winning probability when it was chosen, and whether it won.

    The Plackett-Luce model with the plain estimates, without what was added to explore. With an outside option, NOBODY
    competes as well: as one virtual arm, or as two where times are known. Empty if the round has no winner, if there
    was nothing to choose from, or if the estimates are not finite.
    """
    u = np.array(past.utilities, dtype=np.float64)
    is_decided = past.kind == WINNER or (outside and past.kind == NO_WINNER)
    if not is_decided or len(u) + outside < 2 or not np.isfinite(u).all():
        return []
    participants: tuple[str | None, ...] = (*past.chosen, None) if outside else past.chosen
    nobodies = 0 if not outside else 1 if past.after is None else 2
    predicted = predict_chances(u, nobodies)[: len(participants)].tolist()
    return [(chance, name == past.winner) for chance, name in zip(predicted, participants, strict=True)]


def _bin(position: int, pairs: Floats) -> CalibrationBin:
    predicted, observed = pairs.mean(axis=0).tolist()
    error = math.sqrt(observed * (1.0 - observed) / len(pairs))
    return CalibrationBin(position / _BINS, (position + 1) / _BINS, len(pairs), predicted, observed, error)
