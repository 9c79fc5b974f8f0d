"""Send updates as server-sent events, and comments while there are none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from preselect.errors import RequestError
from preselect.serve.limits import ServiceLimits
from preselect.serve.metrics import Metrics

_SILENCE = 15.0  # seconds without an update after which a comment shows that the connection is alive

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Update(Protocol):
    """An update: anything that JSON can hold, with the number of the last event that it covers."""

    @property
    def number(self) -> int:
        """The number of the last event; a client that reconnects sends the last number that it has seen."""


class Streams:
    """The open streams, whose number is limited.

    Parameters
    ----------
    limits : ServiceLimits
        How many streams may be open, and how long a client may take to read.
    metrics : Metrics
        Where they are counted.
    """

    def __init__(self, limits: ServiceLimits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._stop, self._open = asyncio.Event(), 0

    def end(self) -> None:
        """End all streams, which would otherwise stay open as long as their readers like."""
        self._stop.set()

    async def pause(self, seconds: float) -> bool:
        """Wait for some seconds, or until all streams end; return whether they have ended.

        Parameters
        ----------
        seconds : float
            How long.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
        return self._stop.is_set()

    async def send(self, updates: AsyncIterator[Update], receive: Receive, send: Send) -> None:
        """Send updates for as long as the client reads; raise a RequestError if too many streams are open.

        Parameters
        ----------
        updates : asynchronous iterator
            What to send.
        receive, send : callable
            The connection, as ASGI has it.
        """
        if self._open >= self._limits.streams:
            raise RequestError(503, f"{self._open} streams are open, and no more are possible; try again later")
        self._open += 1
        self._metrics.streams.inc()
        try:
            await _send_updates(updates, receive, send, stop=self._stop, patience=self._limits.patience_s)
        finally:
            self._open -= 1
            self._metrics.streams.dec()


async def _send_updates(
    updates: AsyncIterator[Update],
    receive: Receive,
    send: Send,
    *,
    stop: asyncio.Event,
    patience: float,
    silence: float = _SILENCE,
) -> None:
    """Send updates until the client goes, the service stops, or the client does not read for too long.

    The first update is awaited before anything is sent, so that an unknown preselector has a proper answer.
    """
    first = await anext(updates)
    ends: list[asyncio.Task[Any]] = [
        asyncio.ensure_future(_wait_until_gone(receive)),
        asyncio.ensure_future(stop.wait()),
    ]
    following: asyncio.Task[Update] | None = None
    try:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await _send_part(send, _write_event(first), patience)
        while not any(end.done() for end in ends):
            following = following or asyncio.ensure_future(_get_next(updates))
            await asyncio.wait([*ends, following], timeout=silence, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                await _send_part(send, _write_event(following.result()), patience)
                following = None
            elif not any(end.done() for end in ends):
                await _send_part(send, b":\n\n", patience)
        with suppress(OSError):
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        pass  # the answer stays unfinished, so the server closes the connection
    finally:
        for task in (*ends, *([following] if following else [])):
            task.cancel()


async def _get_next(updates: AsyncIterator[Update]) -> Update:
    return await anext(updates)


async def _send_part(send: Send, content: bytes, patience: float) -> None:
    async with asyncio.timeout(patience):
        await send({"type": "http.response.body", "body": content, "more_body": True})


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _write_event(update: Update) -> bytes:
    return b"id: %d\nevent: update\ndata: %s\n\n" % (update.number, msgspec.json.encode(update))
