"""What past races add up to: the numbers of the terminal's summary and of the report, each computed in one place.

- Every race counts once: as solved (it has a winner or a ranking), without a winner, void, or unfinished.
- An arm is played in a race if it was chosen, whatever the outcome, and wins as in `preselect.store.rounds`.
- A race is void if something other than its racers failed. Void races are counted, and left out of every time.
- Racing time is the wall-clock time of races with and without a winner. The time for computing features is added up
  over the same races, shown separately, and part of no comparison.
- What a race tells about the time that an arm needs alone: its own time if it won; at least the time of the race if it
  was stopped or came late; the time limit if it failed, whether in time, memory or answer. Nothing is known
  about arms that were not chosen or could not be started, nor from void races.
- An arm alone is compared with the solved races in which its time is known. The difference is what racing saved at
  least. A race without a winner saves nothing, however soon it ended, so it is not compared.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preselect.race.result import Knowledge, KnownTime, PastRace
from preselect.store.apply import NO_WINNER, RANKING, VOID, WINNER
from preselect.store.rounds import Round, RoundCounts, count_rounds

MIN_RACES = 5  # in which an arm's time must be known before it may be called the best single arm

_MAX_CURVES = 12  # that a reader can tell apart in one figure


class _Pairing(NamedTuple):
    """A solved race beside what it tells about an arm; `position` counts all races of the summary from 1."""

    position: int
    race: PastRace
    known: KnownTime


class SingleArm(NamedTuple):
    """An arm alone, compared with the solved races in which its time is known."""

    arm: str
    pairings: Sequence[_Pairing]

    @property
    def wins(self) -> int:
        """How many of these races it won."""
        return sum(pairing.known.how == Knowledge.EXACT for pairing in self.pairings)

    @property
    def race_seconds(self) -> float:
        """The time of these races."""
        return math.fsum(pairing.race.seconds or 0.0 for pairing in self.pairings)

    @property
    def alone_seconds(self) -> float:
        """The time that the arm is known to need for the same instances, at least."""
        return math.fsum(pairing.known.seconds for pairing in self.pairings)

    @property
    def saved_seconds(self) -> float:
        """What racing saved against this arm alone, at least."""
        return self.alone_seconds - self.race_seconds


class ArmCurve(NamedTuple):
    """How often an arm, or several arms together, had been played and had won after each race."""

    name: str
    arms: int
    plays: NDArray[np.int64]
    wins: NDArray[np.int64]


@dataclass(frozen=True)
class RaceSummary:
    """Races in order, and what they add up to; the counting rules are in the module docstring."""

    races: Sequence[PastRace]
    counts: RoundCounts

    @property
    def solved(self) -> int:
        """Races with a right answer."""
        return self.counts.outcomes[WINNER] + self.counts.outcomes[RANKING]

    @property
    def unsolved(self) -> int:
        """Races without a winner."""
        return self.counts.outcomes[NO_WINNER]

    @property
    def void(self) -> int:
        """Races in which something other than the racers failed."""
        return self.counts.outcomes[VOID]

    @property
    def seconds(self) -> float | None:
        """Racing time; None if no race says how long it took."""
        return _add_up(race.seconds for race in self.races if race.is_timed)

    @property
    def feature_seconds(self) -> float | None:
        """Time for computing features; None if no race says how long that took."""
        return _add_up(race.feature_seconds for race in self.races if race.is_timed)

    @cached_property
    def single_arms(self) -> Mapping[str, SingleArm]:
        """By name: each arm that can be compared with solved races."""
        pairings: dict[str, list[_Pairing]] = defaultdict(list)
        for position, race in enumerate(self.races, start=1):
            for arm in race.round.chosen if race.is_solved else ():
                known = race.known_time(arm)
                if known is not None:
                    pairings[arm].append(_Pairing(position, race, known))
        return {arm: SingleArm(arm, found) for arm, found in pairings.items()}

    def find_best_single(self) -> SingleArm | None:
        """Find the arm that won most, of those known from enough races; ties go to the smaller mean.

        The smallest mean alone would not do: many known times are lower bounds, which are small for losers of quick
        races.
        """
        enough = [one for one in self.single_arms.values() if len(one.pairings) >= MIN_RACES]
        return min(enough, key=lambda one: (-one.wins, one.alone_seconds / len(one.pairings)), default=None)

    def count_statuses(self) -> Mapping[str, Counter[str]]:
        """Count by arm how its runs ended, in void races too."""
        ended: dict[str, Counter[str]] = defaultdict(Counter)
        for race in self.races:
            for arm, status in race.statuses.items():
                ended[arm][status] += 1
        return ended

    def list_winning_times(self) -> Mapping[str, list[float]]:
        """List by arm the times of its wins."""
        found: dict[str, list[float]] = defaultdict(list)
        for single in self.single_arms.values():
            found[single.arm] = [one.known.seconds for one in single.pairings if one.known.how == Knowledge.EXACT]
        return found

    def trace_arms(self) -> list[ArmCurve]:
        """Follow plays and wins of the arms played most, one curve each, and of all others together."""
        played = [arm for arm, _ in self.counts.plays.most_common()]
        single = played if len(played) <= _MAX_CURVES else played[: _MAX_CURVES - 1]
        others = set(played) - set(single)
        curves = [self._curve(arm, {arm}) for arm in single]
        return [*curves, self._curve(f"{len(others)} other arms", others)] if others else curves

    def _curve(self, name: str, arms: set[str]) -> ArmCurve:
        rounds = [race.round for race in self.races]
        plays = np.cumsum([sum(arm in arms for arm in one.chosen) for one in rounds])
        return ArmCurve(name, len(arms), plays, np.cumsum([one.winner in arms for one in rounds]))


def summarise_races(rounds: Iterable[Round]) -> RaceSummary:
    """Add up races, given as the rounds of their journal."""
    races = [PastRace.from_details(one) for one in rounds]
    return RaceSummary(races, count_rounds(race.round for race in races))


def _add_up(seconds: Iterable[float | None]) -> float | None:
    known = [one for one in seconds if one is not None]
    return math.fsum(known) if known else None
