"""The command is killed at random moments and started again: nothing acknowledged is lost, and nobody survives."""

import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from preselect.race import read_pool
from preselect.store import Journal, Learner, verify

MOMENTS = 50
RACER = "setsid sleep 60 & sleep 0.0{tenths}; printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"


def marked(token):
    """Processes that carry a token in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue  # gone meanwhile
            if token.encode() in environment:
                found.append(int(entry.name))
    return found


def wait_until_nobody_is_left(token):
    deadline = time.monotonic() + 20
    while marked(token):
        assert time.monotonic() < deadline, f"processes survive: {marked(token)}"
        time.sleep(0.02)


def write_pool(folder):
    arms = "".join(
        f'[arms.a{i}]\ncommand = ["/bin/sh", "-c", {json.dumps(RACER.format(tenths=i + 1))}, "{{instance}}"]\n'
        for i in range(4)
    )
    path = folder / "pool.toml"
    path.write_text(f'k = 2\n[limits]\nseconds = 20\n[features]\nfrom = "sat"\n{arms}')
    return path


def test_killed_at_any_moment_nothing_is_lost_or_learnt_twice_and_nobody_survives(tmp_path):
    pool, formula, token = write_pool(tmp_path), tmp_path / "tiny.cnf", secrets.token_hex(16)
    formula.write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    command = [sys.executable, "-m", "preselect", "race", str(pool), "--format", "json", *[str(formula)] * 500]
    environment = {**os.environ, "RACE_TEST_TOKEN": token}
    draw, acknowledged = random.Random(0), []
    for _ in range(MOMENTS):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
        )
        first = process.stdout.readline() if draw.random() < 0.8 else b""  # else while it starts and opens the journal
        time.sleep(draw.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0]
        wait_until_nobody_is_left(token)
        acknowledged += [json.loads(line) for line in (first + rest).splitlines() if line.endswith(b"}")]
    journal_path = read_pool(pool).journal
    with Journal.read(journal_path) as journal:
        outcomes = {event.decision: event.body for event in journal.events() if event.kind == "outcome"}
        written = Counter(event.decision for event in journal.events() if event.kind == "outcome")
    assert len(acknowledged) >= MOMENTS
    assert len({one["decision"] for one in acknowledged}) == len(acknowledged)
    for one in acknowledged:
        assert outcomes[one["decision"]]["names"] == [one["winner"]]
    assert max(written.values()) == 1
    again = verify(journal_path)
    assert again.equal, again.difference
    with Learner.open(journal_path, make=lambda: None) as learner:
        policy = learner.preselector.policy
        assert policy.observations == sum(body["kind"] == "winner" for body in outcomes.values())
        assert policy.rounds == len(written) + len(learner.unfinished())
        kept = learner.preselector.to_bytes()
        learner.snapshot()
    assert verify(journal_path).equal
    with Journal.read(journal_path) as journal:
        assert journal.snapshots()[0].state == kept
