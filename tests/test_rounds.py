"""Past rounds, as summaries and reports read them from a journal."""

import numpy as np
import pytest

from preselect import InputError, NoWinner, Preselector, Void
from preselect.errors import ConflictError, JournalError
from preselect.store import Journal, Learner, Record, Round, count_rounds, read_counts, read_rounds, verify
from preselect.store.codec import peek_names
from preselect.store.storage import Row


@pytest.fixture
def path(tmp_path):
    """A journal with one round of each kind; the last one is unfinished, and outcomes come late and out of order."""
    place = tmp_path / "some.journal"
    with Learner.open(place, make=lambda: Preselector(["a", "b", "c"], seed=0)) as learner:
        entries = [learner.select(k=2, label=f"{number}", eligible=["a", "b"]) for number in range(5)]
        learner.learn(entries[1], ranking=["b", "a"])
        learner.learn(entries[0], winner="a", after=0.25, details={"seconds": 5.0})
        learner.learn(entries[2], outcome=NoWinner())
        learner.learn(entries[3], outcome=Void(), details={"reason": "lost"})
    return place


def test_rounds_have_their_decisions_and_outcomes(path):
    with Journal.read(path) as journal:
        rounds, (first, _) = read_rounds(journal), next(journal.rounds())
    assert [one.label for one in rounds] == ["0", "1", "2", "3", "4"]
    assert [one.kind for one in rounds] == ["winner", "ranking", "no-winner", "void", None]
    assert [one.names for one in rounds] == [("a",), ("b", "a"), (), (), ()]
    assert [one.winner for one in rounds] == ["a", "b", None, None, None]
    assert [one.after for one in rounds] == [0.25, None, None, None, None]
    assert [dict(one.details) for one in rounds] == [{"seconds": 5.0}, {}, {}, {"reason": "lost"}, {}]
    assert all(set(one.chosen) == {"a", "b"} for one in rounds)
    assert rounds[0].utilities == tuple(np.subtract(first.event.scores, first.event.widths))
    assert all(one.decided <= (one.ended or one.decided) for one in rounds)
    assert rounds[4].ended is None


def test_plays_wins_and_outcomes_are_counted_in_one_place(path):
    with Journal.read(path) as journal:
        counts = count_rounds(read_rounds(journal))
    assert counts.plays == {"a": 5, "b": 5}
    assert counts.wins == {"a": 1, "b": 1}
    assert counts.outcomes == {"winner": 1, "ranking": 1, "no-winner": 1, "void": 1}
    assert (counts.unfinished, counts.rounds) == (1, 5)


def test_rounds_after_an_event_leave_out_earlier_decisions_and_their_late_outcomes(path):
    with Journal.read(path) as journal:
        second = read_rounds(journal)[1].number
        assert [one.label for one in read_rounds(journal, after=second)] == ["2", "3", "4"]
        assert read_rounds(journal, after=journal.last) == []


def test_a_decision_that_is_not_complete_is_damaged(path):
    with Journal.read(path) as journal:
        row = next(journal.rounds())[0].row
    for damaged in (row._replace(block=row.block + bytes(8)), row._replace(text=row.text.replace('"k":2', '"k":"2"'))):
        with pytest.raises(JournalError, match="event 1 is damaged: its body does not fit an event of kind 'decision'"):
            Round.of(Record(damaged))


def test_arms_that_competed_besides_are_recorded_counted_and_replayed(tmp_path):
    place = tmp_path / "some.journal"
    with Learner.open(place, make=lambda: Preselector(["a", "b", "c", "d"], nobody_may_win=True, seed=0)) as learner:
        entry = learner.select(k=2, eligible=["a", "b"])
        for also, message in ((["a"], "also has 'a', already chosen"), (["z"], "there is no arm 'z'")):
            with pytest.raises(InputError, match=message):
                learner.learn(entry, winner="a", also=also)
        assert learner.learn(entry, winner="c", after=0.5, also=iter(["d", "c"]))
        assert not learner.learn(entry, winner="c", after=0.5, also=["d", "c"])
        with pytest.raises(ConflictError):
            learner.learn(entry, winner="c", after=0.5, also=["c"])
        learner.learn(learner.select(k=2, eligible=["a", "b"]), winner=None, after=1.0, also=["d"])
        learner.learn(learner.select(k=2, eligible=["a", "b"]), ranking=["d", ["a", "b"]], also=["d"])
        learner.learn(learner.select(k=2, eligible=["a", "b"]), winner="b")
        learnt = learner.preselector.to_bytes()
    direct = Preselector(["a", "b", "c", "d"], nobody_may_win=True, seed=0)
    for told in (
        {"winner": "c", "after": 0.5, "also": ["d", "c"]},
        {"winner": None, "after": 1.0, "also": ["d"]},
        {"ranking": ["d", ["a", "b"]], "also": ["d"]},
        {"winner": "b"},
    ):
        direct.learn(direct.select(k=2, eligible=["a", "b"]), **told)
    assert direct.to_bytes() == learnt
    with Learner.open(place, make=lambda: Preselector(["a"]), compare=False) as again:
        assert again.preselector.to_bytes() == learnt
    assert verify(place).equal
    with Journal.read(place) as journal:
        rounds, counts = read_rounds(journal), read_counts(journal)
        texts = [record.row.text for record in journal.records() if record.kind == "outcome"]
    assert [one.also for one in rounds] == [("d", "c"), ("d",), ("d",), ()]
    assert counts == count_rounds(rounds)
    assert counts.plays == {"a": 4, "b": 4, "c": 1, "d": 3}
    assert counts.wins == {"c": 1, "d": 1, "b": 1}
    assert texts[3] == '{"v":2,"kind":"winner","names":["b"]}'


def test_a_journal_with_arms_besides_that_are_not_names_is_damaged(path):
    with Journal.read(path) as journal:
        row = next(journal.rounds())[1].row
    for also in ('["a","a"]', "[1]", "3"):
        damaged = Record(row._replace(text=row.text.replace('"after"', f'"also":{also},"after"')))
        with pytest.raises(JournalError, match="does not fit an event of kind 'outcome'"):
            _ = damaged.event


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"v":2,"chosen":["a","b]"],"k":2}', ("decision", ("a", "b]"), ())),
        ('{"v":2,"kind":"winner","names":["a\\"b"],"after":0.5}', ("winner", ('a"b',), ())),
        ('{"v":2,"kind":"ranking","names":[["a","b"],"c"]}', ("ranking", (("a", "b"), "c"), ())),
        ('{"v":2,"kind":"winner","names":["a"],"also":["c"]}', ("winner", ("a",), ("c",))),
        ('{"v":2,"kind":"void","names":[]}', ("void", (), ())),
        ('{"v":2,"chosen":["a",],"k":2}', None),
        ('{"v":2,"chosen":["a""b"],"k":2}', None),
        ('{"v":2,"chosen":["a","b"', None),
        ('{"chosen":["a"]}', None),
    ],
)
def test_what_is_counted_is_read_from_the_beginning_of_a_row(text, found):
    row = Row("main", 1, 0.0, "decision", None, None, None, text, None, b"")
    assert peek_names(row) == found
