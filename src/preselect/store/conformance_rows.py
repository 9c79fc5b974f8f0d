"""Helpers of the conformance suites of storages: meaningless rows, and assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from preselect.errors import PreselectError
from preselect.store.storage import About, Row, Storage


class Open(Protocol):
    """Opens a storage, always the same one."""

    def __call__(self, *, write: bool) -> Storage: ...


Place: TypeAlias = Callable[[], Open]


def make_about(journal: str = "main") -> About:
    """Make the beginning of a journal."""
    return About(journal, 1.5, b"\0genesis\xff", '{"purpose": "test"}', "{}")


def make_row(number: int | None, kind: str = "arm", *, journal: str = "main", **values: Any) -> Row:
    """Make a row of a kind; what it holds means nothing."""
    row = Row(journal, number, 1.25, kind, None, None, None, f'{{"row": {number}}}', None, b"digest")
    row = row._replace(block=b"\0\1") if kind == "decision" else row
    return row._replace(**values)


def begin(open: Open, *journals: str) -> Storage:
    """Open an empty storage and begin journals."""
    storage = open(write=True)
    for journal in journals or ("main",):
        assert storage.begin(make_about(journal)), f"journal {journal!r} could not be begun in an empty storage"
    return storage


def fill(storage: Storage) -> list[Row]:
    """Append an arm, four decisions and three endings."""
    rows = [
        make_row(1),
        make_row(2, "decision", key="k2", request="r2"),
        make_row(3, "decision", key="k3"),
        make_row(4, "outcome", decision=3, key="k3"),
        make_row(5, "decision"),
        make_row(6, "outcome", decision=5),
        make_row(7, "decision", key="k7", request="r7"),
        make_row(8, "expired", decision=2, key="k2"),
    ]
    storage.append(rows[:3])
    storage.append(rows[3:])
    return rows


def refuses(kind: type[PreselectError], action: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Require that an action raises exactly one kind of error, with a message."""
    try:
        action(*arguments, **options)
    except kind as error:
        said = str(error)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of {kind.__name__}: {error}") from error
    else:
        raise AssertionError(f"no {kind.__name__}")
    assert said, f"the {kind.__name__} says nothing"


def same(found: object, expected: object) -> None:
    """Require that two values are equal."""
    assert found == expected, f"found {found!r:.300}, expected {expected!r:.300}"
