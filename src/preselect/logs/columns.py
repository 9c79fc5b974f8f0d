"""Read the columns of a table from files of several kinds, mappings and data frames."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TextIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import join_names, show
from preselect.errors import InputError

Source: TypeAlias = Any  # a path, an open text file, a mapping of columns, or a data frame


class Columns(NamedTuple):
    """The columns of a table by name, the line on which each row begins in its file, and rows with a wrong length.

    Rows of a wrong length are kept as empty ones, with what is wrong with them. A table in memory has no lines.
    """

    values: dict[str, NDArray[Any]]
    lines: list[int] | None = None
    wrong: Mapping[int, str] = MappingProxyType({})

    @property
    def length(self) -> int:
        """How many rows there are."""
        return max((len(column) for column in self.values.values()), default=0)


def read_columns(source: Source) -> Columns:
    """Read a CSV or Parquet file, an open text file, a mapping of columns, or a data frame of pandas or polars."""
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        return _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv_file(path)
    if hasattr(source, "read"):
        return _read_csv(source, getattr(source, "name", "the table"))
    if isinstance(source, Mapping):
        return _collect({str(name): np.asarray(column, dtype=object) for name, column in source.items()})
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        return _collect({str(name): np.asarray(source[name], dtype=object) for name in source.columns})
    raise InputError(f"the table is {show(source)}; use a file, a data frame, or a mapping of columns")


def _collect(values: dict[str, NDArray[Any]]) -> Columns:
    nested = [name for name, column in values.items() if column.ndim != 1]
    if nested:
        raise InputError(f"columns hold one value for each row of the table, but these do not: {join_names(nested)}")
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns have different lengths: {show(lengths)}")
    return Columns(values)


def _read_csv_file(path: Path) -> Columns:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            return _read_csv(cast(TextIO, file), str(path))
    except gzip.BadGzipFile:
        raise InputError(f"{path} is not a gzipped file, although its name ends in .gz") from None
    except (EOFError, zlib.error):
        raise InputError(f"{path} is a gzipped file that is damaged, or breaks off before its end") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; logs are CSV or Parquet files") from None


def _read_csv(file: Iterable[str], name: str) -> Columns:
    lines, (head, *rows) = _read_lines(file, name)
    head = [title.strip() for title in head]
    separator = next((sign for sign in ";\t|" if sign in head[0]), None)
    if len(head) == 1 and separator is not None:
        raise InputError(f"{name} has {separator!r} between its columns; write it with commas")
    if len(set(head)) < len(head):
        raise InputError(f"{name} has two columns of the same name: {show(head)}")
    n = len(head)
    wrong = {place: len(row) for place, row in enumerate(rows) if len(row) != n}
    table = np.array([[""] * n if place in wrong else row for place, row in enumerate(rows)], dtype=object)
    values = dict(zip(head, table.reshape(-1, n).T, strict=True))
    return Columns(values, lines[1:], {place: f"{k} values, but there are {n} columns" for place, k in wrong.items()})


def _read_lines(file: Iterable[str], name: str) -> tuple[list[int], list[list[str]]]:
    """Return the rows of a CSV file, leaving out empty lines, and the lines on which they begin."""
    reader, begin, lines, rows = csv.reader(file, strict=True), 1, [], []
    try:
        for row in reader:
            if row:
                lines.append(begin)
                rows.append(row)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{name}, line {begin}: this is not CSV: {error}") from None
    if not rows:
        raise InputError(f"{name} is empty; a table of rounds begins with the names of its columns")
    return lines, rows


def _read_parquet(path: Path) -> Columns:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the file does not exist, or cannot be read
            raise
        raise InputError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from None
    return _collect({name: np.array(table.column(name).to_pylist(), dtype=object) for name in table.column_names})
