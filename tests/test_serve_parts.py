"""Parts of the service by themselves: streams, deadlines, rates, keys, pointers."""

import asyncio
import json
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services import Process, assert_problem, decide, open_service, put_demo, tell

from preselect.cli.serve import _announce, _announce_journal
from preselect.errors import InputError, RequestError
from preselect.serve.expiry import Deadlines
from preselect.serve.keys import Keys, add_key, make_key
from preselect.serve.limits import Rates
from preselect.serve.schemas import Update
from preselect.serve.stream import _send_updates


async def give(*numbers):
    for number in numbers:
        yield Update(number, 0, 0, 0, 0, 0, 0, [])
    await asyncio.Event().wait()


async def listen(updates, *, until, silence=15.0, patience=5.0, is_stuck=False):
    """Send updates to a client until it has so many parts; return them."""
    parts, gone, stop = [], asyncio.Event(), asyncio.Event()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        parts.append(message.get("body"))
        if is_stuck and len(parts) > 1:
            await asyncio.Event().wait()
        if len(parts) >= until:
            gone.set()

    await asyncio.wait_for(
        _send_updates(updates, receive, send, stop=stop, patience=patience, silence=silence), timeout=20
    )
    return parts


def test_a_stream_has_ids_and_comments_when_nothing_happens():
    parts = asyncio.run(listen(give(3, 5), until=6, silence=0.01))
    assert parts[1].startswith(b"id: 3\nevent: update\ndata: {")
    assert parts[2].startswith(b"id: 5\n")
    assert parts[3] == parts[4] == b":\n\n"


def test_a_client_that_does_not_read_is_given_up():
    parts = asyncio.run(listen(give(1), until=99, patience=0.01, is_stuck=True))
    assert len(parts) == 2


def test_a_stream_resumes_after_the_last_event_that_was_seen():
    with open_service() as client:
        put_demo(client)
        made = [decide(client) for _ in range(5)]
        tell(client, made[4]["id"], outcome="void")

        async def read(after):
            updates = client.application.backend.subscribe("demo", after)
            return await anext(updates)

        update = client.run(read(3))
        assert [one.id for one in update.rounds] == [made[3]["id"], made[4]["id"]]
        assert (update.number, update.decisions, update.void) == (6, 5, 1)
        assert client.run(read(None)).rounds == []
        strange = client.get("/v1/preselectors/demo/stream", headers={"Last-Event-ID": "x"})
        assert_problem(strange, 422, "last-event-id")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), st.booleans()), max_size=60), st.integers(0, 20))
def test_deadlines_are_those_of_decisions_that_wait(steps, now):
    deadlines, model = Deadlines(), {}
    for name, expires, is_added in steps:
        if is_added:
            deadlines.add(str(name), float(expires), "demo")
            model[str(name)] = expires
        else:
            deadlines.discard(str(name))
            model.pop(str(name), None)
    due = {name for name, expires in model.items() if expires <= now}
    assert set(deadlines.list_due(now, 1000)) == due
    assert set(deadlines.list_due(now, 1000)) == due  # until they are discarded
    assert len(deadlines) == len(model)
    assert len(deadlines.list_due(now, 1)) == min(1, len(due))


def test_memory_of_deadlines_is_bounded_by_how_many_wait():
    deadlines = Deadlines()
    for number in range(20_000):
        deadlines.add(str(number), 1e9 + number, "demo")
        deadlines.discard(str(number))
    assert len(deadlines._heap) < 2000


def test_rates_refill():
    clock = [0.0]
    rates = Rates(10.0, lambda: clock[0])
    for _ in range(20):
        rates.take("a")
    with pytest.raises(RequestError, match="10 requests a second") as refused:
        rates.take("a")
    assert refused.value.status == 429
    rates.take("b")
    clock[0] = 0.1
    rates.take("a")
    with pytest.raises(RequestError):
        rates.take("a")


def test_keys_come_back_from_their_file_and_other_files_are_refused(tmp_path):
    path = tmp_path / "keys"
    made, token = make_key("client", "demo")
    add_key(path, made)
    add_key(path, make_key("reader")[0])
    assert Keys.read(path).find(token) == made
    assert Keys.read(path).find(token[:-1]) is None
    assert Keys.read(path).find(made.id) is None
    assert Keys.read(path).find("") is None
    for text in ("hello", "{}", json.dumps({"id": "a", "role": "king", "sha256": "0" * 64})):
        path.write_text(text)
        with pytest.raises(InputError, match="line 1"):
            add_key(path, made)
        assert path.read_text() == text
    with pytest.raises(InputError, match="preselect serve key"):
        Keys.read(tmp_path / "none")


def test_a_damaged_journal_keeps_it_from_starting_with_a_sentence(tmp_path):
    with open_service(file=tmp_path / "a.journal") as client:
        put_demo(client)
        for _ in range(3):
            decide(client)
    with sqlite3.connect(tmp_path / "a.journal") as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM snapshots")
        connection.execute("UPDATE events SET body = replace(body, '\"k\":2', '\"k\":3')")
    connection.close()
    assert "digest" in fail_to_start(tmp_path)


def test_a_file_has_one_service(tmp_path):
    with Process(tmp_path, "--store", "a.journal") as first:
        assert "in use by process" in fail_to_start(tmp_path)
        put_demo(first)


def test_a_database_that_cannot_be_reached_is_a_sentence(tmp_path):
    pytest.importorskip("psycopg")
    assert "postgresql://localhost:1/none failed" in fail_to_start(tmp_path, "postgresql://localhost:1/none")


def test_a_journal_that_does_not_exist_yet_is_announced_as_such(capsys, tmp_path):
    _announce_journal("http://127.0.0.1:1", str(tmp_path / "a.journal"))
    assert "a.journal, which does not exist yet." in capsys.readouterr().out


def fail_to_start(folder, store="a.journal"):
    """Start a service that cannot start; return the sentence that it says."""
    command = [sys.executable, "-m", "preselect", "serve", "--port", "0", "--store", store]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 1, result
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()[-1]


def test_a_password_of_the_storage_is_not_printed(capsys):
    _announce("http://127.0.0.1:1", "postgresql://me:secret@host/database", None)
    printed = capsys.readouterr().out
    assert "secret" not in printed
    assert "postgresql://me@host/database" in printed


def test_the_first_requests_do_not_wait_for_a_kernel_to_be_compiled():
    code = """
from preselect.compiling import KERNELS
from preselect.serve.answers import warm_up
from preselect import Preselector
list_kernels = lambda: {(kernel.py_func.__name__, kinds) for kernel in KERNELS for kinds in kernel.signatures}
warm_up()
before = list_kernels()
print(*{name for name, _ in before})
for nobody_may_win in (False, True):
    preselector = Preselector({"a": {"x": 1.0}, "b": {"x": 2.0}}, nobody_may_win=nobody_may_win, seed=0)
    preselector.learn(preselector.select(k=2), winner="a")
print(*{name for name, _ in list_kernels() - before})
"""
    warm, later = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert {"choose", "score", "update_newton", "proximal_newton", "maximise_posterior"} <= set(warm.split())
    assert later == ""
