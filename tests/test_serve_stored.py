"""What the service keeps: across restarts, kill -9 at any moment, a full disk, and storages that fail."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from services import Process, assert_problem, decide, open_service, put_demo, tell

from preselect.errors import JournalError
from preselect.preselector import Preselector
from preselect.serve import stored
from preselect.serve.schemas import NewDecision
from preselect.store import Decided, Journal, Learner, Told, read_preselector, verify


def test_a_restart_changes_nothing(tmp_path):
    file = tmp_path / "a.journal"
    with open_service(file=file) as client:
        put_demo(client, context=["size"], arms={"a": {"x": 1.0}, "b": {"x": None}, "c": {}})
        put_demo(client, "other")
        made = [decide(client, context={"size": number}, request_id=f"r{number}") for number in range(6)]
        for one in made[:4]:
            tell(client, one["id"], ranking=one["names"])
        client.put("/v1/preselectors/demo/arms/d", json={"features": {"x": 3.0}, "group": "g", "price": 1.0})
        client.delete("/v1/preselectors/demo/arms/a")
        paths = ["/v1/preselectors", "/v1/preselectors/demo/weights", "/v1/preselectors/demo/rounds"]
        paths += [f"/v1/decisions/{one['id']}" for one in made]
        before = [client.get(path).json() for path in paths]
    with open_service(file=file) as client:
        assert [client.get(path).json() for path in paths] == before
        again = client.post("/v1/preselectors/demo/decisions", json={"k": 2, "context": [0], "request_id": "r0"})
        assert again.status_code == 200
        assert again.json() == {**made[0], "status": "told", "outcome": before[3]["outcome"]}
        assert tell(client, made[0]["id"], ranking=made[0]["names"]).status_code == 200
        assert tell(client, made[4]["id"], winner=made[4]["names"][0]).status_code == 201
    assert verify(file, "demo").equal


def test_decisions_expire_across_a_restart(tmp_path):
    file = tmp_path / "a.journal"
    with open_service(file=file) as client:
        put_demo(client, expires_s=0.2)
        made = decide(client)
    time.sleep(0.2)
    with open_service(file=file) as client:
        assert_problem(tell(client, made["id"], winner=made["names"][0]), 410)
        assert client.get("/v1/preselectors/demo").json()["expired"] == 1


def test_a_journal_of_a_race_is_left_alone(tmp_path):
    file = tmp_path / "a.journal"
    with Learner.open(file, make=lambda: Preselector(["a", "b"], seed=0)) as learner:
        learner.select(k=1)
    with open_service(file=file) as client:
        assert client.get("/v1/preselectors").json() == {"preselectors": []}
        assert_problem(client.put("/v1/preselectors/main", json={"arms": ["a"]}), 409, "no service began")


def test_an_outcome_of_an_arm_that_has_left_is_kept_but_not_learnt_from(tmp_path):
    with open_service(file=tmp_path / "a.journal") as client:
        put_demo(client)
        made = decide(client)
        client.delete(f"/v1/preselectors/demo/arms/{made['names'][0]}")
        told = tell(client, made["id"], winner=made["names"][0])
        assert told.status_code == 201
        assert "not learnt" in told.json()["detail"]
        assert tell(client, made["id"], winner=made["names"][0]).status_code == 200


def test_a_step_that_cannot_be_written_has_not_happened(tmp_path, monkeypatch):
    """The storage fails for a while: 503, not ready; then it goes on, with everything that was acknowledged."""
    with open_service(file=tmp_path / "a.journal") as client:
        put_demo(client)
        first = decide(client)
        version = client.get("/v1/preselectors/demo").json()["version"]
        storage = client.application.backend._engine._storage
        with monkeypatch.context() as patch:
            for name in ("append", "keep_snapshot"):
                patch.setattr(storage, name, fail)
            refused = client.post("/v1/preselectors/demo/decisions", json={"k": 2, "request_id": "r"})
            assert_problem(refused, 503, "full")
            assert refused.headers["retry-after"] == "1"
            assert_problem(tell(client, first["id"], winner=first["names"][0]), 503, "full")
            assert_problem(client.get("/readyz"), 503)
            assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 200
        assert client.get("/v1/preselectors/demo").json()["version"] == version
        assert tell(client, first["id"], winner=first["names"][0]).status_code == 201
        assert client.post("/v1/preselectors/demo/decisions", json={"k": 2, "request_id": "r"}).status_code == 201
    assert verify(tmp_path / "a.journal", "demo").equal


def fail(*_):
    raise JournalError("the disk is full")


def test_a_mistake_of_ours_in_one_step_hurts_no_other(tmp_path, monkeypatch):
    """An unexpected error is a 500 for the request that has it; others of the same batch are done."""
    with open_service(file=tmp_path / "a.journal") as client:
        put_demo(client)
        usual = stored.answers.estimate
        monkeypatch.setattr(stored.answers, "estimate", lambda *_: 1 // 0)
        backend = client.application.backend

        async def ask():
            tasks = [backend.decide("demo", NewDecision(k=2)) for _ in range(5)]
            tasks.insert(2, backend.weights("demo", None))
            return await asyncio.gather(*tasks, return_exceptions=True)

        found = client.run(ask())
        assert isinstance(found[2], ZeroDivisionError)
        assert [is_new for _, is_new in (*found[:2], *found[3:])] == [True] * 5
        assert_problem(client.get("/v1/preselectors/demo/weights"), 500, "log")
        monkeypatch.setattr(stored.answers, "estimate", usual)
        assert client.get("/v1/preselectors/demo").json()["decisions"] == 5


class Worker(threading.Thread):
    """Decides and tells as fast as it can, and notes what was acknowledged. Requests are repeated until answered."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.label, self.decided, self.told, self.is_over = name, {}, {}, threading.Event()
        self.url, self.error = None, None

    def run(self):
        with httpx.Client(base_url=self.url, timeout=10) as self.client:
            self.work()

    def work(self):
        try:
            number = 0
            while not self.is_over.is_set():
                number += 1
                body = {"k": 2, "context": [number % 7], "request_id": f"{self.label}-{number}"}
                made = self.insist("POST", "/v1/preselectors/demo/decisions", body)
                if made is None:
                    return
                self.decided[made["id"]] = made["names"]
                winner = made["names"][number % 2]
                if self.insist("PUT", f"/v1/decisions/{made['id']}/outcome", {"winner": winner}) is None:
                    return
                self.told[made["id"]] = winner
        except BaseException as error:
            self.error = error

    def insist(self, method, path, body):
        while not self.is_over.is_set():
            try:
                answer = self.client.request(method, path, json=body)
            except httpx.TransportError:
                time.sleep(0.01)
                continue
            assert answer.status_code in (200, 201, 503), answer.text
            if answer.status_code != 503:
                return answer.json()
            time.sleep(0.05)
        return None


def check_everything(file, workers):
    """What was acknowledged is in the journal, once, and the state is what a replay of it gives."""
    with Journal.read(file, "demo") as journal:
        pairs = [(made.event, ended and ended.event) for made, ended in journal.rounds()]
        number = journal.last
    assert all(isinstance(made, Decided) and isinstance(ended, Told | None) for made, ended in pairs)
    decided = {made.key: list(made.chosen) for made, _ in pairs}
    told = {made.key: ended.names[0] for made, ended in pairs if ended is not None}
    requests = [made.request for made, _ in pairs]
    assert len(set(requests)) == len(requests) == len(decided)
    for worker in workers:
        assert worker.error is None
        assert worker.decided.items() <= decided.items()
        assert worker.told.items() <= told.items()
    found = verify(file, "demo")
    assert found.equal, found.difference
    assert found.events == number == len(decided) + len(told)
    preselector = read_preselector(file, "demo")
    assert preselector.policy.rounds == len(decided)
    assert preselector.policy.observations == len(told)
    return len(told)


def kill_again_and_again(folder, times, seed):
    """Kill the service at random moments under load, and start it again each time."""
    generator = random.Random(seed)
    workers = [Worker(name) for name in "abcd"]
    process = Process(folder, "--store", "a.journal")
    put_demo(process, context=["size"])
    port = process.port
    for worker in workers:
        worker.url = process.url
        worker.start()
    for _ in range(times):
        time.sleep(generator.expovariate(4.0))
        process.kill()
        process = Process(folder, "--store", "a.journal", port=port)
    time.sleep(0.3)
    for worker in workers:
        worker.is_over.set()
    for worker in workers:
        worker.join()
    process.stop()
    return check_everything(folder / "a.journal", workers)


def test_nothing_acknowledged_is_lost_when_it_is_killed(tmp_path):
    assert kill_again_and_again(tmp_path, 1, seed=0) > 0


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_when_it_is_killed_a_hundred_times(tmp_path):
    assert kill_again_and_again(tmp_path, 100, seed=1) > 100


FULL_DISK = """
import json, os, pathlib, sys, time
sys.path[:0] = {paths!r}
from services import Process, decide, put_demo, tell
from test_serve_stored import check_everything, Worker
folder = pathlib.Path({folder!r})
os.system(f"mount -t tmpfs -o size=16m tmpfs {{folder}}") and sys.exit(77)
ballast = folder / "ballast"
with Process(folder, "--store", "a.journal") as process:
    put_demo(process, context=["size"])
    worker = Worker("a")
    worker.url = process.url
    def answer():
        return process.post("/v1/preselectors/demo/decisions", json={{"k": 2, "context": [1.0], "expires_s": 9999}})
    worker.start()
    time.sleep(1.0)
    for repetition in range(3):
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        deadline = time.monotonic() + 60
        refused = answer()
        while refused.status_code == 201 and time.monotonic() < deadline:
            refused = answer()
        assert refused.status_code == 503, refused.status_code
        assert refused.headers["content-type"] == "application/problem+json"
        assert "full" in refused.json()["detail"], refused.text
        assert process.get("/readyz").status_code == 503
        assert process.get("/healthz").status_code == 200
        ballast.unlink()
        deadline = time.monotonic() + 60
        while (again := answer()).status_code != 201:
            assert time.monotonic() < deadline, again.text
            time.sleep(0.05)
        assert process.get("/readyz").status_code == 200
        process.client.put("/v1/decisions/" + again.json()["id"] + "/outcome", json={{"outcome": "void"}})
    worker.is_over.set()
    worker.join()
    assert worker.error is None and worker.told, worker.error
    pid = process.process.pid
print("told", len(worker.told))
import preselect.store as store
with store.Journal.read(folder / "a.journal", "demo") as journal:
    pairs = [(made.event, ended and ended.event) for made, ended in journal.rounds()]
decided = {{made.key: list(made.chosen) for made, _ in pairs}}
told = {{made.key: ended.names[:1] for made, ended in pairs if ended is not None}}
assert worker.decided.items() <= decided.items()
assert {{key: (winner,) for key, winner in worker.told.items()}}.items() <= told.items()
found = store.verify(folder / "a.journal", "demo")
assert found.equal, found.difference
print("fine")
"""


@pytest.mark.soak
def test_a_full_disk_refuses_and_goes_on_when_there_is_room(tmp_path):
    """On a small tmpfs in a mount namespace of its own: 503, nothing acknowledged is lost, no restart.

    It is larger than SQLite's log, which grows to 4 MB before it is emptied.
    """
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("a tmpfs needs unshare and root")
    folder = tmp_path / "small"
    folder.mkdir()
    here = Path(__file__).parent
    code = FULL_DISK.format(paths=[str(here), str(here.parent / "src")], folder=str(folder))
    command = ["unshare", "-m", sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if result.returncode == 77 or "unshare failed" in result.stderr:
        pytest.skip("no tmpfs can be mounted here")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "fine" in result.stdout


def test_the_log_is_json_lines(tmp_path):
    with Process(tmp_path, "--store", "a.journal", "--log-level", "info") as process:
        put_demo(process)
    lines = [json.loads(line) for line in process.log.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert any(line.get("preselector") == "demo" for line in lines)
