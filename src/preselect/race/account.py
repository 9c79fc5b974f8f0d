"""What a journal tells of its races: how they ended, what is known of each arm's time, what was predicted."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats
from preselect.policies.race_times import chances
from preselect.preselector import Preselector
from preselect.store import Entry, Event, Journal, Learner
from preselect.store.apply import NO_WINNER, VOID, WINNER

LEAST_RACES = 5  # in which an arm's time must be known before it may be called the best single arm
MOST_LINES = 12  # that a reader can tell apart in one figure

EXACT, AT_LEAST, LIMIT = "exact", "at least", "limit"

_BEHIND = ("killed", "finished late")
_FAILED = ("timeout", "memory", "crashed", "wrong answer", "no answer")
_BINS = 10


class Known(NamedTuple):
    """What a race tells of the time that one arm needs: all of it, a part, or that it did not do within the limit."""

    seconds: float
    how: str


@dataclass(frozen=True)
class Race:
    """One decision and what came of it; what the journal does not say is None, or empty.

    `statuses` and `times` are those of the racers. `kind` is that of the outcome, None as long as there is none.
    """

    label: str
    chosen: tuple[str, ...]
    utilities: tuple[float, ...]
    kind: str | None
    winner: str | None
    seconds: float | None
    feature_seconds: float | None
    limit: float | None
    after: float | None
    statuses: Mapping[str, str]
    times: Mapping[str, float | None]

    @classmethod
    def of(cls, made: Event, told: Event | None) -> Self:
        """A race as the journal has it; details that are not those of a race are passed over."""
        entry, ended = Entry.of(made), {"kind": None, "names": [], "details": {}} if told is None else told.body
        details = _mapping(ended["details"])
        racers = {name: _mapping(racer) for name, racer in _mapping(details.get("racers")).items()}
        return cls(
            label=entry.label,
            chosen=entry.decision.names,
            utilities=tuple((entry.decision.scores - entry.decision.widths).tolist()),
            kind=ended["kind"],
            winner=ended["names"][0] if ended["names"] else None,
            seconds=_seconds(details.get("seconds")),
            feature_seconds=_seconds(details.get("feature_seconds")),
            limit=_seconds(details.get("limit")),
            after=_seconds(ended.get("after")),
            statuses={name: str(racer["status"]) for name, racer in racers.items() if "status" in racer},
            times={name: _seconds(racer.get("seconds")) for name, racer in racers.items()},
        )

    def known(self, arm: str) -> Known | None:
        """What is known of the time that an arm needs; None if it did not take part, or not by its own fault."""
        status = self.statuses.get(arm)
        if self.seconds is None or self.kind in (None, VOID):
            return None
        if status == "won":
            own = self.times[arm]
            return Known(self.seconds if own is None else own, EXACT)
        if status in _BEHIND:
            return Known(self.seconds, AT_LEAST)
        if status in _FAILED:
            return Known(self.seconds if self.limit is None else self.limit, LIMIT)
        return None


@dataclass(frozen=True)
class Account:
    """A journal as it was at one moment: its races, and what has been learnt from them."""

    path: Path
    begun: float
    until: float
    about: dict[str, Any]
    chooser: Preselector
    races: list[Race]

    @property
    def plays(self) -> Counter[str]:
        """How often each arm was chosen, whatever came of it."""
        return Counter(arm for race in self.races for arm in race.chosen)

    @property
    def wins(self) -> Counter[str]:
        """How often each arm won, or came first."""
        return Counter(race.winner for race in self.races if race.winner is not None)

    def by_plays(self) -> list[str]:
        """The arms, those chosen most often first."""
        plays = self.plays
        return sorted(self.chooser.arms, key=lambda arm: -plays[arm])


def read_account(path: str | PathLike[str]) -> Account:
    """Read a journal, whether or not a race is going on, and let it go again."""
    with Journal.read(path) as journal:
        last = journal.event(journal.last)
        return Account(
            path=journal.path,
            begun=journal.about.created,
            until=journal.about.created if last is None else last.at,
            about=journal.about.description,
            chooser=Learner(journal).preselector,  # never closed: it would want to keep a snapshot
            races=[Race.of(made, told) for made, told in journal.rounds()],
        )


class Curve(NamedTuple):
    """How often an arm, or so many arms together, had been chosen and had won after each race."""

    name: str
    arms: int
    plays: NDArray[np.int64]
    wins: NDArray[np.int64]


def curves(account: Account, most: int = MOST_LINES) -> list[Curve]:
    """One curve per arm that was ever chosen; if they are too many, the last one is that of all the others."""
    plays = account.plays
    played = [arm for arm in account.by_plays() if plays[arm]]
    single = played if len(played) <= most else played[: most - 1]
    found = [_curve(account.races, arm, {arm}) for arm in single]
    others = set(played) - set(single)
    return [*found, _curve(account.races, f"{len(others)} other arms", others)] if others else found


def _curve(races: Sequence[Race], name: str, arms: set[str]) -> Curve:
    plays = np.cumsum([sum(arm in arms for arm in race.chosen) for race in races])
    return Curve(name, len(arms), plays, np.cumsum([race.winner in arms for race in races]))


class Comparison(NamedTuple):
    """An arm beside the races in which something of its time is known: place among the races, race, what is known."""

    arm: str
    pairs: list[tuple[int, Race, Known]]

    @property
    def wins(self) -> int:
        """How many of them it won."""
        return sum(known.how == EXACT for _, _, known in self.pairs)

    @property
    def race_seconds(self) -> float:
        """What these races took."""
        return math.fsum(race.seconds or 0.0 for _, race, _ in self.pairs)

    @property
    def arm_seconds(self) -> float:
        """What the arm is known to need at least for the same."""
        return math.fsum(known.seconds for _, _, known in self.pairs)


def comparisons(account: Account) -> list[Comparison]:
    """Every arm of whose time something is known, in the order in which they joined."""
    pairs: dict[str, list[tuple[int, Race, Known]]] = {arm: [] for arm in account.chooser.arms}
    for place, race in enumerate(account.races, start=1):
        for arm in race.chosen:
            known = race.known(arm)
            if known is not None:
                pairs[arm].append((place, race, known))
    return [Comparison(arm, found) for arm, found in pairs.items() if found]


def best_single(found: Iterable[Comparison]) -> Comparison | None:
    """The arm that won most, among those known from enough races; of equals, the one with the smaller mean.

    Not the smallest mean at once: what is known is often a lower bound, which is small for losers of quick races.
    """
    enough = [one for one in found if len(one.pairs) >= LEAST_RACES]
    return min(enough, key=lambda one: (-one.wins, one.arm_seconds / len(one.pairs)), default=None)


class Bin(NamedTuple):
    """Predictions of similar size: from, to, how many, their mean, how often it came so, its standard error."""

    low: float
    high: float
    size: int
    predicted: float
    observed: float
    standard_error: float


def predictions(race: Race, outside: bool) -> list[tuple[float, bool]]:
    """The chance that each participant had by the estimates at the decision, and whether it won.

    By the plain estimates under the Plackett-Luce model; with an outside option nobody takes part too, as one clock or,
    where times are told, as two. Empty if the race had no winner, if there was nothing to choose from, or if the
    estimates are not finite.
    """
    u = np.array(race.utilities, dtype=np.float64)
    ended = race.kind == WINNER or (outside and race.kind == NO_WINNER)
    if not ended or len(u) + outside < 2 or not np.isfinite(u).all():
        return []
    participants: tuple[str | None, ...] = (*race.chosen, None) if outside else race.chosen
    clocks = 0 if not outside else 1 if race.after is None else 2
    predicted = chances(u, clocks)[: len(participants)].tolist()
    return [(chance, name == race.winner) for chance, name in zip(predicted, participants, strict=True)]


def calibration(races: Iterable[Race], outside: bool) -> list[Bin]:
    """The predictions of all races in ten bins of equal width; bins without any are left out."""
    every = np.array([pair for race in races for pair in predictions(race, outside)], dtype=np.float64).reshape(-1, 2)
    places = np.minimum((every[:, 0] * _BINS).astype(np.int64), _BINS - 1)
    return [_bin(place, every[places == place]) for place in np.unique(places).tolist()]


def _bin(place: int, pairs: Floats) -> Bin:
    predicted, observed = pairs.mean(axis=0).tolist()
    error = math.sqrt(observed * (1.0 - observed) / len(pairs))
    return Bin(place / _BINS, (place + 1) / _BINS, len(pairs), predicted, observed, error)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _seconds(value: Any) -> float | None:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if usable else None
