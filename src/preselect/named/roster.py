"""The names of the arms, and the slot of each: slots of arms that have left are used again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from preselect.arguments import integer, join_names, show
from preselect.context import Integers
from preselect.errors import InputError


class Roster:
    """Names of arms in the order in which they joined, and the slot of each.

    Lists of all arms are made when they are needed and kept until an arm joins or leaves.

    Parameters
    ----------
    names : iterable of str
        The arms.
    slots : iterable of int
        Their slots.
    free : iterable of int, default ()
        Slots that may be used again.
    departures : int, default 0
        How many arms have left.
    after : iterable of int, default ()
        How many had left when each of the arms joined, which tells arms of the same name apart; 0 by default.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        slots: Iterable[int] = (),
        free: Iterable[int] = (),
        departures: int = 0,
        after: Iterable[int] = (),
    ) -> None:
        self._slot_of = dict(zip(names, slots, strict=True))
        self.free = list(free)
        self.departures = departures
        self._after = {name: number for name, number in zip(self._slot_of, after, strict=False) if number}
        self._forget()

    @classmethod
    def read(cls, header: Mapping[str, Any], names: list[str], n_slots: int) -> Self:
        """Make a roster from what a state file holds.

        Parameters
        ----------
        header : mapping
            The header of the file. Early versions have no free slots, and did not count departures.
        names : list of str
            The arms.
        n_slots : int
            How many slots there are.
        """
        slots, free = header.get("slots", range(len(names))), header.get("free", ())
        used, left = ([integer(slot, "slots", 0, n_slots - 1) for slot in some] for some in (slots, free))
        if len({*used, *left}) < len(used) + len(left):
            raise ValueError("a slot is used or free more than once")
        departures = integer(header.get("departures", 0), "departures", 0)
        after = [integer(number, "after", 0, departures) for number in header.get("after", ())]
        if len(after) not in (0, len(names)):
            raise ValueError("the departures before arms joined do not fit the arms")
        return cls(names, used, left, departures, after)

    def to_header(self) -> dict[str, Any]:
        """Return what a state file keeps besides the names."""
        after = {"after": [self._after.get(name, 0) for name in self._slot_of]} if self._after else {}
        departures = {"departures": self.departures} if self.departures else {}
        return {"slots": self.slots.tolist(), "free": self.free, **departures, **after}

    def _forget(self) -> None:
        self._names: list[str] | None = None
        self._slots: Integers | None = None
        self._place_of: dict[str, int] | None = None
        self._is_in_order: bool | None = None

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, name: object) -> bool:
        return name in self._slot_of

    @property
    def names(self) -> list[str]:
        """The names of the arms, in the order in which they joined."""
        if self._names is None:
            self._names = list(self._slot_of)
        return self._names

    @property
    def slots(self) -> Integers:
        """The slots of the arms, in the same order."""
        if self._slots is None:
            self._slots = np.fromiter(self._slot_of.values(), dtype=np.int64, count=len(self._slot_of))
        return self._slots

    def fills(self, n_slots: int) -> bool:
        """Whether the arms have exactly the slots from 0 to n_slots - 1, in order."""
        if self._is_in_order is None:
            self._is_in_order = bool(np.array_equal(self.slots, np.arange(len(self))))
        return self._is_in_order and len(self) == n_slots

    def add(self, name: str, slot: int) -> None:
        """Let an arm join."""
        self._slot_of[name] = slot
        if self.departures:
            self._after[name] = self.departures
        self._forget()

    def remove(self, name: str) -> None:
        """Let an arm leave."""
        del self._slot_of[name]
        self._after.pop(name, None)
        self.departures += 1
        self._forget()

    def find(self, name: str) -> int:
        """Return the slot of an arm."""
        if not isinstance(name, str) or name not in self._slot_of:
            raise InputError(f"there is no arm {show(name)}; the arms are {join_names(self.names)}")
        return self._slot_of[name]

    def find_chosen(self, names: Sequence[str], departures: int | None) -> Integers:
        """Return the slots of the arms of a decision that was made when `departures` arms had left.

        Raises an InputError if one of them has left since, and another arm has joined under its name.
        """
        slots = np.array([self.find(name) for name in names])
        for name in names:
            if departures is not None and self._after.get(name, 0) > departures:
                raise InputError(
                    f"the decision is about an earlier arm {show(name)}, which has left; "
                    "the present arm of that name joined after the decision"
                )
        return slots

    def locate(self, names: Iterable[str]) -> list[int]:
        """Return the positions of these arms in `names`."""
        if self._place_of is None:
            self._place_of = {name: place for place, name in enumerate(self._slot_of)}
        return [self._place_of[name] for name in names if self.find(name) >= 0]
