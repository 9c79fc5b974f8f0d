"""Reads the subset of ARFF that ASlib uses: dense rows of numbers, texts and nominal values.

Keywords may be in upper or lower case. Names and values may be in single or double quotes, with backslash escapes.
Spaces and tabs around them, comments (%), blank lines and both line endings are accepted; `?` is a missing value. A
value of a nominal attribute need not be declared, since some published files declare too few. Reading takes time linear
in the length of the file, whatever it contains.

Names in some files have been changed by R; `match_names` and `select_names` find them nevertheless.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from preselect.context import Floats, Integers
from preselect.errors import InputError

_NUMBER, TEXT, _NOMINAL = "number", "text", "nominal"

_KINDS = {"numeric": _NUMBER, "real": _NUMBER, "integer": _NUMBER, "string": TEXT}
# Possessive quantifiers (++, *+) never back off, which keeps matching linear.
_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_ATTRIBUTE = re.compile(rf"@attribute\s++({_QUOTED}|[^\s{{'\"][^\s{{]*+)\s*+(.*)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*+({_QUOTED}|[^\s,'\"][^,]*+|)\s*+(,|\Z)")


@dataclass(frozen=True)
class _Attribute:
    """A column's name, its kind (number, text or nominal), and the declared values of a nominal one."""

    name: str
    kind: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of an ARFF file by column: texts as written (None where missing), and numbers (NaN where missing)."""

    path: Path
    attributes: list[_Attribute]
    lines: list[int]  # line number of each row, for messages
    texts: list[list[str | None]]
    numbers: dict[int, Floats]  # of numeric attributes, by position

    def find(self, name: str) -> int:
        """The position of the attribute with this name, in upper or lower case."""
        for position, attribute in enumerate(self.attributes):
            if attribute.name.lower() == name.lower():
                return position
        there = ", ".join(attribute.name for attribute in self.attributes)
        raise InputError(f"{self.path} has no attribute {name}; its attributes are {there:.200}")

    def names(self, name: str) -> list[str]:
        """The column with this name, in which no value may be missing."""
        column = self.texts[self.find(name)]
        for text, line in zip(column, self.lines, strict=True):
            if not text:
                raise InputError(f"{self.path}, line {line}: {name} is missing")
        return [str(text) for text in column]


def read(path: str | PathLike[str]) -> Table:
    """Read an ARFF file. A malformed line is an InputError with its number."""
    path = Path(path)
    lines = read_lines(path)
    attributes, start = _read_header(path, lines)
    rows = list(_read_rows(path, lines, start, len(attributes)))
    numbers_of_lines = [line for line, _ in rows]
    texts = [list(column) for column in zip(*(row for _, row in rows), strict=True)] or [[] for _ in attributes]
    numbers = {
        position: _as_numbers(path, attribute.name, texts[position], numbers_of_lines)
        for position, attribute in enumerate(attributes)
        if attribute.kind == _NUMBER
    }
    return Table(path, attributes, numbers_of_lines, texts, numbers)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file. Bytes that are not UTF-8 become replacement characters."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _split_values(line: str) -> list[str | None] | None:
    r"""The values between commas, without their quotes; None for a missing value.

    Returns None if a quote is missing or misplaced.

    >>> _split_values(r"a, 'b, c' ,?, 'it\'s'")
    ['a', 'b, c', None, "it's"]
    """
    if "'" not in line and '"' not in line:
        return [None if value == "?" else value for value in map(str.strip, line.split(","))]
    values: list[str | None] = []
    position, comma = 0, ","
    while comma:
        found = _VALUE.match(line, position)
        if found is None:
            return None
        value = found[1].rstrip()
        values.append(None if value == "?" else _unquote(value))
        position, comma = found.end(), found[2]
    return values


def _unquote(text: str) -> str:
    """A name or value without its quotes and escapes.

    >>> _unquote("'a b'"), _unquote("plain")
    ('a b', 'plain')
    """
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_header(path: Path, lines: list[str]) -> tuple[list[_Attribute], int]:
    """The attributes, and the number of lines before the first row."""
    attributes: list[_Attribute] = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("%"):
            continue
        word = line.lower()
        if word.startswith("@data"):  # one published file has a comma after it
            if not attributes:
                raise InputError(f"{path}, line {number}: there are no attributes before @DATA")
            return attributes, number
        if word.startswith("@attribute"):
            attributes.append(_read_attribute(path, number, line))
        elif not word.startswith("@relation"):
            raise InputError(f"{path}, line {number}: expected @RELATION, @ATTRIBUTE or @DATA, found {line!r:.80}")
    raise InputError(f"{path}, line {len(lines)}: the file ends before @DATA")


def _read_attribute(path: Path, number: int, line: str) -> _Attribute:
    found = _ATTRIBUTE.fullmatch(line)
    name, kind = (_unquote(found[1]), found[2].strip()) if found else ("", line)
    if name and kind.lower() in _KINDS:
        return _Attribute(name, _KINDS[kind.lower()])
    values = _split_values(kind[1:-1]) if kind.startswith("{") and kind.endswith("}") else None
    if not name or values is None:
        types = "NUMERIC, REAL, INTEGER, STRING or {one, another}"
        raise InputError(f"{path}, line {number}: an attribute needs a name and a type, {types}; found {line!r:.80}")
    return _Attribute(name, _NOMINAL, tuple(value or "" for value in values))


def _read_rows(path: Path, lines: list[str], start: int, width: int) -> Iterator[tuple[int, list[str | None]]]:
    """Line number and values of every row."""
    for number, line in enumerate(map(str.strip, lines[start:]), start + 1):
        if not line or line.startswith("%"):
            continue
        values = _split_values(line)
        if values is None:
            raise InputError(f"{path}, line {number}: a quote is not closed before the next comma: {line!r:.80}")
        if len(values) != width:
            raise InputError(f"{path}, line {number}: {len(values)} values, but there are {width} attributes")
        yield number, values


def _as_numbers(path: Path, name: str, column: list[str | None], lines: list[int]) -> Floats:
    numbers = np.empty(len(column))
    for row, text in enumerate(column):
        try:
            numbers[row] = np.nan if text is None else float(text)
        except ValueError:
            wrong = f"{name} is {text!r:.80}, which is not a number"
            raise InputError(f"{path}, line {lines[row]}: {wrong}; use ? for a missing one") from None
    return numbers


def match_names(names: Iterable[str], known: list[str]) -> Integers:
    """The position of each name among the known ones, literally or as R changes names; -1 if it is not there."""
    positions = {name: position for position, name in reversed(list(enumerate(known)))}
    changed = {_change_name(name): position for name, position in positions.items()}
    return np.array([positions.get(name, changed.get(_change_name(name), -1)) for name in names], dtype=np.int64)


def select_names(names: list[str], wanted: Iterable[str]) -> list[int]:
    """Positions of the wanted names, ascending."""
    return sorted({int(position) for position in match_names(wanted, names) if position >= 0})


def _change_name(name: str) -> str:
    """A name as R's make.names changes it.

    >>> _change_name("2-opt+ls")
    'X2.opt.ls'
    """
    changed = re.sub(r"[^A-Za-z0-9_.]", ".", name)
    return changed if re.match(r"[A-Za-z.]", changed) else "X" + changed
