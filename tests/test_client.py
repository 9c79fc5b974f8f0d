"""The client: what it sends, when it sends it again, and which exceptions answers become."""

import asyncio
import json

import numpy as np
import pytest

from preselect import AsyncClient, Client, InputError, NoWinner, PreselectError, Void, Winner
from preselect.errors import (
    ConflictError,
    ExpiredError,
    NotFoundError,
    OverloadedError,
    RequestError,
    ServiceError,
)

httpx = pytest.importorskip("httpx", reason="the client needs httpx")

DECISION = {"id": "d1", "names": ["b", "a"], "scores": [1.5, None], "status": "waiting", "round": 7, "version": 9}


class Service:
    """Answers with what a script says, the last of it for ever, and remembers the requests."""

    def __init__(self, *script):
        self.script, self.requests = list(script), []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        status, body, *headers = answer
        return httpx.Response(status, json=body, headers=dict(*headers))

    def client(self, **options):
        return Client("http://service", transport=httpx.MockTransport(self), **options)

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.requests if request.content]


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Nobody waits; the pauses are listed instead."""
    waited = []
    monkeypatch.setattr("preselect.client.synchronous.time.sleep", waited.append)
    return waited


def open_preselector(service, **options):
    from preselect.client import ServedPreselector

    return ServedPreselector(service.client(**options), "web pages/1")


def test_select_sends_what_was_given_and_returns_a_decision():
    service = Service((201, DECISION))
    decision = open_preselector(service).select(
        {"age": np.float64(3.0), "seen": float("nan")}, k=2, eligible=iter(["a", "b"]), at_most={"sport": 1}, label="x"
    )
    assert (decision.id, decision.names, decision.scores, decision.round) == ("d1", ("b", "a"), (1.5, None), 7)
    request, body = service.requests[0], service.bodies[0]
    assert (request.method, request.url.raw_path) == ("POST", b"/v1/preselectors/web%20pages%2F1/decisions")
    assert len(body.pop("request_id")) == 32
    assert body == {
        "k": 2,
        "context": {"age": 3.0, "seen": None},
        "eligible": ["a", "b"],
        "at_most": {"sport": 1},
        "propensities": False,
        "explain": False,
        "label": "x",
    }


def test_vectors_are_sent_as_lists():
    service = Service((201, DECISION))
    open_preselector(service).select(np.array([1.0, np.nan]), k=1)
    assert service.bodies[0]["context"] == [1.0, None]


@pytest.mark.parametrize(
    "failure", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), (503, {"detail": "busy"})]
)
def test_a_request_that_fails_on_the_way_is_sent_again_under_the_same_name(failure, pauses):
    service = Service(failure, failure, (201, DECISION))
    assert open_preselector(service).select(k=2).id == "d1"
    first, second, third = service.bodies
    assert first == second == third
    assert 0.0 < pauses[0] < pauses[1] * 4.0


def test_two_calls_are_two_requests():
    service = Service((201, DECISION))
    served = open_preselector(service)
    served.select(k=2)
    served.select(k=2)
    first, second = service.bodies
    assert first["request_id"] != second["request_id"]


def test_it_waits_as_long_as_the_service_asks(pauses):
    service = Service((429, {"detail": "slow down"}, {"Retry-After": "7"}), (200, {"is_new": True}))
    assert open_preselector(service).learn("d1", winner="a") is True
    assert pauses == [7.0]


def test_patience_ends():
    with pytest.raises(ServiceError, match="cannot be reached: refused; is it running"):
        open_preselector(Service(httpx.ConnectError("refused")), patience=0.0).select(k=1)
    with pytest.raises(OverloadedError, match="busy"):
        open_preselector(Service((503, {"detail": "busy"})), patience=0.0).select(k=1)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, RequestError),
        (401, RequestError),
        (403, RequestError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, ExpiredError),
        (413, RequestError),
        (422, InputError),
        (500, RequestError),
    ],
)
def test_problems_become_exceptions_that_say_what_the_service_said(status, error):
    with pytest.raises(error, match="what to do") as caught:
        open_preselector(Service((status, {"detail": "what to do"}))).learn("d1", winner="a")
    assert type(caught.value) is error
    assert status == getattr(caught.value, "status", status)


def test_an_answer_of_something_else_is_not_mistaken_for_one_of_the_service():
    for content in (b"<html>", b"[]", b"\xff"):
        client = Client(
            "http://x", transport=httpx.MockTransport(lambda _, body=content: httpx.Response(404, content=body))
        )
        with pytest.raises(ServiceError, match="GET /v1/preselectors got an answer with status 404"):
            client.names()


def test_an_arm_that_an_earlier_attempt_removed_is_removed():
    service = Service(httpx.ReadTimeout("slow"), (404, {"detail": "no such arm"}))
    open_preselector(service).remove("a")
    assert [request.method for request in service.requests] == ["DELETE", "DELETE"]
    with pytest.raises(NotFoundError):
        open_preselector(Service((404, {"detail": "no such arm"}))).remove("a")


@pytest.mark.parametrize(
    ("told", "sent"),
    [
        ({"winner": "a", "after": 0.5}, {"winner": "a", "after": 0.5}),
        ({"winner": None}, {"winner": None}),
        ({"ranking": [("a", "b"), "c"]}, {"ranking": [["a", "b"], "c"]}),
        ({"ratings": {"a": 1}}, {"ratings": {"a": 1}}),
        ({"outcome": Void(), "details": {"why": "x"}}, {"outcome": "void", "details": {"why": "x"}}),
        ({"outcome": NoWinner(0.25)}, {"outcome": "no-winner", "after": 0.25}),
    ],
)
def test_outcomes_are_sent_in_the_words_of_learn(told, sent):
    service = Service((200, {"is_new": False}))
    assert open_preselector(service).learn("d1", **told) is False
    assert service.bodies == [sent]


def test_many_outcomes_go_a_thousand_at_a_time():
    service = Service((200, {"results": [{"id": "x", "status": 201}]}))
    results = service.client().learn_many((f"d{i}", {"winner": "a"}) for i in range(2001))
    assert [len(body["outcomes"]) for body in service.bodies] == [1000, 1000, 1]
    assert service.bodies[2]["outcomes"] == [{"id": "d2000", "winner": "a"}]
    assert len(results) == 3


@pytest.mark.parametrize(
    ("misuse", "problem"),
    [
        (lambda served: served.select(), "say how many arms to choose"),
        (lambda served: served.learn(3, winner="a"), "decision is 3; give what select returned"),
        (lambda served: served.learn("d", outcome=Winner(0)), "use NoWinner"),
        (lambda served: served.remove(""), "'' is not a name"),
        (lambda _: Client("localhost:8000"), "url is 'localhost:8000'; give the address"),
        (lambda _: Client(timeout=0), "timeout"),
    ],
)
def test_misuse_is_explained_before_anything_is_sent(misuse, problem):
    service = Service((200, {}))
    with pytest.raises(PreselectError, match=problem):
        misuse(open_preselector(service))
    assert not service.requests


def test_the_key_goes_with_every_request_and_is_not_shown():
    service = Service((200, {"preselectors": [{"name": "a"}]}))
    client = service.client(key="secret")
    assert client.names() == ["a"]
    assert service.requests[0].headers["authorization"] == "Bearer secret"
    assert "secret" not in repr(client)


def test_asyncio_has_the_same_words():
    service = Service(
        httpx.ConnectError("refused"),
        (201, {}),
        (201, DECISION),
        (200, {"is_new": True}),
        (200, {"rounds": [1], "next": 4}),
        (200, {"rounds": [2], "next": None}),
    )

    async def play():
        async with AsyncClient("http://service", transport=httpx.MockTransport(service)) as client:
            served = await client.create("web", ["a", "b"], policy="cppl")
            decision = await served.select(k=2, include=["a"])
            assert await served.learn(decision, winner="a")
            assert [one async for one in served.rounds()] == [1, 2]

    asyncio.run(play())
    assert service.bodies[0] == service.bodies[1] == {"arms": ["a", "b"], "context": [], "policy": "cppl"}
    assert service.bodies[2]["include"] == ["a"]
