"""Figures over the last rounds, each updated in a few steps per round."""

from __future__ import annotations

import math
from collections import Counter, deque

_LAST = 1000  # sets, whose arms are counted
_LAST_OUTCOMES = 500
_STEPS = [(c + 1) * math.log(c + 1) - (c * math.log(c) if c else 0.0) for c in range(_LAST + 1)]  # of c log c


class Spread:
    """Among how many arms the last 1000 sets are spread: exp of the entropy of the arms in them.

    If all arms are chosen equally often, that is their number; if the same k arms are always chosen, it is k.

    >>> spread = Spread()
    >>> for chosen in [("a", "b"), ("c", "d")] * 10:
    ...     spread.add(chosen)
    >>> round(spread.effective, 6)
    4.0
    """

    def __init__(self) -> None:
        self._sets: deque[tuple[str, ...]] = deque()
        self._counts: dict[str, int] = {}
        self._size, self._sum = 0, 0.0  # the sum of all counts c, and of c log c

    def add(self, chosen: tuple[str, ...]) -> None:
        """Add a set, and forget the oldest one if there are too many.

        Parameters
        ----------
        chosen : tuple of str
            Its arms.
        """
        self._sets.append(chosen)
        self._size += len(chosen)
        for arm in chosen:
            before = self._counts.get(arm, 0)
            self._counts[arm] = before + 1
            self._sum += _STEPS[before]
        if len(self._sets) > _LAST:
            self._forget(self._sets.popleft())

    @property
    def effective(self) -> float:
        """The effective number of arms; 0 before the first set."""
        return math.exp(max(math.log(self._size) - self._sum / self._size, 0.0)) if self._size else 0.0

    def _forget(self, chosen: tuple[str, ...]) -> None:
        self._size -= len(chosen)
        for arm in chosen:
            after = self._counts[arm] - 1
            self._sum -= _STEPS[after]
            if after:
                self._counts[arm] = after
            else:
                del self._counts[arm]


class FirstSlot:
    """How often the first arm of a set won in the last 500 outcomes, and how often a random arm of it would have.

    Nobody can see which set would have been better, because arms that were not chosen could not win. Within a set, a
    random arm wins one time in k, if any arm wins.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[float, float]] = deque()
        self._won = self._expected = 0.0

    def add(self, chosen: tuple[str, ...], leaders: tuple[str, ...]) -> tuple[float, float]:
        """Add an outcome; return both rates.

        Parameters
        ----------
        chosen : tuple of str
            The arms of the set, best first.
        leaders : tuple of str
            The winner, or those tied; none if nobody won.
        """
        won = 1.0 / len(leaders) if chosen[0] in leaders else 0.0
        expected = 1.0 / len(chosen) if leaders else 0.0
        self._last.append((won, expected))
        self._won, self._expected = self._won + won, self._expected + expected
        if len(self._last) > _LAST_OUTCOMES:
            won, expected = self._last.popleft()
            self._won, self._expected = self._won - won, self._expected - expected
        return self.rates

    @property
    def rates(self) -> tuple[float, float]:
        """How often the first arm won, and a random one would have; 0 before the first outcome."""
        size = len(self._last) or 1
        return max(self._won, 0.0) / size, max(self._expected, 0.0) / size

    def __len__(self) -> int:
        return len(self._last)


class Delays:
    """How long outcomes took, in bins that are each about 1.78 times as wide as the one before."""

    _PER_DECADE, _FIRST = 4, -3  # the first bin ends at 1 ms

    def __init__(self) -> None:
        self._bins: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """Take in a delay.

        Parameters
        ----------
        seconds : float
            From the decision to its outcome.
        """
        place = 0 if seconds <= 10.0**self._FIRST else math.ceil((math.log10(seconds) - self._FIRST) * self._PER_DECADE)
        self._bins[min(place, 11 * self._PER_DECADE)] += 1

    def __len__(self) -> int:
        return self._bins.total()

    def list_bins(self) -> list[tuple[float, int]]:
        """Return the upper end of each bin in seconds, from the first to the last that is not empty, and its size."""
        places = range(min(self._bins), max(self._bins) + 1) if self._bins else ()
        return [(self._end(place), self._bins[place]) for place in places]

    def find_quantile(self, share: float) -> float:
        """Return the delay that this share of outcomes does not exceed, rounded up to the end of its bin.

        Parameters
        ----------
        share : float
            Between 0 and 1.
        """
        rest = share * len(self)
        for end, size in self.list_bins():
            rest -= size
            if rest <= 0.0:
                return end
        return 0.0

    def _end(self, place: int) -> float:
        return float(10.0 ** (place / self._PER_DECADE + self._FIRST))
