"""Races of hostile commands: who wins, how the others end, and that nobody is left behind."""

import asyncio
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from preselect.errors import InputError
from preselect.race import supervision
from preselect.race.supervision import LEVELS, Racer, Status, supervise, supervise_async
from preselect.race.supervisor.containment import NAMESPACE, SUBREAPER
from preselect.race.supervisor.racer import TIE_SECONDS, first_of

LONG = 120.0  # a time limit that no passing test comes near
TOKEN = "PRESELECT_TEST_TOKEN"


def marked(token):
    """Processes with the token in their environment or arguments, this one apart."""
    return [
        pid for pid in pids() if pid != os.getpid() and token.encode() in told(pid, "environ") + told(pid, "cmdline")
    ]


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def told(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def fields(pid):
    return told(pid, "stat").rpartition(b")")[2].split() or [b"", b"-1"]


def parent(pid):
    return int(fields(pid)[1])


def zombies():
    return [pid for pid in pids() if fields(pid)[0] == b"Z" and parent(pid) == os.getpid()]


def descriptors():
    return sorted(os.listdir("/proc/self/fd"))


def until(true, seconds=180.0):
    limit = time.monotonic() + seconds
    while not true() and time.monotonic() < limit:
        time.sleep(0.02)
    assert true()


@pytest.fixture(autouse=True)
def token(monkeypatch):
    """After every test: no process of it lives, none is a zombie, no descriptor is open that was not before."""
    value = secrets.token_hex(8)
    monkeypatch.setenv(TOKEN, value)
    before = descriptors()
    yield value
    assert marked(value) == []
    assert zombies() == []
    assert descriptors() == before


@pytest.fixture(params=LEVELS)
def level(request, tmp_path):
    try:
        supervise([Racer("probe", ("true",))], folder=tmp_path / "probe", seconds=LONG, level=request.param)
    except InputError as error:
        pytest.skip(str(error))
    return request.param


@pytest.fixture
def race(tmp_path):
    def run(*racers, seconds=LONG, **options):
        return supervise(racers, folder=tmp_path / "race", seconds=seconds, **options)

    return run


def shell(name, text, **options):
    return Racer(name, ("sh", "-c", text), **options)


def python(name, text, *arguments, **options):
    return Racer(name, (sys.executable, "-I", "-S", "-c", text, *arguments), **options)


def sleeper(name="sleeper"):
    return Racer(name, ("sleep", "1000"))


def answering(name="good", seconds=0.0, **options):
    return shell(name, f"sleep {seconds}; exit 10", **options)


def by_name(result):
    return {finish.name: finish for finish in result.finishes}


def statuses(result):
    return {finish.name: str(finish.status) for finish in result.finishes}


# who wins


def test_the_first_answer_wins_and_the_others_are_killed(race, level, tmp_path):
    result = race(sleeper(), shell("good", "echo said; echo wrong >&2; exit 20"), sleeper("other"), level=level)
    assert (result.winner, result.tie, result.level, result.infrastructure) == ("good", False, level, None)
    assert statuses(result) == {"sleeper": "killed", "good": "won", "other": "killed"}
    good, other = by_name(result)["good"], by_name(result)["other"]
    assert (good.output.read_text(), good.errors.read_text()) == ("said\n", "wrong\n")
    assert good.output == tmp_path / "race" / "1.out"
    assert (good.exit_code, good.signal, other.exit_code, other.signal) == (20, None, None, signal.SIGKILL)
    assert 0 < result.seconds == good.seconds <= other.seconds


def test_the_best_level_is_chosen(race):
    result = race(answering())
    assert result.level in LEVELS
    assert result.winner == "good"


def test_former_outputs_are_overwritten(race):
    race(shell("good", "echo a long line; exit 10"))
    assert race(shell("good", "echo x; exit 10")).finishes[0].output.read_text() == "x\n"


def test_an_exit_without_answer_does_not_end_the_race(race, level):
    result = race(shell("gives up", "exit 0"), shell("fails", "exit 3"), answering(seconds=0.3), level=level)
    assert statuses(result) == {"gives up": "no answer", "fails": "no answer", "good": "won"}
    assert by_name(result)["fails"].detail == "exit code 3"


def test_answers_may_be_other_codes(race):
    result = race(shell("ten", "exit 10", answers=(0,)), shell("zero", "sleep 0.2", answers=(0,)))
    assert statuses(result) == {"ten": "no answer", "zero": "won"}


def test_a_pattern_decides_instead_of_the_code(race):
    result = race(
        shell("ten", "echo s UNKNOWN; exit 10", pattern="^s (UN)?SATISFIABLE$"),
        shell("zero", "sleep 0.2; echo c; echo s SATISFIABLE; echo c", pattern="^s (UN)?SATISFIABLE$"),
    )
    assert statuses(result) == {"ten": "no answer", "zero": "won"}


def test_a_pattern_that_takes_for_ever_is_given_up(race):
    result = race(shell("bad", f"echo {'a' * 60}b", pattern="^(a+)+$"), answering(seconds=0.5))
    assert statuses(result) == {"bad": "infrastructure error", "good": "won"}
    assert "the pattern took more than" in result.infrastructure


def test_a_racer_that_removes_its_output_harms_itself_alone(race, tmp_path):
    result = race(shell("removes", f"rm '{tmp_path}/race/0.out'; exit 10"), answering(seconds=0.3))
    assert statuses(result) == {"removes": "infrastructure error", "good": "won"}
    assert "the output cannot be read" in result.infrastructure


def test_nobody_answers_in_time(race, level):
    result = race(sleeper(), shell("stubborn", "trap '' TERM INT HUP; sleep 1000; exit 10"), seconds=0.5, level=level)
    assert result.winner is None
    assert statuses(result) == {"sleeper": "timeout", "stubborn": "timeout"}
    assert result.seconds >= 0.5


def test_everybody_gives_up(race):
    result = race(shell("a", "exit 1"), shell("b", "exit 2"))
    assert (result.winner, result.infrastructure) == (None, None)
    assert set(statuses(result).values()) == {"no answer"}


def test_commands_that_cannot_be_started(race, tmp_path, level):
    plain, without = tmp_path / "plain", tmp_path / "without"
    plain.write_text("#!/bin/sh\n")
    without.write_text("#!/no/such/interpreter\n")
    without.chmod(0o755)
    result = race(
        Racer("no", ("no-such-command-here",)),
        Racer("path", (str(tmp_path / "missing"),)),
        Racer("plain", (str(plain),)),
        Racer("without", (str(without),)),
        answering(seconds=0.3),
        level=level,
    )
    assert list(statuses(result).values()) == ["not started"] * 4 + ["won"]
    details = [finish.detail for finish in result.finishes]
    assert details[0] == "no such command: no-such-command-here"
    assert details[2] == f"not executable: {plain}"


def test_what_a_racer_finds(race, level):
    code = (
        "import os, resource\n"
        "print(sorted(os.listdir('/proc/self/fd')))\n"
        "print(os.getsid(0) == os.getpid(), os.path.samefile('/proc/self', f'/proc/{os.getpid()}'))\n"
        "print(os.readlink('/proc/self/fd/0'), resource.getrlimit(resource.RLIMIT_CORE), os.getcwd())\n"
        f"print(os.environ['MINE'], '{TOKEN}' in os.environ)\n"
        "print([line for line in open('/proc/self/status') if line.startswith('SigIgn')])\n"
        "raise SystemExit(10)"
    )
    result = race(python("curious", code, environment={"MINE": "yes"}), level=level)
    lines = result.finishes[0].output.read_text().splitlines()
    assert lines[0] == "['0', '1', '2', '3']"  # the last is the listing itself
    assert lines[1:4] == ["True True", f"/dev/null (0, 0) {os.getcwd()}", "yes True"]
    # the interpreter itself ignores SIGPIPE (13) and SIGXFSZ (25), nothing else is ignored
    ignored = int(re.findall(r"[0-9a-f]{16}", lines[4])[0], 16) & (2**31 - 1)  # those above are the C library's own
    assert ignored == 1 << 12 | 1 << 24


def test_cpu_time_counts_children(race, level):
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    while time.process_time() < 0.3: pass\n"
        "    os._exit(0)\n"
        "os.wait(); os._exit(10)"
    )
    result = race(python("busy", code), level=level)
    assert result.finishes[0].cpu_seconds >= 0.3


# ties


def test_ties_go_to_less_cpu_time_then_to_the_lot():
    assert first_of([(0, 1.0, 0.5, 0.1)]) == (0, False)
    assert first_of([(0, 1.0, 0.5, 0.1), (1, 1.0 + 2 * TIE_SECONDS, 0.1, 0.1)]) == (0, False)
    assert first_of([(0, 1.0, 0.5, 0.1), (1, 1.0 + TIE_SECONDS / 2, 0.4, 0.9)]) == (1, True)
    assert first_of([(0, 1.0, 0.5, 0.9), (1, 1.0 + TIE_SECONDS / 2, 0.5, 0.1)]) == (1, True)
    # who is late for the first is out, even if close to the second
    late = [(0, 1.0, 0.5, 0.1), (1, 1.0 + 0.6 * TIE_SECONDS, 0.4, 0.1), (2, 1.0 + 1.2 * TIE_SECONDS, 0.1, 0.1)]
    assert first_of(late) == (1, True)


def test_racers_that_answer_together_tie(race, level, tmp_path):
    """Both wait to read the same pipe and are let go by its end; the one that took more CPU time loses."""
    spend = "import os, time\nwhile time.process_time() < {}: pass\nopen({!r}).read(); os._exit(10)"
    for attempt in range(20):
        pipe = tmp_path / f"pipe{attempt}"
        os.mkfifo(pipe)
        opener = threading.Timer(1.0, lambda path: os.close(os.open(path, os.O_WRONLY)), [pipe])
        opener.start()
        racers = [python("much", spend.format(0.4, str(pipe))), python("little", spend.format(0.0, str(pipe)))]
        result = race(*racers, level=level)
        opener.join()
        if result.tie:  # a noisy machine may let one of them wait for milliseconds
            break
    assert result.tie
    assert statuses(result) == {"much": "finished late", "little": "won"}


# verification

WRONG_VERIFIER = ("sh", "-c", 'echo "not in $1" >&2; grep -q right "$1"', "verifier", "{output}")


def test_a_wrong_answer_does_not_end_the_race(race, level):
    result = race(
        shell("fast", "echo liar; exit 10", verifier=WRONG_VERIFIER),
        shell("good", "sleep 0.4; echo right; exit 10", verifier=WRONG_VERIFIER),
        sleeper(),
        level=level,
    )
    assert statuses(result) == {"fast": "wrong answer", "good": "won", "sleeper": "killed"}
    assert by_name(result)["fast"].detail.startswith("the verifier exited with 1: not in /")


def test_the_path_is_put_inside_an_argument_and_never_split(tmp_path):
    folder = tmp_path / "a folder with spaces"
    result = supervise(
        [shell("good", "exit 10", verifier=("test", "x{output}y", "=", f"x{folder / '0.out'}y"))],
        folder=folder,
        seconds=LONG,
    )
    assert result.winner == "good"


def test_the_client_checks_answers(race, level):
    asked = []

    def check(racer, output, exit_code):
        asked.append((racer.name, exit_code))
        return None if "right" in output.read_text() else "it is not right"

    result = race(
        shell("fast", "echo liar; exit 10"), shell("good", "sleep 0.4; echo right; exit 20"), check=check, level=level
    )
    assert statuses(result) == {"fast": "wrong answer", "good": "won"}
    assert by_name(result)["fast"].detail == "it is not right"
    assert asked == [("fast", 10), ("good", 20)]


def test_an_own_verifier_goes_before_the_check(race):
    result = race(answering(verifier=("true",)), check=lambda *_: "never asked")
    assert result.winner == "good"


def test_answers_during_a_verification_wait_for_it(race):
    slow = ("sh", "-c", "sleep 0.8")
    result = race(answering("first", verifier=slow), answering("second", 0.3))
    assert statuses(result) == {"first": "won", "second": "finished late"}
    assert not result.tie


def test_a_verifier_has_the_time_of_the_race(race, level):
    result = race(answering(verifier=("sh", "-c", "sleep 1000 & sleep 1000")), sleeper(), seconds=1.0, level=level)
    assert statuses(result) == {"good": "infrastructure error", "sleeper": "timeout"}
    assert "not verified in time" in by_name(result)["good"].detail
    assert "not verified in time" in result.infrastructure


@pytest.mark.parametrize("verifier", [("no-such-verifier",), ("sh", "-c", "kill -SEGV $$")])
def test_a_verifier_that_fails_is_our_fault(race, verifier):
    result = race(answering("first", verifier=verifier), answering("second", 0.5))
    assert statuses(result) == {"first": "infrastructure error", "second": "won"}
    assert "the verifier failed" in result.infrastructure


def test_an_error_in_the_check_ends_the_race(race):
    with pytest.raises(ZeroDivisionError):
        race(answering(), sleeper(), check=lambda *_: str(1 / 0))


# hostile racers


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM, signal.SIGFPE, signal.SIGBUS, signal.SIGILL,
        signal.SIGHUP, signal.SIGPIPE, signal.SIGXCPU, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM,
        signal.SIGRTMIN + 1,
    ],
)  # fmt: skip
def test_a_racer_that_dies_of_a_signal_has_crashed(race, number):
    result = race(shell("dying", f"kill -{int(number)} $$; sleep 1000"), answering(seconds=0.2))
    assert statuses(result) == {"dying": "crashed", "good": "won"}
    dying = by_name(result)["dying"]
    assert (dying.exit_code, dying.signal) == (None, number)


def test_racers_that_ignore_all_signals_die(race, level):
    code = (
        "import signal, time\n"
        "for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "print('deaf', flush=True); time.sleep(1000)"
    )
    result = race(python("deaf", code), answering(seconds=1.0), level=level)
    assert statuses(result) == {"deaf": "killed", "good": "won"}
    assert by_name(result)["deaf"].output.read_text() == "deaf\n"


def test_fifty_children_die(race, level):
    many = "for i in $(seq 50); do (trap '' TERM; sleep 1000; :) & done; echo all; wait"
    result = race(shell("many", many), answering(seconds=1.0), level=level)
    assert statuses(result) == {"many": "killed", "good": "won"}
    assert by_name(result)["many"].output.read_text() == "all\n"


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3): os.close(descriptor)
        if sys.argv[1] == 'forgets': os.execve('/bin/sleep', ['sleep', '1000'], {})
        os.open(sys.argv[2], os.O_CREAT); time.sleep(1000)
    os._exit(0)
os.wait()
if sys.argv[1] != 'exits': time.sleep(1000)
"""


@pytest.mark.parametrize("way", ["stays", "exits", "forgets"])
def test_daemons_die(race, level, way, tmp_path):
    before = set(pids())
    result = race(python("daemon", DAEMON, way, str(tmp_path / "there")), answering(seconds=1.0), level=level)
    assert statuses(result) == {"daemon": "no answer" if way == "exits" else "killed", "good": "won"}
    assert (tmp_path / "there").exists() == (way != "forgets")
    left = [
        pid for pid in set(pids()) - before if told(pid, "cmdline") == b"sleep\x001000\x00" and not told(pid, "environ")
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


def test_a_fork_bomb_loses(race, level, tmp_path):
    """Each of 64 processes lives on in a child with a session of its own, again and again; few are seen by a scan."""
    alive = tmp_path / "alive"
    alive.touch()
    started = alive.stat().st_mtime_ns
    result = race(python("bomb", BOMB, str(alive)), answering(seconds=1.0), level=level)
    last = alive.stat().st_mtime_ns
    assert (result.winner, result.infrastructure) == ("good", None)
    time.sleep(0.5)
    assert started < last == alive.stat().st_mtime_ns


def test_a_stopped_racer_dies_too(race, level):
    result = race(shell("stopped", "kill -STOP $$; exit 10"), answering(seconds=0.4), level=level)
    assert statuses(result) == {"stopped": "killed", "good": "won"}
    assert statuses(race(shell("stopped", "kill -STOP $$"), seconds=0.5, level=level)) == {"stopped": "timeout"}


class Patient:
    """A racer that answers as soon as the others have ended, however long they take, and who lets it."""

    def __init__(self, folder):
        self.file = folder / "now"
        self.racer = shell("good", f"until [ -e '{self.file}' ]; do sleep 0.02; done; exit 10")

    def watch(self, standings):
        if all(standing.status for standing in standings if standing.name != "good"):
            self.file.touch()


@pytest.fixture
def patient(tmp_path):
    return Patient(tmp_path)


def test_output_is_capped(race, level, patient):
    result = race(
        Racer("floods", ("head", "-c", "1000000000", "/dev/zero")),
        shell("shell", "head -c 1000000000 /dev/zero; exit 3"),
        patient.racer,
        output=4,
        level=level,
        watch=patient.watch,
    )
    floods, through, good = result.finishes
    assert (floods.status, floods.signal) == (Status.CRASHED, signal.SIGXFSZ)
    assert floods.detail == "its output reached the cap of 4 MB"
    assert (through.status, through.exit_code, good.status) == (Status.NO_ANSWER, 3, Status.WON)
    assert through.detail == "exit code 3; its output reached the cap of 4 MB"
    assert [finish.output.stat().st_size for finish in result.finishes[:2]] == [4 * 2**20] * 2


HUNGRY = """
import os, sys, time
if sys.argv[1] != "alone" and os.fork(): time.sleep(1000)
if sys.argv[1] == "daemon":
    os.setsid()
    if os.fork(): os._exit(0)
held = []
for _ in range(400):
    held.append(bytearray(2**20))
    time.sleep(0.002)
time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["alone", "child", "daemon"])
def test_memory_is_limited(race, level, patient, how):
    result = race(python("hungry", HUNGRY, how), patient.racer, memory=200, level=level, watch=patient.watch)
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


def test_forged_marks_harm_nobody(race, level):
    result = race(python("forger", FORGER), answering(seconds=1.0), memory=2000, level=level)
    assert statuses(result) == {"forger": "no answer", "good": "won"}
    assert result.infrastructure is None


KILLER = "import os, signal, time\ntime.sleep(0.3)\nos.kill(os.getppid(), signal.{})\ntime.sleep(1000)"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
def test_the_supervisor_cannot_be_asked_to_end(race, level, name):
    assert race(python("killer", KILLER.format(name)), answering(seconds=0.8), level=level).winner == "good"


@pytest.mark.parametrize("level", [NAMESPACE], indirect=True)
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP"])
def test_an_init_cannot_be_killed_by_its_racers(race, level, name):
    assert race(python("killer", KILLER.format(name)), answering(seconds=0.8), level=level).winner == "good"


def test_a_killed_subreaper_is_an_infrastructure_error(race):
    result = race(
        python("killer", KILLER.format("SIGKILL")),
        shell("family", "sleep 1000 & setsid sleep 1000 & wait"),
        shell("early", "exit 1"),
        level=SUBREAPER,
    )
    assert result.winner is None
    assert statuses(result) == {
        "killer": "infrastructure error",
        "family": "infrastructure error",
        "early": "no answer",
    }
    assert result.infrastructure == "the supervisor died"


def test_a_stopped_subreaper_is_given_up(race, monkeypatch):
    monkeypatch.setattr("preselect.race.supervisor_process.PATIENCE_SECONDS", 1.0)
    result = race(python("killer", KILLER.format("SIGSTOP")), sleeper(), seconds=1.0, level=SUBREAPER)
    assert result.infrastructure == "the supervisor did not end the race in time"
    assert set(statuses(result).values()) == {"infrastructure error"}


def test_nobody_survives_a_killed_supervisor(race, level, token):
    killed = []

    def kill(standings):
        if standings[0].seconds > 0.3 and not killed:
            killed.extend(pid for pid in marked(token) if parent(pid) == os.getpid())
            os.kill(killed[0], signal.SIGKILL)

    family = shell("family", "sleep 1000 & setsid sleep 1000 & wait")
    result = race(family, sleeper(), watch=kill, level=level)
    assert result.infrastructure == "the supervisor died"
    assert len(killed) == 1


def test_the_supervisor_imports_nothing_that_takes_long():
    code = "import sys; sys.path.append(sys.argv[1]); import supervisor.main; print(*sys.modules)"
    place = str(Path(supervision.__file__).parent)
    found = subprocess.check_output([sys.executable, "-I", "-S", "-E", "-c", code, place], text=True).split()
    assert "supervisor.race" in found
    assert not {"preselect", "numpy", "json", "re", "enum", "typing", "subprocess", "collections"} & set(found)


# the client

CLIENT = """
import signal, sys
from pathlib import Path
from preselect.race.supervision import Racer, supervise
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores for what it runs in the background
family = Racer("family", ("sh", "-c", "sleep 1000 & setsid sleep 1000 & touch running; wait"))
print("racing", flush=True)
supervise([family, Racer("other", ("sleep", "1000"))], folder=Path("race"), seconds=1000, level=sys.argv[1])
"""


def client(tmp_path, level, code=CLIENT):
    environment = {**os.environ, "PYTHONPATH": str(Path(supervision.__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", code, level], cwd=tmp_path, env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def test_nobody_survives_a_killed_client(tmp_path, level, token):
    with client(tmp_path, level) as process:
        until((tmp_path / "running").exists)
        assert len(marked(token)) >= 5
        process.kill()
    until(lambda: not marked(token))


FORKING_CLIENT = """
import os, sys, time
from pathlib import Path
from preselect.race.supervision import Racer, supervise
children = []
def fork(standings):
    if standings[0].seconds > 0.2 and not children:
        children.append(os.fork())
        if not children[0]: time.sleep(1000)
        Path("child").write_text(str(children[0])); Path("child").rename("forked")
supervise([Racer("a", ("sleep", "1000"))], folder=Path("race"), seconds=1000, level=sys.argv[1], watch=fork)
"""


def test_a_child_of_the_client_does_not_keep_a_race_alive(tmp_path, level, token):
    with client(tmp_path, level, FORKING_CLIENT) as process:
        until((tmp_path / "forked").exists)
        process.kill()
    child = int((tmp_path / "forked").read_text())
    try:
        until(lambda: marked(token) == [child])
    finally:
        os.kill(child, signal.SIGKILL)
    until(lambda: not marked(token))


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.04, 0.06])
def test_nobody_survives_a_client_killed_while_it_starts(tmp_path, level, token, moment):
    with client(tmp_path, level) as process:
        process.stdout.readline()
        time.sleep(moment)
        process.kill()
    until(lambda: not marked(token))


def test_an_interrupted_client_ends_the_race_first(tmp_path, level, token):
    with client(tmp_path, level) as process:
        until((tmp_path / "running").exists)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert marked(token) == []
    assert b"KeyboardInterrupt" in errors


def test_an_interrupt_is_raised_again_when_everybody_is_dead(race, level, token):
    def interrupt(standings):
        if standings[0].seconds > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        race(shell("family", "sleep 1000 & sleep 1000"), sleeper(), watch=interrupt, level=level)
    assert marked(token) == []


def test_the_standings_are_shown(race):
    seen = []
    race(shell("early", "exit 1"), answering(seconds=0.8), watch=seen.append)
    assert [standing.name for standing in seen[0]] == ["early", "good"]
    assert [standing.status for standing in seen[-1]] == [Status.NO_ANSWER, Status.WON]
    running = [rows[1].seconds for rows in seen if rows[1].status is None]
    assert running == sorted(running)
    assert len(running) >= 3


def test_bad_arguments_are_told(tmp_path):
    good = answering()
    for message, racers, options in [
        ("racers must be one Racer or more", [], {}),
        ("racers must have distinct names, got ['good', 'good']", [good, good], {}),
        ("seconds is 0; use a number above 0", [good], {"seconds": 0}),
        ("memory is -1; use a number above 0", [good], {"memory": -1}),
        ("output is 0; use a number above 0", [good], {"output": 0}),
        ("level must be one of pid namespace, subreaper, or left out, got 'best'", [good], {"level": "best"}),
    ]:
        with pytest.raises(InputError, match=re.escape(message)):
            supervise(racers, **{"folder": tmp_path, "seconds": 1.0, **options})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="folder must be one that can be made and written to, got "):
        supervise([good], folder=tmp_path / "file", seconds=1.0)


@pytest.mark.parametrize(
    "given",
    [
        {"command": ()},
        {"command": "sleep 1"},
        {"command": ("a\0b",)},
        {"command": ("a",), "pattern": "("},
        {"command": ("a",), "answers": (256,)},
        {"command": ("a",), "verifier": ()},
        {"command": ("a",), "environment": {"A=B": "x"}},
    ],
)
def test_a_racer_is_checked(given):
    with pytest.raises(InputError, match="of it must"):
        Racer("it", **given)


# the asynchronous form


def run_async(tmp_path, *racers, **options):
    return supervise_async(racers, folder=tmp_path / "race", **{"seconds": LONG, **options})


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
def test_a_cancelled_race_leaves_nobody(tmp_path, level, token, moment):
    async def main():
        task = asyncio.create_task(run_async(tmp_path, shell("a", "sleep 1000 & sleep 1000"), sleeper(), level=level))
        await asyncio.sleep(moment)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert marked(token) == []

    asyncio.run(main())


# many


def test_many_races_in_a_row_leak_nothing(race, level):
    before = descriptors()
    for seed in range(100):
        assert race(
            Racer("a", ("false",), answers=(1,)), Racer("b", ("false",), answers=(1,)), seed=seed, level=level
        ).winner
    assert descriptors() == before
    assert zombies() == []
