"""Statistics of past races, for the summary in the terminal and for the report.

- Every race counts once: as solved (it has a winner or a ranking), without a winner, void, or unfinished.
- An arm is played in a race if it was chosen or took part in the after-race, whatever the outcome, and wins as in
  `preselect.store.rounds`. An answer that only an after-race found comes too late: the race has no winner.
- A race is void if something other than its racers failed. Void races are counted, and left out of every time.
- Racing time is the wall-clock time of races with and without a winner. The time for computing features is added up
  over the same races, shown separately, and part of no comparison.
- What a race tells about the time that an arm needs alone: its own time if it won; at least the time of the race if it
  was stopped or came late; the time limit if it failed, whether in time, memory or answer. Nothing is known
  about arms that were not chosen or could not be started, nor from void races.
- An arm alone is compared with the solved races in which its time is known. The difference is the least that racing
  saved. A race without a winner saves nothing, however soon it ended, so it is not compared.
- In a race by value all racers run to their end, so it saves no time and tells nothing about times. An arm's values are
  compared with the best values of the same races.
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
from preselect.race.supervisor.racer import Status
from preselect.store.events import NO_WINNER, RANKING, VOID, WINNER
from preselect.store.rounds import Round, RoundCounts, count_rounds

MIN_RACES = 5  # the fewest races with known times that the best single arm must have

_MAX_CURVES = 12  # as many as a reader can tell apart in one figure


class _Pairing(NamedTuple):
    """A solved race, and what it tells about an arm; `position` counts all races of the summary from 1."""

    position: int
    race: PastRace
    known: KnownTime


@dataclass(frozen=True)
class SingleArm:
    """An arm alone, compared with the solved races in which its time is known."""

    arm: str
    pairings: Sequence[_Pairing]

    @cached_property
    def wins(self) -> int:
        """How many of the compared races the arm won."""
        return sum(pairing.known.how == Knowledge.EXACT for pairing in self.pairings)

    @cached_property
    def race_seconds(self) -> float:
        """How long the compared races took together."""
        return math.fsum(pairing.race.seconds or 0.0 for pairing in self.pairings)

    @cached_property
    def alone_seconds(self) -> float:
        """The least time that the arm is known to need for the same instances."""
        return math.fsum(pairing.known.seconds for pairing in self.pairings)

    @property
    def saved_seconds(self) -> float:
        """The least time that racing saved, compared with this arm alone."""
        return self.alone_seconds - self.race_seconds


class _ValuedArm(NamedTuple):
    """An arm's values compared with the best ones of the same races: the number of races, and means over them."""

    arm: str
    races: int
    mean: float
    mean_best: float


class AfterRaceTotals(NamedTuple):
    """What after-races cost, and what they taught.

    Parameters
    ----------
    races : int
        Races that were followed by one.
    arms : int
        How many arms ran in them, counted once for each race.
    used : float
        Time of cores that they took, in seconds.
    share : float
        The same as a share of the core time of all races.
    faster : int
        Races in which an arm that was not chosen would have been faster, or the only one to answer.
    """

    races: int
    arms: int
    used: float
    share: float
    faster: int


class ArmCurve(NamedTuple):
    """How often an arm, or several arms together, had been played and had won after each race."""

    name: str
    arms: int
    plays: NDArray[np.int64]
    wins: NDArray[np.int64]


@dataclass(frozen=True)
class RaceSummary:
    """Races in order, and their statistics; the docstring of the module has the counting rules."""

    races: Sequence[PastRace]
    counts: RoundCounts

    @property
    def solved(self) -> int:
        """Races with a right answer."""
        return sum(race.is_solved for race in self.races)

    @property
    def unsolved(self) -> int:
        """Races without a winner."""
        return sum(self.counts.outcomes[kind] for kind in (WINNER, RANKING, NO_WINNER)) - self.solved

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
    def after_races(self) -> AfterRaceTotals | None:
        """What after-races cost and taught; None if there were none."""
        found = [race for race in self.races if race.after_race is not None]
        if not found:
            return None
        ended = [race.after_race for race in found if race.after_race is not None]
        used = math.fsum(one.used for one in ended)
        raced = math.fsum(seconds or 0.0 for race in self.races for seconds in race.times.values())
        faster = sum(race.round.winner is not None and race.round.winner in race.round.also for race in found)
        return AfterRaceTotals(len(found), sum(one.arms for one in ended), used, used / raced if raced else 0.0, faster)

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

    @property
    def is_by_value(self) -> bool:
        """Whether these are races by value, rather than for the first right answer."""
        return any(race.better is not None for race in self.races)

    @cached_property
    def valued_arms(self) -> Mapping[str, _ValuedArm]:
        """By name: each arm that has a value in some race that is not void, those with most races first."""
        pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for race in self.races:
            if (best := race.best_value) is not None:
                for arm, value in race.values.items():
                    pairs[arm].append((value, best))
        found = {arm: _ValuedArm(arm, len(both), *np.mean(both, axis=0).tolist()) for arm, both in pairs.items()}
        return dict(sorted(found.items(), key=lambda item: -item[1].races))

    def find_best_single(self) -> SingleArm | None:
        """Find the arm that won most, of those known from enough races; ties go to the smaller mean.

        The smallest mean alone would mislead: many known times are lower bounds, which are small for losers of quick
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
        for race in self.races:
            for arm, status in race.statuses.items() if race.is_solved else ():
                own = race.times[arm]
                seconds = race.seconds if own is None else own
                if status == Status.WON and seconds is not None:
                    found[arm].append(seconds)
        return found

    def trace_arms(self) -> list[ArmCurve]:
        """Follow plays and wins of the arms played most, one curve each, and of all others together."""
        played = [arm for arm, _ in self.counts.plays.most_common()]
        single = played if len(played) <= _MAX_CURVES else played[: _MAX_CURVES - 1]
        others = set(played) - set(single)
        curves = [self._curve(arm, {arm}) for arm in single]
        return [*curves, self._curve(f"{len(others)} other arms", others)] if others else curves

    def _curve(self, name: str, arms: set[str]) -> ArmCurve:
        plays = np.zeros(len(self.races), np.int64)
        np.add.at(plays, [place for arm in arms for place in self._played[arm]], 1)
        wins = np.array([sum(arm in arms for arm in leaders) for leaders in self._leaders], np.int64)
        return ArmCurve(name, len(arms), np.cumsum(plays), np.cumsum(wins))

    @cached_property
    def _leaders(self) -> list[tuple[str, ...]]:
        return [race.round.leaders for race in self.races]

    @cached_property
    def _played(self) -> Mapping[str, list[int]]:
        """By arm: the positions of the races in which it was played."""
        found: dict[str, list[int]] = defaultdict(list)
        for place, race in enumerate(self.races):
            for arm in race.round.chosen:
                found[arm].append(place)
        return found


def summarise_races(rounds: Iterable[Round]) -> RaceSummary:
    """Summarise races, given as the rounds of their journal."""
    races = [PastRace.from_details(one) for one in rounds]
    return RaceSummary(races, count_rounds(race.round for race in races))


def _add_up(seconds: Iterable[float | None]) -> float | None:
    known = [one for one in seconds if one is not None]
    return math.fsum(known) if known else None
