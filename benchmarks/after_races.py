"""The latency of a race with an after-race going on, against one without: median within 10 ms at k = 2.

    python benchmarks/after_races.py

Also: how long `--at-once 4` takes on sleeping racers, as a share of one after the other.
"""

import json
import secrets
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from preselect.race import RaceSession

MOST_MILLISECONDS = 10.0
RACES, AT_ONCE = 40, 4

MARK = secrets.token_hex(8)  # in the commands of all racers
WINNER = f": {MARK}; sleep 0.1; exit 10"
SPIN = f": {MARK}; while :; do :; done"


def write_pool(folder, budget):
    path = folder / f"pool-{budget}.toml"
    arms = {"winner": WINNER, **{f"spin{number}": SPIN for number in range(4)}}
    tables = (
        f'[arms.{name}]\ncommand = ["sh", "-c", {json.dumps(script)}, "{{instance}}"]\n'
        for name, script in arms.items()
    )
    path.write_text(
        f'k = 2\npolicy = "random"\n[limits]\nseconds = 0.4\n[learning]\nbudget = {budget}\n' + "".join(tables)
    )
    return path


def measure(session, instance):
    """Return milliseconds of a race beyond its own time; in between there is time for an after-race to begin."""
    start = time.perf_counter()
    result = session.run(instance)
    passed = time.perf_counter() - start
    time.sleep(0.15)
    return 1000 * (passed - result.seconds), len(session._after_races)


def count_racers():
    """Count the racers that are still alive."""
    return sum(MARK.encode() in read_command(path) for path in Path("/proc").glob("[0-9]*/cmdline"))


def read_command(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def race_at_once(folder, lanes):
    path = folder / f"at-once-{lanes}.toml"
    path.write_text('k = 1\n[arms.one]\ncommand = ["sh", "-c", "sleep 0.5; exit 10", "{instance}"]\n')
    start = time.perf_counter()
    with RaceSession(path) as session, ThreadPoolExecutor(lanes) as threads:
        list(threads.map(session.run, [path] * 16))
    return time.perf_counter() - start


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with RaceSession(write_pool(folder, 0)) as plain, RaceSession(write_pool(folder, 100)) as learning:
            instance = folder / "instance"
            instance.touch()
            for session in (plain, learning):
                measure(session, instance)  # compiles
            pairs = [(measure(plain, instance), measure(learning, instance)) for _ in range(RACES)]
        left = count_racers()
        without, beside = ([pair[place][0] for pair in pairs] for place in (0, 1))
        going_on = sum(pair[1][1] for pair in pairs)
        difference = statistics.median(beside) - statistics.median(without)
        print(f"a race beyond its own time, ms, median of {RACES}: {statistics.median(without):.1f} without, "
              f"{statistics.median(beside):.1f} with after-races ({going_on} going on at the next race)")  # fmt: skip
        print(f"difference {difference:.1f} ms, target at most {MOST_MILLISECONDS:g}; processes left: {left}")
        one, four = race_at_once(folder, 1), race_at_once(folder, AT_ONCE)
        print(f"16 races of 0.5 s: {one:.2f} s one after the other, {four:.2f} s {AT_ONCE} at once: {four / one:.2f}")
    return 0 if difference <= MOST_MILLISECONDS and left == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
