"""Names in the files of an ASlib scenario, some of which have passed through R."""

import re
from collections.abc import Iterable

import numpy as np

from preselect.context import Integers


def match_names(names: Iterable[str], known: list[str]) -> Integers:
    """The position of each name among the known ones, literally or as R changes names; -1 if it is not there."""
    places = {name: place for place, name in reversed(list(enumerate(known)))}
    changed = {_change_name(name): place for name, place in places.items()}
    return np.array([places.get(name, changed.get(_change_name(name), -1)) for name in names], dtype=np.int64)


def select_names(names: list[str], wanted: Iterable[str]) -> list[int]:
    """Positions of the wanted names, ascending."""
    return sorted({int(place) for place in match_names(wanted, names) if place >= 0})


def _change_name(name: str) -> str:
    """A name as R's make.names changes it.

    >>> _change_name("2-opt+ls")
    'X2.opt.ls'
    """
    changed = re.sub(r"[^A-Za-z0-9_.]", ".", name)
    return changed if re.match(r"[A-Za-z.]", changed) else "X" + changed
