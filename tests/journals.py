"""Journals for tests: a preselector of three solvers, rounds played with it, and ways to damage the file."""

import hashlib
import math
import random
import sqlite3
import zlib

import pytest
from click.testing import CliRunner

from preselect import NoWinner, Preselector, Void
from preselect.cli.main import preselect as command
from preselect.errors import JournalError
from preselect.store import Journal, Learner
from preselect.store.record import make_digest
from preselect.store.storage import MAIN, Row

SOLVERS = {"cadical": {"cdcl": 1, "age": 5.0}, "saps": {"cdcl": 0, "age": 20.0}, "kissat": {"cdcl": 1, "age": None}}
TRIGGERS = [f"{table}_refuses_{change}" for table in ("journals", "events") for change in ("update", "delete")]


def make_preselector(policy="newton"):
    return Preselector(SOLVERS, ["size", "ratio"], policy=policy, seed=3)


def open_learner(path, policy="newton", **options):
    return Learner.open(path, make=lambda: make_preselector(policy), **options)


def draw_context(generator):
    return {"size": generator.choice([None, math.exp(generator.uniform(0, 9))]), "ratio": generator.uniform(3, 5)}


def draw_outcome(generator, chosen):
    """Some outcome for the arms chosen, as `learn` takes it."""
    order = generator.sample(chosen, generator.randint(1, len(chosen)))
    after = generator.choice([None, generator.random()])
    ends = [{"winner": order[0], "after": after}, {"ranking": order}, {"outcome": NoWinner(after)}, {"outcome": Void()}]
    return generator.choice(ends)


def play(learner, rounds, seed=0):
    """Rounds in which every decision has its outcome at once."""
    generator = random.Random(seed)
    for place in range(rounds):
        entry = learner.select(draw_context(generator), k=2, label=f"{place}.cnf")
        learner.learn(entry, winner=generator.choice(entry.decision.names), details={"seconds": place / 7})


def change(path, *statements, triggers=TRIGGERS, chained=False):
    """Change a journal by other means; with `chained`, by somebody who makes the digests fit too."""
    connection = sqlite3.connect(path)
    for trigger in triggers:
        connection.execute(f"DROP TRIGGER {trigger}")
    for statement in statements:
        assert connection.execute(statement).rowcount, statement
    if chained:
        digest = hashlib.sha256(_genesis(connection)).digest()
        for row in connection.execute("SELECT * FROM events ORDER BY id").fetchall():
            digest = make_digest(digest, Row(MAIN, *row[2:]))
            connection.execute("UPDATE events SET digest = ? WHERE id = ?", (digest, row[0]))
        connection.create_function("fitting", 2, lambda digest, state: hashlib.sha256(digest + state).digest())
        event = "SELECT events.digest FROM events WHERE number = after"
        connection.execute(f"UPDATE snapshots SET digest = fitting(({event}), state) WHERE EXISTS ({event})")
    connection.commit()
    connection.close()


def _genesis(connection):
    return zlib.decompress(connection.execute("SELECT genesis FROM journals").fetchone()[0])


def run(*arguments, expect=0):
    """Run `preselect journal` in this process."""
    result = CliRunner().invoke(command, ["journal", *map(str, arguments)])
    assert result.exit_code == expect, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def collect_refusals(path):
    """What opening says, for reading and for writing."""
    said = []
    for attempt in (lambda: Journal.read(path), lambda: open_learner(path)):
        with pytest.raises(JournalError) as refusal:
            attempt()
        said.append(str(refusal.value))
    return said


def list_events(path):
    """All events of a journal."""
    with Journal.read(path) as journal:
        return [record.row for record in journal.records()]


def fill(path):
    """Write a journal of 6 rounds, the last one unfinished, with an arm that joined."""
    with open_learner(path, about={"purpose": "test"}) as learner:
        play(learner, 3)
        learner.add("glucose", {"cdcl": 1})
        play(learner, 2, seed=1)
        learner.select([1.0, None], k=3, label="last.cnf", eligible=["saps", "glucose", "kissat"])
    return path
