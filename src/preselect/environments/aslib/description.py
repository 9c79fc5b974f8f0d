"""The description of an ASlib scenario, `description.txt`: as much YAML as those files have."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from preselect.environments.aslib import arff
from preselect.errors import InputError


def read_description(path: Path) -> dict[str, Any]:
    """What the file says. Every plain value is a text; null and nothing are None."""
    return _Reader(path).read()


def as_list(value: Any) -> list[str]:
    """A list of names, which may be written as a single one, as nothing at all, or run together (`a - b`)."""
    if isinstance(value, str):
        return [name.strip() for name in value.split(" - ")]
    return [str(item) for item in value or [] if item is not None]


@dataclass(frozen=True)
class _Line:
    number: int
    indent: int
    text: str

    @property
    def is_item(self) -> bool:
        return self.text == "-" or self.text.startswith("- ")


class _Reader:
    """Reads mappings and lists by indentation, flow lists of plain values, quotes, comments, anchors and aliases.

    Values may go on in the next line, and keys may come after `? `.
    """

    _entry = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|.+?)\s*:(?:\s+(.*))?""")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = _split_lines(path)
        self.next = 0
        self.anchors: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """The whole file."""
        found = self._read_mapping(self.lines[0].indent) if self.lines else {}
        if self.next < len(self.lines):
            self._refuse(self.lines[self.next])
        return found

    def _read_mapping(self, indent: int) -> dict[str, Any]:
        found = {}
        while (line := self._here()) and line.indent == indent:
            entry = self._entry.fullmatch(line.text)
            if entry is None or line.is_item:
                self._refuse(line)
            self.next += 1
            found[str(_as_plain(entry[1]))] = self._read_value((entry[2] or "").strip(), indent)
        return found

    def _read_list(self, indent: int) -> list[Any]:
        items = []
        while (line := self._here()) and line.indent == indent and line.is_item:
            self.next += 1
            items.append(_as_plain(self._read_on(line.text[1:].strip(), indent)))
        return items

    def _read_value(self, text: str, indent: int) -> Any:
        anchor = re.fullmatch(r"&(\S+)\s*(.*)", text)
        if anchor:
            self.anchors[anchor[1]] = self._read_value(anchor[2], indent)
            return self.anchors[anchor[1]]
        if text.startswith("*"):
            return self.anchors.get(text[1:])
        return _as_plain(self._read_on(text, indent)) if text else self._read_below(indent)

    def _read_below(self, indent: int) -> Any:
        """The block under a key: deeper, or a list as deep as the key."""
        line = self._here()
        if line is None or line.indent < indent or (line.indent == indent and not line.is_item):
            return None
        return self._read_list(line.indent) if line.is_item else self._read_mapping(line.indent)

    def _read_on(self, text: str, indent: int) -> str:
        """A value and the deeper lines in which it goes on."""
        while (line := self._here()) and line.indent > indent:
            text += " " + line.text
            self.next += 1
        return text

    def _here(self) -> _Line | None:
        return self.lines[self.next] if self.next < len(self.lines) else None

    def _refuse(self, line: _Line) -> NoReturn:
        expected = "'key: value' or '- item', as deep as its neighbours"
        raise InputError(f"{self.path}, line {line.number}: a line must be {expected}, got {line.text!r:.80}")


def _split_lines(path: Path) -> list[_Line]:
    """Lines that say something. `? key` over `: value` becomes a key over what is deeper."""
    lines = []
    for number, raw in enumerate(arff.read_lines(path), 1):
        line = _without_comment(raw.expandtabs()).rstrip()
        text = line.lstrip()
        indent = len(line) - len(text)
        if text.startswith("? "):
            text = text[2:].strip() + ":"
        elif text == ":" or text.startswith(": "):
            indent, text = indent + 2, text[2:].strip()
        if text and text not in ("---", "..."):
            lines.append(_Line(number, indent, text))
    return lines


def _without_comment(line: str) -> str:
    for mark in re.finditer(r"(?:^|\s)#", line):
        before = line[: mark.start()]
        if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
            return before
    return line


def _as_plain(text: str) -> Any:
    """A plain value: a text without its quotes, a flow list of such, or None."""
    if text.startswith("[") and text.endswith("]"):
        return [value for value in arff.split(text[1:-1]) or [] if value]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return None if text in ("", "~", "null", "Null", "NULL", "{}") else arff.unquote(text)
