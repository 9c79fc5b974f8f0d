"""What a request to the service costs: n = 50 arms, 8 + 8 features, k = 4, 16 connections.

Decisions alone, outcomes alone, and both in turn; with SQLite, where every answer is on disk first (WAL,
synchronous=FULL), and without storage, so that the price of durability is seen. The load comes from another process:
wrk where it is installed, else load.py. CPU is that of the service, all its threads, and hardly depends on what else
the machine does; the other figures do. Machines differ in speed, so only a ratio decides whether the benchmark fails:
CPU of decisions and outcomes in turn over that of GET /healthz, which goes through the same server and does nothing.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ARMS, FEATURES, CONNECTIONS = 50, 8, 16
SECONDS = float(os.environ.get("SECONDS", "6"))
MOST_TIMES, MOST_P99, FEWEST = 18.0, 0.025, 1000.0

HERE = Path(__file__).parent


class Served:
    """A service in a process of its own."""

    def __init__(self, store, folder):
        command = [sys.executable, "-m", "preselect", "serve", "--port", "0", "--store", store]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
        self.url = self.process.stdout.readline().split()[1]
        self.port = self.url.rpartition(":")[2]

    def __enter__(self):
        self.process.__enter__()
        while not self.is_ready():
            pass
        names = [f"x{number}" for number in range(FEATURES)]
        features = [(7 * arm + number) % 13 / 13 for arm in range(ARMS) for number in range(FEATURES)]
        arms = {
            f"arm{arm}": dict(zip(names, features[FEATURES * arm : FEATURES * (arm + 1)], strict=True))
            for arm in range(ARMS)
        }
        body = json.dumps({"arms": arms, "context": [f"c{number}" for number in range(FEATURES)]}).encode()
        request = urllib.request.Request(
            f"{self.url}/v1/preselectors/bench", body, {"Content-Type": "application/json"}, method="PUT"
        )
        urllib.request.urlopen(request).close()
        return self

    def is_ready(self):
        try:
            urllib.request.urlopen(f"{self.url}/readyz").close()
        except OSError:
            return False
        return True

    def __exit__(self, *error):
        self.process.terminate()
        self.process.__exit__(*error)

    @property
    def cpu(self):
        """Seconds of CPU that the service has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def load(self, mode, seconds, folder):
        before = self.cpu
        if shutil.which("wrk"):
            command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "-s", HERE / "serve.lua", self.url]
            environment = {**os.environ, "MODE": mode, "IDS": folder}
        else:
            arguments = [self.port, mode, str(seconds), str(CONNECTIONS), f"{folder}/0"]
            command, environment = [sys.executable, HERE / "load.py", *arguments], os.environ
        text = subprocess.check_output(command, env=environment, text=True)
        found = json.loads(text.partition("RESULT ")[2].splitlines()[0])
        assert not found["failed"], text
        return found | {"cpu": (self.cpu - before) / found["requests"]}


def measure(store, name):
    with tempfile.TemporaryDirectory() as folder, Served(store, folder) as served:
        for mode in ("select", "outcome"):
            served.load(mode, 1.0, folder)  # compiles, and fills caches
        print(f"{name}:")
        modes = {"health": "nothing", "select": "decisions", "outcome": "outcomes", "both": "both in turn"}
        found = {}
        for mode, label in modes.items():
            one = found[mode] = served.load(mode, SECONDS, folder)
            print(
                f"  {label:13}{one['requests'] / one['seconds']:7.0f} requests/s   p50 {1e3 * one['p50']:6.2f} ms"
                f"   p99 {1e3 * one['p99']:6.2f} ms   CPU {1e6 * one['cpu']:4.0f} µs per request"
            )
        return found


def main():
    tool = "wrk" if shutil.which("wrk") else "load.py"
    print(f"n = {ARMS}, {FEATURES} + {FEATURES} features, k = 4, {CONNECTIONS} connections, load from {tool}")
    found = measure("bench.journal", "SQLite, on disk before the answer (WAL, synchronous=FULL)")
    measure("memory:", "without storage")
    both = found["both"]
    rate, p99, times = both["requests"] / both["seconds"], both["p99"], both["cpu"] / found["health"]["cpu"]
    for text, good in (
        (f"{rate:.0f} requests/s; goal {FEWEST:.0f} on a quiet machine", rate >= FEWEST),
        (f"p99 {1e3 * p99:.1f} ms; goal below {1e3 * MOST_P99:.0f} on a quiet machine", p99 < MOST_P99),
        (f"CPU of {times:.1f} requests that do nothing; at most {MOST_TIMES:.0f}", times <= MOST_TIMES),
    ):
        print(f"{'ok    ' if good else 'MISSED'}  {text}")
    return 0 if times <= MOST_TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
