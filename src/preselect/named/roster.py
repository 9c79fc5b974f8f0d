"""The arms by name: the slot, group and price of each, and what callers say about the set to choose."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np

from preselect.arguments import as_name, distinct_names, integer, join_names, number, show
from preselect.context import Integers
from preselect.errors import InputError
from preselect.rules import Rules

Groups: TypeAlias = Mapping[str, str | None]  # the group of each arm; None for arms that belong to none
Prices: TypeAlias = Mapping[str, float]
Limits: TypeAlias = Mapping[str, int]  # how many arms of each group may be in the set


class Roster:
    """Names of arms in the order in which they joined, and the slot of each: slots of arms that left are used again.

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


class Terms:
    """The group and the price of each arm, if it has one.

    A group is remembered after its last arm has left, so that limits may still name it.
    """

    def __init__(self) -> None:
        self.groups: dict[str, str] = {}
        self.prices: dict[str, float] = {}
        self._known: dict[str, None] = {}

    def set(self, name: str, group: str | None, price: float | None) -> None:
        """Set group and price of an arm, which have been checked; None if it has none."""
        self.groups.pop(name, None)
        self.prices.pop(name, None)
        if group is not None:
            self.groups[name] = group
            self._known[group] = None
        if price is not None:
            self.prices[name] = float(price)

    def set_all(self, roster: Roster, groups: Groups | None, prices: Prices | None) -> None:
        """Set groups and prices of arms by name."""
        group_of, price_of = _as_mapping(groups, "groups"), _as_mapping(prices, "prices")
        for name in (*group_of, *price_of):
            roster.find(name)
            check_terms(name, group_of.get(name), price_of.get(name))
            self.set(name, group_of.get(name), price_of.get(name))

    def read_rules(
        self,
        roster: Roster,
        k: int | None,
        eligible: Iterable[str] | None,
        *,
        include: Iterable[str] | None = None,
        at_most: Limits | None = None,
        groups: Groups | None = None,
        budget: float | None = None,
    ) -> tuple[int, list[int] | None, Rules | None]:
        """Read what a caller says about the set: return k, the places of eligible arms in the roster, and rules.

        Places and rules are None if nothing is said of them. Whether the rules can be obeyed is not checked here.
        """
        allowed = None if eligible is None else distinct_names(eligible, "eligible")
        places = None if allowed is None else roster.locate(allowed)
        if k is None:
            raise InputError("say how many arms to choose, such as k=3")
        every = roster.names if allowed is None else allowed
        if (k := integer(k, "k", 1)) > len(every):
            raise InputError(f"k={k} is too many; the arms to choose from are {join_names(every)}")
        if include is None and at_most is None and groups is None and budget is None:
            return k, places, None
        if groups is not None and at_most is None:
            raise InputError("groups is given without at_most, so it would have no effect; say how many of each group")
        found: dict[str, Any] = {"names": roster.names}
        if include is not None:
            found["include"] = roster.locate(distinct_names(include, "include"))
        if at_most is not None:
            found |= self._list_groups(roster, _as_mapping(at_most, "at_most"), _as_mapping(groups, "groups"))
        if budget is not None:
            found["prices"] = self._list_prices(roster, every)
            found["budget"] = number(budget, "budget", least=0.0)
        return k, places, Rules(**found)

    def _list_groups(self, roster: Roster, at_most: Limits, groups: Groups) -> dict[str, Any]:
        for name, group in groups.items():
            roster.find(name)
            check_terms(name, group, None)
        known = [*self._known, *{group for group in groups.values() if group is not None and group not in self._known}]
        for group in at_most:
            if group not in known:
                raise InputError(f"at_most limits {show(group)}, but the groups of arms are {join_names(known)}")
        limits = [integer(limit, f"at_most[{group!r:.40}]", 0) for group, limit in at_most.items()]
        number_of: dict[str | None, int] = {group: place for place, group in enumerate(at_most)}
        group_of: Groups = {**self.groups, **groups}
        numbers = [number_of.get(group_of.get(name), -1) for name in roster.names]
        return {"groups": numbers, "limits": limits, "group_names": list(at_most)}

    def _list_prices(self, roster: Roster, eligible: list[str]) -> list[float]:
        lacking = [name for name in eligible if name not in self.prices]
        if lacking:
            raise InputError(
                f"budget needs the price of every arm to choose from, and {join_names(lacking)} have none; "
                "give them a price, or leave them out of eligible"
            )
        return [self.prices.get(name, math.nan) for name in roster.names]

    def to_header(self) -> dict[str, Any]:
        """Return what a state file keeps; nothing if there are neither groups nor prices."""
        kept = {"groups": self.groups, "prices": self.prices, "known_groups": list(self._known)}
        return {name: value for name, value in kept.items() if value}

    @classmethod
    def read(cls, header: Mapping[str, Any], roster: Roster) -> Self:
        """Make terms from what a state file keeps.

        Parameters
        ----------
        header : mapping
            The header of the file; early versions have neither groups nor prices.
        roster : Roster
            The arms.
        """
        terms = cls()
        terms._known = dict.fromkeys(distinct_names(header.get("known_groups", ()), "known_groups"))
        terms.set_all(roster, header.get("groups"), header.get("prices"))
        return terms


def check_terms(name: str, group: str | None, price: float | None) -> None:
    """Raise an InputError unless the group of an arm is a name and its price a number of at least 0."""
    if group is not None:
        as_name(group, f"the group of {name}")
    if price is not None:
        number(price, f"the price of {name}", least=0.0)


def describe_rules(
    include: Iterable[str] | None, at_most: Limits | None, budget: float | None, groups: Groups | None
) -> dict[str, Any]:
    """Return the rules that a caller gives, without those left out, as plain values that a journal can hold."""
    plain = {"include": include, "at_most": at_most, "budget": budget, "groups": groups}
    return {name: _make_plain(value) for name, value in plain.items() if value is not None}


def _make_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value  # iterators read once


def _as_mapping(value: Mapping[str, Any] | None, argument: str) -> Mapping[str, Any]:
    """Return values by name; an empty mapping if nothing is given."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        example = {"at_most": "{'sport': 2}", "groups": "{'a': 'sport'}", "prices": "{'a': 0.5}"}[argument]
        raise InputError(f"{argument} is {show(value)}; give values by name, such as {example}")
    return value
