"""`Logs`: rounds that have been played, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, Integers


class _Round(NamedTuple):
    """One round: its label, its rows in the logs, and the arms that were placed, best first, tied ones together."""

    label: str
    rows: slice
    places: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Logs:
    """Rounds with the arms that could be shown, those that were shown, and their outcomes.

    The rows of all rounds are in one array; round i has the rows starts[i] to starts[i + 1].

    Parameters
    ----------
    arms : tuple of str
        The names of all arms, in the order in which they first appear.
    features : tuple of str
        The names of the features of arms.
    context : tuple of str
        The names of the features of a round.
    labels : tuple of str
        What each round is called.
    starts : array of T + 1 integers
        The first row of each round, and the number of rows.
    arm : array of N integers
        The arm of each row, as a position in `arms`.
    values : array of N x features
        The features of the arm in that round; NaN for those that are not known.
    contexts : array of T x context
        The features of each round; NaN for those that are not known.
    shown : array of N booleans
        Whether the arm was shown, and so could be picked.
    places : array of N integers
        1 for the winner, 2 for the next, equal numbers for arms that are tied; 0 for arms without a place. An arm that
        was shown and has no place came after all that have one; a round without any place had no winner.
    propensities : array of N floats
        The probability with which the arm was shown; NaN where it is not known.
    set_propensities : array of T floats
        The probability with which exactly the shown arms of each round were shown; NaN where it is not known.

    Examples
    --------
    >>> import preselect.logs
    >>> logs = preselect.logs.read({"round": [1, 1, 2, 2], "arm": ["a", "b", "a", "c"], "place": [1, None, 2, 1]})
    >>> [one.places for one in logs.rounds()]
    [(('a',),), (('c',), ('a',))]
    """

    arms: tuple[str, ...]
    features: tuple[str, ...]
    context: tuple[str, ...]
    labels: tuple[str, ...]
    starts: Integers
    arm: Integers
    values: Floats
    contexts: Floats
    shown: NDArray[np.bool_]
    places: Integers
    propensities: Floats
    set_propensities: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        """The size and the names, without the arrays."""
        return f"Logs(rounds={len(self)}, arms={len(self.arms)}, features={self.features}, context={self.context})"

    def rounds(self) -> Iterator[_Round]:
        """Yield one round after the other."""
        for label, first, last in zip(self.labels, self.starts, self.starts[1:], strict=False):
            yield _Round(label, slice(int(first), int(last)), self._list_places(int(first), int(last)))

    def _list_places(self, first: int, last: int) -> tuple[tuple[str, ...], ...]:
        found: dict[int, list[str]] = {}
        for row in range(first, last):
            if self.places[row]:
                found.setdefault(int(self.places[row]), []).append(self.arms[self.arm[row]])
        return tuple(tuple(found[place]) for place in sorted(found))

    def describe_arms(self) -> dict[str, dict[str, float | None]]:
        """Return the features in the last row of each arm; None for those that are not known."""
        return {
            name: {
                feature: None if value != value else value for feature, value in zip(self.features, row, strict=True)
            }
            for name, row in zip(self.arms, self._find_last().tolist(), strict=True)
        }

    def _find_last(self) -> Floats:
        """Return the features in the last row of each arm; NaN for arms without a row."""
        last = np.full((len(self.arms), len(self.features)), np.nan)
        last[self.arm] = self.values  # the last row of an arm counts
        return last

    @property
    def winners(self) -> NDArray[np.bool_]:
        """Whether each round has a winner, or several that are tied."""
        placed = np.add.reduceat(self.places > 0, self.starts[:-1]) if len(self) else np.empty(0)
        return placed > 0

    def take(self, first: int, last: int) -> Self:
        """Return the rounds from position `first` to before `last`, with all arms.

        Parameters
        ----------
        first : int
            Position of the first round.
        last : int
            Position after the last round.
        """
        rows = slice(int(self.starts[first]), int(self.starts[last]))
        return replace(
            self,
            labels=self.labels[first:last],
            starts=self.starts[first : last + 1] - self.starts[first],
            contexts=self.contexts[first:last],
            set_propensities=self.set_propensities[first:last],
            **{name: getattr(self, name)[rows] for name in ("arm", "values", "shown", "places", "propensities")},
        )

    def list_every_arm(self) -> Self:
        """Return the same rounds, each with a row for every arm of the logs; the added arms were not shown.

        Their features are those of the arm's last row.
        """
        T, n = len(self), len(self.arms)
        places = np.repeat(np.arange(T), np.diff(self.starts)) * n + self.arm
        columns: dict[str, Any] = {
            "values": np.tile(self._find_last(), (T, 1)),
            "shown": np.zeros(T * n, dtype=np.bool_),
            "places": np.zeros(T * n, dtype=np.int64),
            "propensities": np.full(T * n, np.nan),
        }
        for name, column in columns.items():
            column[places] = getattr(self, name)
        return replace(self, starts=np.arange(T + 1) * n, arm=np.tile(np.arange(n), T), **columns)
