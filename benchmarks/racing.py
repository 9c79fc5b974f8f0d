"""The overhead of a race beyond the winner's run time, at both levels; --leaks also looks for leaked descriptors."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from preselect.errors import InputError
from preselect.race.supervision import LEVELS, Limits, Racer, Supervision

MOST_MILLISECONDS = 60.0  # median of sleeping racers at k = 4
RACES, IN_A_ROW = 12, 1000

SLEEP = ("sh", "-c", "sleep 0.1; exit 10")
SPIN = (sys.executable, "-I", "-S", "-c", "import os, time\nwhile time.process_time() < 0.1: pass\nos._exit(10)")
LOSER = {SLEEP: ("sh", "-c", "sleep 100; exit 10"), SPIN: (sys.executable, "-I", "-S", "-c", "while True: pass")}


def run_alone(command):
    start = time.perf_counter()
    subprocess.run(command, check=False)
    return time.perf_counter() - start


def run_race(command, k, folder, level, seed=0):
    racers = [Racer("winner", command), *(Racer(f"loser {i}", LOSER[command]) for i in range(k - 1))]
    start = time.perf_counter()
    result = Supervision(racers, Limits(60), folder=folder, seed=seed, level=level).run()
    seconds = time.perf_counter() - start
    if result.winner != "winner" or result.infrastructure:
        raise RuntimeError(result)
    return seconds, result.seconds


def measure_overheads(command, k, folder, level):
    """Return milliseconds per race, beyond a bare run just before it and beyond the winner's run within the race."""
    over_bare, over_own = [], []
    for seed in range(RACES):
        bare = run_alone(command)
        whole, own = run_race(command, k, folder, level, seed)
        over_bare.append(1000 * (whole - bare))
        over_own.append(1000 * (whole - own))
    return over_bare, over_own


def get_90th_percentile(values):
    return statistics.quantiles(values, n=10)[-1]


def find_levels(folder):
    for level in LEVELS:
        try:
            Supervision([Racer("probe", ("true",))], Limits(60), folder=folder, level=level).run()
        except InputError as error:
            print(error)
        else:
            yield level


def race_in_a_row(folder, level):
    before, start = len(os.listdir("/proc/self/fd")), time.perf_counter()
    racers = [Racer(name, ("false",), exit_codes=(1,)) for name in "ab"]
    for seed in range(IN_A_ROW):
        if Supervision(racers, Limits(60), folder=folder, seed=seed, level=level).run().winner is None:
            raise RuntimeError("a race without a winner")
    each = 1000 * (time.perf_counter() - start) / IN_A_ROW
    return each, len(os.listdir("/proc/self/fd")) - before


def main():
    reached = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        levels = list(find_levels(folder))
        print(f"\noverhead of a race, ms, {RACES} races each: median (90 %); target {MOST_MILLISECONDS:g} at k = 4\n")
        print(f"{'level':14} {'racers':9} k   beyond a bare run   beyond the winner's run in the race")
        for level in levels:
            for kind, command in (("sleeping", SLEEP), ("spinning", SPIN)):
                for k in (1, 2, 4):
                    bare, own = measure_overheads(command, k, folder, level)
                    middle = statistics.median(bare)
                    print(f"{level:14} {kind:9} {k} {middle:9.1f} ({get_90th_percentile(bare):.1f})"
                          f"{statistics.median(own):16.1f} ({get_90th_percentile(own):.1f})", flush=True)  # fmt: skip
                    reached &= kind != "sleeping" or k != 4 or middle <= MOST_MILLISECONDS
        if "--leaks" in sys.argv[1:]:
            reached &= find_no_leaks(folder, levels)
    return 0 if reached else 1


def find_no_leaks(folder, levels):
    print(f"\n{IN_A_ROW} races of 2 in a row")
    more = 0
    for level in levels:
        each, more_here = race_in_a_row(folder, level)
        print(f"{level:14} {each:.1f} ms each, {more_here} descriptors leaked")
        more += more_here
    return more == 0


if __name__ == "__main__":
    sys.exit(main())
