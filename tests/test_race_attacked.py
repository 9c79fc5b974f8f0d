"""Racers that attack the command, its pipes, files and bookkeeping, and callers that hand down strange signals."""

import ctypes
import os
import signal
from pathlib import Path

import pytest
from processes import Fork, find_marked, get_parent, list_descriptors, list_pids, read_proc, wait_until
from racers import LONG, answering, python, shell, sleeper, statuses, waiting

from preselect.race import supervisor
from preselect.race.supervision import Limits, Supervision
from preselect.race.supervisor.labels import Labels
from preselect.race.supervisor.messages import EVENTS, ORDERS, Receiver, Sender, to_line
from preselect.race.supervisor.processes import hold_more_than, kill_labelled, read_process
from preselect.race.supervisor.racer import SUBREAPER

pytestmark = pytest.mark.usefixtures("token")


# what the caller hands down


def race_with_signals(folder, level, ignored, blocked):
    """Race in a process that ignores some signals and blocks others, and print how the racers ended."""
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    racers = [shell("slow", f"echo {'a' * 60}b", pattern="^(a+)+$"), shell("no", "exit 3"), answering(seconds=0.3)]
    result = Supervision(racers, Limits(60), folder=folder, level=level).run()
    print(*(finish.status for finish in result.finishes), sep=",")


@pytest.mark.parametrize(
    ("ignored", "blocked"),
    [((signal.SIGCHLD,), ()), ((signal.SIGALRM, signal.SIGUSR1), ()), ((), signal.valid_signals())],
)
def test_signals_that_the_caller_ignores_or_blocks_change_nothing(tmp_path, level, ignored, blocked):
    with Fork(race_with_signals, tmp_path / "race", level, ignored, blocked) as client:
        assert client.output.read() == b"infrastructure error,no answer,won\n"


def kill_supervisor_with_sigchld_ignored(folder):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    def kill(standings):
        if standings[0].seconds > 0.3:
            for pid in list_pids():
                if get_parent(pid) == os.getpid():
                    os.kill(pid, signal.SIGKILL)

    family = shell("family", "setsid sleep 1000 & wait")
    result = Supervision([family, sleeper()], Limits(60), folder=folder, watch=kill, level=SUBREAPER).run()
    print(result.infrastructure)


def test_a_killed_supervisor_is_noticed_even_if_its_exit_code_is_not(tmp_path, token):
    with Fork(kill_supervisor_with_sigchld_ignored, tmp_path / "race") as client:
        assert client.output.read() == b"the supervisor died\n"
        client.wait()
        assert find_marked(token) == []


def test_a_racer_finds_no_signal_ignored_or_blocked(supervise, level):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    try:
        result = supervise(shell("curious", "grep SigBlk /proc/self/status; exit 10"), level=level)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert result.output == b"SigBlk:\t0000000000000000\n"


# limits


@pytest.mark.parametrize("output", [1e13, 1e300])
def test_an_output_limit_beyond_what_the_system_can_count_is_no_limit(supervise, level, output):
    result = supervise(shell("good", "echo said; exit 10"), output=output, level=level)
    assert (result.winner, result.output) == ("good", b"said\n")


@pytest.mark.parametrize("how", ["group", "daemon"])
def test_the_memory_of_a_verifier_is_limited(supervise, level, patient, how):
    hungry = python("", HIDDEN, how).command
    racer = shell("first", "exit 10", verifier=(*hungry, "{output}"))
    result = supervise(racer, patient.racer, memory=200, level=level, watch=patient.watch)
    assert statuses(result) == {"first": "infrastructure error", "good": "won"}
    assert result.infrastructure == "the verifier failed: held more than 200 MB"


HIDDEN = """
import os, sys, time
if sys.argv[1] == "daemon":
    if os.fork() == 0:
        os.setsid()
        parent = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent: time.sleep(0.01)
            os.execve(sys.executable, [sys.executable, "-I", "-S", "-c",
                "held = bytearray(400 * 2**20)\\nimport time; time.sleep(1000)"], {})
        os._exit(0)
    os.wait()
else:
    held = bytearray(400 * 2**20)
time.sleep(1000)
"""


def test_memory_is_counted_for_a_daemon_without_an_environment(supervise, level, patient):
    result = supervise(python("hidden", HIDDEN, "daemon"), patient.racer, memory=200, level=level, watch=patient.watch)
    assert statuses(result) == {"hidden": "memory", "good": "won"}


STRAY = HIDDEN.replace("import os,", "import resource; resource.setrlimit(10, (0, 0))\nimport os,").replace(
    "time.sleep(1000)\\n", ""
)


def test_a_stray_process_whose_origin_is_not_known_is_limited_too(supervise, level, tmp_path):
    """It has got rid of every label; it dies, and nobody is blamed."""
    code = STRAY.replace('time.sleep(1000)"], {})', f"open('{tmp_path}/alive', 'w'); time.sleep(1000)\"], {{}})")
    code = code.replace("held = bytearray", f"open('{tmp_path}/born', 'w'); held = bytearray", 1)
    good = waiting(tmp_path / "born", "sleep 2; exit 10")
    result = supervise(python("stray", code, "daemon"), good, memory=200, level=level)
    assert statuses(result) == {"stray": "killed", "good": "won"}


SHARING = """
import mmap, os, sys, time
held = mmap.mmap(-1, 120 * 2**20)
def touch():
    for place in range(0, len(held), 4096): held[place] = 1
touch()
for _ in range(5):
    if os.fork() == 0:
        touch(); time.sleep(1000)
time.sleep(1.0)
os._exit(10)
"""


def test_memory_that_processes_share_counts_once(supervise, level):
    result = supervise(python("sharing", SHARING), memory=200, level=level)
    assert statuses(result) == {"sharing": "won"}


def test_resident_pages_count_where_shares_cannot_be_read():
    process = read_process(os.getpid())
    assert hold_more_than({os.getpid(): process}, 2**20)
    assert not hold_more_than({os.getpid(): process}, 2**40)
    gone = {2**30: (1, 1, 1, 1000)}  # no such process: its pages count
    assert hold_more_than(gone, 999 * os.sysconf("SC_PAGESIZE"))
    assert not hold_more_than(gone, 1000 * os.sysconf("SC_PAGESIZE"))


def test_processes_with_a_new_environment_die_after_a_killed_supervisor(supervise):
    """They have left their session, their parents and their environment; their label is still there."""
    born = []

    def kill(_):
        found = [pid for pid in list_pids() if read_proc(pid, "cmdline") == b"sleep\x00987\x00"]
        if found and not born:
            born.extend(found)
            children = [pid for pid in list_pids() if get_parent(pid) == os.getpid()]
            (supervisor,) = (pid for pid in children if b"supervisor" in read_proc(pid, "cmdline"))
            os.kill(supervisor, signal.SIGKILL)

    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0: os.execve('/bin/sleep', ['sleep', '987'], {})\n"
        "    os._exit(0)\n"
        "os.wait(); time.sleep(1000)"
    )
    result = supervise(python("daemon", code), watch=kill, level=SUBREAPER)
    assert result.infrastructure == "the supervisor died"
    assert born
    assert not any(read_proc(pid, "cmdline") for pid in born)


def test_labels_tell_races_and_racers_apart():
    mine, other = Labels("0123456789abcdef"), Labels("0123456788abcdef")
    child = os.fork()
    if child == 0:
        mine.limit_this_process(7)
        other.limit_this_process(1)  # a race within the race
        os.execve("/bin/sleep", ["sleep", "100"], other.make_mark(3))
    wait_until(lambda: read_proc(child, "cmdline").startswith(b"sleep"))
    assert (mine.read_number(child), other.read_number(child)) == (7, 3)
    assert mine.is_on(child)
    assert other.is_on(child)
    assert not Labels("ff23456788abcdef").is_on(child)
    kill_labelled(mine, 0.0)  # even if no time is left after looking; it stays a zombie, which has no label
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


# its pipes

FORGING = """
import os, sys, time
sys.path.append(sys.argv[1])
from supervisor.messages import EVENTS, Sender, to_line
runs = [dict(number=n, status=s, seconds=0.1, cpu_seconds=0.0, exit_code=10, signal=None, detail="")
        for n, s in ((0, "won"), (1, "killed"))]
done = dict(event="done", winner=0, tie=False, seconds=0.1, infrastructure=None, runs=runs)
verdict = dict(verdict=[0, True, ""])
while not os.path.exists(sys.argv[2]): time.sleep(0.02)
for path in (f"/proc/{os.getppid()}/fd/0", f"/proc/{os.getppid()}/fd/1", *open(sys.argv[2]).read().split()):
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        continue
    for message in (done, verdict, (1, done), (1, verdict)):
        for line in (to_line(message), Sender(b"guess", EVENTS).to_line(message), b"garbage"):
            os.write(pipe, line)
time.sleep(0.3)
os._exit(10)
"""


def test_no_racer_can_forge_a_win(supervise, level, tmp_path):
    """It writes to the pipes between client and supervisor, at whichever end it can open them."""
    before, told = set(list_descriptors()), tmp_path / "told"

    def tell(_):
        pipes = [f"/proc/{os.getpid()}/fd/{number}" for number in set(list_descriptors()) - before]
        (tmp_path / "telling").write_text("\n".join(path for path in pipes if os.path.exists(path)))
        (tmp_path / "telling").rename(told)

    forger = python("forger", FORGING, str(Path(supervisor.__file__).parents[1]), str(told))
    check = {"forger": "it is wrong", "good": None}
    result = supervise(
        forger, answering(seconds=1.5), check=lambda racer, *_: check[racer.name], level=level, watch=tell
    )
    assert statuses(result) == {"forger": "wrong answer", "good": "won"}
    assert result.infrastructure is None


def test_the_pipes_and_the_memory_of_the_supervisor_are_closed_to_racers(supervise, level):
    code = (
        "import os\n"
        "for name in ('fd/0', 'fd/1', 'mem'):\n"
        "    try: open(f'/proc/{os.getppid()}/{name}', 'rb'); print('open', name)\n"
        "    except OSError as error: print(error.strerror)\n"
        "raise SystemExit(10)"
    )
    assert supervise(python("curious", code), level=level).output == b"Permission denied\n" * 3


def race_as_powerful_as_racers(folder):
    """Without the right to look into other processes, which racers of root do not have either."""
    ctypes.CDLL(None).prctl(24, ctypes.c_ulong(19), 0, 0, 0)  # PR_CAPBSET_DROP, CAP_SYS_PTRACE
    spy = shell("spy", "readlink /proc/$PPID/fd/1 && exit 10")
    print(statuses(Supervision([spy], Limits(LONG), folder=folder / "race", level=SUBREAPER).run())["spy"])


def test_the_supervisor_is_closed_even_to_racers_that_have_all_of_its_rights(tmp_path):
    with Fork(race_as_powerful_as_racers, tmp_path) as command:
        assert command.output.read() == b"no answer\n", command.errors.read()


def test_only_signed_messages_count_and_each_only_once():
    sender, receiver = Sender(b"key", EVENTS), Receiver(b"key", EVENTS)
    first, second = sender.to_line({"a": 1}), sender.to_line([2])
    assert receiver.receive(first[:7]) == []
    assert receiver.receive(first[7:] + b"garbage" + second) == [{"a": 1}, [2]]
    assert receiver.receive(first + second) == []  # again
    for other in (Sender(b"another", EVENTS), Sender(b"key", ORDERS)):
        other.count = 9
        assert receiver.receive(other.to_line("forged")) == []
    for line in (
        to_line((9, "unsigned")),
        b"\xff\n",
        b"0" * 32 + b"\n",
        b"\n\n",
        sender.to_line("x").replace(b"\n", b" "),
    ):
        assert receiver.receive(line + b"\n") == []
    assert receiver.receive(sender.to_line("last")) == ["last"]


def test_a_flood_without_an_end_is_not_kept():
    receiver = Receiver(b"key", EVENTS)
    for _ in range(40):
        receiver.receive(b"x" * 2**20)
    assert len(receiver.rest) <= 2**24


# privileges


def test_racers_gain_no_privileges(supervise, level):
    code = (
        "wanted = ('NoNewPrivs', 'CapEff', 'CapBnd')\n"
        "found = dict(line.split() for line in open('/proc/self/status') if line.startswith(wanted))\n"
        "print(found['NoNewPrivs:'], *(int(found[f'{name}:'], 16) >> 19 & 1 for name in wanted[1:]))\n"
        "raise SystemExit(10)"
    )
    found = supervise(python("curious", code), level=level).output.split()
    assert found[:2] == [b"1", b"0"]
    assert found[2] == b"0" or os.geteuid() != 0
