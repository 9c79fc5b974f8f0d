"""What a round can end in. Arms are named by their position in the context, as in `Decision.arms`, not by their ids."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import number
from preselect.errors import InputError

_NONE = np.empty(0, dtype=np.int64)
_PLACES = np.arange(1024)  # a slice of it is made faster than a new array of one number
_PLACES.setflags(write=False)


def _as_arm(arm: SupportsIndex, argument: str) -> int:
    try:
        return operator.index(arm)
    except TypeError:
        raise InputError(f"{argument} must be the integer position of an arm, got {arm!r}") from None


def _read_only(places: list[int]) -> NDArray[np.int64]:
    array = np.array(places)
    array.setflags(write=False)
    return array


class Outcome:
    """Base of the four kinds. `positions` says which places of the decision were ranked, best first.

    `after` is how long the round took, as a share of its time limit, if it had one and it is known.
    """

    __slots__ = ()

    after: float | None = None

    def positions(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ARG002
        """Places in `arms` of the ranked arms, best first; empty if the outcome teaches nothing."""
        return _NONE


class Winner(Outcome):
    """One of the selected arms won; nothing is known of the order of the others.

    In a race with a time limit say how long it took, too: `after` is the winner's time as a share of the limit.

    >>> Winner(4, after=0.25).positions(np.array([7, 4, 2]))
    array([1])
    """

    __slots__ = ("_after", "_arm")

    def __init__(self, arm: SupportsIndex, after: float | None = None) -> None:
        self._arm = arm if type(arm) is int else _as_arm(arm, "arm")
        self._after = None if after is None else number(after, "after", least=0.0)

    @property
    def arm(self) -> int:
        """Position of the winner in the context that was shown."""
        return self._arm

    @property
    def after(self) -> float | None:  # type: ignore[override]  # read-only, as all of an outcome
        """How long it took, as a share of the time limit."""
        return self._after

    def positions(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        selected = arms.tolist()
        try:
            place = selected.index(self._arm)
        except ValueError:
            raise InputError(f"the winner must be one of the selected arms {selected}, got {self._arm}") from None
        return _PLACES[place : place + 1] if place < len(_PLACES) else _read_only([place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Winner) and (other._arm, other._after) == (self._arm, self._after)

    def __hash__(self) -> int:
        return hash((Winner, self._arm, self._after))

    def __repr__(self) -> str:
        return f"Winner({self._arm})" if self._after is None else f"Winner({self._arm}, after={self._after})"


@dataclass(frozen=True, slots=True)
class Ranking(Outcome):
    """The selected arms, or the best m of them, in order, best first.

    >>> Ranking([2, 7]).positions(np.array([7, 4, 2]))
    array([2, 0])
    """

    arms: tuple[int, ...]

    def __init__(self, arms: Iterable[SupportsIndex]) -> None:
        if not isinstance(arms, Iterable):
            raise InputError(f"arms of a ranking must be a list of positions, got {arms!r}; is it a Winner?")
        named = tuple(_as_arm(arm, "arms") for arm in arms)
        if not named:
            raise InputError("arms of a ranking must name at least one arm, got none; report NoWinner() instead")
        twice = sorted({arm for arm in named if named.count(arm) > 1})
        if twice:
            raise InputError(f"arms of a ranking must be distinct, got {twice} more than once in {list(named)}")
        object.__setattr__(self, "arms", named)

    def positions(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        place = {arm: position for position, arm in enumerate(arms.tolist())}
        strangers = [arm for arm in self.arms if arm not in place]
        if strangers:
            raise InputError(f"a ranking must name selected arms only, {list(place)}, got {strangers}")
        return _read_only([place[arm] for arm in self.arms])


@dataclass(frozen=True, slots=True)
class NoWinner(Outcome):
    """Every selected arm failed, for instance by running out of time.

    Counted, and nothing is learnt but by policies with an outside option. In a race with a time limit say when it
    ended, too: `after=1.0` at the limit, less if all had given up before.
    """

    after: float | None = None

    def __post_init__(self) -> None:
        if self.after is not None:
            object.__setattr__(self, "after", number(self.after, "after", least=0.0))

    def __repr__(self) -> str:
        return "NoWinner()" if self.after is None else f"NoWinner(after={self.after})"


@dataclass(frozen=True, slots=True)
class Void(Outcome):
    """The round says nothing about the arms, for instance after a fault of our own. Counted, and nothing is learnt."""
