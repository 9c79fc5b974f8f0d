"""What pages cost after 10⁶ rounds: a journal of that size is made and served, and every page is asked for twice.

The first rounds are really played, the others are copies of them, an hour later each. CPU is that of the service. The
first time, pages are shown while the history is being read; the second time, after that. At most 1 s of CPU and 2 MB.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from preselect import Preselector
from preselect.store import Learner
from preselect.store.journal import commit

ARMS, FEATURES, K, PLAYED = 50, 8, 4, 10_000
MOST_SECONDS, MOST_BYTES = 1.0, 2_000_000


def make_journal(path, rounds):
    """Write a journal of so many rounds, of which one in fifty waits for ever."""
    generator = random.Random(0)
    arms = {f"arm {n}": {f"f{m}": generator.random() for m in range(FEATURES)} for n in range(ARMS)}
    make = lambda: Preselector(arms, [f"c{m}" for m in range(FEATURES)], seed=0)  # noqa: E731
    with Learner.open(path, make=make, snapshot_every=5000) as learner:
        for begin in range(0, PLAYED, 1000):
            with learner.batch():
                for number in range(begin, begin + 1000):
                    play(learner, number, generator)
        rows = [record.row for record in learner.journal.records()]
        for copy in range(1, rounds // PLAYED):
            repeat(learner.journal, rows, copy)
        learner.journal.keep_snapshot(learner.preselector.to_bytes())


def play(learner, number, generator):
    entry = learner.select([generator.random() for _ in range(FEATURES)], k=K, label=f"visit {number}")
    if number % 50:
        learner.learn(entry, winner=generator.choice(entry.decision.names))


def repeat(journal, rows, copy):
    shift = copy * len(rows)
    for row in rows:
        ended = None if row.decision is None else row.decision + shift
        journal.draft(row._replace(at=row.at + 3600.0 * copy, decision=ended))
    commit([journal])


class Service:
    """The service of a journal, in a process of its own."""

    def __init__(self, journal):
        command = [sys.executable, "-m", "preselect", "serve", "--journal", journal, "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[1]

    @property
    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, path):
        """The CPU seconds of an answer, and its size."""
        before = self.cpu
        request = urllib.request.Request(self.url + path, headers={"Accept": "text/html"})
        with urllib.request.urlopen(request) as answer:
            size = len(answer.read())
        return self.cpu - before, size

    def wait(self):
        """Wait until it has opened the journal."""
        while True:
            try:
                return self.ask("/readyz")
            except OSError:
                time.sleep(0.1)

    def settle(self, page):
        """Wait until all of the history has been read."""
        while b"The history is being read" in urllib.request.urlopen(self.url + page).read():
            time.sleep(0.5)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        make_journal(Path(folder) / "bench.journal", rounds)
        service = Service(f"{folder}/bench.journal")
        try:
            return measure(service)
        finally:
            service.process.terminate()
            service.process.wait()


def measure(service):
    page, missed = "/preselectors/bench", False
    paths = ("/", page, f"{page}/series", f"{page}/arms", f"{page}/arms?search=3&sort=share", f"{page}/decisions/1")
    service.wait()
    print(f"opened after {service.cpu:.1f} s of CPU")
    for when in ("while the history is read", "afterwards"):
        for path in paths:
            seconds, size = service.ask(path)
            print(f"{when}, {path}: {seconds:.2f} s of CPU, {size / 1000:.0f} kB")
            missed |= seconds > MOST_SECONDS or size > MOST_BYTES
        service.settle(page)
    print(
        f"all read after {service.cpu:.1f} s of CPU\n{'MISSED' if missed else 'ok    '}  every page: at most 1 s, 2 MB"
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
