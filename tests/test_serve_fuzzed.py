"""The service against its own OpenAPI document, and against bodies that nobody would send."""

import json
import random
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from services import PROBLEM, Process, bear, decide, make_keys, open_service, put_demo

ROOT = Path(__file__).parents[1]

CONFIGURATION = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "410", "422", "429", "503"]
"""


def run_schemathesis(folder, *options):
    """Run all checks against a service with keys; a stream never ends, so that one call is left out."""
    (folder / "schemathesis.toml").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "preselect", "serve", "key", "--role", "admin", "--keys", "keys"]
    key = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    with Process(folder, "--keys", "keys", "--max-rate", "1e9") as process:
        process.put("/v1/preselectors/demo", json={"arms": ["a", "b", "c"]}, headers=bear(key))
        tool = Path(sys.executable).with_name("schemathesis")
        command = [tool, "run", ROOT / "docs/openapi.json", "--url", process.url, "--checks", "all", "--no-color"]
        command += ["-H", f"Authorization: Bearer {key}", "--exclude-path", "/v1/preselectors/{name}/stream"]
        result = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
        assert process.get("/readyz").status_code == 200
    assert result.returncode == 0, result.stdout
    assert '"status": 500' not in process.log


def test_it_keeps_to_its_document(tmp_path):
    run_schemathesis(tmp_path, "--phases", "coverage")


@pytest.mark.soak
def test_it_keeps_to_its_document_whatever_is_sent(tmp_path):
    run_schemathesis(tmp_path, "--max-examples", "100", "--seed", "1")


SEEDS = [
    ("PUT", "/v1/preselectors/new", {"arms": {"a": {"x": 1.0}, "b": [2.0]}, "context": ["c"], "policy": "newton"}),
    ("PUT", "/v1/preselectors/demo/arms/d", {"features": {"x": 1.0}, "group": "g", "price": 1.5}),
    ("POST", "/v1/preselectors/demo/decisions", {"k": 2, "eligible": ["a", "b"], "at_most": {"g": 1}, "budget": 3.0}),
    ("POST", "/v1/preselectors/demo/decisions", {"k": 1, "include": ["a"], "groups": {"a": "g"}, "label": "x"}),
    ("PUT", "/v1/decisions/{id}/outcome", {"ranking": [["a", "b"], "c"], "details": {"x": [1, None, {"y": True}]}}),
    ("PUT", "/v1/decisions/{id}/outcome", {"ratings": {"a": 1.0, "b": 2.0}, "after": 0.5}),
    ("POST", "/v1/outcomes", {"outcomes": [{"id": "x", "winner": "a"}, {"id": "{id}", "outcome": "void"}]}),
]

VALUES = [
    None,
    True,
    0,
    -1,
    1,
    2,
    1e308,
    -1e308,
    5e-324,
    2**63,
    2**64,
    10**30,
    "",
    "a",
    "b",
    "\x00",
    "é",
    "😀" * 60,
    [],
    {},
]
PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"-", b"\\ud800", b"\\u0000", b"\xff"]
PIECES += [b"NaN", b"1e999", b"null", b"[" * 2000]


def change(generator, value):
    """Change one thing somewhere in a value."""
    if isinstance(value, dict) and value and generator.random() < 0.8:
        name = generator.choice(list(value))
        if generator.random() < 0.15:
            return {
                generator.choice(["", "zz", "a", "\x00"]) if one == name else one: two for one, two in value.items()
            }
        return {**value, name: change(generator, value[name])}
    if isinstance(value, list) and value and generator.random() < 0.7:
        place = generator.randrange(len(value))
        return [*value[:place], change(generator, value[place]), *value[place + 1 :]]
    return generator.choice(VALUES)


def make_body(generator, value):
    for _ in range(generator.randrange(4)):
        value = change(generator, value)
    content = json.dumps(value).encode()
    for _ in range(generator.choice([0, 0, 1, 3])):
        place = generator.randrange(len(content) + 1)
        content = content[:place] + generator.choice(PIECES) + content[place + generator.randrange(3) :]
    return content


def fuzz(client, times, seed):
    generator, counts = random.Random(seed), {}
    put_demo(client)
    for number in range(times):
        if number % 100 == 0:
            put_demo(client, f"p{number % 500}")
            made = decide(client, f"p{number % 500}", k=3)
        method, path, value = generator.choice(SEEDS)
        content = make_body(generator, value).replace(b"{id}", made["id"].encode())
        path = path.replace("{id}", made["id"]).replace("/demo/", f"/p{number % 500 // 100 * 100}/")
        answer = client.request(method, path, content=content, headers={"Content-Type": "application/json"})
        counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
        if answer.status_code >= 400:
            assert answer.status_code in (400, 404, 409, 410, 422), (method, path, content, answer.text)
            assert answer.headers["content-type"] == PROBLEM
            assert answer.json()["status"] == answer.status_code
            assert "Traceback" not in answer.text
    return counts


def test_fuzzed_bodies_get_problem_documents(tmp_path):
    with open_service(file=tmp_path / "a.journal") as client:
        counts = fuzz(client, 500, seed=0)
    assert {200, 201, 400, 422} <= set(counts)


@pytest.mark.soak
def test_a_hundred_thousand_fuzzed_bodies_get_problem_documents(tmp_path):
    with open_service(file=tmp_path / "a.journal") as client:
        fuzz(client, 100_000, seed=1)
        assert client.get("/readyz").status_code == 200


PATHS = [
    "/v1/preselectors/..%2f..%2fetc%2fpasswd",
    "/v1/preselectors/demo%00",
    "/v1/preselectors/demo'%20OR%201=1--",
    "/v1/preselectors/demo%0d%0aX-Evil:%201",
    "/v1/preselectors/%F0%9F%98%80",
    "/v1/preselectors/" + "a" * 5000,
    "/v1/decisions/x'%3B%20DROP%20TABLE%20events%3B--",
    "/v1/decisions/%00",
    "/v1/decisions/" + "%C3%A9" * 1000,
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40])
def test_injections_into_paths_find_nothing(guarded, path):
    client, headers = guarded
    answer = client.get(path, headers=headers)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == PROBLEM
    assert "x-evil" not in answer.headers
    assert client.get("/v1/preselectors/demo", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Last-Event-ID": "1; DROP TABLE events"},
        {"Content-Length": "-1"},
        {"X-HTTP-Method-Override": "DELETE"},
        {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "localhost"},
        {"Authorization": "Bearer a, Bearer b"},
    ],
    ids=str,
)
def test_injections_into_headers_change_nothing(guarded, headers):
    client, own = guarded
    answer = client.get("/v1/preselectors/demo", headers={**own, **headers})
    assert answer.status_code in (200, 400, 401)
    assert set(client.get("/v1/preselectors/demo", headers=own).json()["arms"]) == {"a", "b", "c"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    keys, tokens = make_keys()
    with open_service(keys=keys, file=tmp_path_factory.mktemp("guarded") / "a.journal") as client:
        headers = bear(tokens["admin"])
        client.put("/v1/preselectors/demo", json={"arms": ["a", "b", "c"]}, headers=headers)
        yield client, headers


@pytest.mark.soak
def test_ten_thousand_idle_connections_leave_it_serving(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 12_000:
        pytest.skip(f"only {hard} files can be open at once here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (12_000, hard))
    try:
        with Process(tmp_path) as process:
            put_demo(process)
            before = process.memory
            idle = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(10_000)]
            for _ in range(20):
                decide(process)
            assert process.memory - before < 400e6
            for connection in idle:
                connection.close()
            decide(process)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
