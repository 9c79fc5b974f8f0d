"""Who wins a race, how the other racers end, ties, and the verification of answers."""

import os
import re
import signal

import pytest
from racers import LONG, TOKEN, answering, by_name, python, shell, sleeper, statuses, waiting

from preselect.race.supervision import LEVELS, Limits, Racer, Supervision
from preselect.race.supervisor.race import _TIE_SECONDS, _pick_first, _Run

pytestmark = pytest.mark.usefixtures("token")


# who wins


def test_the_first_answer_wins_and_the_others_are_killed(supervise, level):
    result = supervise(sleeper(), shell("good", "echo said; echo wrong >&2; exit 20"), sleeper("other"), level=level)
    assert (result.winner, result.tie, result.level, result.infrastructure) == ("good", False, level, None)
    assert statuses(result) == {"sleeper": "killed", "good": "won", "other": "killed"}
    good, other = by_name(result)["good"], by_name(result)["other"]
    assert (good.output, good.errors) == (b"said\n", b"wrong\n")
    assert (good.exit_code, good.signal, other.exit_code, other.signal) == (20, None, None, signal.SIGKILL)
    assert 0 < result.seconds == good.seconds <= other.seconds


def test_the_best_level_is_chosen(supervise):
    result = supervise(answering())
    assert result.level in LEVELS
    assert result.winner == "good"


def test_a_result_keeps_the_beginning_of_what_each_racer_printed(supervise, tmp_path):
    wordy = shell("wordy", f"echo first; echo second; echo third >&2; touch {tmp_path}/said; exit 3")
    result = supervise(wordy, waiting(tmp_path / "said", "echo fourth; exit 10"), keep=7)
    assert [(one.output, one.errors) for one in result.finishes] == [(b"first\ns", b"third\n"), (b"fourth\n", b"")]
    assert result.output == b"fourth\n"
    assert list((tmp_path / "race").iterdir()) == []


def test_an_exit_without_answer_does_not_end_the_race(supervise, level, patient):
    others = shell("gives up", "exit 0"), shell("fails", "exit 3")
    result = supervise(*others, patient.racer, level=level, watch=patient.watch)
    assert statuses(result) == {"gives up": "no answer", "fails": "no answer", "good": "won"}
    assert by_name(result)["fails"].detail == "exit code 3"


def test_answers_may_be_other_codes(supervise):
    result = supervise(shell("ten", "exit 10", exit_codes=(0,)), shell("zero", "sleep 0.2", exit_codes=(0,)))
    assert statuses(result) == {"ten": "no answer", "zero": "won"}


def test_a_pattern_decides_instead_of_the_code(supervise):
    result = supervise(
        shell("ten", "echo s UNKNOWN; exit 10", pattern="^s (UN)?SATISFIABLE$"),
        shell("zero", "sleep 0.2; echo c; echo s SATISFIABLE; echo c", pattern="^s (UN)?SATISFIABLE$"),
    )
    assert statuses(result) == {"ten": "no answer", "zero": "won"}


def test_a_pattern_that_takes_forever_is_given_up(supervise, patient):
    bad = shell("bad", f"echo {'a' * 60}b", pattern="^(a+)+$")
    result = supervise(bad, patient.racer, watch=patient.watch)
    assert statuses(result) == {"bad": "infrastructure error", "good": "won"}
    assert "matching the pattern ^(a+)+$ took more than" in result.infrastructure


def test_no_answer_in_time(supervise, level):
    result = supervise(
        sleeper(), shell("stubborn", "trap '' TERM INT HUP; sleep 1000; exit 10"), seconds=0.5, level=level
    )
    assert result.winner is None
    assert statuses(result) == {"sleeper": "timeout", "stubborn": "timeout"}
    assert result.seconds >= 0.5


def test_all_racers_give_up(supervise):
    result = supervise(shell("a", "exit 1"), shell("b", "exit 2"))
    assert (result.winner, result.infrastructure) == (None, None)
    assert set(statuses(result).values()) == {"no answer"}


def test_commands_that_cannot_be_started(supervise, tmp_path, level, patient):
    plain, without = tmp_path / "plain", tmp_path / "without"
    plain.write_text("#!/bin/sh\n")
    without.write_text("#!/no/such/interpreter\n")
    without.chmod(0o755)
    result = supervise(
        Racer("no", ("no-such-command-here",)),
        Racer("path", (str(tmp_path / "missing"),)),
        Racer("plain", (str(plain),)),
        Racer("without", (str(without),)),
        patient.racer,
        level=level,
        watch=patient.watch,
    )
    assert list(statuses(result).values()) == ["not started"] * 4 + ["won"]
    details = [finish.detail for finish in result.finishes]
    assert details[0] == "no such command: no-such-command-here"
    assert details[2] == f"not executable: {plain}"


def test_what_a_racer_finds(supervise, level):
    code = (
        "import os, resource\n"
        "print(sorted(os.listdir('/proc/self/fd')))\n"
        "print(os.getsid(0) == os.getpid(), os.path.samefile('/proc/self', f'/proc/{os.getpid()}'))\n"
        "print(os.readlink('/proc/self/fd/0'), resource.getrlimit(resource.RLIMIT_CORE), os.getcwd())\n"
        f"print(os.environ['MINE'], '{TOKEN}' in os.environ)\n"
        "print([line for line in open('/proc/self/status') if line.startswith('SigIgn')])\n"
        "raise SystemExit(10)"
    )
    result = supervise(python("curious", code, environment={"MINE": "yes"}), level=level)
    lines = result.finishes[0].output.decode().splitlines()
    assert lines[0] == "['0', '1', '2', '3']"  # the last is the listing itself
    assert lines[1:4] == ["True True", f"/dev/null (0, 0) {os.getcwd()}", "yes True"]
    # the interpreter itself ignores SIGPIPE (13) and SIGXFSZ (25), nothing else is ignored
    ignored = int(re.findall(r"[0-9a-f]{16}", lines[4])[0], 16) & (2**31 - 1)  # those above are the C library's own
    assert ignored == 1 << 12 | 1 << 24


def test_cpu_time_counts_children(supervise, level):
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    while time.process_time() < 0.3: pass\n"
        "    os._exit(0)\n"
        "os.wait(); os._exit(10)"
    )
    result = supervise(python("busy", code), level=level)
    assert result.finishes[0].cpu_seconds >= 0.3


# ties


def test_ties_go_to_less_cpu_time_then_to_the_lot():
    def first(*runs):
        return pick(*((1.0 + late * _TIE_SECONDS, cpu_seconds, lot) for late, cpu_seconds, lot in runs))

    assert first((0, 0.5, 0.1)) == (0, False)
    assert first((0, 0.5, 0.1), (2, 0.1, 0.1)) == (0, False)
    assert first((0, 0.5, 0.1), (0.5, 0.4, 0.9)) == (1, True)
    assert first((0, 0.5, 0.9), (0.5, 0.5, 0.1)) == (1, True)
    # the third is too late for the first, even though it is close to the second
    assert first((0, 0.5, 0.1), (0.6, 0.4, 0.1), (1.2, 0.1, 0.1)) == (1, True)


def pick(*answers):
    """The number of the first of some runs, and whether there was a tie."""
    runs = [_Run(number, answering(), lot, None, None) for number, (_, _, lot) in enumerate(answers)]
    for run, (seconds, cpu_seconds, _) in zip(runs, answers, strict=True):
        run.seconds, run.cpu_seconds = seconds, cpu_seconds
    first, tie = _pick_first(runs)
    return first.number, tie


def test_racers_that_answer_together_tie(supervise, level, tmp_path):
    """Both wait for the end of the same pipe; the one that took more CPU time loses."""
    for attempt in range(40):
        pipe = tmp_path / f"pipe{attempt}"
        os.mkfifo(pipe)
        racers = [python("much", SPEND, "0.15", str(pipe)), python("little", SPEND, "0", str(pipe))]
        result = supervise(*racers, level=level, watch=Opener(pipe).watch)
        if result.tie:  # on a busy machine one of them may wake up milliseconds later
            break
    assert result.tie
    assert statuses(result) == {"much": "finished late", "little": "won"}


SPEND = """
import os, sys, time
while time.process_time() < float(sys.argv[1]): pass
pipe = os.open(sys.argv[2], os.O_RDONLY | os.O_NONBLOCK)
os.mkdir(f"{sys.argv[2]}-{sys.argv[1]}")
os.set_blocking(pipe, True)
os.read(pipe, 1)
os._exit(10)
"""


class Opener:
    """Holds the writing end of a pipe until two racers read from it."""

    def __init__(self, pipe):
        self.pipe = pipe
        self.writing = os.open(pipe, os.O_RDWR)

    def watch(self, _):
        if self.writing is not None and len(list(self.pipe.parent.glob(f"{self.pipe.name}-*"))) == 2:
            os.close(self.writing)
            self.writing = None


# verification

WRONG_VERIFIER = ("sh", "-c", 'echo "not in $1" >&2; grep -q right "$1"', "verifier", "{output}")


def test_a_wrong_answer_does_not_end_the_race(supervise, level):
    result = supervise(
        shell("fast", "echo liar; exit 10", verifier=WRONG_VERIFIER),
        shell("good", "sleep 0.4; echo right; exit 10", verifier=WRONG_VERIFIER),
        sleeper(),
        level=level,
    )
    assert statuses(result) == {"fast": "wrong answer", "good": "won", "sleeper": "killed"}
    assert by_name(result)["fast"].detail.startswith("the verifier exited with 1: not in /")


def test_the_path_is_put_inside_an_argument_and_never_split(tmp_path):
    folder = tmp_path / "a folder with spaces"
    racer = shell("good", "exit 10", verifier=("sh", "-c", '[ "${1%/*}" = "$2" ]', "test", "x{output}y", f"x{folder}"))
    result = Supervision([racer], Limits(LONG), folder=folder).run()
    assert result.winner == "good"


def test_the_client_checks_answers(supervise, level):
    asked = []

    def check(racer, output, exit_code):
        asked.append((racer.name, exit_code))
        return None if b"right" in output else "it is not right"

    result = supervise(
        shell("fast", "echo liar; exit 10"), shell("good", "sleep 0.4; echo right; exit 20"), check=check, level=level
    )
    assert statuses(result) == {"fast": "wrong answer", "good": "won"}
    assert by_name(result)["fast"].detail == "it is not right"
    assert asked == [("fast", 10), ("good", 20)]


def test_an_own_verifier_goes_before_the_check(supervise):
    result = supervise(answering(verifier=("true",)), check=lambda *_: "never asked")
    assert result.winner == "good"


def test_answers_during_a_verification_wait_for_it(supervise):
    slow = ("sh", "-c", "sleep 0.8")
    result = supervise(answering("first", verifier=slow), answering("second", 0.3))
    assert statuses(result) == {"first": "won", "second": "finished late"}
    assert not result.tie


def test_a_verifier_has_the_time_of_the_race(supervise, level):
    result = supervise(answering(verifier=("sh", "-c", "sleep 1000 & sleep 1000")), sleeper(), seconds=1.0, level=level)
    assert statuses(result) == {"good": "infrastructure error", "sleeper": "timeout"}
    assert "not verified in time" in by_name(result)["good"].detail
    assert "not verified in time" in result.infrastructure


@pytest.mark.parametrize("verifier", [("no-such-verifier",), ("sh", "-c", "kill -SEGV $$")])
def test_a_verifier_that_fails_is_an_infrastructure_error(supervise, verifier):
    result = supervise(answering("first", verifier=verifier), answering("second", 0.5))
    assert statuses(result) == {"first": "infrastructure error", "second": "won"}
    assert "the verifier failed" in result.infrastructure


def test_an_error_in_the_check_ends_the_race(supervise):
    with pytest.raises(ZeroDivisionError):
        supervise(answering(), sleeper(), check=lambda *_: str(1 / 0))
