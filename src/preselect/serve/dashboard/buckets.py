"""History in a bounded number of buckets of time: when there are too many, neighbours are merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_MOST_BUCKETS = 600
_MOST_ARMS = 24  # how many arms a closed bucket counts separately; all others are added up
_POINTS = 150  # points of a curve that needs many rounds for each point


@dataclass(slots=True)
class _Range:
    """The smallest, the largest and the last of some values.

    Parameters
    ----------
    low, high, last : float or None
        None as long as there is no value.
    """

    low: float | None = None
    high: float | None = None
    last: float | None = None

    def add(self, value: float) -> None:
        """Take in a value.

        Parameters
        ----------
        value : float
            It comes after those before.
        """
        self.low = value if self.low is None or value < self.low else self.low
        self.high = value if self.high is None or value > self.high else self.high
        self.last = value

    def merge(self, later: _Range) -> None:
        """Take in values that came later.

        Parameters
        ----------
        later : _Range
            The values.
        """
        for value in (later.low, later.high, later.last):
            if value is not None:
                self.add(value)


@dataclass(slots=True)
class Bucket:
    """What happened in an interval.

    Parameters
    ----------
    begin : float
        When it began, in seconds since 1970.
    decided, told, void, expired : int
        How many decisions were made, and ended in each way.
    plays, wins : Counter
        By arm: how often it was chosen, and won; the key None stands for all arms that are not listed.
    waiting : _Range
        How many decisions waited.
    effective : _Range
        The effective number of arms among which choices were spread; see `Spread`.
    first, expected : _Range
        How often the first arm of the set won, and a random one of the set would have, over the last outcomes.
    """

    begin: float
    decided: int = 0
    told: int = 0
    void: int = 0
    expired: int = 0
    plays: Counter[str | None] = field(default_factory=Counter)
    wins: Counter[str | None] = field(default_factory=Counter)
    waiting: _Range = field(default_factory=_Range)
    effective: _Range = field(default_factory=_Range)
    first: _Range = field(default_factory=_Range)
    expected: _Range = field(default_factory=_Range)

    def merge(self, later: Bucket) -> None:
        """Take in the interval that follows.

        Parameters
        ----------
        later : Bucket
            What happened in it.
        """
        self.decided, self.told = self.decided + later.decided, self.told + later.told
        self.void, self.expired = self.void + later.void, self.expired + later.expired
        self.plays.update(later.plays)
        self.wins.update(later.wins)
        for name in ("waiting", "effective", "first", "expected"):
            getattr(self, name).merge(getattr(later, name))
        self.close()

    def close(self) -> None:
        """Keep the counts of the arms that were chosen or won most, and add up the others."""
        self.plays, self.wins = _keep_most(self.plays), _keep_most(self.wins)


def _keep_most(counts: Counter[str | None]) -> Counter[str | None]:
    if len(counts) <= _MOST_ARMS + 1:
        return counts
    others = counts.pop(None, 0)
    kept = Counter(dict(counts.most_common(_MOST_ARMS)))
    kept[None] = others + counts.total() - kept.total()
    return kept


class Timeline:
    """At most 600 buckets in order, without empty ones. The width of all doubles when there are too many.

    Attributes
    ----------
    width : float
        Seconds of a bucket.
    buckets : list of Bucket
        Those in which anything happened.
    """

    def __init__(self) -> None:
        self.width, self.buckets = 1.0, list[Bucket]()

    def find(self, at: float) -> Bucket:
        """Return the bucket of a moment; the last one if the clock went back.

        Parameters
        ----------
        at : float
            Seconds since 1970.
        """
        begin = at // self.width * self.width
        if not self.buckets or begin > self.buckets[-1].begin:
            if self.buckets:
                self.buckets[-1].close()
            self.buckets.append(Bucket(begin))
            while len(self.buckets) > _MOST_BUCKETS:
                self._widen()
        return self.buckets[-1]

    def _widen(self) -> None:
        self.width *= 2.0
        before, self.buckets = self.buckets, []
        for bucket in before:
            bucket.begin = bucket.begin // self.width * self.width
            if self.buckets and self.buckets[-1].begin == bucket.begin:
                self.buckets[-1].merge(bucket)
            else:
                self.buckets.append(bucket)

    def gather(self, least: int) -> list[list[Bucket]]:
        """Return neighbours in groups of at least `least` decisions, in about 150 groups at most.

        Parameters
        ----------
        least : int
            How many decisions a group needs for its shares to mean anything.
        """
        enough = max(least, sum(one.decided for one in self.buckets) // _POINTS)
        groups: list[list[Bucket]] = []
        size = enough
        for bucket in self.buckets:
            if size >= enough:
                groups.append([])
                size = 0
            groups[-1].append(bucket)
            size += bucket.decided
        if size < enough and len(groups) > 1:
            rest = groups.pop()
            groups[-1] += rest
        return groups


def add_up(counters: Iterable[Counter[str | None]]) -> Counter[str | None]:
    """Return the sum of counts by arm."""
    total: Counter[str | None] = Counter()
    for one in counters:
        total.update(one)
    return total
