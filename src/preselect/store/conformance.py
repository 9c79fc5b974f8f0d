"""A conformance suite: what every storage must do. Public, so that you can test your own.

    from preselect.store import conformance
    conformance.check_storage(place)

`place()` names a new place, where nothing is yet: it returns a callable that opens the storage there, any number of
times, as `open(write=True)` or `open(write=False)`. In pytest, parametrise over `CHECKS` and call `run` to see each
check by name. A failure is an AssertionError that says what does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from preselect.errors import ConflictError, JournalError
from preselect.store.conformance_rows import Open, Place, begin, fill, make_about, make_row, refuses, same
from preselect.store.storage import Snapshot

_LONG = 2500  # more rows than any engine reads at once


_Check: TypeAlias = Callable[[Open], None]

CHECKS: dict[str, _Check] = {}


def _register(check: _Check) -> _Check:
    CHECKS[check.__name__.removeprefix("_check_")] = check
    return check


def run(check: str, place: Place) -> None:
    """Run one check.

    Parameters
    ----------
    check : str
        A key of CHECKS.
    place : callable
        Names a new place, and returns what opens the storage there.
    """
    CHECKS[check](place())


def check_storage(place: Place) -> None:
    """Run every check; an AssertionError names what failed.

    Parameters
    ----------
    place : callable
        Names a new place, and returns what opens the storage there.
    """
    for check in CHECKS:
        try:
            run(check, place)
        except AssertionError as error:
            raise AssertionError(f"{check}: {error}") from error


# --- journals ---------------------------------------------------------------------------------------------------------


@_register
def _check_a_new_storage_is_empty(open: Open) -> None:
    with open(write=True) as storage:
        same((storage.journals(), storage.about("main"), storage.find_key("k")), ([], None, None))
        assert storage.source, "a storage says where it is"
        storage.begin(make_about())
        same((storage.find_request("main", "r"), storage.find_number("main", 1), storage.last("main")), (None,) * 3)
        same((list(storage.read("main")), list(storage.rounds("main")), list(storage.unfinished("main"))), ([],) * 3)
        same((list(storage.snapshots("main")), storage.count_unfinished("main")), ([], 0))


@_register
def _check_a_journal_begins_once(open: Open) -> None:
    with begin(open) as storage:
        other = make_about()._replace(genesis=b"other")
        assert not storage.begin(other), "a journal was begun twice"
        same(storage.about("main"), make_about())
    with open(write=True) as storage:
        assert not storage.begin(other), "a journal was begun twice"
        same(storage.about("main"), make_about())


@_register
def _check_journals_have_any_name_and_are_kept_apart(open: Open) -> None:
    names = ["main", "Main", "two words", "it's; DROP TABLE events", 'a "b"', "ähre", "zebra", "%s", "日本", "_", "1"]
    with begin(open, *names) as storage:
        storage.append([make_row(1, "decision", journal=name, request="same", text=repr(name)) for name in names])
    with open(write=False) as storage:
        same(storage.journals(), sorted(names))
        for name in names:
            same([row.text for row in storage.read(name)], [repr(name)])
            same([row.journal for row in storage.unfinished(name)], [name])
            found = storage.find_request(name, "same")
            assert found is not None, f"the request in journal {name!r} is not found"
            same(found.text, repr(name))


@_register
def _check_nothing_can_be_read_where_nothing_is(open: Open) -> None:
    refuses(JournalError, open, write=False)


# --- rows -------------------------------------------------------------------------------------------------------------


@_register
def _check_rows_come_back_as_they_were(open: Open) -> None:
    times = [0.0, -0.0, 1e-308, 5e-324, 1.7976931348623157e308, 1794873600.1234567, 0.1 + 0.2, -1.5]
    texts = [
        "".join(map(chr, range(1, 128))),
        "",
        "x" * 2**20,
        '{"a": "\\u0000 \\ud83d\\ude00"}',
        "{}",
        " ",
        "\n\r",
        "'",
    ]
    blocks = [bytes(range(256)), b"", b"\0" * 4096, b"\xff", None, b"'", b"\\", b"%s"]
    rows = [
        make_row(
            i + 1, "decision", at=at, text=text, block=block, key=f"k{i}", request=f"r{i} '\"%s", digest=bytes([i] * 32)
        )
        for i, (at, text, block) in enumerate(zip(times, texts, blocks, strict=True))
    ]
    with begin(open) as storage:
        storage.append(rows)
        same(list(storage.read("main")), rows)
    with open(write=False) as storage:
        found = list(storage.read("main"))
        same(found, rows)
        same([repr(row.at) for row in found], [repr(at) for at in times])
        same([type(value) for value in found[0]], [type(value) for value in rows[0]])


@_register
def _check_rows_are_appended_all_or_none(open: Open) -> None:
    with begin(open, "main", "other") as storage:
        storage.append([make_row(1, "decision", request="r")])
        batch = [make_row(1, journal="other"), make_row(2), make_row(3, "decision", request="r")]
        refuses(ConflictError, storage.append, batch)
        same((len(list(storage.read("main"))), list(storage.read("other"))), (1, []))
        storage.append([*batch[:2], make_row(3, "decision", request="another")])
        storage.append([])
        same([row.number for row in storage.read("main")], [1, 2, 3])


@_register
def _check_rows_are_numbered_without_gaps(open: Open) -> None:
    with begin(open, "main", "other") as storage:
        for numbers in ([2], [0], [-1], [1, 3], [2, 1], [1, 1], [None]):
            refuses(JournalError, storage.append, [make_row(one) for one in numbers])
        storage.append([make_row(1), make_row(2)])
        for number in (1, 2, 4, 0):
            refuses(JournalError, storage.append, [make_row(number)])
        storage.append([make_row(3), make_row(1, journal="other"), make_row(4), make_row(2, journal="other")])
        same([row.number for row in storage.read("main")], [1, 2, 3, 4])


@_register
def _check_rows_need_a_journal_that_has_begun(open: Open) -> None:
    with begin(open) as storage:
        refuses(JournalError, storage.append, [make_row(1), make_row(1, journal="other")])
        same(storage.last("main"), None)


@_register
def _check_rows_need_a_digest(open: Open) -> None:
    with begin(open) as storage:
        refuses(JournalError, storage.append, [make_row(1, digest=None)])


@_register
def _check_reading_starts_anywhere(open: Open) -> None:
    with begin(open) as storage:
        storage.append([make_row(number) for number in range(1, _LONG + 1)])
        same([row.number for row in storage.read("main")], list(range(1, _LONG + 1)))
        same([row.number for row in storage.read("main", after=_LONG - 2)], [_LONG - 1, _LONG])
        same([row.number for row in storage.read("main", after=3, limit=2)], [4, 5])
        same(len(list(storage.read("main", limit=_LONG - 1))), _LONG - 1)
        same((list(storage.read("main", limit=0)), list(storage.read("main", after=_LONG))), ([], []))
        last = storage.last("main")
        assert last is not None, "there is no last row"
        same(last.number, _LONG)


@_register
def _check_other_calls_may_come_while_rows_are_read(open: Open) -> None:
    with begin(open) as storage:
        rows = fill(storage)
        found = [
            (row, storage.find_number("main", row.number or 0), len(list(storage.read("main"))))
            for row in storage.read("main")
        ]
        same(found, [(row, row, len(rows)) for row in rows])
        reading = storage.read("main")
        next(reading)
        storage.append([make_row(9)])
        assert [row.number for row in reading][:7] == list(range(2, 9)), "a reader was disturbed by a writer"


# --- decisions and endings --------------------------------------------------------------------------------------------


@_register
def _check_a_decision_ends_once(open: Open) -> None:
    with begin(open) as storage:
        fill(storage)
        for ending in (make_row(9, "expired", decision=3, key="k3"), make_row(9, "outcome", decision=5)):
            refuses(ConflictError, storage.append, [ending])
        twice = [make_row(9, "outcome", decision=7, key="k7"), make_row(10, "expired", decision=7, key="k7")]
        refuses(ConflictError, storage.append, twice)
        storage.append(twice[:1])
        same(storage.count_unfinished("main"), 0)


@_register
def _check_endings_belong_to_decisions(open: Open) -> None:
    with begin(open, "main", "other") as storage:
        fill(storage)
        for decision in (1, 4, 99, 9, None):
            refuses(JournalError, storage.append, [make_row(9, "outcome", decision=decision)])
        refuses(JournalError, storage.append, [make_row(1, "outcome", journal="other", decision=2)])
        storage.append([make_row(9, "decision", key="k9"), make_row(10, "outcome", decision=9, key="k9")])


@_register
def _check_keys_and_requests_are_unique(open: Open) -> None:
    with begin(open, "main", "other") as storage:
        fill(storage)
        refuses(ConflictError, storage.append, [make_row(9, "decision", key="k2")])
        refuses(ConflictError, storage.append, [make_row(9, "decision", request="r2")])
        refuses(ConflictError, storage.append, [make_row(1, "decision", journal="other", key="k2")])
        storage.append([make_row(1, "decision", journal="other", key="other", request="r2"), make_row(9, "decision")])


@_register
def _check_decisions_are_found(open: Open) -> None:
    with begin(open) as storage:
        rows = fill(storage)
    with open(write=False) as storage:
        same([storage.find_key(key) for key in ("k2", "k3", "k7", "k5")], [rows[1], rows[2], rows[6], None])
        same([storage.find_request("main", one) for one in ("r2", "r7", "r3")], [rows[1], rows[6], None])
        same([storage.find_number("main", number) for number in (0, 1, 8, 9)], [None, rows[0], rows[7], None])
        endings = [storage.find_ending(rows[place]) for place in (1, 2, 4, 6)]
        same(endings, [rows[7], rows[3], rows[5], None])
        same([row.number for row in storage.unfinished("main")], [7])
        same(storage.count_unfinished("main"), 1)


@_register
def _check_rounds_are_decisions_with_their_endings(open: Open) -> None:
    with begin(open, "main", "other") as storage:
        rows = fill(storage)
        storage.append([make_row(1, "decision", journal="other")])
        pairs = [(rows[1], rows[7]), (rows[2], rows[3]), (rows[4], rows[5]), (rows[6], None)]
        same(list(storage.rounds("main")), pairs)
        same(list(storage.rounds("main", newest_first=True)), pairs[::-1])
        same(list(storage.rounds("main", after=2, limit=2)), pairs[1:3])
        same(list(storage.rounds("main", after=2, limit=2, newest_first=True)), pairs[:1:-1])
        same(list(storage.rounds("main", limit=0)), [])


@_register
def _check_rounds_are_read_whatever_their_number(open: Open) -> None:
    with begin(open) as storage:
        storage.append([make_row(number, "decision") for number in range(1, _LONG + 1)])
        for backwards in (False, True):
            found = [decision.number for decision, _ in storage.rounds("main", newest_first=backwards)]
            same(found, list(range(1, _LONG + 1))[:: -1 if backwards else 1])
        same(len(list(storage.rounds("main", limit=_LONG - 1, newest_first=True))), _LONG - 1)
        same([row.number for row in storage.unfinished("main")], list(range(1, _LONG + 1)))


# --- snapshots --------------------------------------------------------------------------------------------------------


@_register
def _check_the_newest_snapshots_are_kept(open: Open) -> None:
    with begin(open, "main", "other") as storage:
        storage.append([make_row(number) for number in range(1, 6)])
        made = [Snapshot("main", after, bytes([after]), bytes(32)) for after in (1, 3, 5)]
        storage.keep_snapshot(Snapshot("other", 0, b"other", None))
        for snapshot in made:
            storage.keep_snapshot(snapshot)
        same(list(storage.snapshots("main")), made[:0:-1])
        storage.keep_snapshot(made[2]._replace(state=b"again"))
        storage.keep_snapshot(made[1], keep=3)
        same([snapshot.state for snapshot in storage.snapshots("main")], [b"again", b"\3"])
    with open(write=False) as storage:
        same([snapshot.after for snapshot in storage.snapshots("main")], [5, 3])
        same(list(storage.snapshots("other")), [Snapshot("other", 0, b"other", None)])


# --- readers and writers ----------------------------------------------------------------------------------------------


@_register
def _check_what_is_written_is_there_for_the_next(open: Open) -> None:
    with begin(open) as storage:
        rows = fill(storage)
    for write in (True, False):
        with open(write=write) as storage:
            same((storage.journals(), list(storage.read("main"))), (["main"], rows))
            same(storage.find_damage(), None)


@_register
def _check_readers_see_one_moment(open: Open) -> None:
    with begin(open) as storage:
        rows = fill(storage)
        with open(write=False) as before:
            storage.append([make_row(9)])
            storage.begin(make_about("later"))
            with open(write=False) as after:
                same((list(before.read("main")), before.journals()), (rows, ["main"]))
                same((len(list(after.read("main"))), after.journals()), (9, ["later", "main"]))


@_register
def _check_readers_cannot_write(open: Open) -> None:
    with begin(open) as storage:
        rows = fill(storage)
    with open(write=False) as reader:
        refuses(JournalError, reader.append, [make_row(9)])
        refuses(JournalError, reader.begin, make_about("other"))
        refuses(JournalError, reader.keep_snapshot, Snapshot("main", 1, b"", None))
        same(list(reader.read("main")), rows)


@_register
def _check_a_journal_has_one_writer(open: Open) -> None:
    """A second writer either cannot open the storage, or cannot append to the journal."""

    def write() -> None:
        with open(write=True) as second:
            second.append([make_row(9)])

    with begin(open) as storage:
        fill(storage)
        refuses(JournalError, write)
    write()


@_register
def _check_a_closed_storage_is_closed(open: Open) -> None:
    storage = begin(open)
    storage.close()
    storage.close()
    refuses(JournalError, storage.append, [make_row(1)])
    refuses(JournalError, lambda: list(storage.read("main")))
