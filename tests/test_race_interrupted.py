"""Ctrl-C at chosen moments, taken by whichever thread: the command ends soon, nothing is lost and nobody is left."""

import os
import signal
import threading
import time

import pytest
from commands import preselect
from processes import Fork, wait_until_all_died

from preselect.cli import lanes
from preselect.cli.main import preselect as command
from preselect.race import RaceSession, after_races, read_pool, supervisor_process
from preselect.store import Journal, Learner, read_rounds, verify

ANSWER = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"
SOON = 10.0  # half of a race's time limit

# where the signal arrives, in the thread that is there, and whether the racers then sleep or answer
MOMENTS = {
    "the first file is taken": (lanes._Lanes, "_feed", "sleep"),
    "arms are chosen": (RaceSession, "_choose", "sleep"),
    "the supervisor starts": (supervisor_process.SupervisorProcess, "start", "sleep"),
    "racers run": (supervisor_process.SupervisorProcess, "receive", "sleep"),
    "the race has ended": (supervisor_process.SupervisorProcess, "close", "answer"),
    "an outcome is learnt": (Learner, "learn", "answer"),
}


@pytest.fixture
def interrupts():
    """Let Ctrl-C interrupt this process, however it was started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_this_thread():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def run_interrupted(folder, where, name, arguments):
    """Run the command, with Ctrl-C when a function is called for the first time."""
    os.chdir(folder)
    function, calls = getattr(where, name), []

    def call(*given, **options):
        calls.append(name)
        if len(calls) == 1:
            time.sleep(0.2)  # so that the main thread, if this is another, waits
            interrupt_this_thread()
        return function(*given, **options)

    setattr(where, name, call)
    command(arguments)


# moments and numbers of lanes; one race after the other has no lanes, and takes files in the main thread
CASES = [*((moment, 3) for moment in MOMENTS), *((moment, 1) for moment in list(MOMENTS)[1:])]


@pytest.mark.parametrize(("moment", "at_once"), CASES)
def test_ctrl_c_ends_the_command_soon_and_loses_nothing(pool, tmp_path, token, moment, at_once):
    where, name, does = MOMENTS[moment]
    path = pool({"one": f"test -e '{tmp_path}/now' && exec sleep 100; {ANSWER}"})
    files = [tmp_path / f"{number}.cnf" for number in range(4)]
    for file in files:
        file.write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    preselect("race", path, *files)
    if does == "sleep":
        (tmp_path / "now").touch()
    arguments = ["race", str(path), *map(str, files), "--at-once", str(at_once)]
    began = time.monotonic()
    with Fork(run_interrupted, tmp_path, where, name, arguments) as process:
        said = process.errors.read().decode()
        assert process.wait() == 130, said
    assert time.monotonic() - began < SOON
    wait_until_all_died(token, tmp_path)
    assert "run the command again with the remaining instances" in said
    with Journal.read(read_pool(path).journal) as journal:
        kinds = [one.kind for one in read_rounds(journal)]
    assert kinds[:4] == ["winner"] * 4
    assert set(kinds[4:]) <= ({"void", None} if does == "sleep" else {"winner", "void", None})
    (tmp_path / "now").unlink(missing_ok=True)
    preselect("race", path, *files)
    again = verify(read_pool(path).journal)
    assert again.equal, again.difference


@pytest.mark.usefixtures("interrupts")
def test_lanes_are_interrupted_if_another_thread_takes_the_signal():
    stopped, ended = threading.Event(), []

    def work(_):
        time.sleep(0.2)
        interrupt_this_thread()
        ended.append(stopped.wait(SOON))

    with pytest.raises(KeyboardInterrupt):
        lanes.work_in_lanes([1], work, 2, stopped.set)
    assert ended == [True]


@pytest.mark.usefixtures("interrupts")
def test_waiting_for_an_after_race_is_interrupted_if_another_thread_takes_the_signal():
    over = threading.Event()

    def run():
        time.sleep(0.2)
        interrupt_this_thread()
        over.wait(SOON)

    after_race = object.__new__(after_races.AfterRace)
    after_race._thread = threading.Thread(target=run)
    after_race.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        after_race.wait()
    assert time.monotonic() - began < SOON / 2
    over.set()
