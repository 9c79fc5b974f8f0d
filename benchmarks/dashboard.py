"""What pages cost after very many rounds: the aggregate is fed with 10⁶ rounds, then each part of a page is made."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import random
import resource
import sys
from time import process_time
from types import SimpleNamespace

import msgspec

from preselect import Preselector
from preselect.serve.answers import Moment
from preselect.serve.dashboard import live, views
from preselect.serve.dashboard.aggregate import Aggregate
from preselect.serve.dashboard.series import make_series
from preselect.store.events import Decided, Told

ARMS, FEATURES, K = 50, 8, 4


def make_moments(preselector, rounds, generator):
    """Rounds at 500 a second, from 500 decisions that were really made."""
    made = []
    for number in range(500):
        decision = preselector.select([generator.random() for _ in range(FEATURES)], k=K)
        made.append(Decided.of(decision, k=K, label=f"visit {number}", key=f"{number:026x}"))
    for number in range(rounds):
        decided, at = made[number % len(made)], 1.7e9 + number / 500
        yield Moment(2 * number + 1, at, decided)
        told = Told("winner", (generator.choice(decided.chosen),), decision=2 * number + 1)
        yield Moment(2 * number + 2, at + 0.001, told)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    generator = random.Random(0)
    arms = {f"arm {n}": {f"f{m}": generator.random() for m in range(FEATURES)} for n in range(ARMS)}
    preselector = Preselector(arms, [f"c{m}" for m in range(FEATURES)], seed=0)
    aggregate, began = Aggregate(False), process_time()
    aggregate.fold(make_moments(preselector, rounds, generator))
    spent = process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rounds} rounds of {ARMS} arms, k = {K}: {1e6 * spent / rounds / 2:.1f} µs of CPU for an event")
    timeline = aggregate.timeline
    print(f"{len(timeline.buckets)} intervals of {timeline.width:g} s; the process has {memory:.0f} MB")
    watch = SimpleNamespace(name="bench", aggregate=aggregate, is_current=True)
    missed = False
    for name, make in (
        ("curves", lambda: msgspec.json.encode(make_series(aggregate))),
        ("page", lambda: "".join(live._render(watch, views.read_belief(preselector)).values()).encode()),
    ):
        make()
        began = process_time()
        size, seconds = len(make()), process_time() - began
        print(f"{name}: {1000 * seconds:.1f} ms of CPU, {size / 1000:.0f} kB")
        missed |= seconds > 1.0 or size > 2_000_000
    sys.exit(missed)


if __name__ == "__main__":
    main()
