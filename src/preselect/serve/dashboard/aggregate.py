"""The figures that a page shows of a preselector, updated event by event, in bounded memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from operator import sub
from typing import NamedTuple, TypeVar, cast

from preselect.race.calibration import Calibration
from preselect.race.result import PastRace
from preselect.race.totals import RaceTotals
from preselect.serve.dashboard.buckets import Bucket, Timeline
from preselect.serve.dashboard.spread import Delays, FirstSlot, Spread
from preselect.store import Record
from preselect.store.events import VOID, ArmRetired, Decided, Expired, Told
from preselect.store.rounds import Round, list_leaders, read_names

_MOST_RECENT = 20  # rounds that a page shows
_MOST_WAITING = 10_000  # the most waiting decisions whose details are kept until their outcome
_ALL_COMPARED = 2_000  # the first predictions, which are all compared; of later ones, one in _COMPARED_EVERY
_COMPARED_EVERY = 200
_SPREAD_EVERY = 10  # one later decision in this many notes the spread, which changes slowly

_Kept = TypeVar("_Kept")


class _Waiting(NamedTuple):
    """What is kept of a decision until its outcome: when it was made, its arms, and utilities if they are compared."""

    at: float
    chosen: tuple[str, ...]
    utilities: tuple[float, ...] | None


class Aggregate:
    """Counts, curves and the last rounds of a preselector.

    Parameters
    ----------
    outside : bool
        Whether its rounds may end without a winner.

    Attributes
    ----------
    number : int
        The number of the last event that was counted.
    counts : Counter
        Decisions that were made ("decided"), and those that ended: "told", "void", "expired".
    waiting : int
        How many decisions wait for their outcome.
    plays, wins : Counter
        By arm: how often it was chosen, or competed unchosen, and won. Arms that have left are forgotten.
    timeline : Timeline
        What happened when.
    spread, first_slot, delays, calibration, races
        See their classes.
    """

    def __init__(self, outside: bool) -> None:
        self.number, self.counts = 0, Counter(decided=0, told=0, void=0, expired=0)
        self.plays, self.wins = Counter[str](), Counter[str]()
        self.timeline, self.spread, self.first_slot = Timeline(), Spread(), FirstSlot()
        self.delays, self.calibration, self.races = Delays(), Calibration(outside), RaceTotals()
        self.waiting = 0
        self._times: deque[float] = deque(maxlen=1000)
        self._waiting: dict[int, _Waiting] = {}
        self._recent: dict[int, tuple[Record, Record | None]] = {}

    @property
    def recent(self) -> list[Round]:
        """The last rounds, newest first."""
        return [Round.of(*pair) for pair in reversed(self._recent.values())]

    def find_rate(self, now: float, seconds: float = 60.0) -> float:
        """Return how many decisions were made in a second, over the last minute.

        Parameters
        ----------
        now : float
            Seconds since 1970.
        seconds : float, default 60
            Over how long.
        """
        last = [at for at in self._times if at > now - seconds]
        is_full = len(last) == self._times.maxlen  # there may have been more
        return len(last) / (max(now - last[0], 1e-3) if is_full else seconds)

    def fold(self, records: Iterable[Record]) -> None:
        """Count further events.

        Parameters
        ----------
        records : iterable of Record
            The events, in order.
        """
        for record in records:
            self._take(record)
            self.number = record.number

    def _take(self, record: Record) -> None:
        kind = record.kind
        if kind == Decided.kind:
            self._decide(record)
        elif kind == Told.kind:
            self._tell(record)
        elif kind == Expired.kind:
            self._end("expired", record)
        elif kind == ArmRetired.kind:
            assert isinstance(record.event, ArmRetired)
            self.plays.pop(record.event.name, None)
            self.wins.pop(record.event.name, None)

    def _decide(self, record: Record) -> None:
        """Count a decision; usually only the names of its arms are read."""
        chosen = cast(tuple[str, ...], read_names(record)[1])  # ties are in outcomes only
        made = self.counts["decided"] = self.counts["decided"] + 1
        is_compared = made <= _ALL_COMPARED or made % _COMPARED_EVERY == 0
        waiting = _Waiting(record.at, chosen, _read_utilities(record) if is_compared else None)
        _keep(self._waiting, record.number, waiting, _MOST_WAITING)
        _keep(self._recent, record.number, (record, None), _MOST_RECENT)
        self.spread.add(chosen)
        self._times.append(record.at)
        bucket = self.timeline.find(record.at)
        bucket.decided += 1
        for arm in chosen:
            self.plays[arm] += 1
            bucket.plays[arm] += 1
        if made <= _ALL_COMPARED or made % _SPREAD_EVERY == 0:
            bucket.effective.add(self.spread.effective)
        self.waiting += 1
        bucket.waiting.add(self.waiting)

    def _tell(self, record: Record) -> None:
        outcome, names, also = read_names(record)
        is_void = outcome == VOID
        made, bucket = self._end("void" if is_void else "told", record)
        leaders = list_leaders(names)
        for arm in also:
            self.plays[arm] += 1
            bucket.plays[arm] += 1
        for arm in leaders:
            bucket.wins[arm] += 1
            if arm in self.plays:
                self.wins[arm] += 1
        if made is not None and not is_void:
            won, expected = self.first_slot.add(made.chosen, leaders)
            bucket.first.add(won)
            bucket.expected.add(expected)
            self._compare(made, record)

    def _end(self, how: str, record: Record) -> tuple[_Waiting | None, Bucket]:
        """Count that a decision has ended; return its details, or None if they were dropped, and the bucket."""
        self.counts[how] += 1
        bucket = self.timeline.find(record.at)
        setattr(bucket, how, getattr(bucket, how) + 1)
        self.waiting -= 1
        bucket.waiting.add(self.waiting)
        number = record.row.decision or 0
        if number in self._recent:
            self._recent[number] = self._recent[number][0], record
        made = self._waiting.pop(number, None)
        if made is not None and how != "expired":
            self.delays.add(max(record.at - made.at, 0.0))
        return made, bucket

    def _compare(self, made: _Waiting, record: Record) -> None:
        """Compare the predictions that are kept with the outcome, and count a race."""
        text = record.row.text
        if made.utilities is None and text and '"seconds"' not in text:  # nothing else need be read
            return
        told = record.event
        assert isinstance(told, Told)
        begun = told.decision or 0, made.at, "", made.chosen, made.utilities or ()
        ended = Round(*begun, told.outcome, told.names, told.after, record.at, told.details, also=told.also)
        if made.utilities is not None:
            self.calibration.add(ended)
        if "seconds" in told.details:
            self.races.add(PastRace.from_details(ended))


def _keep(kept: dict[int, _Kept], number: int, made: _Kept, most: int) -> None:
    kept[number] = made
    if len(kept) > most:
        del kept[next(iter(kept))]


def _read_utilities(record: Record) -> tuple[float, ...]:
    event = record.event
    assert isinstance(event, Decided)
    return tuple(map(sub, event.scores, event.widths))
