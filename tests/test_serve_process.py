"""The service as a process: what it prints, how it stops, and clients that are slow, many or gone."""

import os
import select
import shlex
import socket
import threading
import time

import httpx
import pytest
from click.testing import CliRunner
from services import PROBLEM, Process, bear, decide, put_demo, tell

from preselect.cli.main import preselect

MEMORY = ("--store", "memory:")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    options = (*MEMORY, "--patience", "1", "--max-queue", "8", "--max-streams", "3")
    with Process(tmp_path_factory.mktemp("served"), *options) as process:
        put_demo(process)
        yield process


def send(line):
    """Make the request that a curl line says."""
    words = shlex.split(line)
    assert words[0] == "curl"
    options, rest, method = {}, words[1:], None
    while rest:
        word = rest.pop(0)
        if word in ("-X", "-H", "-d"):
            options.setdefault(word, []).append(rest.pop(0))
        else:
            url = word
    method = options.get("-X", ["POST" if "-d" in options else "GET"])[0]
    headers = dict(header.split(": ", 1) for header in options.get("-H", ()))
    return httpx.request(method, url, headers=headers, content=options.get("-d", [None])[0], timeout=60)


def test_what_it_prints_can_be_done(tmp_path):
    with Process(tmp_path, *MEMORY) as process:
        assert process.url.startswith("http://127.0.0.1:")
        lines = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(process.process.stdout.readline())
        first, second, third = (line for line in lines if line.strip().startswith("curl"))
        assert send(first).status_code == 201
        made = send(second)
        assert made.status_code == 201
        told = send(third.replace("/ID/", f"/{made.json()['id']}/").replace('"a"', f'"{made.json()["names"][0]}"'))
        assert told.status_code == 201


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "::", "example.org"])
def test_without_keys_only_this_machine_is_served(host, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(preselect, ["serve", "--host", host])
    assert result.exit_code == 1
    assert "without keys" in result.output
    assert list(tmp_path.iterdir()) == []


def test_keys_are_printed_once_and_never_logged(tmp_path):
    made = {}
    for role in ("client", "admin"):
        command = ["serve", "key", "--role", role, "--keys", str(tmp_path / "keys")]
        made[role] = CliRunner().invoke(preselect, command).stdout.strip()
    assert all(token not in (tmp_path / "keys").read_text() for token in made.values())
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o600
    with Process(tmp_path, *MEMORY, "--keys", "keys", "--log-level", "debug") as process:
        assert process.get("/v1/preselectors").status_code == 401
        admin = bear(made["admin"])
        assert process.put("/v1/preselectors/demo", json={"arms": ["a", "b"]}, headers=admin).status_code == 201
        assert process.delete("/v1/preselectors/demo/arms/a", headers=bear(made["client"])).status_code == 403
        assert process.get("/v1/preselectors", headers=bear(made["admin"] + "x")).status_code == 401
        process.get("/v1/preselectors/x", headers={**admin, "Host": f"a{made['admin']}"})
        _, printed = process.stop()
        text = process.log + printed
    assert "a preselector was made" in text
    assert all(token not in text and token.partition(".")[2] not in text for token in made.values())


def test_it_answers_what_it_has_accepted(tmp_path):
    """Requests go on during the stop: each is answered whole, or its connection was never taken."""
    process = Process(tmp_path, *MEMORY)
    put_demo(process)
    answers, refused = [], []

    def ask():
        with httpx.Client(base_url=process.url, timeout=60) as client:
            try:
                while True:
                    answers.append(client.post("/v1/preselectors/demo/decisions", json={"k": 2}).status_code)
            except httpx.TransportError as error:
                refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(answers) < 100 and not refused:
        time.sleep(0.02)
    process.stop()
    for thread in threads:
        thread.join()
    assert 201 in answers
    assert set(answers) <= {201, 503}
    assert answers.count(503) <= 8  # those that came while it stopped
    assert not [error for error in refused if "incomplete" in str(error)]


def connect(process, content=b""):
    connection = socket.create_connection(("127.0.0.1", process.port), timeout=30)
    connection.sendall(content)
    return connection


HEAD = b"POST /v1/preselectors/demo/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def count_files(process):
    return len(os.listdir(f"/proc/{process.process.pid}/fd"))


def test_clients_that_are_slow_or_deaf_or_gone_leave_it_serving(served):
    before, question = count_files(served), b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    deaf = [connect(served, 400 * question) for _ in range(3)]  # for more than buffers hold
    started = [connect(served, b"GET /v1/presel") for _ in range(100)]
    silent = [connect(served) for _ in range(100)]
    half = [connect(served, HEAD + b'Content-Length: 8\r\n\r\n{"k"') for _ in range(50)]
    gone = [connect(served, HEAD + b'Content-Length: 8\r\n\r\n{"k": 1}') for _ in range(50)]
    for connection in gone:
        connection.close()
    decide(served)
    for connection in half:  # told after the patience of a second
        answer = connection.recv(4096)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert PROBLEM.encode() in answer
        connection.close()
    for connection in started + silent:  # closed after two, at the next look
        assert connection.recv(100) == b""
        connection.close()
    end = time.monotonic() + 60.0
    while count_files(served) > before and time.monotonic() < end:
        time.sleep(0.1)
    assert count_files(served) <= before
    for connection in deaf:
        connection.close()
    decide(served)


def test_a_body_that_arrives_byte_by_byte_is_not_waited_for(served):
    with connect(served, HEAD + b"Content-Length: 1000\r\n\r\n") as connection:
        waiting = select.poll()
        waiting.register(connection, select.POLLIN)
        while not waiting.poll(100):
            connection.send(b" ")  # at most 1000 times: then the body is complete, and the answer another one
        assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_a_flood_beyond_the_queue_is_refused_and_leaves_it_serving(served):
    before, statuses, lock = served.memory, [], threading.Lock()
    body = b'{"k": 2, "explain": true}'
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def flood():
        connection, found = connect(served, request * 40), []
        with connection, connection.makefile("rb") as answers:
            for _ in range(40):
                found.append(int(answers.readline().split()[1]))
                length = 0
                while (line := answers.readline().strip()) != b"":
                    length = int(line.split()[1]) if line.lower().startswith(b"content-length") else length
                content = answers.read(length)
                assert found[-1] == 201 or b'"status":503' in content
        with lock:
            statuses.extend(found)

    threads = [threading.Thread(target=flood) for _ in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 1000
    assert set(statuses) == {201, 503}
    assert served.memory - before < 50e6
    made = decide(served)
    assert tell(served, made["id"], winner=made["names"][0]).status_code == 201


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/preselectors HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"GET /v1/preselectors HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"GET /v1/\x00 HTTP/1.1\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nContent-Length: 30\r\n\r\n{}",
    ],
    ids=str,
)
def test_what_is_not_http_gets_a_problem_document(served, content):
    with connect(served, content) as connection:
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 4")
    assert PROBLEM.encode() in answer


def read_events(connection, count, seconds=20.0):
    """Read so many events; return them with the times at which they came."""
    connection.settimeout(seconds)
    found, text = [], b""
    while len(found) < count:
        text += connection.recv(65536)
        *whole, text = text.replace(b"\r\n", b"\n").split(b"\n\n")
        found += [(time.monotonic(), event) for event in whole if b"data: " in event]
    return found


def test_streams_are_limited_and_end_with_the_service(tmp_path):
    with Process(tmp_path, *MEMORY, "--max-streams", "2") as process:
        put_demo(process)
        request = b"GET /v1/preselectors/demo/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
        streams = [connect(process, request) for _ in range(2)]
        assert all(b"event: update" in read_events(stream, 1)[0][1] for stream in streams)
        refused = connect(process, request)
        assert b"503" in refused.recv(4096)
        begun = time.monotonic()
        process.stop()
        assert time.monotonic() - begun < 10
        for stream in (*streams, refused):
            stream.close()


def test_updates_come_at_most_twice_a_second(served):
    request = b"GET /v1/preselectors/demo/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(served, request) as stream:
        first = read_events(stream, 1)[0][1]
        is_over = threading.Event()

        def work():
            with httpx.Client(base_url=served.url) as client:
                while not is_over.is_set():
                    decide(client)

        worker = threading.Thread(target=work)
        worker.start()
        times = [at for at, _ in read_events(stream, 4)]
        is_over.set()
        worker.join()
    assert b'"decisions":' in first
    assert times[3] - times[0] >= 3 * 0.5 - 0.1
