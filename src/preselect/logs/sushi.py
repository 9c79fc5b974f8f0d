"""Read the rankings of T. Kamishima's sushi data: *.order, and sushi3.udata and sushi3.idata if they are beside it.

An .order file begins with the number of different items and a 1. Each further line is a person's ranking: a 0, how many
items follow, and their numbers, best first. The person is that of the same line in sushi3.udata. sushi3.idata describes
100 items, of which ten make up the item set A.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from preselect.arguments import show
from preselect.errors import InputError

_SET_A = (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)  # the items of set A, as numbers of set B
_USER = {1: "female", 2: "age", 3: "seconds", 6: "west_until_15", 9: "west", 10: "moved"}  # without single regions
_ITEM = {2: "not_maki", 3: "not_seafood", 5: "lightness", 6: "eaten", 7: "price", 8: "sold"}
_GROUP = 4  # the column of an item's minor group, and how many groups there are
_GROUPS = 12


def read_sushi(path: Path) -> dict[str, list[Any]]:
    """Return a file of rankings as columns of logs: a round for each person, with the items that she ranked.

    Parameters
    ----------
    path : Path
        A file *.order. The people and the items are described by sushi3.udata and sushi3.idata, if those are beside it.
    """
    header, *lines = _read_numbers(path) or [[]]
    if len(header) != 2 or not header[0].is_integer() or header[0] < 1:
        raise InputError(f"{path} is not a file of rankings: its first line should be the number of items and a 1")
    items, users = _read_items(path.with_name("sushi3.idata"), int(header[0])), path.with_name("sushi3.udata")
    people = _read_table(users, _describe_user) if users.exists() else None
    if people is not None and len(people) != len(lines):
        raise InputError(f"{users} describes {len(people)} people, but {path} has {len(lines)} rankings")
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    for number, line in enumerate(lines):
        _check_ranking(line, len(items), f"{path}, line {number + 2}")
        for place, item in enumerate(line[2:], start=1):
            row = {"round": number + 1, "place": place, **items[int(item)], **(people[number] if people else {})}
            for name, value in row.items():
                columns[name].append(value)
    return dict(columns)


def _check_ranking(line: list[float], n: int, where: str) -> None:
    ranked = line[2:]
    if len(line) < 3 or len(ranked) != line[1] or len(set(ranked)) < len(ranked) or not set(ranked) <= set(range(n)):
        raise InputError(f"{where}: expected 0, how many items follow, and their numbers, from 0 to {n - 1}, each once")


def _read_items(path: Path, n: int) -> list[dict[str, Any]]:
    """Return name and features of each item; numbers for names, and no features, if there is no file."""
    if not path.exists():
        return [{"arm": str(item)} for item in range(n)]
    found = _read_table(path, _describe_item)
    if len(found) < max(_SET_A) + 1 or n not in (len(_SET_A), len(found)):
        raise InputError(f"{path} describes {len(found)} items, but the rankings have {n}")
    return [found[item] for item in _SET_A] if n == len(_SET_A) else found


def _read_table(path: Path, describe: Callable[[list[str]], dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8") from None
    found = []
    for number, line in enumerate(_drop_last_empty(lines), start=1):
        try:
            found.append(describe(line.split("\t")))
        except (ValueError, IndexError):
            raise InputError(f"{path}, line {number}: {show(line)} cannot be read; it should be numbers") from None
    return found


def _drop_last_empty(lines: list[str]) -> list[str]:
    """Return lines without empty ones at the end."""
    kept = max((number for number, line in enumerate(lines, start=1) if line.strip()), default=0)
    return lines[:kept]


def _describe_user(values: list[str]) -> dict[str, Any]:
    return {f"context.{name}": float(values[place]) for place, name in _USER.items()}


def _describe_item(values: list[str]) -> dict[str, Any]:
    groups = {f"arm.group_{group}": float(int(values[_GROUP]) == group) for group in range(_GROUPS)}
    return {"arm": values[1], **{f"arm.{name}": float(values[place]) for place, name in _ITEM.items()}, **groups}


def _read_numbers(path: Path) -> list[list[float]]:
    try:
        lines = _drop_last_empty(path.read_text(encoding="utf-8").splitlines())
        return [[float(value) for value in line.split()] for line in lines]
    except ValueError:
        raise InputError(f"{path} is not a file of rankings: it should hold numbers only") from None
