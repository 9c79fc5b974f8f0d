"""Small tables as text and as HTML, for terminals and notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

_STYLE = "text-align: left; white-space: pre-wrap"


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text; the first column is aligned left, the others right.

    >>> print(write_table(["name", "chance"], [["a", "61 %"], ["kissat", "9 %"]]))
    name    chance
    a         61 %
    kissat     9 %
    """
    lines = [list(header), *map(list, rows)]
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            [line[0].ljust(sizes[0]), *(cell.rjust(size) for cell, size in zip(line[1:], sizes[1:], strict=True))]
        )
        for line in lines
    )


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a table as HTML, every cell escaped.

    >>> "&lt;b&gt;</td></tr></tbody></table>" in render_table(["name"], [["<b>"]])
    True
    """
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_STYLE}">{html.escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def write_number(value: float | None) -> str:
    """Return a number with three decimals; a dash if there is none.

    >>> write_number(-0.12345), write_number(None)
    ('-0.123', '-')
    """
    return "-" if value is None else f"{value:.3f}"


def write_share(value: float | None) -> str:
    """Return a chance in per cent; a dash if there is none.

    >>> write_share(0.1234), write_share(None)
    ('12.3 %', '-')
    """
    return "-" if value is None else f"{100.0 * value:.1f} %"


def write_count(number: int, noun: str) -> str:
    """Return how many there are of something.

    >>> write_count(1, "round"), write_count(2, "round")
    ('1 round', '2 rounds')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
