"""What journals cost: CPU time of a recorded step beyond choosing and learning, and of reading a long journal.

    python benchmarks/journal.py [ROUNDS] [FOLDER]

The reference, to which all figures are also given as a ratio, is reading all rows with plain sqlite3 in this process.
Durability: SQLite, WAL, synchronous=FULL, one commit for each batch of 50 rounds.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from preselect import Preselector
from preselect.store import Learner, make_key

N, FEATURES, CONTEXT, K, BATCH = 50, 8, 8, 4, 50  # as of a service
RACERS = 8  # arms without features, as of races


def make():
    generator = random.Random(0)
    arms = {f"arm{i}": {f"a{j}": generator.gauss(0, 1) for j in range(FEATURES)} for i in range(N)}
    return Preselector(arms, [f"c{j}" for j in range(CONTEXT)], seed=0)


def make_racers():
    return Preselector([f"arm{i}" for i in range(RACERS)], [f"c{j}" for j in range(CONTEXT)], seed=0)


def describe_race(names):
    """Details as races record them."""
    one = {"status": "killed", "seconds": 0.5, "cpu_seconds": 0.4, "exit_code": None, "signal": 9, "detail": ""}
    racers = {name: {**one, "status": "won"} if name == names[0] else one for name in names}
    return {"seconds": 0.5, "feature_seconds": 0.01, "limit": 5.0, "level": "subreaper", "tie": False, "answer": None,
            "racers": racers, "reason": None}  # fmt: skip


def write_races(path, rounds):
    generator, contexts = random.Random(2), draw_contexts(rounds)
    with Learner.open(path, make=make_racers) as learner:
        for first in range(0, rounds, BATCH):
            with learner.batch():
                for place, context in enumerate(contexts[first : first + BATCH], first):
                    entry = learner.select(context, k=K, label=f"instances/{place}.cnf")
                    names = list(entry.decision.names)
                    generator.shuffle(names)
                    learner.learn(entry, winner=names[0], after=0.1, details=describe_race(names))


def draw_contexts(count):
    generator = random.Random(1)
    return [[generator.gauss(0, 1) for _ in range(CONTEXT)] for _ in range(count)]


def play_plainly(rounds):
    """Select and learn without a journal."""
    preselector, contexts = make(), draw_contexts(rounds)
    begun = time.process_time()
    for context in contexts:
        decision = preselector.select(context, k=K)
        preselector.learn(decision, winner=decision.names[0])
    return time.process_time() - begun


def play(path, rounds, *, keyed=True):
    """Select and learn with a journal, in batches."""
    contexts, keys = draw_contexts(rounds), [make_key() if keyed else None for _ in range(rounds)]
    with Learner.open(path, make=make) as learner:
        begun = time.process_time()
        for first in range(0, rounds, BATCH):
            with learner.batch():
                for context, key in zip(contexts[first : first + BATCH], keys[first : first + BATCH], strict=True):
                    entry = learner.select(context, k=K, key=key)
                    learner.learn(key or entry, winner=entry.decision.names[0], details={"seconds": 0.5})
        return time.process_time() - begun


def read_plainly(path):
    begun = time.process_time()
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT * FROM events ORDER BY id").fetchall()
    connection.close()
    return time.process_time() - begun, len(rows)


def run(*command):
    """CPU time of a command, with all that starting Python takes."""
    begun = os.times()
    subprocess.run([sys.executable, "-m", "preselect", *map(str, command)], check=True, capture_output=True)
    ended = os.times()
    return ended.children_user + ended.children_system - begun.children_user - begun.children_system


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[2] if len(sys.argv) > 2 else folder) / "long.journal"
        play_plainly(200)  # compiles
        sample = 2_000
        pairs = [(play_plainly(sample), play(Path(folder) / f"{turn}.journal", sample)) for turn in range(5)]
        plain, recorded = (min(times) for times in zip(*pairs, strict=True))
        print(f"n = {N}, {FEATURES} + {CONTEXT} features, k = {K}, batches of {BATCH} rounds of select and learn")
        print(f"step without a journal  {1e6 * plain / sample / 2:8.1f} µs of CPU")
        print(f"step with a journal     {1e6 * recorded / sample / 2:8.1f} µs of CPU")
        print(f"beyond it               {1e6 * (recorded - plain) / sample / 2:8.1f} µs of CPU")
        if not path.exists():
            write_races(path, rounds)
        reference, events = read_plainly(path)
        print(f"\n{RACERS} arms, {CONTEXT} features, k = {K}: {events} events, {path.stat().st_size / 1e6:.0f} MB")
        print(f"plain sqlite3           {reference:8.2f} s of CPU")
        commands = {
            "start of Python": ("--version",),
            "journal show": ("journal", "show", path),
            "journal export": ("journal", "export", path, "--out", Path(folder) / "runs.csv"),
            "race report": ("race", "report", path, "--out", Path(folder) / "race.html"),
            "journal verify": ("journal", "verify", path),
        }
        for name, command in commands.items():
            seconds = run(*command)
            print(f"{name:23} {seconds:8.2f} s of CPU, {seconds / reference:6.1f} times the reference", flush=True)


if __name__ == "__main__":
    main()
