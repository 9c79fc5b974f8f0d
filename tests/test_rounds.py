"""Past rounds, as summaries and reports read them from a journal."""

from dataclasses import replace

import numpy as np
import pytest

from preselect import NoWinner, Preselector, Void
from preselect.errors import JournalError
from preselect.store import Journal, Learner, Round, count_rounds, read_rounds


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
    assert rounds[0].utilities == tuple(np.subtract(first.body["scores"], first.body["widths"]))
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
        event = next(journal.rounds())[0]
    damaged = replace(event, text=event.text.replace('"widths": [', '"widths": [1.0, '))
    with pytest.raises(JournalError, match="is damaged: it is not a complete decision"):
        Round.of(damaged)
