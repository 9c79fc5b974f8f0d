"""The client and the service together: what `Preselector` does, a client does with the same words."""

import pytest
from services import LOCAL, bear, make_keys, open_service

from preselect import Client, Explanation, NoWinner, Preselector, Void
from preselect.errors import ConflictError, InputError, NotFoundError, RequestError

httpx = pytest.importorskip("httpx", reason="the client needs httpx")

ARMS = {"a": {"size": 1.0}, "b": {"size": 2.0}, "c/d é": {"size": 3.0}}


class Wire(httpx.BaseTransport):
    """From a client in this thread to a service in another, without sockets."""

    def __init__(self, service):
        self.service = service

    def handle_request(self, request):
        path = request.url.raw_path.decode()
        answer = self.service.request(request.method, path, content=request.read(), headers=dict(request.headers))
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@pytest.fixture
def client():
    with open_service() as service, Client(LOCAL, transport=Wire(service), patience=0.0) as made:
        yield made


@pytest.mark.parametrize("chooser", ["embedded", "served"])
def test_the_same_lines_work_embedded_and_served(client, chooser):
    settings = {
        "context": ["age"],
        "nobody_may_win": True,
        "groups": {"a": "small"},
        "prices": dict.fromkeys(ARMS, 2.0),
    }
    made = Preselector(ARMS, **settings) if chooser == "embedded" else client.create("web", ARMS, **settings)
    decision = made.select({"age": 3.0}, k=2, include=["a"], at_most={"small": 1}, budget=5.0)
    assert "a" in decision.names
    made.learn(decision, winner=decision.names[0])
    made.learn(made.select([None], k=2), ranking=None, outcome=Void())
    made.learn(made.select([4.0], k=3), ranking=[["a", "b"], "c/d é"])
    made.learn(made.select({"age": None}, k=2), winner=None)
    made.learn(made.select([1.0], k=1), outcome=NoWinner())
    made.add("e", {"size": 9.0}, group="large", price=1.0)
    made.remove("b")
    assert made.arms == ["a", "c/d é", "e"]
    assert made.arm("e") == {"size": 9.0}
    assert made.context == ["age"]
    found = made.estimates({"age": 2.0})
    assert list(found) == made.arms
    assert sum(one.chance for one in found.values()) + found.nobody == pytest.approx(1.0)
    assert list(made.feature_weights({"age": 2.0})) == ["size"]
    assert made.feature_weights({"age": None})["size"].standard_error > 0.0
    explanation = made.explain(made.select({"age": 3.0}, k=2))
    assert isinstance(explanation, Explanation)
    assert "itself × age" in explanation.arms[0].contributions
    with pytest.raises(InputError, match="k=9"):
        made.select({"age": 3.0}, k=9)
    with pytest.raises(InputError, match="zzz"):
        made.select({"age": 3.0}, k=1, eligible=["zzz"])


def test_what_is_told_twice_is_learnt_once(client):
    served = client.create("web", ["a", "b"])
    decision = served.select(k=2, request_id="r1")
    assert served.select(k=2, request_id="r1") == decision
    assert served.learn(decision, winner="a", details={"seconds": 3}) is True
    assert served.learn(decision.id, winner="a", details={"seconds": 3}) is False
    with pytest.raises(ConflictError):
        served.learn(decision, winner="b")
    found = served.decision(decision.id)
    assert (found.status, found.outcome["names"]) == ("told", ["a"])
    assert served.describe()["told"] == 1


def test_preselectors_are_found_again(client):
    client.create("web", ["a", "b"])
    client.create("web", ["a", "b"])
    assert client.names() == ["web"]
    assert client.preselector("web").arms == ["a", "b"]
    with pytest.raises(ConflictError):
        client.create("web", ["a"])
    with pytest.raises(NotFoundError, match="nothing"):
        client.preselector("nothing").describe()


def test_many_outcomes_and_rounds(client):
    served = client.create("web", ["a", "b"])
    decisions = [served.select(k=2, label=str(place)) for place in range(5)]
    results = client.learn_many([*((one, {"winner": "a"}) for one in decisions), ("nothing", {"winner": "a"})])
    assert [one["status"] for one in results] == [201] * 5 + [404]
    rounds = list(served.rounds())
    assert [one["label"] for one in rounds] == list("01234")
    assert [one["label"] for one in served.rounds(after=rounds[2]["number"])] == ["3", "4"]


def test_a_decision_can_carry_its_explanation_and_propensities(client):
    served = client.create("web", ["a", "b", "c"], policy="epsilon-greedy(epsilon=0.5)")
    decision = served.select(k=2, explain=True, propensities=True)
    assert [arm.name for arm in decision.explanation.arms] == list(decision.names)
    assert all(0.0 < one <= 1.0 for one in decision.propensities)


def test_keys_decide_what_a_client_may_do():
    keys, tokens = make_keys()
    with open_service(keys=keys) as service:
        assert service.get("/v1/preselectors", headers=bear(tokens["reader"])).status_code == 200
        for name, status in ((None, 401), ("reader", 403)):
            client = Client(LOCAL, key=tokens.get(name), transport=Wire(service), patience=0.0)
            with pytest.raises(RequestError) as caught:
                client.create("web", ["a"])
            assert caught.value.status == status
        assert Client(LOCAL, key=tokens["admin"], transport=Wire(service)).create("web", ["a"]).arms == ["a"]
