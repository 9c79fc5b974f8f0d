"""`Client` and `ServedPreselector`: preselectors of a service, with the methods of `Preselector`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from preselect.arguments import number
from preselect.client import requests
from preselect.client.exchange import Attempts, make_options, read_answer
from preselect.client.requests import Answer, Request
from preselect.client.served_decision import ServedDecision
from preselect.named.estimates import Estimates, FeatureWeight
from preselect.named.explanations import Explanation
from preselect.named.feedback import MISSING, Names, Places, Ratings
from preselect.named.roster import Groups, Limits, Prices
from preselect.named.values import Features, Values, Vector
from preselect.outcomes import Outcome
from preselect.policies import registry


class Client:
    """A connection to a service (`preselect serve`). Several threads may use one client.

    If a request is lost or the service is too busy, it is sent again until `patience` ends. That is harmless: the
    service recognises requests that it has carried out already.

    Parameters
    ----------
    url : str, default "http://127.0.0.1:8000"
        The address of the service.
    key : str, optional
        The key, as `preselect serve key` printed it; a service without keys needs none.
    timeout : float, default 10.0
        How many seconds to wait for an answer.
    patience : float, default 30.0
        For how many seconds to send a request again; 0 to send it once.
    transport : optional
        An httpx transport instead of the network, for tests.

    Examples
    --------
    >>> with Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     articles = client.create("articles", ["a", "b", "c"], context=["age"])
    ...     decision = articles.select({"age": 31}, k=2)
    ...     articles.learn(decision, winner=decision.names[0])
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 10.0,
        patience: float = 30.0,
        transport: Any = None,
    ) -> None:
        import httpx

        self._patience = number(patience, "patience", least=0.0)
        self._http, self._problems = (
            httpx.Client(**make_options(url, key, timeout), transport=transport),
            httpx.TransportError,
        )

    def create(
        self,
        name: str,
        arms: Names | Mapping[str, Features | Vector] = (),
        context: Names = (),
        *,
        policy: str = registry.DEFAULT,
        identity: bool = True,
        nobody_may_win: bool = False,
        covariance: str | None = None,
        groups: Groups | None = None,
        prices: Prices | None = None,
        expires_s: float | None = None,
    ) -> ServedPreselector:
        """Make a preselector, unless the same one exists already; a different one of that name is a ConflictError.

        Parameters
        ----------
        name : str
            Its name in the service.
        arms, context, policy, identity, nobody_may_win, covariance, groups, prices : optional
            As in Preselector.
        expires_s : float, optional
            After how many seconds a decision without an outcome expires; the default is the service's.
        """
        options = {
            "policy": policy,
            "identity": identity,
            "nobody_may_win": nobody_may_win,
            "covariance": covariance,
            "groups": groups,
            "prices": prices,
            "expires_s": expires_s,
        }
        self.send(requests.create(name, arms, context, options))
        return ServedPreselector(self, name)

    def preselector(self, name: str) -> ServedPreselector:
        """Return a preselector of the service; nothing is sent until it is used.

        Parameters
        ----------
        name : str
            Its name in the service.
        """
        return ServedPreselector(self, name)

    def names(self) -> list[str]:
        """The names of the preselectors that the key may see."""
        return self.send(requests.list_names())

    def learn_many(self, outcomes: Iterable[tuple[ServedDecision | str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """Report many outcomes, a thousand in each request; each has its own result.

        Parameters
        ----------
        outcomes : iterable of pairs
            A decision or its id, and the arguments of `learn`, such as (decision, {"winner": "a"}).

        Returns
        -------
        list of dict
            For each outcome: the decision's id, the HTTP status that the report would have had alone, and what is
            wrong, if anything.
        """
        return [result for request in requests.tell_many(outcomes) for result in self.send(request)]

    def send(self, request: Request[Answer]) -> Answer:
        """Send a request, several times if necessary, and return the answer.

        Parameters
        ----------
        request : Request
            What to send.
        """
        attempts = Attempts(self._patience)
        while True:
            try:
                answer = self._http.request(request.method, request.path, content=request.content)
            except self._problems as error:
                time.sleep(attempts.wait_after_error(error))
                continue
            pause = attempts.wait_after_status(answer.status_code, answer.headers)
            if pause is None:
                return read_answer(request, answer.status_code, answer.content, attempts)
            time.sleep(pause)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({str(self._http.base_url)!r})"


class ServedPreselector:
    """A preselector that a service keeps: what `Preselector` does, for many processes at once.

    Use `Client.create` or `Client.preselector`.

    Parameters
    ----------
    client : Client
        The connection.
    name : str
        Its name in the service.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name

    @property
    def arms(self) -> list[str]:
        """The names of the arms, in the order in which they joined."""
        return list(self.describe()["arms"])

    @property
    def context(self) -> list[str]:
        """The names of the features that describe a round."""
        return list(self.describe()["context"])

    def describe(self) -> dict[str, Any]:
        """Return the configuration, the arms, and counts of decisions and outcomes."""
        return self.client.send(requests.describe(self.name))

    def arm(self, name: str) -> dict[str, float | None]:
        """Return the features of an arm; None for those that are not known.

        Parameters
        ----------
        name : str
            The arm.
        """
        return dict(self.describe()["arms"][name]["features"])

    def add(
        self,
        name: str,
        features: Features | Vector | None = None,
        *,
        group: str | None = None,
        price: float | None = None,
    ) -> None:
        """Add an arm, or replace all that was given about it before.

        Parameters
        ----------
        name : str
            The arm.
        features : mapping, sequence or array, optional
            The arm's features. Those left out are unknown.
        group : str, optional
            The group that it belongs to, if any.
        price : float, optional
            Its price, at least 0.
        """
        self.client.send(requests.put_arm(self.name, name, features, group, price))

    def remove(self, name: str) -> None:
        """Retire an arm.

        Parameters
        ----------
        name : str
            The arm.
        """
        self.client.send(requests.retire_arm(self.name, name))

    def select(
        self,
        context: Values | None = None,
        k: int | None = None,
        *,
        eligible: Names | None = None,
        include: Names | None = None,
        at_most: Limits | None = None,
        budget: float | None = None,
        groups: Groups | None = None,
        propensities: bool = False,
        explain: bool = False,
        expires_s: float | None = None,
        request_id: str | None = None,
        label: str = "",
    ) -> ServedDecision:
        """Choose k arms for a round. The decision is on disk at the service when this returns.

        Parameters
        ----------
        context, k, eligible, include, at_most, budget, groups, propensities : optional
            As in Preselector.select.
        explain : bool, default False
            Whether the decision says why each arm was chosen.
        expires_s : float, optional
            After how many seconds the decision expires if no outcome arrives. Nothing is learnt from it then.
        request_id : str, optional
            A name for this request. The same request with the same name gives the same decision. Made up by default.
        label : str, default ""
            What the round is about, for reports.
        """
        options = {
            "eligible": eligible,
            "include": include,
            "at_most": at_most,
            "budget": budget,
            "groups": groups,
            "propensities": propensities,
            "explain": explain,
            "expires_s": expires_s,
            "request_id": request_id,
            "label": label,
        }
        return self.client.send(requests.decide(self.name, context, k, options))

    def learn(
        self,
        decision: ServedDecision | str,
        *,
        winner: str | None = MISSING,
        ranking: Places | None = None,
        ratings: Ratings | None = None,
        outcome: Outcome | None = None,
        after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> bool:
        """Report the outcome of a decision; return False if it was reported before, which changes nothing.

        An outcome that differs from the one reported before is a ConflictError; one that comes too late is an
        ExpiredError.

        Parameters
        ----------
        decision : ServedDecision or str
            What `select` returned, in this process or another, or its id.
        winner, ranking, ratings, outcome, after : optional
            As in Preselector.learn: exactly one of winner, ranking, ratings and outcome.
        details : mapping, optional
            Anything else to keep with the outcome. Nothing is learnt from it.
        """
        told = requests.describe_outcome(
            winner=winner, ranking=ranking, ratings=ratings, outcome=outcome, after=after, details=details
        )
        return self.client.send(requests.tell(decision, told))

    def decision(self, id: str) -> ServedDecision:
        """Return a decision as it is now: its status, the outcome if one was reported, and why it was made.

        Parameters
        ----------
        id : str
            The decision.
        """
        return self.client.send(requests.find_decision(id))

    def explain(self, decision: ServedDecision | str) -> Explanation | None:
        """Explain a decision by what is known now; None if its arms are no longer there.

        Parameters
        ----------
        decision : ServedDecision or str
            The decision, or its id.
        """
        return self.decision(decision if isinstance(decision, str) else decision.id).explanation

    def estimates(self, context: Values | None = None) -> Estimates:
        """Estimate every arm in a context: utility, standard error, bounds, and chance of winning among all.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        return self.client.send(requests.estimate(self.name, context))

    def feature_weights(self, context: Values | None = None) -> dict[str, FeatureWeight]:
        """Estimate what each feature of the arms adds to their utility in a context; see Preselector.feature_weights.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        return self.client.send(requests.weigh_features(self.name, context))

    def rounds(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the rounds in the order of their decisions.

        Parameters
        ----------
        after : int, default 0
            The number of a round: only later rounds are returned.
        """
        following: int | None = after
        while following is not None:
            page, following = self.client.send(requests.read_rounds(self.name, following))
            yield from page

    def __repr__(self) -> str:
        return f"ServedPreselector({self.client!r}, {self.name!r})"
