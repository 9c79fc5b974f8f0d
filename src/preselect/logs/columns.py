"""Read the columns of a table from files of several kinds, mappings and data frames."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TextIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from preselect.arguments import join_names, show
from preselect.errors import InputError

Source: TypeAlias = Any  # a path, an open text file, a mapping of columns, or a data frame

_TIMES = {np.datetime64: "datetime64[us]", np.timedelta64: "timedelta64[us]"}  # units that Python's times have, too
_INDEX = re.compile(r"__index_level_\d+__")  # the columns in which pandas keeps the index of a frame


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
    """Read a CSV or Parquet file, an open text file, a mapping of columns, or a frame of pandas, polars or Arrow."""
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        return _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv_file(path)
    if hasattr(source, "read"):
        return _read_csv(source, getattr(source, "name", "the table"))
    if hasattr(source, "collect"):  # a frame of polars that is not computed yet
        source = source.collect()
    names = source if isinstance(source, Mapping) else getattr(source, "column_names", getattr(source, "columns", None))
    if names is None or not hasattr(source, "__getitem__"):
        raise InputError(f"the table is {show(source)}; use a file, a data frame, or a mapping of columns")
    _refuse_repeated([str(name) for name in names], "the table")
    return _collect({str(name): _as_column(source[name]) for name in names})


def _refuse_repeated(names: list[str], table: str) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(f"{table} has two columns of the same name: {join_names(repeated)}")


def _as_column(values: Any) -> NDArray[Any]:
    """Return floats as floats, with NaN where they are missing, and anything else as objects, with None there."""
    if isinstance(values, np.ma.MaskedArray):
        found = _as_objects(values.data.copy())
        found[np.ma.getmaskarray(values)] = None
        return found
    if hasattr(values, "to_pylist"):  # a column of Arrow, whose own conversion loses what is missing
        values = values.to_numpy() if str(values.type) in ("double", "float") else values.to_pylist()
    if not isinstance(values, np.ndarray):
        is_float = str(getattr(values, "dtype", "")).lower().startswith("float")
        values = np.asarray(values, dtype=np.float64 if is_float else object)
    return values if values.dtype.kind == "f" else _as_objects(values)


def _as_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Return objects, with numpy's times as Python's: numpy's own would be read as numbers, even missing ones."""
    unit = _TIMES.get(values.dtype.type)
    found = (values if unit is None else values.astype(unit)).astype(object)
    cells = found.ravel().tolist()
    if not _TIMES.keys().isdisjoint(map(type, cells)):
        plain = (one.astype(_TIMES[type(one)]).item() if type(one) in _TIMES else one for one in cells)
        return np.fromiter(plain, dtype=object).reshape(found.shape)
    return found


def _collect(values: dict[str, NDArray[Any]]) -> Columns:
    values = {name: column for name, column in values.items() if not _INDEX.fullmatch(name)}
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
    rows = _list_rows(file, name)
    head = [title.strip() for title in next(rows, (0, []))[1]]
    _check_head(head, name)
    n, wrong = len(head), {}
    lines: list[int] = []
    cells: list[str] = []  # of all rows, because a list for each of them would take as much time and memory again
    for line, row in rows:
        if len(row) != n:
            wrong[len(lines)] = f"{len(row)} values, but there are {n} columns"
            row = [""] * n
        lines.append(line)
        cells += row
    table = np.array(cells, dtype=object).reshape(-1, n)
    return Columns(dict(zip(head, table.T, strict=True)), lines, wrong)


def _check_head(head: list[str], name: str) -> None:
    if not head:
        raise InputError(f"{name} is empty; a table of rounds begins with the names of its columns")
    head[0] = head[0].removeprefix("\ufeff")  # a mark at the beginning of files that some programs write
    separator = next((sign for sign in ";\t|" if sign in head[0]), None)
    if len(head) == 1 and separator is not None:
        raise InputError(f"{name} has {separator!r} between its columns; write it with commas")
    _refuse_repeated(head, name)


def _list_rows(file: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file, leaving out empty lines, with the lines on which they begin."""
    reader, begin = csv.reader(file, strict=True), 1
    try:
        for row in reader:
            if row:
                yield begin, row
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{name}, line {begin}: this is not CSV: {error}") from None


def _read_parquet(path: Path) -> Columns:
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        _refuse_repeated(file.schema_arrow.names, str(path))
        table = file.read()
    except (pyarrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the file does not exist, or cannot be read
            raise
        raise InputError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from None
    return _collect({name: _as_column(table.column(name)) for name in table.column_names})
