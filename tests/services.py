"""A service in this process, and what tests say to it."""

import asyncio
import json
import resource
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partialmethod

import httpx
import pytest

from preselect.serve.app import Service
from preselect.serve.journal_engine import JournalEngine
from preselect.serve.keys import Keys, make_key
from preselect.serve.limits import ServiceLimits
from preselect.serve.memory import MemoryEngine
from preselect.serve.metrics import Metrics
from preselect.serve.stored import StoredEngine
from preselect.serve.writer import Writer
from preselect.store import open_storage

LOCAL = "http://127.0.0.1:8000"
PROBLEM = "application/problem+json"


def make_service(*, keys=None, file=None, journal=None, routes=(), **limits):
    """Make a service; with a file everything is kept there, and a journal is only shown."""
    found, metrics = ServiceLimits(**limits), Metrics()
    engine = MemoryEngine(found) if file is None else StoredEngine(open_storage(file, write=True), found)
    if journal is not None:
        engine = JournalEngine(str(journal))
    return Service(Writer(engine, found, metrics), keys=keys, limits=found, metrics=metrics, routes=routes)


class Local:
    """A client of an ASGI application, which runs in an event loop of its own thread. No sockets."""

    def __init__(self, application):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.application = application
        self.client = self.run(self.start())

    async def start(self):
        self.to_application, self.from_application = asyncio.Queue(), asyncio.Queue()
        lifespan = self.application({"type": "lifespan"}, self.to_application.get, self.from_application.put)
        self.lifespan = asyncio.ensure_future(lifespan)
        await self.to_application.put({"type": "lifespan.startup"})
        assert (await self.from_application.get())["type"] == "lifespan.startup.complete"
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.application), base_url=LOCAL)

    async def stop(self):
        await self.to_application.put({"type": "lifespan.shutdown"})
        await self.lifespan
        await self.client.aclose()

    def close(self):
        self.run(self.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(120)

    def request(self, method, path, **options):
        return self.run(self.client.request(method, path, **options))

    get = partialmethod(request, "GET")
    head = partialmethod(request, "HEAD")
    post = partialmethod(request, "POST")
    put = partialmethod(request, "PUT")
    delete = partialmethod(request, "DELETE")


@contextmanager
def open_service(**options):
    """Start a service and give a client of it, ready."""
    client = Local(make_service(**options))
    try:
        limit = time.monotonic() + 120
        while client.get("/readyz").status_code != 200:
            assert time.monotonic() < limit
            time.sleep(0.01)
        yield client
    finally:
        client.close()


def make_keys():
    """Make a key of each role and one that is bound to a preselector; return them with their tokens."""
    made = {role: make_key(role) for role in ("reader", "client", "admin")} | {"bound": make_key("client", "demo")}
    return Keys(key for key, _ in made.values()), {name: token for name, (_, token) in made.items()}


def bear(token):
    return {"Authorization": f"Bearer {token}"}


def put_demo(client, name="demo", **body):
    answer = client.put(f"/v1/preselectors/{name}", json={"arms": ["a", "b", "c"], **body})
    assert answer.status_code in (200, 201), answer.text
    return answer


def decide(client, name="demo", **body):
    answer = client.post(f"/v1/preselectors/{name}/decisions", json={"k": 2, **body})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def tell(client, id, **body):
    return client.put(f"/v1/decisions/{id}/outcome", json=body)


def assert_problem(answer, status, *parts):
    """Check that an answer is a problem document of this status, which says all of these."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    found = json.loads(answer.content)
    assert {"title", "status", "detail"} <= set(found) <= {"title", "status", "detail", "type", "errors"}
    assert found["status"] == status
    for part in parts:
        assert part in found["detail"], found
    assert "Traceback" not in answer.text
    return found


def pointers(answer):
    return [error["pointer"] for error in answer.json()["errors"]]


@pytest.fixture(params=["memory", "sqlite"])
def service(request, tmp_path):
    with open_service(file=tmp_path / "a.journal" if request.param == "sqlite" else None) as client:
        put_demo(client)
        yield client


class Process:
    """A service in a process of its own; `say` makes a request."""

    def __init__(self, folder, *options, port=0):
        command = [sys.executable, "-m", "preselect", "serve", "--port", str(port), *options]
        with open(folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=folder, text=True)
        self.folder = folder
        first = self.process.stdout.readline()
        assert first.startswith("Serving "), (first, self.log)
        self.url = first.split()[1]
        self.port = int(self.url.rpartition(":")[2])
        self.client = httpx.Client(base_url=self.url, timeout=60)
        self.wait_until_ready()

    @property
    def log(self):
        return (self.folder / "log").read_text()

    def wait_until_ready(self):
        limit = time.monotonic() + 180
        while True:
            try:
                if self.client.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                assert self.process.poll() is None, self.log
            assert time.monotonic() < limit, self.log
            time.sleep(0.02)

    def __getattr__(self, name):
        return getattr(self.client, name)

    def stop(self):
        self.process.terminate()
        self.client.close()
        output = self.process.communicate(timeout=60)[0]
        return self.process.returncode, output

    def kill(self):
        self.process.kill()
        self.client.close()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    @property
    def memory(self):
        """Bytes of memory that it has at present."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
