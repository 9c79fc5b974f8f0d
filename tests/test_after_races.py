"""After-races: what they find, what they may cost, when they end, and that nothing is lost when they are killed."""

import os
import random
import sys
import time

import pytest
from commands import preselect
from processes import Fork, find_marked, read_proc, wait_until, wait_until_all_died
from test_race_hostile import BOMB, DAEMON

from preselect.cli.main import preselect as command
from preselect.errors import InputError
from preselect.race import RaceSession, read_pool
from preselect.race.summary import summarise_races
from preselect.store import Journal, read_rounds, verify

ANSWER = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"
NONE = 'from = "none"'
LEARNING = "[learning]\nbudget = 10\n"

pytestmark = pytest.mark.usefixtures("token")


@pytest.fixture
def formula(tmp_path):
    path = tmp_path / "tiny.cnf"
    path.write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    return path


@pytest.fixture
def make(pool):
    """Writes a pool with after-races, of arms that answer after a time."""

    def write(times, *, learning=LEARNING, k=1, **more):
        arms = {name: f"sleep {seconds}; {ANSWER}" for name, seconds in times.items()}
        path = pool({**arms, **more}, head=f"k = {k}", features=NONE)
        path.write_text(path.read_text() + learning)
        return path

    return write


def read_journal(path):
    with Journal.read(read_pool(path).journal) as journal:
        return read_rounds(journal)


def test_all_arms_are_compared_and_the_best_one_has_won(make, formula):
    path = make({"slow": 0.8, "middle": 0.5, "fast": 0.2})
    with RaceSession(path) as session:
        result = session.run(formula)
        session.settle()
    (one,) = read_journal(path)
    assert one.chosen == (result.winner,) == result.chosen
    assert set(one.also) == {"slow", "middle", "fast"} - {result.winner}
    assert one.names == ("fast",)
    details = one.details["after_race"]
    assert one.after == (details["seconds"] / 20)
    assert set(details["arms"]) == set(one.also)
    assert details["arms"][one.also[0]]["started"] < details["arms"][one.also[1]]["started"]
    assert {arm["status"] for arm in details["arms"].values()} <= {"won", "timeout"}
    assert not details["is_stopped"]
    assert one.details["racers"][result.winner]["status"] == "won"
    assert verify(read_pool(path).journal).equal


def test_the_answer_is_there_before_the_after_race(make, formula):
    path = make({"one": 0.1}, k=1, other="sleep 60", third="sleep 60")
    with RaceSession(path) as session:
        results = [session.run(formula) for _ in range(6)]
        assert session.learner.unfinished()
        assert [one.kind for one in read_journal(path)][-1] is None  # noted, not yet told
        session.settle()
    rounds = read_journal(path)
    assert all(one.kind is not None for one in rounds)
    assert [one.details["seconds"] for one in rounds] == [result.seconds for result in results]


def test_arms_that_were_not_chosen_can_be_the_only_ones_with_an_answer(make, formula):
    path = make({}, learning=LEARNING, bad="sleep 0.1; exit 1", good=f"sleep 0.1; {ANSWER}")
    path.write_text(path.read_text().replace("seconds = 20", "seconds = 1"))
    with RaceSession(path) as session:
        chosen = []
        for _ in range(5):
            chosen.append(session.run(formula))
            session.settle()
    lost = [one for one in chosen if one.winner is None]
    assert len(lost) <= 1
    with Journal.read(read_pool(path).journal) as journal:
        summary = summarise_races(read_rounds(journal))
    assert (summary.solved, summary.unsolved) == (5 - len(lost), len(lost))
    assert summary.counts.wins == {"good": 5}
    assert verify(read_pool(path).journal).equal


def test_the_budget_is_kept(make, formula):
    path = make({f"arm{number}": 0.3 for number in range(6)}, learning="[learning]\nbudget = 0.5\n", k=2)
    with RaceSession(path) as session:
        for _ in range(6):
            session.run(formula)
            session.settle()
    with Journal.read(read_pool(path).journal) as journal:
        summary = summarise_races(read_rounds(journal))
    assert 0.2 < summary.after_races.share <= 0.52  # to kill an arm at its limit takes a moment
    assert 4 <= summary.after_races.arms <= 6  # one for each race of two


@pytest.mark.parametrize("learning", ["", "[learning]\nbudget = 0\n", "[learning]\nbudget = 0.1\n"])
def test_without_a_budget_there_are_none(make, formula, learning):
    path = make({"one": 0.1, "other": 0.1}, learning=learning)
    with RaceSession(path) as session:
        session.run(formula)
        assert session.learner.unfinished() == []
    assert "after_race" not in read_journal(path)[0].details


def test_the_next_race_ends_it_and_learns_what_is_known(make, formula, token):
    path = make({"one": 0.3}, k=1, a="setsid sleep 60 & sleep 60", b="setsid sleep 60 & sleep 60")
    path.write_text(path.read_text().replace("seconds = 20", "seconds = 5"))
    with RaceSession(path) as session:
        while session.run(formula).winner is None:
            pass
        wait_until(lambda: any(b"setsid" in read_proc(pid, "cmdline") for pid in find_marked(token)))
        before = len(session._after_races)
        session.run(formula)
        assert before == 1
        told = [one for one in read_journal(path) if one.kind is not None]
        assert told[-1].details["after_race"]["is_stopped"]
        assert told[-1].details["after_race"]["used"] > 0
    assert find_marked(token) == []
    assert all(one.kind is not None for one in read_journal(path))
    assert verify(read_pool(path).journal).equal


def test_racers_step_back(make, formula, token):
    path = make({"one": 0.5}, k=1, other="sleep 60")
    niceness = []

    def look(_):
        niceness.extend(int(stat[16]) for stat in find_sleepers(token))

    with RaceSession(path) as session:
        while session.run(formula, watch=look).winner is None:
            pass
        racing = set(niceness)
        wait_until(lambda: niceness.clear() or look([]) or niceness)
        assert racing <= {os.nice(0)}
        assert set(niceness) == {19}


def find_sleepers(token):
    stats = [read_proc(pid, "stat") for pid in find_marked(token) if b"sleep" in read_proc(pid, "cmdline")]
    return [stat.rpartition(b")")[2].split() for stat in stats if b")" in stat]


def test_what_cannot_be_started_afterwards_is_no_comparison(make, formula):
    path = make({"one": 0.2, "other": 0.2}, gone="")
    path.write_text(path.read_text().replace('["/bin/sh", "-c", "", "{instance}"]', '["no-such-solver", "{instance}"]'))
    with RaceSession(path) as session:
        for _ in range(3):
            session.run(formula)
            session.settle()
    assert all("gone" not in one.also for one in read_journal(path))
    assert any(one.also for one in read_journal(path))


DEAF = """
import signal, time
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(number, signal.SIG_IGN)
"""


HOSTILE = {"deaf": DEAF + "time.sleep(1000)", "daemon": DAEMON, "bomb": BOMB, "stopped": "os.kill(os.getpid(), 19)"}


@pytest.mark.parametrize("ends", ["by the next race", "in time"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_racers_do_not_survive_an_after_race(make, formula, tmp_path, token, kind, ends):
    """They attack a race in test_race_hostile, and an after-race here."""
    script, started = tmp_path / "hostile.py", tmp_path / "started"
    script.write_text(f"import os\nopen({str(started)!r}, 'w').close()\n{HOSTILE[kind]}")
    arguments = f"stays {tmp_path}/there" if kind == "daemon" else started
    path = make({"good": 0.8}, hostile=f"exec {sys.executable} -I -S {script} {arguments}")
    with RaceSession(path) as session:
        session._starts.list_eligible = lambda _: ["good"]
        assert session.run(formula).winner == "good"
        wait_until(started.exists)
        if ends == "in time":
            session.settle()
        else:
            assert session.run(formula).winner == "good"
    last = started.stat().st_mtime_ns
    assert find_marked(token) == []
    time.sleep(0.3)
    assert started.stat().st_mtime_ns == last  # the bomb would change it
    rounds = read_journal(path)
    assert [one.kind for one in rounds] == ["winner"] * len(rounds)
    assert rounds[0].also == (("hostile",) if ends == "in time" else ())


def race_once(path, formula):
    with RaceSession(path) as session:
        session.run(formula)


def run_command(folder, *arguments):
    os.chdir(folder)
    command(arguments)


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.soak)])
def test_a_kill_during_an_after_race_loses_no_outcome_and_leaves_nobody(make, formula, tmp_path, token, kills):
    path = make({"one": 0.1, "other": 0.1}, k=2, a="setsid sleep 60 & sleep 60", b="sleep 60")
    path.write_text(path.read_text().replace("seconds = 20", "seconds = 1").replace("budget = 10", "budget = 50"))
    race_once(path, formula)
    draw, answers = random.Random(kills), 0
    for _ in range(kills):
        with Fork(run_command, tmp_path, "race", str(path), str(formula), "--format", "json") as process:
            answers += process.output.readline() != b""
            time.sleep(draw.uniform(0.0, 0.3))
            process.kill()
        wait_until_all_died(token, tmp_path)
    race_once(path, formula)
    rounds = read_journal(path)
    assert answers == kills
    assert all(one.kind in ("winner", "no-winner") for one in rounds)
    assert len(rounds) == kills + 2
    again = verify(read_pool(path).journal)
    assert again.equal, again.difference


@pytest.mark.parametrize("wait", ["false", "true"])
def test_a_list_waits_for_after_races_if_it_is_told_to(make, formula, wait):
    path = make({"one": 0.15, "other": 0.15}, learning=f"[learning]\nbudget = 10\nwait = {wait}\n")
    done = preselect("race", path, *[formula] * 4)
    with_more = [bool(one.also) for one in read_journal(path)]
    assert with_more[-1]  # nobody waits at the end
    assert all(with_more) == (wait == "true")
    assert "after-races" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budget = -1", "learning.budget is -1; use a number of at least 0"),
        ("budget = true", "learning.budget is True; use a number of at least 0"),
        ("priority = 20", "learning.priority is 20; use an integer from 0 to 19"),
        ("wait = 1", "learning.wait is 1; use true or false"),
        ("bugdet = 1", "unknown key 'learning.bugdet'; did you mean 'learning.budget'?"),
    ],
)
def test_what_is_wrong_in_the_table_is_said(make, text, message):
    with pytest.raises(InputError, match=message):
        read_pool(make({"one": 0}, learning=f"[learning]\n{text}\n"))
