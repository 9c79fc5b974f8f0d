"""Several races at once: one journal, every outcome learnt, no process left, however it ends."""

import asyncio
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from commands import preselect
from processes import Fork, find_marked, wait_until, wait_until_all_died

from preselect.cli.lanes import work_in_lanes
from preselect.cli.main import preselect as command
from preselect.cli.standings import LiveStandings
from preselect.errors import InputError, StoppedError
from preselect.race import RaceSession, Standing, read_pool
from preselect.store import Journal, read_rounds, verify

ANSWER = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"
FAMILY = f"setsid sleep 60 & sleep 0.0$(( $$ % 10 )); {ANSWER}"

pytestmark = pytest.mark.usefixtures("token")


@pytest.fixture
def formulas(tmp_path):
    folder = tmp_path / "cnf"
    folder.mkdir()
    for name in range(8):
        (folder / f"{name}.cnf").write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    return folder


def read_journal(path):
    with Journal.read(read_pool(path).journal) as journal:
        return read_rounds(journal)


def count_open(rounds):
    """Count, for each decision, the races that were running when it had been made, itself included."""
    return [sum(one.decided <= this.decided < one.ended for one in rounds) for this in rounds]


def count_beside(rounds):
    """Count, for each race, those that ran beside it for a while, itself included."""
    return [sum(one.decided < this.ended and this.decided < one.ended for one in rounds) for this in rounds]


def test_four_at_once_race_side_by_side(pool, formulas, tmp_path):
    path = pool({"one": f"sleep 0.6; {ANSWER}", "other": "sleep 60"})
    done = preselect("race", path, formulas, "--at-once", 4, "--output", tmp_path / "out", "--format", "json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(line["decision"] for line in lines) == sorted(one.number for one in read_journal(path))
    assert {line["instance"] for line in lines} == {str(file) for file in formulas.iterdir()}
    assert all((tmp_path / "out" / f"{file.name}.out").read_text().startswith("s SAT") for file in formulas.iterdir())
    assert "8 of 8 races solved" in done.stderr
    assert max(count_open(read_journal(path))) == 4
    assert min(count_beside(read_journal(path))) >= 4
    assert verify(read_pool(path).journal).equal
    assert not [name for name in os.listdir(tmp_path) if "running" in name]


def test_without_the_option_races_follow_one_another(pool, formulas):
    path = pool({"one": ANSWER})
    preselect("race", path, formulas)
    assert set(count_open(read_journal(path))) == {1}


def test_answers_are_printed_whole_one_after_the_other(pool, formulas):
    path = pool({"one": f"sleep 0.1; {ANSWER}"})
    printed = preselect("race", path, formulas, "--at-once", 4).stdout.splitlines()
    assert printed[1::3] == ["s SATISFIABLE"] * 8
    assert printed[2::3] == ["v 1 2 0"] * 8
    assert {line.rpartition("/")[2] for line in printed[::3]} == set(os.listdir(formulas))


def test_an_instance_that_cannot_be_raced_stops_no_other(pool, formulas):
    (formulas / "3.cnf").write_text("p cnf 2 1\n1 x 0\n")
    done = preselect("race", pool({"one": ANSWER}), formulas, "--at-once", 4, expect=1)
    assert "3.cnf, line 2" in done.stderr
    assert "7 of 7 races solved" in done.stderr
    assert "1 instance could not be raced; see above" in done.stderr


def test_what_stops_all_is_said_and_leaves_nobody(pool, formulas, tmp_path):
    path = pool({"one": f"sleep 0.2; {ANSWER}", "gone": ""}, head="k = 2")
    path.write_text(path.read_text().replace('["/bin/sh", "-c", "", "{instance}"]', '["no-such-solver", "{instance}"]'))
    done = preselect("race", path, formulas, "--at-once", 2, expect=1)
    assert "k=2, but only 1 arms" in done.stderr
    assert all(one.kind == "void" for one in read_journal(path))
    assert not [name for name in os.listdir(tmp_path) if "running" in name]


def test_ctrl_c_ends_all_races_and_loses_nothing(pool, formulas, tmp_path, token):
    path = pool({"one": f"test -e '{tmp_path}/now' && exec sleep 100; {ANSWER}"})
    preselect("race", path, formulas)
    (tmp_path / "now").touch()
    with Fork(run_command, tmp_path, "race", str(path), str(formulas), "--at-once", "3") as process:
        wait_until(lambda: sum(one.kind is None for one in read_journal(path)) == 3)
        process.send_signal(signal.SIGINT)
        said = process.errors.read()
        assert process.wait() == 130
    wait_until_all_died(token, tmp_path)
    assert b"run the command again with the remaining instances" in said
    assert Counter(one.kind for one in read_journal(path)) == {"winner": 8, "void": 3}


def run_command(folder, *arguments):
    os.chdir(folder)
    command(arguments)


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.soak)])
def test_a_killed_command_loses_no_outcome_and_leaves_no_process(pool, formulas, tmp_path, token, kills):
    path = pool({f"a{number}": FAMILY for number in range(4)}, head="k = 2")
    preselect("race", path, formulas)  # compiles
    draw, acknowledged = random.Random(kills), []
    arguments = ["race", str(path), "--at-once", "4", "--format", "json", *[str(formulas / "0.cnf")] * 500]
    for _ in range(kills):
        with Fork(run_command, tmp_path, *arguments) as process:
            first = process.output.readline() if draw.random() < 0.8 else b""
            time.sleep(draw.uniform(0.0, 0.5))
            process.kill()
            lines = (first + process.output.read()).splitlines()
        acknowledged += [json.loads(line) for line in lines if line.endswith(b"}")]
        wait_until_all_died(token, tmp_path)
    rounds = {one.number: one for one in read_journal(path)}
    assert len(acknowledged) >= kills
    assert all(rounds[one["decision"]].names == (one["winner"],) for one in acknowledged)
    preselect("race", path, formulas)
    assert Counter(one.kind for one in read_journal(path))[None] == 0
    again = verify(read_pool(path).journal)
    assert again.equal, again.difference


# the library


def test_a_session_races_on_several_instances_of_one_event_loop(pool, formulas):
    path = pool({"one": f"sleep 0.4; {ANSWER}", "other": "sleep 60"})

    async def race_on_all():
        with RaceSession(path) as session:
            return await asyncio.gather(*(session.run_async(file) for file in formulas.iterdir()))

    assert {result.winner for result in asyncio.run(race_on_all())} == {"one"}
    assert max(count_open(read_journal(path))) == 8


def test_a_session_that_is_stopped_ends_its_races(pool, formulas):
    path = pool({"one": "sleep 60", "other": "sleep 60"}, seconds=100)
    errors = []

    def race(session, file):
        with pytest.raises(StoppedError, match="the race was stopped") as error:
            session.run(file)
        errors.append(error)

    with RaceSession(path) as session:
        threads = [threading.Thread(target=race, args=(session, file)) for file in sorted(formulas.iterdir())[:3]]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(session._running) == 3)
        session.stop()
        for thread in threads:
            thread.join()
        with pytest.raises(StoppedError):
            session.run(formulas / "7.cnf")
    assert len(errors) == 3
    assert [one.kind for one in read_journal(path)] == ["void"] * 3


@pytest.mark.parametrize("asked", ["value", "verifier"])
def test_a_session_that_is_stopped_ends_what_is_asked_about_answers(pool, formulas, tmp_path, token, asked):
    asking = tmp_path / "asking"
    hang = f'{asked} = ["sh", "-c", "touch {asking}; setsid sleep 900 & sleep 900", "{{output}}"]\n'
    path = pool({"one": "echo cost 1", "other": "echo cost 2"}, seconds=900, features='from = "none"')
    success = hang if asked == "value" else f"value = 'cost (.*)'\n{hang}"
    path.write_text(f'{path.read_text()}[success]\nbetter = "smaller"\n{success}')
    with RaceSession(path) as session, ThreadPoolExecutor(1) as thread:
        race = thread.submit(session.run, formulas / "0.cnf")
        wait_until(asking.exists)
        session.stop()
        with pytest.raises(StoppedError, match="the race was stopped"):
            race.result(timeout=60)
    assert find_marked(token) == []
    assert [one.kind for one in read_journal(path)] == ["void"]


# lanes and the live table


@pytest.mark.parametrize("lanes", [1, 3])
def test_lanes_take_items_as_they_are_free_and_raise_the_first_error(lanes):
    done, stopped = [], []
    work_in_lanes(range(20), done.append, lanes, lambda: stopped.append(True))
    assert sorted(done) == list(range(20))

    def fail(item):
        done.append(item)
        if item == 5:
            raise InputError("five")

    done.clear()
    with pytest.raises(InputError, match="five"):
        work_in_lanes(range(1000), fail, lanes, lambda: stopped.append(True))
    assert len(done) < 1000
    assert len(stopped) == (lanes > 1)


def test_an_error_ends_the_wait_for_a_next_item():
    never = threading.Event()

    def items():
        yield 1
        never.wait()

    def fail(_):
        raise InputError("at once")

    with pytest.raises(InputError, match="at once"):
        work_in_lanes(items(), fail, 2, lambda: None)
    never.set()


def test_the_table_shows_all_races(monkeypatch, tmp_path):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with LiveStandings() as live:
        first, second = live.watch(tmp_path / "a.cnf"), live.watch(tmp_path / "b.cnf")
        with first as watch_first, second as watch_second:
            watch_first([Standing("one", None, 1.0, answered=False), Standing("two", "crashed", 0.5, answered=False)])
            watch_second([Standing("one", None, 2.0, answered=True)])
            table = live._tabulate()
            assert [list(column.cells) for column in table.columns][2:] == [
                ["running", "crashed", "being verified"],
                ["1.0", "0.5", "2.0"],
            ]
            assert [str(cell).rpartition("/")[2] for cell in table.columns[0].cells] == ["a.cnf", "", "b.cnf"]
            with live.printing():
                assert not live._live.is_started
        assert not live._races
