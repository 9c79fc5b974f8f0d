"""How a round can end. Outcomes name arms by their position in the context, as `Decision.arms` does, not by id."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import as_integers, number, show
from preselect.errors import InputError

_NONE = np.empty(0, dtype=np.int64)
_MAX_POSITION = 2**63 - 1


def _as_arm(arm: SupportsIndex) -> int:
    try:
        found = operator.index(arm)
    except TypeError:
        found = _MAX_POSITION + 1
    if abs(found) > _MAX_POSITION:
        raise InputError(f"an arm is named by its position, an integer, not by {show(arm)}") from None
    return found


def _freeze(places: list[Any]) -> NDArray[np.int64]:
    array = np.array(places)
    array.setflags(write=False)
    return array


_ONE_POSITION = [_freeze([position]) for position in range(256)]  # made once, because every round needs one


def _list_selected(arms: NDArray[np.int64]) -> list[int]:
    selected: list[int] = as_integers(arms, "arms", "the positions of the selected arms").tolist()
    return selected


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

        If some are tied, a second column holds the place in the ranking where each arm's tie ends.

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
        self._arm = arm if type(arm) is int and 0 <= arm <= _MAX_POSITION else _as_arm(arm)
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
        selected = arms.tolist() if type(arms) is np.ndarray and arms.ndim == 1 else _list_selected(arms)
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
    """The selected arms, or the best m of them, in order; tied arms are in a list of their own.

    A tie says that its arms beat those behind it, and nothing about their order: it teaches the average of what all
    orders of its arms teach, by Plackett-Luce. If all selected arms are tied, nothing is learnt, unless the policy has
    an outside option, which all of them have then beaten.

    Parameters
    ----------
    arms : iterable of distinct ints, or of lists of them
        Positions of the ranked arms in the context that was shown, best first; at least one, at most all selected.

    Examples
    --------
    >>> Ranking([2, 7]).positions(np.array([7, 4, 2]))
    array([2, 0])
    >>> Ranking([[2, 7], 4])
    Ranking(arms=((2, 7), 4))
    """

    arms: tuple[int | tuple[int, ...], ...]

    def __init__(self, arms: Iterable[SupportsIndex | Iterable[SupportsIndex]]) -> None:
        if not isinstance(arms, Iterable) or getattr(arms, "ndim", 1) == 0:
            raise InputError(
                f"a ranking is a list of positions, not {show(arms)}; for a single arm use Winner({show(arms)})"
            )
        named = tuple(map(_as_place, arms))
        if not named:
            raise InputError("a ranking needs at least one arm; if no arm won, use NoWinner()")
        flat = [arm for place in named for arm in _list(place)]
        twice = sorted({arm for arm in flat if flat.count(arm) > 1})
        if twice:
            raise InputError(f"the ranking {list(named)} names {twice} more than once")
        object.__setattr__(self, "arms", named)

    def positions(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        place = {arm: position for position, arm in enumerate(_list_selected(arms))}
        ranked = [_list(tied) for tied in self.arms]
        strangers = [arm for tied in ranked for arm in tied if arm not in place]
        if strangers:
            raise InputError(f"the ranking names {strangers}, but the selected arms are {list(place)}")
        return _rank([[place[arm] for arm in tied] for tied in ranked])


def _as_place(arms: SupportsIndex | Iterable[SupportsIndex]) -> int | tuple[int, ...]:
    """Return one place of a ranking: an arm, or the arms of a tie, in the order of their positions."""
    if not isinstance(arms, list | tuple | set | frozenset | np.ndarray) or getattr(arms, "ndim", 1) == 0:
        return _as_arm(arms)  # type: ignore[arg-type]  # refuses what is not a position
    tied = sorted(map(_as_arm, arms))
    if not tied:
        raise InputError("a tie in a ranking needs at least one arm, but one of them is empty")
    return tied[0] if len(tied) == 1 else tuple(tied)


def _list(place: int | tuple[int, ...]) -> tuple[int, ...]:
    return place if isinstance(place, tuple) else (place,)


def _rank(places: list[list[int]]) -> NDArray[np.int64]:
    """Return positions, best first; if some are tied, beside each of them the place at which its tie ends."""
    ends = np.cumsum([len(tied) for tied in places])
    if len(places) == ends[-1]:
        return _freeze([position for tied in places for position in tied])
    return _freeze([[position, end] for tied, end in zip(places, ends.tolist(), strict=True) for position in tied])


def list_ties(ranking: NDArray[np.int64]) -> Iterator[list[int]]:
    """Yield the positions of the arms at each place of what `Outcome.positions` returned: one arm, or tied ones.

    Parameters
    ----------
    ranking : array of m, or m x 2, integers
        What `Outcome.positions` returned.

    Examples
    --------
    >>> list(list_ties(np.array([[2, 1], [0, 3], [1, 3]])))
    [[2], [0, 1]]
    """
    if ranking.ndim == 1:
        yield from ([position] for position in ranking.tolist())
        return
    first = 0
    while first < len(ranking):
        end = int(ranking[first, 1])
        yield ranking[first:end, 0].tolist()
        first = end


@dataclass(frozen=True, slots=True)
class NoWinner(Outcome):
    """Every selected arm failed, for instance by running out of time.

    Policies with `outside=True` learn from it that the arms were too weak; others only count it.

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
    """The round says nothing about the arms, for instance because the machine failed: it is only counted."""
