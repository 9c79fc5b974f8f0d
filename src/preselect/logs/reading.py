"""Read logs from a table; every value is checked, and errors name the line.

A table has one row for each arm of each round, and these columns:

    round           what the round is called; the rows of a round need not stand together
    arm             the name of the arm
    place           1 for the winner, 2 for the next and so on; equal for arms that are tied; empty if not placed
    shown           1 if the arm was shown, 0 if it was there but not shown; without this column all were shown
    propensity      the probability with which it was shown, if that is known
    set_propensity  the probability with which exactly these arms were shown together: the same in all rows of a round
    arm.NAME        a feature of the arm: a number, or empty if it is not known
    context.NAME    a feature of the round: the same in all its rows
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import join_names, show
from preselect.context import Floats, Integers
from preselect.errors import InputError
from preselect.logs.columns import Columns, Source, read_columns
from preselect.logs.logs import Logs

_KNOWN = ("round", "arm", "place", "shown", "propensity", "set_propensity")
_PREFIXES = ("arm.", "context.")
_NO_NAMES = (bytes, list, tuple, dict, set, np.ndarray)  # their text would be a name that nobody means
_TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class Problem(NamedTuple):
    """Something that is wrong with a table.

    Parameters
    ----------
    row : int
        The row, counted from 0.
    message : str
        What is wrong with it, and where: a line of a file, or a row.
    """

    row: int
    message: str


def read(source: Source) -> Logs:
    """Read logs from a table; the module `preselect.logs.reading` lists its columns.

    Parameters
    ----------
    source : path, open text file, mapping of columns, or data frame
        A CSV file, which may be gzipped (`.gz`), a Parquet file (`.parquet`), or a table that is in memory.
    """
    logs, problems = _read(source)
    if logs is None:
        others = len(problems) - 1
        more = f"; {others} more problem{'s' * (others > 1)}" if others else ""
        raise InputError(f"{problems[0].message}{more}")
    return logs


def check(source: Source) -> list[Problem]:
    """Return all problems of a table, in the order of its rows; an empty list if it can be read.

    Parameters
    ----------
    source : path, open text file, mapping of columns, or data frame
        The table.
    """
    return _read(source)[1]


def _read(source: Source) -> tuple[Logs | None, list[Problem]]:
    columns = read_columns(source)
    table = _Table(columns)
    logs = table.arrange()
    problems = sorted(table.problems)
    return (None if problems else logs), problems


class _Table:
    """A table while it is checked."""

    def __init__(self, columns: Columns) -> None:
        self._columns, self._n = columns.values, columns.length
        self._lines, self._wrong = columns.lines, columns.wrong
        self.problems = [Problem(row, f"{self._where(row)}: {message}") for row, message in self._wrong.items()]
        self._check_names()

    def _check_names(self) -> None:
        missing = [name for name in ("round", "arm", "place") if name not in self._columns]
        if missing:
            raise InputError(f"the table has no column {join_names(missing)}; it has {join_names(self._columns)}")
        if any(name in ("", *_PREFIXES) for name in self._columns):
            raise InputError(f"the table has a column without a name; it has {join_names(self._columns)}")
        strange = [name for name in self._columns if name not in _KNOWN and not name.startswith(_PREFIXES)]
        if strange:
            raise InputError(
                f"the table has the columns {join_names(strange)}; features of arms are called arm.NAME, "
                "those of rounds context.NAME"
            )
        if self._n == 0:
            raise InputError("the table has no rows")

    def arrange(self) -> Logs:
        """Return the logs, which are right if no problem was found."""
        labels, rounds = _number(self._read_texts("round"))
        arms, arm = _number(self._read_texts("arm"))
        order = np.argsort(rounds, kind="stable")
        of_arms, of_rounds = (self._list_features(prefix) for prefix in _PREFIXES)
        contexts = self._read_features("context.", of_rounds)
        starts = np.searchsorted(rounds[order], np.arange(len(labels) + 1))
        firsts = order[starts[:-1]]
        self._check_rounds(rounds, arm, contexts, firsts, arms)
        shown, places = self._read_shown(), self._read_places()
        self._report(~shown & (places > 0), lambda row: f"{arms[arm[row]]} has a place but was not shown")
        seen = np.add.reduceat(shown[order], starts[:-1])
        unseen = np.zeros(self._n, dtype=np.bool_)
        unseen[firsts] = seen == 0
        self._report(unseen, lambda row: f"round {labels[rounds[row]]} shows no arm")
        return Logs(
            arms=arms,
            features=of_arms,
            context=of_rounds,
            labels=labels,
            starts=starts,
            arm=arm[order],
            values=self._read_features("arm.", of_arms)[order],
            contexts=contexts[firsts],
            shown=shown[order],
            places=places[order],
            propensities=self._read_propensities("propensity")[order],
            set_propensities=self._read_of_rounds("set_propensity", rounds, firsts),
        )

    def _check_rounds(
        self, rounds: Integers, arm: Integers, contexts: Floats, firsts: Integers, arms: tuple[str, ...]
    ) -> None:
        """Report arms that occur twice in a round, and contexts that change within a round."""
        _, first_rows = np.unique(rounds * len(arms) + arm, return_index=True)
        again = np.ones(self._n, dtype=np.bool_)
        again[first_rows] = False
        self._report(again, lambda row: f"{arms[arm[row]]} occurs in this round already")
        usual = contexts[firsts][rounds]
        differs = ((contexts != usual) & ~(np.isnan(contexts) & np.isnan(usual))).any(axis=1)
        before = [self._where(row) for row in firsts.tolist()] if differs.any() else []
        self._report(differs, lambda row: f"the context differs from that of {before[rounds[row]]}, in the same round")

    def _list_features(self, prefix: str) -> tuple[str, ...]:
        return tuple(name[len(prefix) :] for name in self._columns if name.startswith(prefix))

    def _read_texts(self, name: str) -> list[str]:
        values = self._columns[name].tolist()
        texts = ["" if _is_missing(value) else str(value).strip() for value in values]
        self._report(np.array([not text for text in texts]), lambda _: f"{name} is empty")
        wrong = np.array([isinstance(value, _NO_NAMES) for value in values])
        self._report(wrong, lambda row: f"{name} is {show(values[row])}; use a text or a number")
        return texts

    def _read_features(self, prefix: str, names: tuple[str, ...]) -> Floats:
        found = np.empty((self._n, len(names)))
        for place, name in enumerate(names):
            found[:, place] = self._read_numbers(prefix + name)
            infinite = np.isinf(found[:, place])
            self._report(infinite, lambda _, name=name: f"{prefix}{name} is infinite; use a finite number, or nothing")
        return found

    def _read_numbers(self, name: str) -> Floats:
        """Return the numbers of a column, NaN for those that are missing."""
        with suppress(TypeError, ValueError, OverflowError):
            return self._columns[name].astype(np.float64)
        values = ["nan" if _is_missing(value) else value for value in self._columns[name].tolist()]
        with suppress(TypeError, ValueError, OverflowError):
            numbers = np.array(values, dtype=np.float64)
            if numbers.ndim == 1:
                return numbers
        found = [_as_number(value) for value in values]
        wrong = np.array([number is None for number in found])
        self._report(wrong, lambda row: f"{name} is {show(values[row])}; use a number, or nothing")
        return np.array([np.nan if number is None else number for number in found])

    def _read_places(self) -> Integers:
        found = self._read_numbers("place")
        known = np.where(np.isnan(found), 0.0, found)
        wrong = (known != np.round(known)) | (known < 0) | (known > 2**31) | (found == 0)
        self._report(wrong, lambda row: f"place is {found[row]:g}; use 1, 2, 3 and so on, or nothing")
        places: Integers = np.where(wrong, 0, known).astype(np.int64)
        return places

    def _read_shown(self) -> NDArray[np.bool_]:
        if "shown" not in self._columns:
            return np.ones(self._n, dtype=np.bool_)
        values = self._columns["shown"].tolist()
        found = [_as_truth(value) for value in values]
        wrong = np.array([truth is None for truth in found])
        self._report(wrong, lambda row: f"shown is {show(values[row])}; use 1 or 0")
        return np.array([truth is not False for truth in found])

    def _read_propensities(self, name: str) -> Floats:
        if name not in self._columns:
            return np.full(self._n, np.nan)
        found = self._read_numbers(name)
        wrong = ~np.isnan(found) & ~((found > 0.0) & (found <= 1.0))
        self._report(wrong, lambda row: f"{name} is {found[row]:g}; use a probability above 0, up to 1, or nothing")
        return found

    def _read_of_rounds(self, name: str, rounds: Integers, firsts: Integers) -> Floats:
        """Return the propensity of each round, which has to be the same in all its rows."""
        found = self._read_propensities(name)
        usual = found[firsts]
        differs = (found != usual[rounds]) & ~(np.isnan(found) & np.isnan(usual[rounds]))
        self._report(
            differs, lambda row: f"{name} differs from {self._where(int(firsts[rounds[row]]))}, in the same round"
        )
        return usual

    def _report(self, wrong: NDArray[np.bool_], describe: Any) -> None:
        for row in np.flatnonzero(wrong).tolist():
            if row not in self._wrong:
                self.problems.append(Problem(row, f"{self._where(row)}: {describe(row)}"))

    def _where(self, row: int) -> str:
        return f"row {row}" if self._lines is None else f"line {self._lines[row]}"


def _number(texts: list[str]) -> tuple[tuple[str, ...], Integers]:
    """Return the different texts in the order in which they first appear, and which of them each is."""
    known: dict[str, int] = {}
    numbers = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)
    return tuple(known), numbers


def _is_missing(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value is None or not value.strip()
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA is neither equal to itself nor different
        return True
    except ValueError:  # an array, which is no single value
        return False


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _as_truth(value: Any) -> bool | None:
    """Return whether a value means yes; None if it means neither yes nor no. A missing value counts as yes."""
    if _is_missing(value):
        return True
    text = str(value).strip().lower()
    return _TRUTHS.get(text.removesuffix(".0"))
