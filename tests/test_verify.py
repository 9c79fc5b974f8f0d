"""Verifying a journal: nothing acknowledged is lost when its writer is killed, and every change is found."""

import json
import os
import subprocess
import sys

import pytest
from journals import change, collect_refusals, fill, list_events, make_preselector, open_learner, play

from preselect.errors import JournalError
from preselect.store import Journal, Learner, journal, verify


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def written(path):
    return fill(path)


WRITER = """
import json, os, random, signal, sys, time, traceback
from preselect import Preselector
from preselect.store import Learner

def write(path, pipe, seed):
    generator = random.Random(seed)
    with Learner.open(path, make=make, snapshot_every=7) as learner:
        waiting = [entry.number for entry in learner.unfinished()]
        while True:
            entry = learner.select([generator.random()], k=2)
            os.write(pipe, b"decision %d\\n" % entry.number)
            waiting.append(entry.number)
            number = waiting.pop(generator.randrange(len(waiting)))
            names = [one for one in learner.unfinished() if one.number == number][0].decision.names
            learner.learn(number, winner=generator.choice(names))
            os.write(pipe, b"outcome %d\\n" % number)

def make():
    return Preselector(["a", "b", "c", "d"], ["size"], policy="thompson", seed=0)

# compile once, for all the processes that are forked from this one
preselector = make()
decision = preselector.select([0.5], k=2)
preselector.learn(decision, winner=decision.names[0])
preselector.to_bytes()

generator, acknowledged = random.Random(0), []
for kill in range(int(sys.argv[2])):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(sys.argv[1], theirs, kill)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(70)
    os.close(theirs)
    said = b""
    if kill % 2:  # at least one step is done; otherwise the moment may be one of the opening
        said = os.read(ours, 1)
    time.sleep(generator.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status
    while part := os.read(ours, 65536):
        said += part
    os.close(ours)
    acknowledged += said.decode().splitlines()
print(json.dumps(acknowledged))
"""


@pytest.mark.parametrize("kills", [24, pytest.param(1000, marks=pytest.mark.soak)])
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(path, kills):
    command = [sys.executable, "-c", WRITER, path, str(kills)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600,
                         env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})  # fmt: skip
    assert run.returncode == 0, run.stderr
    acknowledged = [line.split() for line in json.loads(run.stdout)]
    with Journal.read(path) as journal:
        events = [record.row for record in journal.records()]
    decisions = {event.number for event in events if event.kind == "decision"}
    outcomes = [event.decision for event in events if event.kind == "outcome"]
    assert {int(number) for kind, number in acknowledged if kind == "decision"} <= decisions
    assert {int(number) for kind, number in acknowledged if kind == "outcome"} <= set(outcomes)
    assert len(set(outcomes)) == len(outcomes)
    assert kills // 2 <= len(acknowledged) <= len(events) <= len(acknowledged) + kills
    found = verify(path)
    assert found.equal, found.difference
    with Learner.open(path, make=make_preselector, compare=False) as learner:
        assert len(learner.unfinished()) == len(decisions) - len(outcomes)
    assert verify(path).equal


def test_truncated_and_overwritten_files_are_refused_or_found(path):
    with open_learner(path, snapshot_every=10) as learner:
        play(learner, 40)
    whole, events = path.read_bytes(), list_events(path)
    for length in (1, 100, 511, 512, 4096, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:length])
        assert all("is damaged" in said or "is not a journal" in said for said in collect_refusals(path))
    noticed = 0
    for first in range(4096, len(whole), 4096):
        path.write_bytes(whole[:first] + bytes(4096) + whole[first + 4096 :])
        try:
            equal = verify(path).equal
        except JournalError:
            equal = False
        noticed += not equal
        assert not equal or list_events(path) == events  # a page that holds nothing at present
    assert noticed > 10


ONE = "x'000000000000f03f'"  # 1.0
FIRST, LAST = "substr(numbers, 9)", "substr(numbers, 1, length(numbers) - 8)"  # all numbers but the first, or the last


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (f"UPDATE events SET numbers = CAST({LAST} || {ONE} AS BLOB) WHERE number = 12", "decision 12"),
        (f"UPDATE events SET numbers = CAST({LAST} || {ONE} AS BLOB) WHERE number = 5", "decision 5 (2.cnf)"),
        (f"UPDATE events SET numbers = CAST({ONE} || {FIRST} AS BLOB) WHERE number = 5", "scores was [1.0, "),
        ("UPDATE events SET body = json_set(body, '$.chosen[0]', 'x') WHERE number = 3", "chosen was ['x', "),
        ("UPDATE events SET numbers = (SELECT numbers FROM events WHERE number = 1) WHERE number = 3", "decision 3"),
        ("UPDATE events SET numbers = x'00' WHERE number = 3", "event 3 is damaged"),
        ("UPDATE events SET body = '{}' WHERE number = 2", "event 2 is damaged"),
        ("UPDATE events SET body = 'x' WHERE number = 2", "event 2 is damaged"),
        ("UPDATE events SET body = json_set(body, '$.kind', 'void', '$.names', json('[]')) WHERE number = 2", "deci"),
        ("UPDATE events SET body = json_set(body, '$.names[0]', 'x') WHERE number = 2", "event 2 cannot be"),
        ("UPDATE events SET body = json_set(body, '$.features.cdcl', 0) WHERE number = 7", "decision 8"),
        ("DELETE FROM events WHERE number = 4", "event 4 is missing"),
        ("DELETE FROM events WHERE number = 12", "a snapshot after event 12, but the last event is 11"),
        ("UPDATE events SET decision = 12 WHERE number = 2", ""),
    ],
)
def test_every_change_is_found(written, statement, found, chained):
    assert verify(written).equal
    change(written, statement, chained=chained)
    difference = verify(written).difference
    assert found in difference if chained or "missing" in found or "last event" in found else "digest" in difference


def test_changes_without_effect_are_found_by_their_digest(written):
    change(written, "UPDATE events SET body = json_set(body, '$.label', 'other.cnf') WHERE number = 5")
    assert verify(written).difference == "event 5 (decision) is not as it was written: its digest does not match"


def test_a_change_that_carries_its_own_digest_is_found_by_the_next_event(written):
    with Journal.read(written) as journal:
        digests = {record.number: record.row.digest.hex() for record in journal.records(after=5)}
    change(written, "UPDATE events SET body = json_set(body, '$.label', 'x') WHERE number = 5", chained=True)
    assert verify(written).equal
    restored = [f"UPDATE events SET digest = x'{digest}' WHERE number = {number}" for number, digest in digests.items()]
    change(written, *restored, triggers=[])
    assert verify(written).difference.startswith("event 6 ")


def test_a_snapshot_of_another_state_is_found(written, monkeypatch):
    change(written, "UPDATE snapshots SET digest = NULL, state = (SELECT genesis FROM journals)", triggers=[])
    monkeypatch.setattr(journal, "list_versions", lambda: {"numpy": "9.9"})
    said = verify(written).difference
    assert said.startswith("the state after event 12 differs from the snapshot kept then (that may change last bits: ")
    assert said.endswith(" and is 9.9)")
