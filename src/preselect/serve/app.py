"""The service as an ASGI application: every call of the table, answered by a backend."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import msgspec
from starlette.routing import BaseRoute

from preselect.errors import InputError, PreselectError
from preselect.serve import schemas
from preselect.serve.access import Access
from preselect.serve.backend import Backend
from preselect.serve.calls import Call
from preselect.serve.http import find_call, find_header, read_body, read_query
from preselect.serve.keys import Key, Keys
from preselect.serve.limits import Rates, ServiceLimits, check_depth
from preselect.serve.log import log
from preselect.serve.metrics import Metrics
from preselect.serve.pages import make_pages
from preselect.serve.parameters import check_name, read_context, read_flag, read_number
from preselect.serve.problems import describe_error
from preselect.serve.stream import Message, Receive, Send, Streams

_JSON = b"application/json"
_COMMON = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))

_encode = msgspec.json.Encoder().encode


class _Request(NamedTuple):
    """A call with its names, query and body, and the preselector to which the caller's key is bound."""

    names: list[str]
    query: dict[str, str]
    body: Any
    within: str | None


_Answer = tuple[int, Any]


class Service:
    """Answers requests.

    Parameters
    ----------
    backend : Backend
        Keeps the preselectors.
    keys : Keys or None, default None
        Who may do what. Without keys anyone may do anything, as long as they ask for a local name.
    limits : ServiceLimits, optional
        The most that requests may ask for.
    metrics : Metrics, optional
        Where requests are counted.
    routes : sequence of BaseRoute, default ()
        Further pages.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        keys: Keys | None = None,
        limits: ServiceLimits | None = None,
        metrics: Metrics | None = None,
        routes: Sequence[BaseRoute] = (),
    ) -> None:
        self.backend, self._limits, self._metrics = backend, limits or ServiceLimits(), metrics or Metrics()
        self._access, self._streams = Access(keys, Rates(self._limits.rate)), Streams(self._limits, self._metrics)
        self._pages = make_pages(backend, self._metrics, self._access, self._streams, routes)
        self.failure: BaseException | None = None  # the error that kept the backend from starting
        self._handlers: dict[str, Callable[[_Request], Awaitable[_Answer]]] = {
            "create": self._create,
            "describe": self._describe,
            "describe_all": self._describe_all,
            "put_arm": self._put_arm,
            "retire_arm": self._retire_arm,
            "decide": self._decide,
            "find_decision": self._find_decision,
            "tell": self._tell,
            "tell_many": self._tell_many,
            "weights": self._weights,
            "rounds": self._rounds,
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and scope["path"].startswith("/v1"):
            await self._answer(scope, receive, send)
        elif scope["type"] == "http":
            await self._pages(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    def end_streams(self) -> None:
        """End all streams, which would otherwise stay open as long as their readers like."""
        self._streams.end()

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start and stop the backend; until it has replayed its events, requests are told to try again later."""
        await receive()
        starting = asyncio.ensure_future(self._start())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._streams.end()
        await starting
        await self.backend.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _start(self) -> None:
        try:
            await self.backend.start()
        except Exception as error:
            log(logging.CRITICAL, "the service cannot start", detail=str(error))
            self.failure = error

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        start, name, body = perf_counter(), "none", None
        headers: dict[str, str] = {}
        try:
            call, names = find_call(scope)
            name = call.name
            key = self._authorise(scope, call, names)
            query = read_query(scope, call)
            if name == "stream":
                await self._stream(scope, receive, send, names[0])
                return
            if call.body is not None:
                body = await read_body(scope, receive, call, self._limits.body, self._limits.patience_s)
            status, answer = await self._handlers[name](_Request(names, query, body, key.preselector))
            media = _JSON
        except Exception as error:
            status, answer, headers = self._refuse(error, name, body)
            media = schemas.PROBLEM.encode()
        await _send(send, status, answer, media, headers)
        self._metrics.count_request(name, status, perf_counter() - start)

    def _refuse(self, error: Exception, name: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        problem, headers = describe_error(error, body)
        if problem.status >= 500:  # expected errors, such as overload, are logged for debugging only
            unexpected, level = (None, logging.DEBUG) if isinstance(error, PreselectError) else (error, logging.ERROR)
            log(level, "a request failed", error=unexpected, call=name, status=problem.status, detail=str(error))
        return problem.status, problem, headers

    def _authorise(self, scope: Message, call: Call, names: list[str]) -> Key:
        name = names[0] if names and call.segments[1] == "preselectors" else None
        return self._access.authorise(scope, call.role, name)

    async def _create(self, request: _Request) -> _Answer:
        check_name(request.names[0])
        self._limits.check_preselector(request.body)
        description, is_new = await self.backend.create(request.names[0], request.body)
        log(logging.INFO, "a preselector was made" if is_new else "nothing new", preselector=request.names[0])
        return 201 if is_new else 200, description

    async def _describe(self, request: _Request) -> _Answer:
        return 200, await self.backend.describe(request.names[0])

    async def _describe_all(self, request: _Request) -> _Answer:
        found = await self.backend.describe_all()
        return 200, schemas.Listing([one for one in found if request.within in (None, one.name)])

    async def _put_arm(self, request: _Request) -> _Answer:
        name, arm = request.names
        if len(arm) > 200:
            raise InputError("the name of the arm has more than 200 characters; use a shorter one")
        self._limits.check_arm(request.body)
        known = (await self.backend.describe(name)).arms
        if arm not in known and len(known) >= self._limits.arms:
            raise InputError(f"there are {len(known)} arms, and this service takes no more; retire one first")
        description, is_new = await self.backend.put_arm(name, arm, request.body)
        return 201 if is_new else 200, description

    async def _retire_arm(self, request: _Request) -> _Answer:
        await self.backend.retire_arm(*request.names)
        return 204, None

    async def _decide(self, request: _Request) -> _Answer:
        self._limits.check_decision(request.body)
        decision, is_new = await self.backend.decide(request.names[0], request.body)
        return 201 if is_new else 200, decision

    async def _find_decision(self, request: _Request) -> _Answer:
        explain = read_flag(request.query, "explain", True)
        return 200, await self.backend.find_decision(request.names[0], request.within, explain)

    async def _tell(self, request: _Request) -> _Answer:
        check_depth(request.body.details, "details")
        ending = await self.backend.tell(request.names[0], request.body, request.within)
        return 201 if ending.is_new else 200, ending

    async def _tell_many(self, request: _Request) -> _Answer:
        for one in request.body.outcomes:
            check_depth(one.details, "details")
        return 200, schemas.Results(await self.backend.tell_many(request.body.outcomes, request.within))

    async def _weights(self, request: _Request) -> _Answer:
        return 200, await self.backend.weights(request.names[0], read_context(request.query))

    async def _rounds(self, request: _Request) -> _Answer:
        after = read_number(request.query, "after", 0, 0, 2**53)
        limit = read_number(request.query, "limit", 100, 1, 1000)
        return 200, await self.backend.rounds(request.names[0], after, limit)

    async def _stream(self, scope: Message, receive: Receive, send: Send, name: str) -> None:
        last = find_header(scope, b"last-event-id")
        if last is not None and not (last.isdigit() and len(last) < 16):
            raise InputError("last-event-id is not the id of an update; leave it out")
        updates = self.backend.subscribe(name, None if last is None else int(last))
        await self._streams.send(updates, receive, send)


async def _send(send: Send, status: int, answer: Any, media: bytes, headers: dict[str, str]) -> None:
    content = b"" if answer is None else _encode(answer)
    listed = [(b"content-length", b"%d" % len(content)), *_COMMON] if status != 204 else [*_COMMON]
    if content:
        listed.append((b"content-type", media))
    listed += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": content})
