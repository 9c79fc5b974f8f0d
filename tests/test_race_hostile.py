"""Hostile racers: whatever they do, the race goes on, and none of their processes survives it."""

import os
import signal
import time

import pytest
from processes import find_marked, get_parent, list_pids, read_proc
from racers import answering, by_name, python, shell, sleeper, statuses, waiting

from preselect.race.supervision import Racer, Status
from preselect.race.supervisor.racer import NAMESPACE, SUBREAPER

pytestmark = pytest.mark.usefixtures("token")


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM, signal.SIGFPE, signal.SIGBUS, signal.SIGILL,
        signal.SIGHUP, signal.SIGPIPE, signal.SIGXCPU, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM,
        signal.SIGRTMIN + 1,
    ],
)  # fmt: skip
def test_a_racer_that_dies_of_a_signal_has_crashed(supervise, number, patient):
    dying = shell("dying", f"kill -{int(number)} $$; sleep 1000")
    result = supervise(dying, patient.racer, watch=patient.watch)
    assert statuses(result) == {"dying": "crashed", "good": "won"}
    dying = by_name(result)["dying"]
    assert (dying.exit_code, dying.signal) == (None, number)


def test_racers_that_ignore_all_signals_die(supervise, level, tmp_path):
    code = (
        "import signal, sys, time\n"
        "for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "open(sys.argv[1], 'w').close(); time.sleep(1000)"
    )
    deaf = tmp_path / "deaf"
    result = supervise(python("deaf", code, str(deaf)), waiting(deaf), level=level)
    assert statuses(result) == {"deaf": "killed", "good": "won"}


def test_fifty_children_die(supervise, level, tmp_path):
    there = tmp_path / "there"
    many = f"for i in $(seq 50); do (trap '' TERM; sleep 1000; :) & done; touch {there}; wait"
    result = supervise(shell("many", many), waiting(there), level=level)
    assert statuses(result) == {"many": "killed", "good": "won"}


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3): os.close(descriptor)
        os.open(sys.argv[2], os.O_CREAT | os.O_CLOEXEC)
        if sys.argv[1] == 'forgets': os.execve('/bin/sleep', ['sleep', '1000'], {})
        time.sleep(1000)
    os._exit(0)
os.wait()
if sys.argv[1] != 'exits': time.sleep(1000)
"""


@pytest.mark.parametrize("way", ["stays", "exits", "forgets"])
def test_daemons_die(supervise, level, way, tmp_path):
    before, there = set(list_pids()), tmp_path / "there"
    result = supervise(python("daemon", DAEMON, way, str(there)), waiting(there, "sleep 0.5; exit 10"), level=level)
    assert statuses(result) == {"daemon": "no answer" if way == "exits" else "killed", "good": "won"}
    left = [
        pid
        for pid in set(list_pids()) - before
        if read_proc(pid, "cmdline") == b"sleep\x001000\x00" and not read_proc(pid, "environ")
    ]
    assert left == []


BOMB = """
import os, sys, time
end = time.monotonic() + 60
for generation in range(6):
    if os.fork() == 0: os.setsid()
    time.sleep(0.01)
while time.monotonic() < end:
    if os.fork(): os._exit(0)
    os.setsid()
    os.utime(sys.argv[1])
    time.sleep(0.02)
"""


def test_a_fork_bomb_loses(supervise, level, tmp_path):
    """Each of 64 processes lives on in a child with a session of its own, again and again; few are seen by a scan."""
    alive = tmp_path / "alive"
    alive.touch()
    started = alive.stat().st_mtime_ns
    result = supervise(python("bomb", BOMB, str(alive)), answering(seconds=1.0), level=level)
    last = alive.stat().st_mtime_ns
    assert (result.winner, result.infrastructure) == ("good", None)
    time.sleep(0.5)
    assert started < last == alive.stat().st_mtime_ns


def test_a_stopped_racer_dies_too(supervise, level):
    result = supervise(shell("stopped", "kill -STOP $$; exit 10"), answering(seconds=0.4), level=level)
    assert statuses(result) == {"stopped": "killed", "good": "won"}
    assert statuses(supervise(shell("stopped", "kill -STOP $$"), seconds=0.5, level=level)) == {"stopped": "timeout"}


def test_output_is_capped(supervise, level, patient):
    result = supervise(
        Racer("floods", ("head", "-c", "1000000000", "/dev/zero")),
        shell("shell", "head -c 1000000000 /dev/zero; exit 3"),
        patient.racer,
        output=4,
        keep=2**30,
        level=level,
        watch=patient.watch,
    )
    floods, through, good = result.finishes
    assert (floods.status, floods.signal) == (Status.CRASHED, signal.SIGXFSZ)
    assert floods.detail == "its output reached the limit of 4 MB"
    assert (through.status, through.exit_code, good.status) == (Status.NO_ANSWER, 3, Status.WON)
    assert through.detail == "exit code 3; its output reached the limit of 4 MB"
    assert [len(finish.output) for finish in result.finishes[:2]] == [4 * 2**20] * 2


HUNGRY = """
import os, sys, time
if sys.argv[1] in ("child", "daemon") and os.fork(): time.sleep(1000)
if sys.argv[1] == "together": os.fork(), os.fork()
if sys.argv[1] == "daemon":
    os.setsid()
    if os.fork(): os._exit(0)
held = []
for _ in range(80 if sys.argv[1] == "together" else 400):
    held.append(bytearray(2**20))
    time.sleep(0.002)
time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["alone", "child", "daemon", "together"])
def test_memory_is_limited(supervise, level, patient, how):
    result = supervise(python("hungry", HUNGRY, how), patient.racer, memory=200, level=level, watch=patient.watch)
    assert statuses(result) == {"hungry": "memory", "good": "won"}
    assert by_name(result)["hungry"].signal == signal.SIGKILL
    assert by_name(result)["hungry"].detail == "held more than 200 MB"


FORGER = """
import os, time
token = os.environ["PRESELECT_RACE"].partition(".")[0]
for mark in ("99", "9" * 5000, "-1", "x"):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: os.execve("/bin/sleep", ["sleep", "1000"], {"PRESELECT_RACE": f"{token}.{mark}"})
        os._exit(0)
    os.wait()
time.sleep(0.5)
"""


def test_forged_marks_do_no_harm(supervise, level, patient):
    result = supervise(python("forger", FORGER), patient.racer, memory=2000, level=level, watch=patient.watch)
    assert statuses(result) == {"forger": "no answer", "good": "won"}
    assert result.infrastructure is None


KILLER = """
import os, signal, sys, time
time.sleep(0.3)
os.kill(os.getppid(), signal.{})
for path in sys.argv[1:]: open(path, "w").close()
time.sleep(1000)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
def test_the_supervisor_cannot_be_asked_to_end(supervise, level, name, tmp_path):
    sent = tmp_path / "sent"
    killer = python("killer", KILLER.format(name), str(sent))
    assert supervise(killer, waiting(sent, "sleep 0.3; exit 10"), level=level).winner == "good"


@pytest.mark.parametrize("level", [NAMESPACE], indirect=True)
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP"])
def test_an_init_cannot_be_killed_by_its_racers(supervise, level, name, tmp_path):
    sent = tmp_path / "sent"
    killer = python("killer", KILLER.format(name), str(sent))
    assert supervise(killer, waiting(sent, "sleep 0.3; exit 10"), level=level).winner == "good"


def test_a_killed_subreaper_is_an_infrastructure_error(supervise, tmp_path):
    ready, told = tmp_path / "ready", tmp_path / "told"

    def watch(standings):
        if standings[2].status is not None and ready.exists():
            told.touch()

    result = supervise(
        shell("killer", f"until [ -e {told} ]; do sleep 0.02; done; kill -KILL $PPID; sleep 1000"),
        shell("family", f"sleep 1000 & setsid sleep 1000 & touch {ready}; wait"),
        shell("early", "exit 1"),
        level=SUBREAPER,
        watch=watch,
    )
    assert result.winner is None
    assert statuses(result) == {
        "killer": "infrastructure error",
        "family": "infrastructure error",
        "early": "no answer",
    }
    assert result.infrastructure == "the supervisor died"


def test_the_client_gives_up_on_a_stopped_subreaper(supervise, monkeypatch):
    monkeypatch.setattr("preselect.race.supervisor_process._PATIENCE_SECONDS", 1.0)
    result = supervise(python("killer", KILLER.format("SIGSTOP")), sleeper(), seconds=3.0, level=SUBREAPER)
    assert result.infrastructure == "the supervisor did not end the race in time"
    assert set(statuses(result).values()) == {"infrastructure error"}


def test_no_process_survives_a_killed_supervisor(supervise, level, token):
    killed = []

    def kill(standings):
        if standings[0].seconds > 0.3 and not killed:
            killed.extend(pid for pid in find_marked(token) if get_parent(pid) == os.getpid())
            os.kill(killed[0], signal.SIGKILL)

    family = shell("family", "sleep 1000 & setsid sleep 1000 & wait")
    result = supervise(family, sleeper(), watch=kill, level=level)
    assert result.infrastructure == "the supervisor died"
    assert len(killed) == 1
