"""A reader of ARFF, the tables of ASlib scenarios: what those files contain, dense rows and the plain types, no more.

Taken as they come: any case, spaces and tabs around anything, names and values in single or double quotes with
backslash escapes, comments (%), blank lines, either end of line, `?` for a missing value. A value of a nominal
attribute need not be one of those declared: files exist that declare too few.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from preselect.context import Floats
from preselect.errors import InputError

NUMBER, TEXT, CHOICE = "number", "text", "choice"

_KINDS = {"numeric": NUMBER, "real": NUMBER, "integer": NUMBER, "string": TEXT}
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{'\"][^\s{{]*)\s*(.*)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,'\"][^,]*?|)\s*(,|$)")


@dataclass(frozen=True)
class Attribute:
    """A column's name, what it holds (a number, a text or a choice), and the values to choose from."""

    name: str
    kind: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of an ARFF file, by column: texts as written (None where missing), and numbers (NaN where missing)."""

    path: Path
    attributes: list[Attribute]
    lines: list[int]  # where each row stands in the file, for messages
    texts: list[list[str | None]]
    numbers: dict[int, Floats]  # of numeric attributes, by position

    def find(self, name: str) -> int:
        """The position of the attribute of this name, in either case."""
        for position, attribute in enumerate(self.attributes):
            if attribute.name.lower() == name.lower():
                return position
        there = ", ".join(attribute.name for attribute in self.attributes)
        raise InputError(f"{self.path} must have an attribute {name}, got {there:.200}")

    def names(self, name: str) -> list[str]:
        """The column of this name, which names something in every row: nothing may be missing."""
        column = self.texts[self.find(name)]
        for text, line in zip(column, self.lines, strict=True):
            if not text:
                raise InputError(f"{self.path}, line {line}: {name} must be there in every row, got none")
        return [str(text) for text in column]


def read(path: str | PathLike[str]) -> Table:
    """Read an ARFF file; a line that is broken is an error that names it."""
    path = Path(path)
    lines = read_lines(path)
    attributes, start = _read_header(path, lines)
    rows = list(_read_rows(path, lines, start, len(attributes)))
    places = [line for line, _ in rows]
    texts = [list(column) for column in zip(*(row for _, row in rows), strict=True)] or [[] for _ in attributes]
    numbers = {
        position: _as_numbers(path, attribute.name, texts[position], places)
        for position, attribute in enumerate(attributes)
        if attribute.kind == NUMBER
    }
    return Table(path, attributes, places, texts, numbers)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, in whatever encoding: what is not UTF-8 is kept as a replacement character."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except OSError as error:
        raise InputError(f"{path} must be a file that can be read, got: {error.strerror}") from None


def split(line: str) -> list[str | None] | None:
    r"""Values between commas, without their quotes; None for what is missing, and for all if a quote stays open.

    >>> split(r"a, 'b, c' ,?, 'it\'s'")
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
        values.append(None if found[1] == "?" else unquote(found[1]))
        position, comma = found.end(), found[2]
    return values


def unquote(text: str) -> str:
    """A name or value without its quotes and escapes.

    >>> unquote("'a b'"), unquote("plain")
    ('a b', 'plain')
    """
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_header(path: Path, lines: list[str]) -> tuple[list[Attribute], int]:
    """The attributes, and how many lines come before the first row."""
    attributes: list[Attribute] = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("%"):
            continue
        word = line.lower()
        if word.startswith("@data"):  # one of the files has a comma behind it
            if not attributes:
                raise InputError(f"{path}, line {number}: @DATA must follow the attributes, got none before it")
            return attributes, number
        if word.startswith("@attribute"):
            attributes.append(_read_attribute(path, number, line))
        elif not word.startswith("@relation"):
            expected = "@RELATION, @ATTRIBUTE or @DATA"
            raise InputError(f"{path}, line {number}: a line before the rows must be {expected}, got {line!r:.80}")
    raise InputError(f"{path}, line {len(lines)}: @DATA must come before the rows, got the end of the file")


def _read_attribute(path: Path, number: int, line: str) -> Attribute:
    found = _ATTRIBUTE.fullmatch(line)
    name, said = (unquote(found[1]), found[2].strip()) if found else ("", line)
    if name and said.lower() in _KINDS:
        return Attribute(name, _KINDS[said.lower()])
    values = split(said[1:-1]) if said.startswith("{") and said.endswith("}") else None
    if not name or values is None:
        types = "NUMERIC, REAL, INTEGER, STRING or {one, another}"
        raise InputError(f"{path}, line {number}: an attribute must have a name and a type {types}, got {line!r:.80}")
    return Attribute(name, CHOICE, tuple(value or "" for value in values))


def _read_rows(path: Path, lines: list[str], start: int, width: int) -> Iterator[tuple[int, list[str | None]]]:
    """Number and values of every line that is a row."""
    for number, line in enumerate(map(str.strip, lines[start:]), start + 1):
        if not line or line.startswith("%"):
            continue
        values = split(line)
        if values is None:
            raise InputError(f"{path}, line {number}: a quote must be closed before the next comma, got {line!r:.80}")
        if len(values) != width:
            counted = f"{width} values, one per attribute"
            raise InputError(f"{path}, line {number}: a row must have {counted}, got {len(values)}")
        yield number, values


def _as_numbers(path: Path, name: str, column: list[str | None], lines: list[int]) -> Floats:
    numbers = np.empty(len(column))
    for row, text in enumerate(column):
        try:
            numbers[row] = np.nan if text is None else float(text)
        except ValueError:
            expected = "a number, or ? where it is missing"
            raise InputError(f"{path}, line {lines[row]}: {name} must be {expected}, got {text!r:.80}") from None
    return numbers
