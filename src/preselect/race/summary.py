"""What races add up to: who took part, who won, and what each arm alone would have needed, as far as is known."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from preselect.race.result import RaceResult
from preselect.race.supervision import Status

_FAILED = (Status.TIMEOUT, Status.MEMORY, Status.CRASHED, Status.WRONG_ANSWER, Status.NO_ANSWER)


@dataclass
class Share:
    """One arm's part. `alone` is what it is known to need at least on the instances it raced on, `raced` what the races
    took there, with the features: the difference is what racing is known to have saved. A failure counts as the limit.
    """

    plays: int = 0
    wins: int = 0
    alone: float = 0.0
    raced: float = 0.0

    @property
    def saved(self) -> float:
        """Seconds that races are known to have saved against this arm alone."""
        return self.alone - self.raced


@dataclass
class Tally:
    """Counts and times over races, `limit` being the seconds after which a race ends."""

    limit: float
    races: int = 0
    solved: int = 0
    void: int = 0
    seconds: float = 0.0
    feature_seconds: float = 0.0
    shares: dict[str, Share] = field(default_factory=dict)

    @classmethod
    def of(cls, races: Iterable[RaceResult], limit: float) -> "Tally":
        """The tally of some races."""
        tally = cls(limit)
        for raced in races:
            tally.add(raced)
        return tally

    def add(self, raced: RaceResult) -> None:
        """Count one race more."""
        self.races += 1
        self.solved += raced.winner is not None
        self.void += raced.void is not None
        self.seconds += raced.seconds
        self.feature_seconds += raced.feature_seconds
        for finish in raced.finishes:
            share = self.shares.setdefault(finish.name, Share())
            share.plays += 1
            share.wins += finish.name == raced.winner
            share.raced += raced.seconds + raced.feature_seconds
            share.alone += self._alone(raced, finish.status)

    def _alone(self, raced: RaceResult, status: Status) -> float:
        """The least that an arm takes alone: as long as the race, or all the time there is if it failed by itself."""
        return max(self.limit, raced.seconds) if status in _FAILED else raced.seconds
