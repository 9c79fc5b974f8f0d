"""The client of a race: its death, interrupts and cancellation, what it is shown, bad arguments, many races."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import Fork, find_inside, find_marked, find_zombies, list_descriptors, wait_until, wait_until_all_died
from racers import LONG, answering, shell, sleeper, statuses

from preselect.errors import InputError
from preselect.race import supervision
from preselect.race.event_loop import run_blocking
from preselect.race.supervision import Limits, Racer, Status, Supervision

pytestmark = pytest.mark.usefixtures("token")


def test_the_supervisor_imports_nothing_that_takes_long():
    code = "import sys; sys.path.append(sys.argv[1]); import supervisor.main; print(*sys.modules)"
    place = str(Path(supervision.__file__).parent)
    found = subprocess.check_output([sys.executable, "-I", "-S", "-E", "-c", code, place], text=True).split()
    assert "supervisor.main" in found
    assert not {"preselect", "numpy", "json", "re", "enum", "typing", "subprocess", "collections"} & set(found)


# the death of the client


def run_client(folder, level, watch=None):
    """Race for long in a folder, with a racer that has descendants in two sessions."""
    os.chdir(folder)
    family = shell("family", "sleep 1000 & setsid sleep 1000 & touch running; wait")
    print("racing", flush=True)
    Supervision([family, sleeper()], Limits(1000), folder=Path("race"), level=level, watch=watch).run()


def test_no_process_survives_a_killed_client(tmp_path, level, token):
    with Fork(run_client, tmp_path, level) as client:
        wait_until((tmp_path / "running").exists)
        assert len(find_marked(token)) >= 5
        client.kill()
    wait_until_all_died(token, tmp_path)


def test_a_child_of_the_client_does_not_keep_a_race_alive(tmp_path, level, token):
    def fork(standings):
        if standings[0].seconds > 0.2 and not Path("forked").exists():
            child = os.fork()
            if not child:
                time.sleep(1000)
            Path("child").write_text(str(child))
            Path("child").rename("forked")

    with Fork(run_client, tmp_path, level, watch=fork) as client:
        wait_until((tmp_path / "forked").exists)
        client.kill()
    child = int((tmp_path / "forked").read_text())
    try:
        wait_until(lambda: find_inside(tmp_path) == [child] and not find_marked(token))
    finally:
        os.kill(child, signal.SIGKILL)
    wait_until_all_died(token, tmp_path)


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.04, 0.06])
def test_no_process_survives_a_client_killed_while_it_starts(tmp_path, level, token, moment):
    with Fork(run_client, tmp_path, level) as client:
        client.output.readline()
        time.sleep(moment)
        client.kill()
    wait_until_all_died(token, tmp_path)


def test_an_interrupted_client_ends_the_race_first(tmp_path, level, token):
    with Fork(run_client, tmp_path, level) as client:
        wait_until((tmp_path / "running").exists)
        client.send_signal(signal.SIGINT)
        errors = client.errors.read()
        assert client.wait() == 1
        assert find_marked(token) == []
    assert b"KeyboardInterrupt" in errors


def test_an_interrupt_is_raised_again_when_every_process_is_dead(supervise, level, token):
    def interrupt(standings):
        if standings[0].seconds > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        supervise(shell("family", "sleep 1000 & sleep 1000"), sleeper(), watch=interrupt, level=level)
    assert find_marked(token) == []


def test_the_standings_are_shown(supervise):
    seen = []
    supervise(shell("early", "exit 1"), answering(seconds=0.8), watch=seen.append)
    assert [standing.name for standing in seen[0]] == ["early", "good"]
    assert [standing.status for standing in seen[-1]] == [Status.NO_ANSWER, Status.WON]
    running = [rows[1].seconds for rows in seen if rows[1].status is None]
    assert running == sorted(running)
    assert len(running) >= 3


@pytest.mark.parametrize(
    ("message", "racers", "options"),
    [
        ("there are no racers; give at least one", [], {}),
        ("two racers have the same name: good, good", [answering(), answering()], {}),
        ("seconds is 0; use a number above 0", [answering()], {"limits": Limits(0)}),
        ("memory is -1; use a number above 0", [answering()], {"limits": Limits(1, memory=-1)}),
        ("output is 0; use a number above 0", [answering()], {"limits": Limits(1, output=0)}),
        ("unknown level 'best'; use 'pid namespace' or 'subreaper', or leave it out", [answering()], {"level": "best"}),
        ("the name of a racer is 3; use a string", [Racer(3, ("a",))], {}),
        ("the command of it is (); give the program and", [Racer("it", ())], {}),
        ("the command of it is 'sleep 1'; give the program and", [Racer("it", "sleep 1")], {}),
        ("the command of it is ('a\\x00b',); give the program", [Racer("it", ("a\0b",))], {}),
        ("the verifier of it is (); give the program and", [Racer("it", ("a",), verifier=())], {}),
        ("the pattern of it is not a regular expression: '('", [Racer("it", ("a",), pattern="(")], {}),
        ("the exit codes of it are (256,); use integers from 0 to 255", [Racer("it", ("a",), exit_codes=(256,))], {}),
        ("the environment of it has 'A=B': 'x', which cannot be set", [Racer("it", ("a",), {"A=B": "x"})], {}),
    ],
)
def test_bad_arguments_are_refused(tmp_path, message, racers, options):
    with pytest.raises(InputError, match=re.escape(message)):
        Supervision(racers, **{"limits": Limits(1), "folder": tmp_path, **options})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write the race's files to .*/file: File exists"):
        Supervision([answering()], Limits(1), folder=tmp_path / "file").run()


def test_racers_and_limits_compare_and_print_by_value():
    assert Racer("a", ("b",)) == Racer("a", ("b",)) != Racer("a", ("c",))
    assert Limits(1) == Limits(1.0) != Limits(2)
    assert repr(Limits(1, output=2)) == "Limits(seconds=1, memory=None, output=2)"


# the asynchronous form


def run_async(tmp_path, *racers, **options):
    return Supervision(racers, Limits(LONG), folder=tmp_path / "race", **options).run_async()


def test_the_asynchronous_form_does_the_same_beside_others(tmp_path, level):
    ticks, threads = [], []

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    def check(racer, *_):
        threads.append(threading.current_thread())
        time.sleep(0.3)
        return "wrong" if racer.name == "fast" else None

    async def main():
        ticking = asyncio.create_task(tick())
        result = await run_async(
            tmp_path, answering("fast"), answering("good", 0.2), sleeper(), check=check, level=level
        )
        ticking.cancel()
        return result

    result = asyncio.run(main())
    assert statuses(result) == {"fast": "wrong answer", "good": "won", "sleeper": "killed"}
    assert threading.main_thread() not in threads
    assert len(ticks) > 10


def test_several_races_at_once(tmp_path):
    async def main():
        return await asyncio.gather(*(run_async(tmp_path / str(place), answering(), sleeper()) for place in range(4)))

    assert [result.winner for result in asyncio.run(main())] == ["good"] * 4


@pytest.mark.parametrize("moment", [0.0, 0.03, 0.5])
def test_a_cancelled_race_leaves_no_process(tmp_path, level, token, moment):
    async def main():
        task = asyncio.create_task(run_async(tmp_path, shell("a", "sleep 1000 & sleep 1000"), sleeper(), level=level))
        await asyncio.sleep(moment)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert find_marked(token) == []

    asyncio.run(main())


def test_the_blocking_form_works_in_a_thread_and_below_a_running_event_loop(supervise):
    async def block():
        return supervise(answering(), sleeper())

    assert asyncio.run(block()).winner == "good"
    assert asyncio.run(asyncio.to_thread(supervise, answering(), sleeper())).winner == "good"


def test_a_blocking_race_does_not_await():
    with pytest.raises(RuntimeError, match="a blocking race awaited something that needs an event loop"):
        run_blocking(asyncio.sleep(0))


# many


def test_many_races_in_a_row_leak_nothing(supervise, level):
    before = list_descriptors()
    for seed in range(50):
        assert supervise(
            Racer("a", ("false",), exit_codes=(1,)), Racer("b", ("false",), exit_codes=(1,)), seed=seed, level=level
        ).winner
    assert list_descriptors() == before
    assert find_zombies() == []
