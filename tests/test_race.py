"""Races that learn: what is chosen, learnt and kept, when a race is void, blocking and asynchronous forms."""

import asyncio
import os

import pytest

from preselect import InputError, PreselectError
from preselect.race import RaceSession, race, race_async, read_pool
from preselect.race.summary import summarise_races
from preselect.store import Journal, read_rounds, verify

FORMULA = "p cnf 2 2\n1 2 0\n-1 2 0\n"
RIGHT = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"
WRONG = "printf 's SATISFIABLE\\nv 1 -2 0\\n'; exit 10"


@pytest.fixture
def formula(tmp_path):
    path = tmp_path / "tiny.cnf"
    path.write_text(FORMULA)
    return path


def outcomes(path):
    with Journal.read(read_pool(path).journal) as journal:
        told = [record.event for record in journal.records() if record.kind == "outcome"]
    return [(event.outcome, list(event.names)) for event in told]


def test_the_first_right_answer_wins_and_is_learnt(pool, formula):
    path = pool({"quick": RIGHT, "slow": f"sleep 30; {RIGHT}"})
    result = race(path, formula)
    assert (result.winner, result.answer, result.void, result.exit_code) == ("quick", "SATISFIABLE", None, 10)
    with Journal.read(read_pool(path).journal) as journal:
        (outcome,) = (record.event for record in journal.records() if record.kind == "outcome")
    assert outcome.after == result.seconds / outcome.details["limit"] > 0.0
    assert result.output == b"s SATISFIABLE\nv 1 2 0\n"
    assert result.seconds < 20
    assert {finish.name: finish.status for finish in result.finishes} == {"quick": "won", "slow": "killed"}
    assert outcomes(path) == [("winner", ["quick"])]


def test_racing_learns_which_arm_to_race(pool, formula):
    """Of five arms only one ever answers: races of one find it, because failures teach too, and keep to it."""
    able = "arm3"
    path = pool({f"arm{i}": RIGHT if f"arm{i}" == able else "exit 1" for i in range(5)}, head="k = 1")
    with RaceSession(path) as session:
        chosen = [session.run(formula).chosen[0] for _ in range(30)]
    assert chosen[-10:] == [able] * 10
    assert verify(read_pool(path).journal).equal


def test_a_wrong_answer_does_not_end_the_race(pool, formula):
    path = pool({"liar": WRONG, "honest": f"sleep 0.3; {RIGHT}"})
    result = race(path, formula)
    assert result.winner == "honest"
    assert {finish.name: finish.status for finish in result.finishes}["liar"] == "wrong answer"


def test_no_answer_in_time_is_no_winner(pool, formula):
    path = pool({"one": "sleep 30", "other": "exit 3"}, seconds=0.5)
    result = race(path, formula)
    assert (result.winner, result.answer, result.output, result.void) == (None, None, b"", None)
    assert outcomes(path) == [("no-winner", [])]


def test_a_verifier_that_is_too_slow_makes_the_race_void(pool, formula):
    slow = 'success = { verifier = ["/bin/sh", "-c", "sleep 30", "{output}"] }'
    path = pool({"one": RIGHT}, seconds=1, one=slow)
    result = race(path, formula)
    assert (result.winner, result.finishes[0].status) == (None, "infrastructure error")
    assert "not verified in time" in result.void
    assert outcomes(path) == [("void", [])]


def test_an_answer_that_was_cut_off_does_not_win(pool, formula):
    path = pool({"long": f"trap '' XFSZ; head -c 3000000 /dev/zero 2>/dev/null; {RIGHT}"}, features='from = "none"')
    path.write_text(path.read_text().replace("[limits]", "[limits]\noutput = 1"))
    result = race(path, formula)
    assert result.winner is None
    assert "may be cut off" in result.finishes[0].detail


def test_two_sessions_of_one_process_on_one_journal_are_refused_in_words_that_help(pool, formula):
    path = pool({"one": RIGHT})
    with RaceSession(path) as session:
        session.run(formula)
        with pytest.raises(PreselectError, match=r"pool\.journal is already open in this process; close it"):
            race(path, formula)


def test_what_a_former_process_left_unfinished_is_void(pool, formula):
    path = pool({"one": RIGHT, "other": RIGHT})
    with RaceSession(path) as session:
        session.run(formula)
        session.learner.select(dict.fromkeys(session.learner.preselector.context), k=2)
    race(path, formula)
    assert [kind for kind, _ in outcomes(path)] == ["winner", "void", "winner"]


def test_arms_join_and_leave_with_the_pool(pool, formula):
    arms = {"a": RIGHT, "b": RIGHT}
    race(pool(arms), formula)
    result = race(pool({"c": RIGHT, "d": RIGHT}), formula)
    assert set(result.chosen) == {"c", "d"}
    path = pool({**arms, "c": RIGHT}, head="k = 3")
    assert set(race(path, formula).chosen) == {"a", "b", "c"}
    assert verify(read_pool(path).journal).equal


@pytest.mark.parametrize(
    ("head", "more", "features", "message"),
    [
        ('policy = "cppl"', "", 'from = "sat"', "policy is 'cppl', but .* was started with 'nearby.*; restore it"),
        ("seed = 3", "", 'from = "sat"', "seed is 3, but .* was started with 0; restore it"),
        (
            "",
            "features = {x = 2}",
            'from = "sat"',
            "the features of arm a are {'x': 2.0}, but .* has {'x': 1.0}; restore",
        ),
        ("", "", 'from = "none"', "the features are \\[\\], but .* was started with .*nvars.*; restore"),
    ],
)
def test_a_journal_that_does_not_fit_the_pool_is_not_touched(pool, formula, head, more, features, message):
    race(pool({"a": RIGHT, "b": RIGHT}, a="features = {x = 1}"), formula)
    path = pool({"a": RIGHT, "b": RIGHT}, head=head, a=more or "features = {x = 1}", features=features)
    before = outcomes(path)
    with pytest.raises(PreselectError, match=message):
        race(path, formula)
    assert outcomes(path) == before


def test_features_that_cannot_be_had_are_missing_if_their_names_are_known(pool, formula, tmp_path):
    command = tmp_path / "features"
    command.write_text("#!/bin/sh\necho '{\"size\": 3}'\n")
    command.chmod(0o755)
    path = pool({"a": RIGHT, "b": RIGHT}, features='from = "command"\ncommand = ["./features", "{instance}"]')
    with RaceSession(path) as session:
        assert session.run(formula).warning is None
        command.write_text("#!/bin/sh\necho broken; exit 1\n")
        result = session.run(formula)
    assert result.winner is not None
    assert "raced without features" in result.warning
    assert race(path, formula).warning is not None  # the journal knows their names
    with pytest.raises(InputError, match="features"):  # their names are unknown before the first race
        race(
            pool(
                {"a": RIGHT},
                head='journal = "new.journal"',
                features=path.read_text().split("[features]\n")[1].split("\n[arms")[0],
            ),
            formula,
        )


def test_an_interrupted_race_is_void_and_leaves_no_process(pool, formula):
    path = pool({"one": "sleep 60", "other": "sleep 60"}, seconds=100)

    def interrupt(standings):
        if standings and standings[0].seconds > 0.1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), RaceSession(path) as session:
        session.run(formula, watch=interrupt)
    assert outcomes(path) == [("void", [])]


def test_the_asynchronous_form_does_the_same_and_does_not_block(pool, formula):
    path = pool({"one": f"sleep 0.5; {RIGHT}", "other": "sleep 30"})

    async def both():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.ensure_future(tick())
        result = await race_async(path, formula)
        ticking.cancel()
        return result, ticks

    result, ticks = asyncio.run(both())
    assert result.winner == "one"
    assert ticks > 5


def test_a_cancelled_race_is_void(pool, formula):
    path = pool({"one": "sleep 60"}, seconds=100)

    async def cancelled():
        await asyncio.wait_for(race_async(path, formula), 1.0)

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    assert outcomes(path) == [("void", [])]


def test_an_instance_that_is_not_there_is_an_error_before_anything_is_written(pool, tmp_path):
    path = pool({"one": RIGHT})
    with pytest.raises(InputError, match=r"cannot race on '.*gone\.cnf': there is no such file"):
        race(path, tmp_path / "gone.cnf")
    assert not read_pool(path).journal.exists()


def test_outputs_of_races_are_cleared_away(pool, formula, tmp_path):
    race(pool({"one": RIGHT}), formula)
    assert not [name for name in os.listdir(tmp_path) if "running" in name]


def test_the_summary_counts_only_what_is_known(pool, formula):
    """An arm that was killed may have needed a moment more or for ever: nothing is saved for certain. One that failed
    would have used up its time."""
    path = pool({"quick": f"sleep 0.2; {RIGHT}", "killed": "sleep 60", "failed": "exit 1"}, head="k = 3", seconds=50)
    with RaceSession(path) as session:
        result = [session.run(formula), session.run(formula)]
    with Journal.read(read_pool(path).journal) as journal:
        summary = summarise_races(read_rounds(journal))
    seconds = sum(one.seconds for one in result)
    assert (summary.counts.rounds, summary.solved, summary.void, summary.seconds) == (2, 2, 0, seconds)
    assert summary.feature_seconds == sum(one.feature_seconds for one in result)
    assert (summary.counts.plays, summary.counts.wins) == ({"quick": 2, "killed": 2, "failed": 2}, {"quick": 2})
    assert summary.single_arms["killed"].saved_seconds == 0
    assert summary.single_arms["quick"].saved_seconds <= 0
    assert summary.single_arms["failed"].saved_seconds == pytest.approx(100 - seconds)
