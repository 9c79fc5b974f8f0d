"""Read the columns of a table from files of several kinds, mappings and data frames."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import show
from preselect.errors import InputError

Source: TypeAlias = Any  # a path, an open text file, a mapping of columns, or a data frame


class Columns(NamedTuple):
    """The columns of a table by name, and how many lines of a file precede its first row; None without lines."""

    values: dict[str, NDArray[Any]]
    head: int | None

    @property
    def length(self) -> int:
        """How many rows there are."""
        return max((len(column) for column in self.values.values()), default=0)


def read_columns(source: Source) -> Columns:
    """Read a CSV or Parquet file, an open text file, a mapping of columns, or a data frame of pandas or polars."""
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        return _read_parquet(path) if path.suffix == ".parquet" else _read_csv_file(path)
    if hasattr(source, "read"):
        return _read_csv(source, getattr(source, "name", "the table"))
    if isinstance(source, Mapping):
        return _collect({str(name): np.asarray(column, dtype=object) for name, column in source.items()})
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        return _collect({str(name): np.asarray(source[name], dtype=object) for name in source.columns})
    raise InputError(f"the table is {show(source)}; use a file, a data frame, or a mapping of columns")


def _collect(values: dict[str, NDArray[Any]]) -> Columns:
    lengths = {name: len(column) if column.ndim == 1 else -1 for name, column in values.items()}
    if len(set(lengths.values())) > 1 or -1 in lengths.values():
        raise InputError(f"the columns have different lengths: {show(lengths)}")
    return Columns(values, None)


def _read_csv_file(path: Path) -> Columns:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            return _read_csv(cast(TextIO, file), str(path))
    except gzip.BadGzipFile:
        raise InputError(f"{path} is not a gzipped file, although its name ends in .gz") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; logs are CSV or Parquet files") from None


def _read_csv(file: Iterable[str], name: str) -> Columns:
    try:
        lines = list(csv.reader(file, strict=True))
    except csv.Error as error:
        raise InputError(f"{name} is not a CSV file: {error}") from None
    if not lines:
        raise InputError(f"{name} is empty; a table of rounds begins with the names of its columns")
    head = [title.strip() for title in lines[0]]
    if len(set(head)) < len(head):
        raise InputError(f"{name} has two columns of the same name: {show(head)}")
    short = next((place for place, line in enumerate(lines) if len(line) != len(head)), None)
    if short is not None:
        raise InputError(f"{name}, line {short + 1}: {len(lines[short])} values, but there are {len(head)} columns")
    rows = np.array(lines[1:], dtype=object).reshape(-1, len(head))
    return Columns({title: rows[:, place] for place, title in enumerate(head)}, 1)


def _read_parquet(path: Path) -> Columns:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise InputError(f"{path} is not a Parquet file: {error}") from None
    names = table.column_names
    return Columns({name: np.array(table.column(name).to_pylist(), dtype=object) for name in names}, None)
