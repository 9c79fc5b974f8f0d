"""Who may make which call."""

import pytest
from services import assert_problem, bear, make_keys, open_service

from preselect.serve.calls import CALLS

ORDER = ("reader", "client", "admin")
PATHS = {"{name}": "demo", "{arm}": "z", "{id}": "x"}


def call_with(client, call, headers):
    path = call.path
    for part, name in PATHS.items():
        path = path.replace(part, name)
    content = b"null" if call.body else None  # never valid: nothing happens
    return client.request(call.method, path, content=content, headers={"Content-Type": "application/json", **headers})


@pytest.fixture(scope="module")
def guarded():
    keys, tokens = make_keys()
    with open_service(keys=keys) as client:
        for name in ("demo", "other"):
            made = client.put(f"/v1/preselectors/{name}", json={"arms": ["a", "b"]}, headers=bear(tokens["admin"]))
            assert made.status_code == 201
        yield client, tokens


@pytest.mark.parametrize("role", [None, "reader", "client", "admin"])
@pytest.mark.parametrize("call", [call for call in CALLS if call.name != "stream"], ids=lambda call: call.name)
def test_every_call_needs_its_role(guarded, call, role):
    client, tokens = guarded
    answer = call_with(client, call, {} if role is None else bear(tokens[role]))
    if role is None:
        assert_problem(answer, 401, "Bearer")
        assert answer.headers["www-authenticate"] == "Bearer"
    elif ORDER.index(role) < ORDER.index(call.role):
        assert_problem(answer, 403, call.role)
    else:
        assert answer.status_code not in (401, 403)


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Bearer x", "Basic {}", "Bearer {}x", "Bearer x{}", "{}", "Bearer é"]
)
def test_other_keys_are_refused(guarded, header):
    client, tokens = guarded
    value = header.format(tokens["admin"]).encode("latin-1")
    assert_problem(client.get("/v1/preselectors", headers={b"Authorization": value}), 401)
    assert client.get("/v1/preselectors", headers={"Authorization": f"bearer  {tokens['admin']}"}).status_code == 200


def test_health_and_figures_need_no_key(guarded):
    client, _ = guarded
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        assert client.get(path).status_code == 200


def test_a_key_may_be_bound_to_one_preselector(guarded):
    client, tokens = guarded
    bound, free = bear(tokens["bound"]), bear(tokens["client"])
    assert [one["name"] for one in client.get("/v1/preselectors", headers=bound).json()["preselectors"]] == ["demo"]
    assert client.get("/v1/preselectors/demo", headers=bound).status_code == 200
    for path in ("", "/weights", "/rounds", "/stream"):
        assert_problem(client.get(f"/v1/preselectors/other{path}", headers=bound), 403, "demo")
    strange = client.post("/v1/preselectors/other/decisions", json={"k": 1}, headers=free).json()
    assert_problem(client.get(f"/v1/decisions/{strange['id']}", headers=bound), 404)
    outcome = {"winner": strange["names"][0]}
    assert_problem(client.put(f"/v1/decisions/{strange['id']}/outcome", json=outcome, headers=bound), 404)
    batch = {"outcomes": [{"id": strange["id"], **outcome}]}
    answer = client.post("/v1/outcomes", json=batch, headers=bound)
    assert [one["status"] for one in answer.json()["results"]] == [404]


def test_requests_of_one_key_are_limited():
    keys, tokens = make_keys()
    with open_service(keys=keys, rate=5) as client:
        answers = [client.get("/v1/preselectors", headers=bear(tokens["reader"])) for _ in range(12)]
        assert [answer.status_code for answer in answers[:10]] == [200] * 10
        assert answers[11].status_code == 429
        assert answers[11].headers["retry-after"] == "1"
        assert client.get("/v1/preselectors", headers=bear(tokens["client"])).status_code == 200
