"""Calibration: whether arms win as often as was predicted when they were chosen."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from preselect.chances import Chances
from preselect.context import Floats
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
    """Sort the predictions of all rounds into ten bins of equal width; empty bins are left out.

    The rounds come in the order in which they were decided. The prediction for a round is made from the estimates of
    that moment, without what was added to explore, and corrected by how the rounds before it ended: see `Chances`.
    """
    chances = Chances(outside)
    every = np.array([pair for one in rounds for pair in _predict(one, chances)], dtype=np.float64).reshape(-1, 2)
    positions = np.minimum((every[:, 0] * _BINS).astype(np.int64), _BINS - 1)
    return [_bin(position, every[positions == position]) for position in np.unique(positions).tolist()]


def _predict(past: Round, chances: Chances) -> list[tuple[float, bool]]:
    """Each participant's chance to win when it was chosen, and whether it won; then learn how the round ended.

    With an outside option the last participant is NOBODY. Empty if the round has no winner, if there was nothing to
    choose from, or if the estimates are not finite.
    """
    u, outside = np.array(past.utilities, dtype=np.float64), chances.outside
    is_decided = past.kind == WINNER or (outside and past.kind == NO_WINNER)
    if not is_decided or len(u) + outside < 2 or not np.isfinite(u).all():
        return []
    participants: tuple[str | None, ...] = (*past.chosen, None) if outside else past.chosen
    predicted = chances.predict(u)[: len(participants)].tolist()
    chances.learn(u, None if past.winner is None else past.chosen.index(past.winner))
    return [(chance, name == past.winner) for chance, name in zip(predicted, participants, strict=True)]


def _bin(position: int, pairs: Floats) -> CalibrationBin:
    predicted, observed = pairs.mean(axis=0).tolist()
    error = math.sqrt(observed * (1.0 - observed) / len(pairs))
    return CalibrationBin(position / _BINS, (position + 1) / _BINS, len(pairs), predicted, observed, error)
