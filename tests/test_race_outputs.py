"""Outputs that racers remove, replace or move away, their own ones or those of others: what was printed counts."""

import os

import pytest
from processes import Fork, wait_until
from racers import LONG, answering, by_name, python, shell, statuses, waiting
from test_after_races import formula, make, read_journal  # noqa: F401
from test_race_values import by_value, instance  # noqa: F401

from preselect.race import RaceSession, race
from preselect.race.supervision import Limits, Supervision

pytestmark = pytest.mark.usefixtures("token")

REPLACED = {  # what happens to a file, $file
    "nothing": "rm $file",
    "another name": "mv $file $file.away",
    "a pipe": "rm $file; mkfifo $file",
    "a link to a device": "ln -sf /dev/zero $file",
    "a link to a file": "ln -sf /etc/hostname $file",
    "a folder": "rm $file; mkdir $file; touch $file/inside",
    "another file": "rm $file; echo wrong > $file",
}
FOLDER = {  # what happens to the folder with the files, $folder
    "no folder": "rm -rf $folder",
    "a folder elsewhere": "mv $folder $folder.away",
}
ALL = {**{by: f"for file in $folder/*; do {script}; done" for by, script in REPLACED.items()}, **FOLDER}
SOME = ("nothing", "a pipe", "a folder", "no folder")
PRINT = "echo right; exit 10"


class Attack:
    """A script that does something to all files of a folder, and what it says and waits for by files of its own."""

    def __init__(self, tmp_path, by, folder):
        self.signs, self.done = tmp_path / "signs", tmp_path / "signs" / "done"
        self.signs.mkdir()
        self.script = f"folder={folder}; {ALL[by]} 2> {self.signs}/problems; touch {self.done}"

    def wait(self, sign="done"):
        """A script that waits for a sign."""
        return f"until [ -e {self.signs}/{sign} ]; do sleep 0.02; done"

    def give(self, sign):
        """A script that gives a sign."""
        return f"touch {self.signs}/{sign}"


@pytest.fixture
def attack(tmp_path):
    return lambda by, folder=tmp_path / "race": Attack(tmp_path, by, folder)


def is_right(_racer, output, _exit_code):
    return None if output == b"right\n" else f"it is {output!r}"


@pytest.mark.parametrize("by", ALL)
def test_nobody_can_take_the_output_of_another_racer(supervise, attack, level, by):
    attacker = attack(by)
    victim = shell("good", f"{attacker.wait()}; {PRINT}", pattern="^right$")
    result = supervise(shell("attacker", f"{attacker.script}; exit 3"), victim, level=level, check=is_right)
    assert (result.winner, result.output, result.infrastructure) == ("good", b"right\n", None)


@pytest.mark.parametrize("by", SOME)
def test_verifiers_read_what_was_printed(supervise, attack, level, by):
    attacker = attack(by)
    victim = shell("good", f"{attacker.wait()}; {PRINT}", verifier=("grep", "-q", "right", "{output}"))
    result = supervise(shell("attacker", f"{attacker.script}; exit 3"), victim, level=level)
    assert (result.winner, result.output, result.infrastructure) == ("good", b"right\n", None)


@pytest.mark.parametrize("by", ALL)
def test_an_output_that_is_taken_after_the_answer_is_still_there(supervise, attack, by):
    """A process that the winner has left behind takes it while it is checked."""
    attacker = attack(by)

    def check(*answer):
        (attacker.signs / "checking").touch()
        wait_until(attacker.done.exists)
        return is_right(*answer)

    script = f"setsid sh -c '{attacker.give('started')}; {attacker.wait('checking')}; {attacker.script}'"
    result = supervise(shell("daemon", f"echo right; {script} & {attacker.wait('started')}; exit 10"), check=check)
    assert (result.winner, result.output) == ("daemon", b"right\n")


@pytest.mark.parametrize("verdict", [0, 1])
@pytest.mark.parametrize("by", SOME)
def test_what_a_verifier_says_of_a_file_that_was_replaced_counts_for_nothing(supervise, attack, by, verdict):
    attacker = attack(by)
    verifier = ("sh", "-c", f"{attacker.give('reading')}; {attacker.wait()}; exit {verdict}", "verifier", "{output}")
    script = f"{attacker.wait('reading')}; {attacker.script}; exit 3"
    result = supervise(shell("attacker", script), shell("good", PRINT, verifier=verifier))
    assert statuses(result) == {"attacker": "no answer", "good": "infrastructure error"}
    assert result.infrastructure == "the verifier failed: the output that it reads was removed or replaced"


def test_without_a_place_for_a_copy_the_race_is_void(supervise, tmp_path):
    folder, done = tmp_path / "race", tmp_path / "done"
    attacker = shell("attacker", f"mv {folder} {folder}.away; ln -s {tmp_path} {folder}; touch {done}; exit 3")
    victim = waiting(done, verifier=("true", "{output}"))
    result = supervise(attacker, victim)
    assert statuses(result) == {"attacker": "no answer", "good": "infrastructure error"}
    assert result.infrastructure.startswith("its output could not be copied for the verifier: ")


@pytest.mark.parametrize("by", SOME)
def test_outputs_of_after_races_cannot_be_taken(make, formula, tmp_path, attack, by):  # noqa: F811
    attacker = attack(by, tmp_path / "pool.journal.running" / "*")
    failing = dict.fromkeys(("one", "two"), "sleep 0.1; exit 3")
    hostile = {"attacker": f"{attacker.script}; exit 3", "good": f"{attacker.wait()}; {PRINT}"}
    path = make({}, learning="[learning]\nbudget = 1000\n", k=2, **failing, **hostile)
    with RaceSession(path) as session:
        session._starts.list_eligible = lambda _: list(failing)
        assert session.run(formula).winner is None
        session.settle()
    (one,) = read_journal(path)
    assert one.names == ("good",)
    assert one.details["after_race"]["arms"]["good"]["status"] == "won"


@pytest.mark.parametrize("value", ["'^cost (.*)$'", "['sh', '-c', 'tail -c 2 \"$1\"', 'sh', '{output}']"])
@pytest.mark.parametrize("by", SOME)
def test_values_are_those_of_what_was_printed(by_value, instance, tmp_path, attack, by, value):  # noqa: F811
    attacker = attack(by, tmp_path / "pool.journal.running" / "*")
    arms = {"attacker": f"{attacker.script}; echo cost 5", "good": f"{attacker.wait()}; echo cost 3"}
    verifier = "verifier = ['grep', '-q', 'cost', '{output}']\n"
    result = race(by_value(arms, success=f"[success]\nvalue = {value}\nbetter = 'smaller'\n{verifier}"), instance)
    assert statuses(result) == {"attacker": "behind", "good": "won"}
    assert (result.value, result.output, result.void) == (3.0, b"cost 3\n", None)


def test_a_value_of_a_file_that_was_replaced_counts_for_nothing(by_value, instance):  # noqa: F811
    value = "['sh', '-c', 'mv \"$1\" \"$1.away\"; echo 1', 'sh', '{output}']"
    result = race(by_value({"a": "echo x"}, success=f"[success]\nvalue = {value}\nbetter = 'smaller'\n"), instance)
    assert (result.winner, result.void) == (None, "the copy of its output was removed or replaced")


# its own


@pytest.mark.parametrize("by", REPLACED)
def test_a_racer_that_replaces_its_own_output_has_printed_all_the_same(supervise, by):
    script = f"file=$(readlink /proc/$$/fd/1 | cut -d ' ' -f 1); {REPLACED[by]}; {PRINT}"
    result = supervise(shell("good", script, pattern="^right$"), check=is_right)
    assert (result.winner, result.output) == ("good", b"right\n")


def test_a_racer_may_open_its_output_again(supervise, level):
    again = "echo one > /dev/stdout; echo two >> /proc/self/fd/1; echo three >> /dev/stderr; exit 10"
    result = supervise(shell("good", again), level=level)
    assert (result.output, result.finishes[0].errors) == (b"one\ntwo\n", b"three\n")


STRANGE = """
import fcntl, os
os.write(1, b"right\\n")
for flag in (os.O_DIRECT, os.O_APPEND, os.O_NONBLOCK):
    try: fcntl.fcntl(1, fcntl.F_SETFL, flag)
    except OSError: pass
os.lseek(1, 1000, os.SEEK_SET)
raise SystemExit(10)
"""


def test_how_a_racer_sets_its_descriptor_does_not_matter_to_readers(supervise, level):
    result = supervise(python("good", STRANGE, pattern="right"), check=is_right, level=level)
    assert (result.winner, result.output) == ("good", b"right\n")


def test_a_large_output_is_copied_whole(supervise, level):
    size = 5_000_001
    test = f'[ "$(stat --format=%s "$1")" = {size} ] && tail -c 4 "$1" | grep -q end'
    verifier = ("sh", "-c", test, "verifier", "{output}")
    racer = shell("good", f"head -c {size - 4} /dev/zero; echo end; exit 10", verifier=verifier)
    result = supervise(racer, level=level)
    assert (result.winner, len(result.output), result.output[-4:]) == ("good", size, b"end\n")


def test_files_of_a_race_are_gone_when_it_ends(supervise, level, tmp_path):
    read = tmp_path / "read"
    verifier = ("sh", "-c", f"touch {read}; grep -q right {{output}}")
    good = waiting(read, PRINT, verifier=verifier)
    result = supervise(shell("liar", "echo x; exit 10", verifier=verifier), good, level=level)
    assert statuses(result) == {"liar": "wrong answer", "good": "won"}
    assert list((tmp_path / "race").iterdir()) == []


def test_a_folder_that_is_a_link_is_refused(supervise, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "race").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="is a symbolic link"):
        supervise(answering())


def race_without_standard_streams(folder):
    os.dup2(1, 9)
    for standard in range(3):
        os.close(standard)
    result = Supervision([shell("good", PRINT)], Limits(LONG), folder=folder / "race", check=is_right).run()
    os.write(9, repr((by_name(result)["good"].status, result.output)).encode())
    os.dup2(9, 1)
    os.dup2(9, 2)


def test_a_caller_may_have_closed_its_standard_streams(tmp_path):
    with Fork(race_without_standard_streams, tmp_path) as command:
        assert command.output.read() == b"('won', b'right\\n')", command.errors.read()
