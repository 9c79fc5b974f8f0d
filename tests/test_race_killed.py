"""The command is killed at random moments and started again: nothing acknowledged is lost, and no process survives."""

import json
import os
import random
import time
from collections import Counter

import pytest
from processes import Fork, wait_until_all_died

from preselect.cli.main import preselect
from preselect.race import race, read_pool
from preselect.store import Journal, Learner, verify

RACER = "setsid sleep 60 & sleep 0.0{tenths}; printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"


@pytest.fixture
def formula(tmp_path):
    path = tmp_path / "tiny.cnf"
    path.write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    return path


@pytest.fixture
def killed_pool(pool, formula):
    """A pool of four arms; one race has compiled everything that the forks need."""
    path = pool({f"a{i}": RACER.format(tenths=i + 1) for i in range(4)}, head="k = 2")
    race(path, formula)
    return path


def run_command(folder, *arguments):
    os.chdir(folder)
    preselect(arguments)


def race_until_killed(pool, formula, token, draw):
    """Kill the command after a random time, often after its first race; return the races that it has acknowledged."""
    with Fork(run_command, formula.parent, "race", str(pool), "--format", "json", *[str(formula)] * 500) as command:
        first = command.output.readline() if draw.random() < 0.8 else b""  # or while it starts and opens the journal
        time.sleep(draw.uniform(0.0, 0.5))
        command.kill()
        lines = (first + command.output.read()).splitlines()
    wait_until_all_died(token, formula.parent)
    return [json.loads(line) for line in lines if line.endswith(b"}")]


def read_outcomes(path):
    with Journal.read(path) as journal:
        return [record.event for record in journal.records() if record.kind == "outcome"]


@pytest.mark.parametrize("kills", [20, pytest.param(300, marks=pytest.mark.soak)])
def test_a_killed_command_loses_nothing_learns_nothing_twice_and_leaves_no_process(killed_pool, formula, token, kills):
    draw = random.Random(kills)
    acknowledged = [one for _ in range(kills) for one in race_until_killed(killed_pool, formula, token, draw)]
    path = read_pool(killed_pool).journal
    outcomes = {event.decision: event for event in read_outcomes(path)}
    written = Counter(event.decision for event in read_outcomes(path))
    assert len(acknowledged) >= kills
    assert len({one["decision"] for one in acknowledged}) == len(acknowledged)
    for one in acknowledged:
        assert outcomes[one["decision"]].names == (one["winner"],)
    assert max(written.values()) == 1
    again = verify(path)
    assert again.equal, again.difference
    with Learner.open(path, make=lambda: None, compare=False) as learner:
        policy = learner.preselector.policy
        assert policy.observations == sum(event.outcome == "winner" for event in outcomes.values())
        assert policy.rounds == len(written) + len(learner.unfinished())
        kept = learner.preselector.to_bytes()
        learner.snapshot()
    assert verify(path).equal
    with Journal.read(path) as journal:
        assert next(journal.snapshots()).state == kept
