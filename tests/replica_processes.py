"""Replicas as processes of their own, writers that use them over HTTP, and whoever kills them."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import httpx
import psycopg

PRESELECTOR = {"arms": {"a": {"x": 1.0}, "b": {"x": 2.0}, "c": {}, "d": {"x": 0.5}}, "context": ["size"]}


class Process:
    """A replica that can be killed and started again; its port stays."""

    def __init__(self, store, log):
        self.store, self.log, self.port = store, log, 0
        self.kills = 0

    def start(self):
        command = [sys.executable, "-m", "preselect", "serve", "--store", self.store, "--port", str(self.port)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*command, "--log-level", "info"], stdout=subprocess.PIPE, stderr=log, text=True
            )
        line = self.process.stdout.readline()
        assert line.startswith("Serving http://127.0.0.1:"), (line, self.log.read_text()[-3000:])
        self.url = line.split()[1]
        self.port = int(self.url.rpartition(":")[2])

    def kill(self):
        self.process.kill()
        self.process.communicate()
        self.kills += 1

    def stop(self):
        self.process.terminate()
        self.process.communicate()
        return self.process.returncode


class Writer(threading.Thread):
    """Decides through one replica and tells another, repeats what was not answered, and keeps what was acknowledged."""

    def __init__(self, number, replicas, over):
        super().__init__(daemon=True)
        self.number, self.replicas, self.over = number, replicas, over
        self.random = random.Random(number)
        self.told, self.arms, self.failures = {}, set(), []
        self.repeats = 0

    def run(self):
        try:
            with httpx.Client(timeout=20) as self.client:
                place = 0
                while not self.over.is_set():
                    self.play(place)
                    place += 1
        except BaseException as error:
            self.failures.append(repr(error))

    def play(self, place):
        shown = {"k": 2, "context": {"size": self.random.random()}, "request_id": f"{self.number}.{place}"}
        made = self.call("POST", "/v1/preselectors/p/decisions", shown, (200, 201))
        winner = self.random.choice(made["names"])
        self.call("PUT", f"/v1/decisions/{made['id']}/outcome", {"winner": winner}, (200, 201))
        self.told[made["id"]] = winner
        if place % 25 == 24:
            arm = f"w{self.number}.{place}"
            self.call("PUT", f"/v1/preselectors/p/arms/{arm}", {"features": {"x": self.random.random()}}, (200, 201))
            self.arms.add(arm)

    def call(self, method, path, body, expected):
        """Call any replica until one answers."""
        while True:
            try:
                url = self.random.choice(self.replicas).url
                answer = self.client.request(method, url + path, json=body)
            except httpx.TransportError:
                self.repeats += 1
                time.sleep(0.05)
                continue
            if answer.status_code == 503:
                self.repeats += 1
                time.sleep(0.05)
                continue
            assert answer.status_code in expected, (method, path, answer.status_code, answer.text)
            return json.loads(answer.text)


class Watcher:
    """Looks past the service at who leads, and at how many events have numbers."""

    def __init__(self, url):
        self.connection = psycopg.connect(url, autocommit=True)

    def find_leader(self):
        """Return the id of the process that leads; None if none does."""
        found = self.connection.execute(
            "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) "
            "WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND datname = current_database()"
        ).fetchone()
        return found and int(found[0].split()[1])

    def wait_for_leader(self, seconds=30):
        """Return the id of the process that leads, once there is one."""
        limit = time.monotonic() + seconds
        while (leader := self.find_leader()) is None:
            assert time.monotonic() < limit, "nobody leads"
            time.sleep(0.02)
        return leader

    def count(self):
        """Return how many events have numbers, and how many wait."""
        query = "SELECT count(number), count(*) - count(number) FROM preselect.events"
        return self.connection.execute(query).fetchone()

    def wait_for_takeover(self, dead):
        """Return after how many seconds another process leads, and has numbered something."""
        began, (numbered, _) = time.monotonic(), self.count()
        while self.find_leader() in (None, dead) or self.count()[0] == numbered:
            assert time.monotonic() < began + 30, "nobody takes over"
            time.sleep(0.02)
        return time.monotonic() - began


def play(store, folder, *, kills, seed=0, writers=4):
    """Let writers use two replicas that are killed at random moments, in turn the one that leads and the other one.

    Returns the writers, and after how many seconds each leader was followed.
    """
    replicas = [Process(store, folder / f"{place}.log") for place in range(2)]
    for replica in replicas:
        replica.start()
    made = httpx.put(f"{replicas[0].url}/v1/preselectors/p", json=PRESELECTOR, timeout=20)
    assert made.status_code == 201, made.text
    over, generator, takeovers = threading.Event(), random.Random(seed), []
    threads = [Writer(number, replicas, over) for number in range(writers)]
    watcher = Watcher(store)
    try:
        for thread in threads:
            thread.start()
        for place in range(kills):
            time.sleep(generator.uniform(0.0, 1.0))
            takeovers += strike(replicas, watcher, is_leader=place % 2 == 0)
            assert not any(thread.failures for thread in threads), [thread.failures for thread in threads]
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    settle(watcher)
    watcher.connection.close()
    replicas[0].kill()
    assert replicas[1].stop() in (0, -signal.SIGTERM)
    return threads, takeovers


def strike(replicas, watcher, *, is_leader):
    """Kill the leader or the other one, and start it again; return how long the leader was missed."""
    leader = watcher.wait_for_leader()
    victim = next(one for one in replicas if (one.process.pid == leader) == is_leader)
    pid = victim.process.pid
    os.kill(pid, 9)
    found = [watcher.wait_for_takeover(pid)] if pid == leader else []
    victim.kill()
    victim.start()
    return found


def settle(watcher, seconds=60):
    """Wait until nothing waits for a number."""
    limit = time.monotonic() + seconds
    while watcher.count()[1]:
        assert time.monotonic() < limit, watcher.count()
        time.sleep(0.05)
