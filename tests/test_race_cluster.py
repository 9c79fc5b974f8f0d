"""Races on a Dask cluster of worker processes: what is learnt, and who dies with whom."""

import asyncio
import os
import secrets
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import pytest
from commands import preselect
from processes import Fork, find_marked, read_proc, wait_until, wait_until_all_died
from racers import TOKEN

from preselect.cli.main import preselect as command
from preselect.errors import InputError, RunError
from preselect.race import Cluster, RaceSession, read_pool
from preselect.store import Journal, read_rounds, verify

distributed = pytest.importorskip("distributed")

ANSWER = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"
NONE = 'from = "none"'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and two worker processes with two threads each."""
    options = {"n_workers": 2, "threads_per_worker": 2, "processes": True, "dashboard_address": ":0"}
    folder = tmp_path_factory.mktemp("dask")
    with distributed.LocalCluster(**options, local_directory=str(folder), silence_logs=50) as started:
        yield started


@pytest.fixture
def token():
    return secrets.token_hex(8)


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


def mark(token):
    """Racers get a variable by which the test finds them: workers were started before the test."""
    return f'environment = {{ {TOKEN} = "{token}" }}'


def test_races_run_on_workers_and_are_learnt_here(pool, formulas, cluster, token):
    path = pool({"one": f"echo $PPID >&2; {ANSWER}", "other": "sleep 60"}, one=mark(token), other=mark(token))
    done = preselect("race", path, formulas, "--cluster", cluster.scheduler_address)
    assert done.stdout.count("s SATISFIABLE\nv 1 2 0\n") == 8
    assert Counter(one.kind for one in read_journal(path)) == {"winner": 8}
    assert max(count_open(read_journal(path))) == 2  # two workers with places for one race of two each
    assert verify(read_pool(path).journal).equal
    wait_until(lambda: not find_marked(token))


def count_open(rounds):
    return [sum(one.decided <= this.decided < one.ended for one in rounds) for this in rounds]


def test_a_worker_killed_in_the_middle_takes_its_racers_along_and_its_race_runs_again(
    pool, formulas, cluster, token, tmp_path
):
    script = f"setsid sleep 60 & echo $PRESELECT_RACE >> {tmp_path}/started; sleep 0.7; {ANSWER}"
    path = pool({"one": script}, head="k = 1", features=NONE, one=mark(token))
    started, pids = tmp_path / "started", {}

    def kill():
        wait_until(lambda: started.exists() and len(started.read_text().split()) >= 6)
        (victim,) = [pid for pid in pids if pid in {get_worker_of(racer) for racer in find_marked(token)}][:1]
        os.kill(victim, signal.SIGKILL)

    def get_worker_of(pid):
        while pid > 1 and pid not in pids:
            pid = int((read_proc(pid, "stat").rpartition(b")")[2].split() or [0, 0])[1])
        return pid

    with distributed.Client(cluster) as client:
        pids.update((pid, address) for address, pid in client.run(os.getpid).items())
    killer = threading.Thread(target=kill)
    killer.start()
    done = preselect("race", path, formulas, "--cluster", cluster.scheduler_address, "--at-once", 4)
    killer.join()
    assert "8 of 8 races solved" in done.stderr
    assert {one.kind for one in read_journal(path)} == {"winner"}
    assert len(started.read_text().split()) > 8  # those of the dead worker were run again
    wait_until_all_died(token, tmp_path)
    cluster.wait_for_workers(2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_racers_end_when_the_command_does(pool, formulas, cluster, token, number):
    marks = {"one": mark(token), "other": mark(token)}
    scripts = {"one": "setsid sleep 900 & sleep 900", "other": "sleep 900"}
    path = pool(scripts, seconds=900, features=NONE, **marks)  # no limit ends them while the test waits
    arguments = ["race", str(path), str(formulas), "--cluster", cluster.scheduler_address]
    with Fork(command, arguments) as process:
        wait_until(lambda: len(find_marked(token)) >= 6)
        process.send_signal(number)
        process.errors.read()
        assert process.wait() == (130 if number == signal.SIGINT else -9)
    wait_until(lambda: not find_marked(token), seconds=60)
    assert [one.kind for one in read_journal(path)] == ["void" if number == signal.SIGINT else None] * 2


def test_files_that_workers_do_not_have_are_named(pool, formulas, cluster, monkeypatch):
    path = pool({"one": ANSWER}, features=NONE)
    file = formulas / "0.cnf"
    monkeypatch.setattr("pathlib.Path.is_file", lambda found: found == file or os.path.isfile(found))
    file.unlink()
    done = preselect("race", path, file, "--cluster", cluster.scheduler_address, expect=1)
    assert "0.cnf' is not a file on" in done.stderr
    assert "put instances, and what the pool names, where all workers have them at the same path" in done.stderr


def test_a_cluster_that_is_not_there_or_has_no_worker_is_said(pool, formulas):
    path = pool({"one": ANSWER}, features=NONE)
    done = preselect("race", path, formulas, "--cluster", "nonsense://127.0.0.1:9", expect=1)
    assert "cannot reach a Dask scheduler at 'nonsense://127.0.0.1:9'" in done.stderr
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        Cluster(empty.scheduler_address) as found,
        pytest.raises(InputError, match="has no worker; start one"),
    ):
        found.count_places(2)


def fail(_):
    raise OSError("as it happens")


def give_up(_):
    raise distributed.KilledWorker("task", SimpleNamespace(address="tcp://nowhere"), 4)


def test_results_that_take_long_to_fetch_arrive(pool, formulas, cluster, monkeypatch):
    """A timeout in the middle would cancel fetching, of other races' results too."""
    fetch = distributed.Client._gather_remote

    async def fetch_slowly(*arguments):
        await asyncio.sleep(0.6)
        return await fetch(*arguments)

    ticks = iter(range(20))  # StopIteration after about 5 seconds
    monkeypatch.setattr(distributed.Client, "_gather_remote", fetch_slowly)
    source = read_pool(pool({"one": ANSWER}, features=NONE)).features
    with Cluster(cluster.scheduler_address) as found, ThreadPoolExecutor() as threads:
        place = found.take_place(2, lambda: None)
        measure = partial(found.measure, place, source, require_going=lambda: next(ticks))
        assert len([*threads.map(measure, sorted(formulas.iterdir()))]) == 8


def test_what_fails_on_a_worker_is_said(pool, formulas, cluster, monkeypatch):
    path = pool({"one": ANSWER}, features=NONE)
    monkeypatch.setattr("preselect.race.cluster._race", fail)
    with (
        Cluster(cluster.scheduler_address) as found,
        RaceSession(path, cluster=found) as session,
        pytest.raises(RunError, match=r"a race on the Dask cluster at .* failed: as it happens"),
    ):
        session.run(formulas / "0.cnf")
    assert [one.kind for one in read_journal(path)] == ["void"]


def test_a_race_whose_workers_die_again_and_again_is_void(pool, formulas, cluster, monkeypatch):
    """Dask gives up on a task after a few workers have died under it."""
    path = pool({"one": ANSWER}, features=NONE)
    monkeypatch.setattr("preselect.race.cluster._race", give_up)
    with Cluster(cluster.scheduler_address) as found, RaceSession(path, cluster=found) as session:
        result = session.run(formulas / "0.cnf")
    assert (result.void, result.winner) == ("the workers that ran it died", None)
    assert [one.kind for one in read_journal(path)] == ["void"]
