"""What an open dashboard costs the service: CPU per request with and without one, in turn, and memory over time.

Two services with SQLite get the same load, one after the other, again and again: n = 50 arms, 8 + 8 features, k = 4.
One of them has a dashboard open, which reads as the page does: the stream of changes, and the curves every two seconds.
With BROWSER=1 it is open in a real Chromium, whose own memory is shown, too. An hour with a pause in each minute:

    BROWSER=1 TURNS=60 SECONDS=8 EVERY=60 python benchmarks/dashboard_load.py
"""

import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright
from serve import Served

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browsers import find_chromium

TURNS = int(os.environ.get("TURNS", "10"))
SECONDS = float(os.environ.get("SECONDS", "4"))
EVERY = float(os.environ.get("EVERY", "0"))  # seconds from the beginning of a turn to that of the next, at least
MOST_SLOWER = 0.05


@contextmanager
def browse(url):
    """Open the page of the preselector in Chromium; yield how to read its memory, in MB."""
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-background-networking"]
        page = playwright.chromium.launch(executable_path=find_chromium(), args=arguments).new_page()
        page.goto(f"{url}/preselectors/bench")
        session = page.context.new_cdp_session(page)

        def read_heap():
            session.send("HeapProfiler.collectGarbage")
            return session.send("Runtime.getHeapUsage")["usedSize"] / 2**20

        yield read_heap


@contextmanager
def imitate(url):
    """Read like the page of a preselector, for as long as the service runs."""
    page = f"{url}/preselectors/bench"
    for read in (lambda: _follow(page + "/live"), lambda: _fetch(page + "/series")):
        threading.Thread(target=read, daemon=True).start()
    yield None


def _follow(address):
    with urllib.request.urlopen(address) as answer:
        for _ in answer:
            pass


def _fetch(address):
    while True:
        urllib.request.urlopen(address).read()
        time.sleep(2.0)


def read_memory(served):
    """MB that the service has in memory."""
    lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def main():
    threading.excepthook = lambda _: None  # the services end before their readers
    with ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2)]
        alone, watched = (stack.enter_context(Served("bench.journal", folder)) for folder in folders)
        for served, folder in zip((alone, watched), folders, strict=True):
            served.load("both", 1.0, folder)  # compiles, and fills caches
        read_heap = stack.enter_context((browse if os.environ.get("BROWSER") else imitate)(watched.url))
        ratios, requests = [], 0
        for turn in range(TURNS):
            end = time.monotonic() + EVERY
            pairs = [(alone, folders[0]), (watched, folders[1])]
            found = {one: one.load("both", SECONDS, folder) for one, folder in (pairs if turn % 2 else pairs[::-1])}
            costs = [found[one]["cpu"] for one in (alone, watched)]
            ratios.append(costs[1] / costs[0] - 1.0)
            requests += found[watched]["requests"]
            print(
                f"CPU per request {1e6 * costs[0]:4.0f} µs alone, {1e6 * costs[1]:4.0f} µs with a dashboard; "
                f"after {requests} requests {read_memory(alone):.1f} and {read_memory(watched):.1f} MB"
                + (f", the page {read_heap():.1f} MB" if read_heap else ""),
                flush=True,
            )
            time.sleep(max(0.0, end - time.monotonic()))
    slower = statistics.median(ratios)
    error = statistics.stdev(ratios) / TURNS**0.5
    missed = slower - 2.0 * error > MOST_SLOWER  # turns differ by more than the limit: noise must not decide
    verdict = "MISSED" if missed else "ok    "
    print(f"{verdict}  {slower:+.1%} (± {error:.1%}) with a dashboard; at most {MOST_SLOWER:.0%}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
