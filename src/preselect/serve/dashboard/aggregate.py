"""What a page shows of a preselector, folded event by event; its size is bounded, whatever happens."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from operator import sub

from preselect.race.calibration import Calibration
from preselect.race.result import PastRace
from preselect.race.totals import RaceTotals
from preselect.serve.answers import Moment
from preselect.serve.dashboard.buckets import Timeline
from preselect.serve.dashboard.spread import Delays, FirstSlot, Spread
from preselect.store import Record
from preselect.store.events import VOID, ArmRetired, Decided, Event, Expired, Told
from preselect.store.rounds import Round

_MOST_RECENT = 50
_MOST_WAITING = 10_000  # decisions that wait, of which the details are kept until their outcome
_ALL_COMPARED = 2_000  # rounds whose predictions are all compared; of the later ones, one in so many:
_COMPARED_EVERY = 50


class Aggregate:
    """Counts, curves and the last rounds of a preselector.

    Parameters
    ----------
    outside : bool
        Whether its rounds may end without a winner.

    Attributes
    ----------
    number : int
        The number of the last event that is in it.
    counts : Counter
        Decisions that were made ("decided"), and those that ended: "told", "void", "expired".
    plays, wins : Counter
        By arm: how often it was chosen, or competed besides, and won. Arms that have left are forgotten.
    timeline : Timeline
        What happened when.
    spread, first_slot, delays, calibration, races
        See their classes.
    """

    def __init__(self, outside: bool) -> None:
        self.number, self.counts = 0, Counter[str]()
        self.plays, self.wins = Counter[str](), Counter[str]()
        self.timeline, self.spread, self.first_slot = Timeline(), Spread(), FirstSlot()
        self.delays, self.calibration, self.races = Delays(), Calibration(outside), RaceTotals()
        self._times: deque[float] = deque(maxlen=1000)
        self._waiting: dict[int, Round] = {}
        self._recent: dict[int, Round] = {}
        self._comparable = 0

    @property
    def waiting(self) -> int:
        """How many decisions wait for their outcome."""
        return self.counts["decided"] - self.counts["told"] - self.counts["void"] - self.counts["expired"]

    @property
    def recent(self) -> list[Round]:
        """The last rounds, newest first."""
        return [*self._recent.values()][::-1]

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

    def fold(self, moments: Iterable[Moment | Record]) -> None:
        """Take in the events that follow.

        Parameters
        ----------
        moments : iterable of Moment or Record
            The events, in order.
        """
        for moment in moments:
            self._take(moment.number, moment.at, moment.event)
            self.number = moment.number

    def _take(self, number: int, at: float, event: Event) -> None:
        if isinstance(event, Decided):
            self._decide(number, at, event)
        elif isinstance(event, Told):
            self._tell(at, event)
        elif isinstance(event, Expired):
            self._end("expired", at, event)
        elif isinstance(event, ArmRetired):
            self.plays.pop(event.name, None)
            self.wins.pop(event.name, None)

    def _decide(self, number: int, at: float, event: Decided) -> None:
        utilities = tuple(map(sub, event.scores, event.widths))
        made = Round(number, at, event.label, event.chosen, utilities, key=event.key)
        _keep(self._waiting, number, made, _MOST_WAITING)
        _keep(self._recent, number, made, _MOST_RECENT)
        self.counts["decided"] += 1
        self.spread.add(event.chosen)
        self._times.append(at)
        bucket = self.timeline.find(at)
        bucket.decided += 1
        for arm in event.chosen:
            self.plays[arm] += 1
            bucket.plays[arm] += 1
        bucket.effective.add(self.spread.effective)
        bucket.waiting.add(self.waiting)

    def _tell(self, at: float, event: Told) -> None:
        ended = self._end("void" if event.outcome == VOID else "told", at, event)
        leaders = _list_leaders(event)
        bucket = self.timeline.find(at)
        for arm in event.also:
            self.plays[arm] += 1
            bucket.plays[arm] += 1
        for arm in leaders:
            bucket.wins[arm] += 1
            if arm in self.plays:
                self.wins[arm] += 1
        if ended is not None and event.outcome != VOID:
            won, expected = self.first_slot.add(ended.chosen, leaders)
            bucket.first.add(won)
            bucket.expected.add(expected)
            self._compare(ended)
            if "seconds" in event.details:
                self.races.add(PastRace.from_details(ended))

    def _end(self, how: str, at: float, event: Told | Expired) -> Round | None:
        """Count that a decision has ended; return its round, if its details are still kept."""
        self.counts[how] += 1
        bucket = self.timeline.find(at)
        setattr(bucket, how, getattr(bucket, how) + 1)
        bucket.waiting.add(self.waiting)
        made = self._waiting.pop(event.decision or 0, None)
        if made is None:
            return None
        ended = _end_round(made, at, event)
        if made.number in self._recent:
            self._recent[made.number] = ended
        if isinstance(event, Told):
            self.delays.add(max(at - made.decided, 0.0))
        return ended

    def _compare(self, ended: Round) -> None:
        self._comparable += 1
        if self._comparable <= _ALL_COMPARED or self._comparable % _COMPARED_EVERY == 0:
            self.calibration.add(ended)


def _keep(rounds: dict[int, Round], number: int, made: Round, most: int) -> None:
    rounds[number] = made
    if len(rounds) > most:
        del rounds[next(iter(rounds))]


def _end_round(made: Round, at: float, event: Told | Expired) -> Round:
    begun = made.number, made.decided, made.label, made.chosen, made.utilities
    if isinstance(event, Expired):
        return Round(*begun, Expired.kind, ended=at, key=made.key)
    return Round(*begun, event.outcome, event.names, event.after, at, event.details, made.key, event.also)


def _list_leaders(event: Told) -> tuple[str, ...]:
    first = event.names[0] if event.names else ()
    return first if isinstance(first, tuple) else (first,)
