"""How a round can end. Outcomes name arms by their position in the context, as `Decision.arms` does, not by id."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import number
from preselect.errors import InputError

_NONE = np.empty(0, dtype=np.int64)


def _as_arm(arm: SupportsIndex) -> int:
    try:
        return operator.index(arm)
    except TypeError:
        raise InputError(f"an arm is named by its position, an integer, not by {arm!r}") from None


def _freeze(places: list[int]) -> NDArray[np.int64]:
    array = np.array(places)
    array.setflags(write=False)
    return array


_ONE_POSITION = [_freeze([position]) for position in range(256)]  # one is needed in every round


class Outcome:
    """Base of `Winner`, `Ranking`, `NoWinner` and `Void`.

    Attributes
    ----------
    after : float or None
        How long the round took, as a share of its time limit; None if it had no limit or the time is unknown.
    """

    __slots__ = ()

    after: float | None = None

    def positions(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:  # noqa: ARG002
        """Return where the ranked arms stand in `arms`, best first; empty if the outcome ranks none.

        Parameters
        ----------
        arms : array of k integers
            The selected arms, as in `Decision.arms`.
        """
        return _NONE


class Winner(Outcome):
    """One of the selected arms won; nothing is known about the order of the others.

    Parameters
    ----------
    arm : int
        Position of the winner in the context that was shown.
    after : float, optional
        In a race with a time limit, the winner's time as a share of the limit (0.25 is a quarter of it). Policies
        with `outside=True` learn from it; others ignore it.

    Examples
    --------
    >>> Winner(4, after=0.25).positions(np.array([7, 4, 2]))
    array([1])
    """

    __slots__ = ("_after", "_arm")

    def __init__(self, arm: SupportsIndex, after: float | None = None) -> None:
        self._arm = arm if type(arm) is int else _as_arm(arm)
        self._after = None if after is None else number(after, "after", least=0.0)

    @property
    def arm(self) -> int:
        """Position of the winner in the context that was shown."""
        return self._arm

    @property
    def after(self) -> float | None:  # type: ignore[override]  # read-only, like the rest of an outcome
        """How long the round took, as a share of the time limit."""
        return self._after

    def positions(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        selected = arms.tolist()
        try:
            position = selected.index(self._arm)
        except ValueError:
            raise InputError(f"the winner, {self._arm}, is not one of the selected arms {selected}") from None
        return _ONE_POSITION[position] if position < len(_ONE_POSITION) else _freeze([position])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Winner) and (other._arm, other._after) == (self._arm, self._after)

    def __hash__(self) -> int:
        return hash((Winner, self._arm, self._after))

    def __repr__(self) -> str:
        return f"Winner({self._arm})" if self._after is None else f"Winner({self._arm}, after={self._after})"


@dataclass(frozen=True, slots=True)
class Ranking(Outcome):
    """The selected arms, or the best m of them, in order.

    Parameters
    ----------
    arms : iterable of distinct ints
        Positions of the ranked arms in the context that was shown, best first; at least one, at most all selected.

    Examples
    --------
    >>> Ranking([2, 7]).positions(np.array([7, 4, 2]))
    array([2, 0])
    """

    arms: tuple[int, ...]

    def __init__(self, arms: Iterable[SupportsIndex]) -> None:
        if not isinstance(arms, Iterable):
            raise InputError(f"a ranking is a list of positions, not {arms!r}; for a single arm use Winner({arms!r})")
        named = tuple(map(_as_arm, arms))
        if not named:
            raise InputError("a ranking needs at least one arm; if no arm won, use NoWinner()")
        twice = sorted({arm for arm in named if named.count(arm) > 1})
        if twice:
            raise InputError(f"the ranking {list(named)} names {twice} more than once")
        object.__setattr__(self, "arms", named)

    def positions(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        place = {arm: position for position, arm in enumerate(arms.tolist())}
        strangers = [arm for arm in self.arms if arm not in place]
        if strangers:
            raise InputError(f"the ranking names {strangers}, but the selected arms are {list(place)}")
        return _freeze([place[arm] for arm in self.arms])


@dataclass(frozen=True, slots=True)
class NoWinner(Outcome):
    """Every selected arm failed, for instance by running out of time.

    It is counted. Policies with `outside=True` learn from it that the arms fell short; others learn nothing.

    Parameters
    ----------
    after : float, optional
        In a race with a time limit, when it ended as a share of the limit: 1.0 at the limit, less if all arms had
        given up before.
    """

    after: float | None = None

    def __post_init__(self) -> None:
        if self.after is not None:
            object.__setattr__(self, "after", number(self.after, "after", least=0.0))

    def __repr__(self) -> str:
        return "NoWinner()" if self.after is None else f"NoWinner(after={self.after})"


@dataclass(frozen=True, slots=True)
class Void(Outcome):
    """The round says nothing about the arms, for instance after a fault of the machine: counted, not learnt from."""
