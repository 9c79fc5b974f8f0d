"""`AsyncClient`: the methods of `Client` for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Self, TypedDict, Unpack

from preselect.arguments import number
from preselect.client import requests
from preselect.client.exchange import Attempts, make_options, read_answer
from preselect.client.requests import Answer, Request
from preselect.client.served_decision import ServedDecision
from preselect.named.estimates import Estimates, FeatureWeight
from preselect.named.explanations import Explanation
from preselect.named.feedback import Names, Places, Ratings
from preselect.named.roster import Groups, Limits, Prices
from preselect.named.values import Features, Values, Vector
from preselect.outcomes import Outcome


class _CreateOptions(TypedDict, total=False):
    policy: str
    identity: bool
    nobody_may_win: bool
    covariance: str
    groups: Groups
    prices: Prices
    expires_s: float


class _SelectOptions(TypedDict, total=False):
    eligible: Names
    include: Names
    at_most: Limits
    budget: float
    groups: Groups
    propensities: bool
    explain: bool
    expires_s: float
    request_id: str
    label: str


class _OutcomeOptions(TypedDict, total=False):
    winner: str | None
    ranking: Places
    ratings: Ratings
    outcome: Outcome
    after: float
    details: Mapping[str, Any]


class AsyncClient:
    """A connection to a service, for asyncio. It has the methods of `Client`, to be awaited.

    Parameters
    ----------
    url : str, default "http://127.0.0.1:8000"
        The address of the service.
    key : str, optional
        The key; a service without keys needs none.
    timeout : float, default 10.0
        How many seconds to wait for an answer.
    patience : float, default 30.0
        For how many seconds to send a request again; 0 to send it once.
    transport : optional
        An httpx transport instead of the network, for tests.

    Examples
    --------
    >>> async def choose():
    ...     async with AsyncClient("http://127.0.0.1:8000") as client:
    ...         articles = client.preselector("articles")
    ...         decision = await articles.select({"age": 31}, k=2)
    ...         await articles.learn(decision, winner=decision.names[0])
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

        self._patience, self._problems = number(patience, "patience", least=0.0), httpx.TransportError
        self._http = httpx.AsyncClient(**make_options(url, key, timeout), transport=transport)

    async def create(
        self,
        name: str,
        arms: Names | Mapping[str, Features | Vector] = (),
        context: Names = (),
        **options: Unpack[_CreateOptions],
    ) -> AsyncServedPreselector:
        """Make a preselector, unless the same one exists already; see Client.create.

        Parameters
        ----------
        name : str
            Its name in the service.
        arms, context, **options : optional
            As in Client.create.
        """
        await self.send(requests.create(name, arms, context, options))
        return AsyncServedPreselector(self, name)

    def preselector(self, name: str) -> AsyncServedPreselector:
        """Return a preselector that the service has. Nothing is sent before it is used.

        Parameters
        ----------
        name : str
            Its name in the service.
        """
        return AsyncServedPreselector(self, name)

    async def names(self) -> list[str]:
        """The names of the preselectors that the key may see."""
        return await self.send(requests.list_names())

    async def learn_many(
        self, outcomes: Iterable[tuple[ServedDecision | str, Mapping[str, Any]]]
    ) -> list[dict[str, Any]]:
        """Report many outcomes, a thousand in each request; see Client.learn_many.

        Parameters
        ----------
        outcomes : iterable of pairs
            A decision or its id, and the arguments of `learn`.
        """
        return [result for request in requests.tell_many(outcomes) for result in await self.send(request)]

    async def send(self, request: Request[Answer]) -> Answer:
        """Send a request, several times if necessary, and return the answer.

        Parameters
        ----------
        request : Request
            What to send.
        """
        attempts = Attempts(self._patience)
        while True:
            try:
                answer = await self._http.request(request.method, request.path, content=request.content)
            except self._problems as error:
                await asyncio.sleep(attempts.wait_after_error(error))
                continue
            pause = attempts.wait_after_status(answer.status_code, answer.headers)
            if pause is None:
                return read_answer(request, answer.status_code, answer.content, attempts)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({str(self._http.base_url)!r})"


class AsyncServedPreselector:
    """A preselector that a service keeps, for asyncio.

    Use `AsyncClient.create` or `AsyncClient.preselector`.

    Parameters
    ----------
    client : AsyncClient
        The connection.
    name : str
        Its name in the service.
    """

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.client, self.name = client, name

    async def describe(self) -> dict[str, Any]:
        """Return the configuration, the arms, and counts of decisions and outcomes."""
        return await self.client.send(requests.describe(self.name))

    async def add(
        self,
        name: str,
        features: Features | Vector | None = None,
        *,
        group: str | None = None,
        price: float | None = None,
    ) -> None:
        """Add an arm, or replace what is known about it; see ServedPreselector.add.

        Parameters
        ----------
        name : str
            The arm.
        features, group, price : optional
            As in ServedPreselector.add.
        """
        await self.client.send(requests.put_arm(self.name, name, features, group, price))

    async def remove(self, name: str) -> None:
        """Retire an arm.

        Parameters
        ----------
        name : str
            The arm.
        """
        await self.client.send(requests.retire_arm(self.name, name))

    async def select(
        self, context: Values | None = None, k: int | None = None, **options: Unpack[_SelectOptions]
    ) -> ServedDecision:
        """Choose k arms for a round; see ServedPreselector.select.

        Parameters
        ----------
        context, k, **options : optional
            As in ServedPreselector.select.
        """
        return await self.client.send(requests.decide(self.name, context, k, options))

    async def learn(self, decision: ServedDecision | str, **told: Unpack[_OutcomeOptions]) -> bool:
        """Report the outcome of a decision; return False if it was reported before. See ServedPreselector.learn.

        Parameters
        ----------
        decision : ServedDecision or str
            What `select` returned, or its id.
        **told
            As in ServedPreselector.learn: exactly one of winner, ranking, ratings and outcome.
        """
        return await self.client.send(requests.tell(decision, requests.describe_outcome(**told)))

    async def decision(self, id: str) -> ServedDecision:
        """Return a decision as it is now: its status, the outcome if one was reported, and why it was made.

        Parameters
        ----------
        id : str
            The decision.
        """
        return await self.client.send(requests.find_decision(id))

    async def explain(self, decision: ServedDecision | str) -> Explanation | None:
        """Explain a decision by what is known now; None if its arms are no longer there.

        Parameters
        ----------
        decision : ServedDecision or str
            The decision, or its id.
        """
        return (await self.decision(decision if isinstance(decision, str) else decision.id)).explanation

    async def estimates(self, context: Values | None = None) -> Estimates:
        """Estimate every arm in a context; see ServedPreselector.estimates.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        return await self.client.send(requests.estimate(self.name, context))

    async def feature_weights(self, context: Values | None = None) -> dict[str, FeatureWeight]:
        """Estimate what each feature of the arms adds to their utility in a context; see Preselector.feature_weights.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        return await self.client.send(requests.weigh_features(self.name, context))

    async def rounds(self, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Yield the rounds in the order of their decisions.

        Parameters
        ----------
        after : int, default 0
            The number of a round: only later rounds are returned.
        """
        following: int | None = after
        while following is not None:
            page, following = await self.client.send(requests.read_rounds(self.name, following))
            for one in page:
                yield one

    def __repr__(self) -> str:
        return f"AsyncServedPreselector({self.client!r}, {self.name!r})"
