"""Statistics of races that are updated race by race, for a live page."""

from dataclasses import dataclass

from preselect.race.result import Knowledge, PastRace
from preselect.race.summary import MIN_RACES


@dataclass
class _ArmTotals:
    """An arm alone, compared with the solved races in which its time is known; the rules are those of `summary`.

    Parameters
    ----------
    arm : str
        Its name.
    races, wins : int
        How many races these are, and how many of them it won.
    race_seconds, alone_seconds : float
        How long they took, and the least time that the arm alone is known to need for them.
    """

    arm: str
    races: int = 0
    wins: int = 0
    race_seconds: float = 0.0
    alone_seconds: float = 0.0

    @property
    def saved_seconds(self) -> float:
        """The least time that racing saved, compared with this arm alone."""
        return self.alone_seconds - self.race_seconds


class RaceTotals:
    """Adds up races as they end; memory grows with the number of arms only.

    Attributes
    ----------
    races : int
        Races that say how long they took.
    seconds, feature_seconds : float
        Racing time, and time for computing features.
    arms : dict of str to _ArmTotals
        Each arm that can be compared with solved races.
    """

    def __init__(self) -> None:
        self.races, self.seconds, self.feature_seconds = 0, 0.0, 0.0
        self.arms: dict[str, _ArmTotals] = {}

    def add(self, race: PastRace) -> None:
        """Add a race that has ended.

        Parameters
        ----------
        race : PastRace
            The race; one that does not say how long it took changes nothing.
        """
        if race.seconds is None or not race.is_timed:
            return
        self.races += 1
        self.seconds += race.seconds
        self.feature_seconds += race.feature_seconds or 0.0
        for arm in race.round.chosen if race.is_solved else ():
            known = race.known_time(arm)
            if known is not None:
                totals = self.arms.setdefault(arm, _ArmTotals(arm))
                totals.races += 1
                totals.wins += known.how == Knowledge.EXACT
                totals.race_seconds += race.seconds
                totals.alone_seconds += known.seconds

    def find_best_single(self) -> _ArmTotals | None:
        """Find the arm that won most, of those known from enough races; ties go to the smaller mean."""
        enough = [one for one in self.arms.values() if one.races >= MIN_RACES]
        return min(enough, key=lambda one: (-one.wins, one.alone_seconds / one.races), default=None)
