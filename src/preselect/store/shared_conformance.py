"""A conformance suite for storages that several processes write; public, like `preselect.store.conformance`.

It comes on top of the checks there, and has the same shape: `CHECKS` by name, and `run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from preselect.errors import ConflictError, InputError, JournalError
from preselect.store.conformance_rows import Open, Place, make_about, make_row, refuses, same
from preselect.store.storage import Row, SharedStorage, Snapshot

_Check: TypeAlias = Callable[[SharedStorage, SharedStorage], None]

CHECKS: dict[str, _Check] = {}


def _register(check: _Check) -> _Check:
    CHECKS[check.__name__.removeprefix("_check_")] = check
    return check


def run(check: str, place: Place) -> None:
    """Run one check, on a journal `main` that two processes, or one process twice, have open.

    Parameters
    ----------
    check : str
        A key of CHECKS.
    place : callable
        Names a new place, and returns what opens the storage there.
    """
    there = place()
    with _open(there) as first, _open(there) as second:
        first.begin(make_about())
        CHECKS[check](first, second)


def _open(open: Open) -> SharedStorage:
    storage = open(write=True)
    assert isinstance(storage, SharedStorage), "the storage is not for several processes"
    return storage


def _make(kind: str, key: str, **values: Any) -> Row:
    return make_row(None, kind, key=key, digest=None, **values)


def _number(rows: list[Row], after: int = 0) -> list[Row]:
    """Give rows numbers, and endings the numbers of their decisions."""
    numbered = [row._replace(number=after + place + 1, digest=bytes(32)) for place, row in enumerate(rows)]
    decisions = {row.key: row.number for row in numbered if row.kind == "decision"}
    return [row if row.kind == "decision" else row._replace(decision=decisions.get(row.key)) for row in numbered]


@_register
def _check_rows_wait_until_they_are_numbered(first: SharedStorage, second: SharedStorage) -> None:
    rows = [_make("decision", "a", request="r"), _make("arm", "b"), _make("outcome", "a")]
    for row in rows:
        same(second.submit([row]), [])
    for storage in (first, second):
        same((storage.pending("main"), storage.pending("main", 2)), (rows, rows[:2]))
        same((list(storage.read("main")), storage.last("main")), ([], None))
        same((storage.find_key("a"), storage.find_request("main", "r")), (rows[0], rows[0]))
        same(storage.find_ending(rows[0]), rows[2])
        same(storage.find_submitted(["b", "c"]), {"b": None})
    assert first.lead("main"), "nobody leads, and nobody may"
    numbered = _number(rows)
    first.number(numbered)
    for storage in (first, second):
        same((storage.pending("main"), list(storage.read("main"))), ([], numbered))
        same(list(storage.rounds("main")), [(numbered[0], numbered[2])])


@_register
def _check_submissions_are_rejected_one_by_one(first: SharedStorage, second: SharedStorage) -> None:
    told = _make("outcome", "a", text="told")
    first.submit([_make("decision", "a", request="r"), _make("decision", "b")])
    first.submit([told])
    again = [
        _make("decision", "c", request="r"),
        _make("expired", "b"),
        _make("outcome", "a", text="other"),
        _make("decision", "d"),
    ]
    rejections = second.submit(again)
    same([rejection.row for rejection in rejections], [again[0], again[2]])
    same([rejection.existing.key for rejection in rejections], ["a", "a"])
    same(rejections[1].existing, told)
    same(sorted((row.key or "", row.kind) for row in first.pending("main")), _ENDED)
    twice = [_make("outcome", "d", text="first"), _make("outcome", "d", text="second")]
    same([rejection.row for rejection in second.submit(twice)], twice[1:])


_ENDED = [("a", "decision"), ("a", "outcome"), ("b", "decision"), ("b", "expired"), ("d", "decision")]


@_register
def _check_submissions_need_sense(first: SharedStorage, second: SharedStorage) -> None:
    refuses(InputError, first.submit, [_make("outcome", "nothing")])
    refuses(JournalError, first.submit, [_make("arm", "a", journal="nothing")])
    first.submit([_make("decision", "a")])
    refuses(ConflictError, second.submit, [_make("decision", "a")])
    same(len(first.pending("main")), 1)


@_register
def _check_numbered_rows_count_for_submissions(first: SharedStorage, second: SharedStorage) -> None:
    first.append([make_row(1, "decision", key="a", request="r"), make_row(2, "outcome", decision=1, key="a")])
    again = [_make("decision", "b", request="r"), _make("expired", "a")]
    same([rejection.existing.number for rejection in second.submit(again)], [1, 2])


@_register
def _check_only_who_leads_writes(first: SharedStorage, second: SharedStorage) -> None:
    rows = [_make("arm", "a")]
    first.submit(rows)
    refuses(JournalError, first.number, _number(rows))
    assert first.lead("main"), "nobody leads, and nobody may"
    assert first.lead("main"), "the leader has lost its lead"
    assert not second.lead("main"), "two processes lead"
    refuses(JournalError, second.number, _number(rows))
    refuses(JournalError, second.append, [make_row(1)])
    refuses(JournalError, second.keep_snapshot, Snapshot("main", 0, b"", None))
    first.number(_number(rows))
    first.close()
    assert second.lead("main"), "the lead cannot be taken over"
    second.append([make_row(2)])
    refuses(JournalError, second.lead, "nothing")


@_register
def _check_numbers_are_given_once(first: SharedStorage, second: SharedStorage) -> None:
    rows = [_make("arm", "a"), _make("arm", "b"), _make("decision", "c")]
    second.submit(rows)
    first.lead("main")
    refuses(JournalError, first.number, _number(rows, after=1))
    refuses(JournalError, first.number, _number([*rows, _make("arm", "d")]))
    first.number(_number(rows[:1]), refused=rows[1:2])
    refuses(JournalError, first.number, _number(rows[:1], after=1))
    same((second.pending("main"), second.find_submitted(["a", "b", "c"])), (rows[2:], {"a": 1, "c": None}))
    same([row.key for row in second.read("main")], ["a"])


@_register
def _check_listeners_are_woken(first: SharedStorage, second: SharedStorage) -> None:
    listener = second.listen()
    assert listener.wait(5.0), "what came before listening was not heard, so the first call says yes"
    assert not listener.wait(0.05), "there was no notification"
    first.notify()
    assert listener.wait(5.0), "a notification was missed"
    listener.close()
