"""Calibration: whether arms win as often as predicted."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from preselect.chances import Chances
from preselect.context import Floats
from preselect.store.events import NO_WINNER
from preselect.store.rounds import Round

_BINS = 10


class CalibrationBin(NamedTuple):
    """A bin of predictions: bounds, number, mean, how often the arms won, and the standard error of that."""

    low: float
    high: float
    size: int
    predicted: float
    observed: float
    standard_error: float


class Calibration:
    """Compares predictions with what happened, round by round, in ten bins of equal width.

    The prediction for a round is made from the estimates at that time, without the bonus for exploration, and corrected
    by how the rounds before it ended: see `Chances`.

    Parameters
    ----------
    outside : bool
        Whether rounds may end without a winner (outside option).
    """

    def __init__(self, outside: bool) -> None:
        self._chances = Chances(outside)
        self._sums: Floats = np.zeros((_BINS, 3))  # for each bin: number of predictions, their sum, wins
        self.rounds = 0

    def add(self, past: Round) -> None:
        """Compare the predictions for a round with its outcome; rounds come in the order of their decisions.

        Parameters
        ----------
        past : Round
            The round. Nothing happens if it has no winner yet, or nothing was predicted.
        """
        pairs = _predict(past, self._chances)
        self.rounds += bool(pairs)
        for chance, won in pairs:
            self._sums[min(int(chance * _BINS), _BINS - 1)] += (1.0, chance, won)

    @property
    def bins(self) -> list[CalibrationBin]:
        """The bins that are not empty."""
        return _list_bins(self._sums)


def calibrate(rounds: Iterable[Round], outside: bool) -> list[CalibrationBin]:
    """Sort the predictions of all rounds, in the order of their decisions, into bins; empty bins are left out."""
    calibration = Calibration(outside)
    for one in rounds:
        calibration.add(one)
    return calibration.bins


def bin_predictions(every: Floats) -> list[CalibrationBin]:
    """Sort pairs of a predicted chance and what happened, 1 or 0, into ten bins of equal width, without empty ones."""
    sums: Floats = np.zeros((_BINS, 3))
    positions = np.minimum((every[:, 0] * _BINS).astype(np.int64), _BINS - 1)
    np.add.at(sums, positions, np.column_stack((np.ones(len(every)), every)))
    return _list_bins(sums)


def _list_bins(sums: Floats) -> list[CalibrationBin]:
    return [_bin(position, *one) for position, one in enumerate(sums.tolist()) if one[0]]


def _predict(past: Round, chances: Chances) -> list[tuple[float, bool]]:
    """Return each participant's predicted chance of winning and whether it won; then learn how the round ended.

    With an outside option the last participant is NOBODY. The winner is also the first of a ranking. Empty if the round
    has no winner or several, if there was nothing to choose from, if arms competed that were not chosen, or if the
    estimates are not finite.
    """
    if past.also:  # the winner among all is not always the one among the chosen arms
        return []
    u, outside = np.array(past.utilities, dtype=np.float64), chances.outside
    is_decided = past.winner is not None or (outside and past.kind == NO_WINNER)
    is_known = past.winner is None or past.winner in past.chosen  # others may have competed, too
    if not (is_decided and is_known) or len(u) + outside < 2 or not np.isfinite(u).all():
        return []
    participants: tuple[str | None, ...] = (*past.chosen, None) if outside else past.chosen
    predicted = chances.predict(u)[: len(participants)].tolist()
    chances.learn(u, None if past.winner is None else past.chosen.index(past.winner))
    return [(chance, name == past.winner) for chance, name in zip(predicted, participants, strict=True)]


def _bin(position: int, size: float, predicted: float, won: float) -> CalibrationBin:
    observed = won / size
    error = math.sqrt(observed * (1.0 - observed) / size)
    return CalibrationBin(position / _BINS, (position + 1) / _BINS, round(size), predicted / size, observed, error)
