"""The service: every call, and what is said when one cannot be answered."""

import json
import time
from pathlib import Path

import pytest
from services import LOCAL, assert_problem, decide, open_service, pointers, put_demo, service, tell

from preselect import Preselector
from preselect.serve import make_document

__all__ = ["service"]

ROOT = Path(__file__).parents[1]


def test_a_round(service):
    made = decide(service)
    assert len(made["id"]) == 26
    assert made["status"] == "waiting"
    assert set(made["names"]) <= set("abc")
    told = tell(service, made["id"], winner=made["names"][0])
    assert (told.status_code, told.json()) == (201, {"id": made["id"], "status": "told", "is_new": True})
    found = service.get(f"/v1/decisions/{made['id']}").json()
    assert found["status"] == "told"
    assert found["outcome"]["names"] == [made["names"][0]]
    assert [arm["name"] for arm in found["explanation"]["arms"]] == made["names"]
    assert service.get("/v1/preselectors/demo").json()["told"] == 1


def test_the_service_decides_and_learns_as_a_preselector_does(service):
    """The same decisions with the seeds of the service's ids, and the same estimates after learning."""
    from preselect.randomness import hash_root

    twin = Preselector(["a", "b", "c"], seed=0)
    for _ in range(20):
        made = decide(service)
        decision = twin.choose(k=2, seed=hash_root(made["id"]))
        assert list(decision.names) == made["names"]
        assert decision.scores.tolist() == made["scores"]
        assert decision.version == made["version"]
        twin.record(decision)
        twin.learn(decision, winner=made["names"][1])
        assert tell(service, made["id"], winner=made["names"][1]).status_code == 201
    found = service.get("/v1/preselectors/demo/weights").json()
    assert found["version"] == twin.version
    for name, one in twin.estimates().items():
        assert found["arms"][name] == {
            "utility": one.utility,
            "standard_error": one.standard_error,
            "lower": one.lower,
            "upper": one.upper,
            "chance": one.chance,
        }


def test_making_a_preselector_again_changes_nothing_and_another_one_is_a_conflict(service):
    decide(service)
    assert put_demo(service).status_code == 200
    assert service.get("/v1/preselectors/demo").json()["decisions"] == 1
    assert_problem(service.put("/v1/preselectors/demo", json={"arms": ["a"]}), 409, "demo")
    assert put_demo(service, "other").status_code == 201
    assert [one["name"] for one in service.get("/v1/preselectors").json()["preselectors"]] == ["demo", "other"]


def test_a_request_is_answered_once(service):
    first = service.post("/v1/preselectors/demo/decisions", json={"k": 2, "request_id": "r"})
    second = service.post("/v1/preselectors/demo/decisions", json={"k": 2, "request_id": "r"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert service.get("/v1/preselectors/demo").json()["decisions"] == 1
    other = service.post("/v1/preselectors/demo/decisions", json={"k": 1, "request_id": "r"})
    assert_problem(other, 409, "request")


def test_an_outcome_is_learnt_from_once(service):
    made = decide(service)
    body = {"ranking": list(reversed(made["names"]))}
    assert tell(service, made["id"], **body).status_code == 201
    version = service.get("/v1/preselectors/demo").json()["version"]
    again = tell(service, made["id"], **body)
    assert (again.status_code, again.json()["is_new"]) == (200, False)
    assert_problem(tell(service, made["id"], winner=made["names"][0]), 409)
    assert service.get("/v1/preselectors/demo").json()["version"] == version


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"ratings": {"a": 1, "b": 2, "c": 2}}, "told"),
        ({"outcome": "no-winner"}, "told"),
        ({"outcome": "void"}, "void"),
    ],
)
def test_other_outcomes(service, body, status):
    made = decide(service, k=3)
    assert tell(service, made["id"], **body).json()["status"] == status


def test_nothing_is_learnt_from_a_decision_that_expires():
    with open_service() as client:
        put_demo(client)
        version = client.get("/v1/preselectors/demo").json()["version"]
        made = decide(client, expires_s=0.001)
        time.sleep(0.01)
        assert_problem(tell(client, made["id"], winner=made["names"][0]), 410, "expired")
        swept = decide(client, expires_s=0.001)
        limit = time.monotonic() + 10
        while client.get(f"/v1/decisions/{swept['id']}").json()["status"] != "expired":
            assert time.monotonic() < limit
            time.sleep(0.05)
        found = client.get("/v1/preselectors/demo").json()
        assert (found["expired"], found["waiting"], found["version"]) == (2, 0, version + 2)  # both were recorded


def test_arms_join_change_and_leave(service):
    put_demo(service, "shop", arms={"a": {"x": 1.0}, "b": {"x": 2.0}})
    path = "/v1/preselectors/shop/arms/c%2Fd%20%C3%A9"
    assert service.put(path, json={"features": {"x": 3.0}, "group": "g"}).status_code == 201
    changed = service.put(path, json={"features": {"x": 4.0}, "price": 2.0})
    assert changed.status_code == 200
    assert changed.json()["arms"]["c/d é"] == {"features": {"x": 4.0}, "group": None, "price": 2.0}
    version = changed.json()["version"]
    assert service.put(path, json={"features": [4.0], "price": 2.0}).json()["version"] == version  # the same again
    assert service.delete(path).status_code == 204
    assert_problem(service.delete(path), 404, "c/d")
    assert set(service.get("/v1/preselectors/shop").json()["arms"]) == {"a", "b"}


def test_a_batch_of_outcomes_has_a_result_each(service):
    made = [decide(service) for _ in range(4)]
    tell(service, made[1]["id"], outcome="void")
    outcomes = [
        {"id": made[0]["id"], "winner": made[0]["names"][0]},
        {"id": made[1]["id"], "outcome": "void"},
        {"id": made[1]["id"], "outcome": "no-winner"},
        {"id": "nothing", "winner": "a"},
        {"id": made[2]["id"], "winner": "stranger"},
        {"id": made[3]["id"], "ranking": [made[3]["names"]]},
    ]
    answer = service.post("/v1/outcomes", json={"outcomes": outcomes})
    assert [one["status"] for one in answer.json()["results"]] == [201, 200, 409, 404, 422, 201]
    assert [one["id"] for one in answer.json()["results"]] == [one["id"] for one in outcomes]
    many = {"outcomes": [{"id": "x", "outcome": "void"}] * 1001}
    assert_problem(service.post("/v1/outcomes", json=many), 422, "1000")


def test_rounds_are_paged(service):
    made = [decide(service, label=f"round {number}") for number in range(7)]
    tell(service, made[2]["id"], winner=made[2]["names"][1])
    found, after = [], 0
    while after is not None:
        page = service.get("/v1/preselectors/demo/rounds", params={"after": after, "limit": 3}).json()
        assert len(page["rounds"]) <= 3
        found += page["rounds"]
        after = page["next"]
    assert [one["id"] for one in found] == [one["id"] for one in made]
    assert [one["label"] for one in found] == [f"round {number}" for number in range(7)]
    assert [one["status"] for one in found] == ["waiting", "waiting", "told", *["waiting"] * 4]
    assert found[2]["outcome"]["names"] == [made[2]["names"][1]]


BODIES = [
    ("PUT", "/v1/preselectors/new", "[", 400, None),
    ("PUT", "/v1/preselectors/new", '{"arms": "abc"}', 422, "/arms"),
    ("PUT", "/v1/preselectors/new", '{"arms": ["a"], "colour": 1}', 422, ""),
    ("PUT", "/v1/preselectors/new", '{"arms": ["a"], "policy": "os:system"}', 422, "/policy"),
    ("PUT", "/v1/preselectors/new", '{"arms": ["a"], "policy": "newton(beta=__import__(1))"}', 422, "/policy"),
    ("PUT", "/v1/preselectors/new", '{"arms": ["a", "a"]}', 422, "/arms"),
    ("PUT", "/v1/preselectors/new", '{"arms": {"a": {"x": 1, "y": "2"}}}', 422, "/arms/a/y"),
    ("PUT", "/v1/preselectors/new", '{"prices": {"a/b": -1}}', 422, "/prices/a~1b"),
    ("PUT", "/v1/preselectors/%2e%2e%2fetc", '{"arms": ["a"]}', 422, ""),
    ("PUT", "/v1/preselectors/a%0ab", '{"arms": ["a"]}', 422, ""),
    ("PUT", "/v1/preselectors/demo/arms/d", '{"features": {"x": 1}}', 422, "/features"),
    ("PUT", "/v1/preselectors/demo/arms/" + "d" * 201, "{}", 422, ""),
    ("POST", "/v1/preselectors/demo/decisions", "", 400, None),
    ("POST", "/v1/preselectors/demo/decisions", "{}", 422, ""),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 0}', 422, "/k"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 2.5}', 422, "/k"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 4}', 422, "/k"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1000}', 422, "/k"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "context": {"size": 1}}', 422, "/context"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "context": {"size": NaN}}', 400, None),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "context": {"size": 1e999}}', 422, "/context"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "eligible": ["a", 1]}', 422, "/eligible/1"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "eligible": ["z"]}', 422, None),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "budget": 3}', 422, "/budget"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "request_id": "a\\nb"}', 422, "/request_id"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "request_id": "ab\\n"}', 422, "/request_id"),
    ("POST", "/v1/preselectors/demo/decisions", '{"k": 1, "expires_s": -1}', 422, "/expires_s"),
    ("POST", "/v1/preselectors/none/decisions", '{"k": 1}', 404, None),
    ("PUT", "/v1/decisions/none/outcome", '{"winner": "a"}', 404, None),
    ("GET", "/v1/decisions/none", None, 404, None),
    ("GET", "/v1/preselectors/none", None, 404, None),
    ("GET", "/v1/preselectors/none/stream", None, 404, None),
    ("GET", "/v1/preselectors/demo/rounds?limit=1001", None, 422, None),
    ("GET", "/v1/preselectors/demo/rounds?color=1", None, 422, None),
    ("GET", "/v1/preselectors/demo/weights?context=%7B", None, 422, None),
    ("GET", "/v1/preselectors/demo/weights?context=%ff", None, 400, None),
    ("GET", "/v1/preselectors/%ff", None, 400, None),
    ("GET", "/v1/preselectors/", None, 404, None),
    ("GET", "/v1//preselectors", None, 404, None),
    ("GET", "/v1", None, 404, None),
    ("GET", "/v11", None, 404, None),
    ("POST", "/v1/preselectors", "{}", 405, None),
    ("PATCH", "/v1/preselectors/demo", "{}", 405, None),
    ("GET", "/nothing", None, 404, None),
    ("POST", "/healthz", None, 405, None),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "pointer"), BODIES, ids=str)
def test_bad_requests_get_problem_documents(bad, method, path, body, status, pointer):
    headers = {} if body is None else {"Content-Type": "application/json"}
    answer = bad.request(method, path, content=body, headers=headers)
    found = assert_problem(answer, status)
    assert found["detail"]
    if pointer is not None:
        assert pointers(answer) == [pointer]


@pytest.fixture(scope="module")
def bad():
    with open_service() as client:
        put_demo(client)
        yield client


@pytest.mark.parametrize(
    "body",
    [{}, {"winner": "a", "ranking": ["a"]}, {"winner": "z"}, {"winner": None}, {"ratings": {"a": 1}}, {"after": 2}],
    ids=str,
)
def test_bad_outcomes_get_problem_documents(bad, body):
    made = decide(bad)
    assert_problem(tell(bad, made["id"], **body), 422)
    assert bad.get(f"/v1/decisions/{made['id']}").json()["status"] == "waiting"


async def give_chunks(count):
    """A body of so many times 100 bytes, without a content-length."""
    for _ in range(count):
        yield b" " * 100


def test_bodies_are_limited_before_they_are_parsed():
    with open_service(body=1000) as client:
        put_demo(client)
        path = "/v1/preselectors/demo/decisions"
        json_type = {"Content-Type": "application/json"}
        assert_problem(client.post(path, content=b" " * 1001, headers=json_type), 413, "1000")
        assert_problem(client.post(path, content=give_chunks(11), headers=json_type), 413, "1000")
        assert client.post(path, content=b'{"k": 1}' + b" " * 992, headers=json_type).status_code == 201


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "", "application/x-python-pickle"]
)
def test_only_json_is_read(bad, media):
    answer = bad.post("/v1/preselectors/demo/decisions", content=b'{"k": 1}', headers={"Content-Type": media})
    assert_problem(answer, 415, "application/json")


def test_compressed_bodies_are_refused(bad):
    headers = {"Content-Type": "application/json; charset=utf-8", "Content-Encoding": "gzip"}
    assert_problem(bad.post("/v1/preselectors/demo/decisions", content=b"x", headers=headers), 415)


def test_limits_of_size():
    with open_service(arms=3, features=2, k=2, waiting=2) as client:
        put_demo(client, context=["x", "y"])
        assert_problem(client.put("/v1/preselectors/demo/arms/d", json={}), 422, "3 arms")
        assert client.put("/v1/preselectors/demo/arms/a", json={}).status_code == 200
        for body in ({"arms": list("abcd")}, {"context": list("xyz")}, {"arms": {"a": dict.fromkeys("xyz", 1)}}):
            assert_problem(client.put("/v1/preselectors/new", json=body), 422, "at most")
        context = {"x": 1, "y": 1}
        answer = client.post("/v1/preselectors/demo/decisions", json={"k": 3, "context": context})
        assert_problem(answer, 422, "k=3")
        first, _ = (decide(client, context=context) for _ in range(2))
        full = client.post("/v1/preselectors/demo/decisions", json={"k": 1, "context": context})
        assert_problem(full, 503, "wait")
        assert full.headers["retry-after"] == "1"
        tell(client, first["id"], outcome="void")
        decide(client, context=context)


def test_figures(service):
    decide(service)
    service.get("/v1/preselectors/none")
    text = service.get("/metrics").text
    assert 'preselect_requests_total{call="decide",status="201"} 1.0' in text
    assert 'preselect_requests_total{call="describe",status="404"} 1.0' in text
    assert "preselect_commit_steps_count" in text
    assert "preselect_queue 0.0" in text


def test_the_openapi_document_is_the_committed_one():
    """To renew it: python -c 'from preselect.serve import write_document; write_document("docs/openapi.json")'."""
    assert json.loads((ROOT / "docs/openapi.json").read_text()) == make_document()


def test_it_is_served(service):
    assert service.get("/openapi.json").json() == make_document()
    assert service.get("/openapi.json").json()["openapi"] == "3.1.0"
    assert LOCAL not in service.get("/openapi.json").text


def test_heads_are_as_those_of_get(service):
    answer = service.head("/v1/preselectors/demo")
    assert answer.status_code == 200
    assert answer.headers["content-length"] == service.get("/v1/preselectors/demo").headers["content-length"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::2]:80", ""])
def test_without_keys_other_names_are_refused(bad, host):
    """A page of another site can have its name lead to 127.0.0.1, and would be answered."""
    assert_problem(bad.get("/v1/preselectors", headers={"Host": host}), 403, "localhost")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]", "[::1]:8000"])
def test_local_names_are_served(bad, host):
    assert bad.get("/v1/preselectors", headers={"Host": host}).status_code == 200
