"""Run the service in a process: sockets, signals, idle connections, and a stop that answers accepted requests."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from preselect.serve.app import Service
from preselect.serve.schemas import PROBLEM, Problem

_TICKS = 10  # uvicorn's ticks per second
_SWEEP = 5 * _TICKS
_MOST_FILES = 1 << 20
_GRACE = 30  # seconds to answer accepted requests before a stop


def run(service: Service, host: str, port: int, *, patience: float, announce: Callable[[str], None]) -> None:
    """Serve until a signal arrives, then answer accepted requests. Raises the error of a backend that did not start."""
    _raise_limit()
    config = uvicorn.Config(
        service,
        host=host,
        port=port,
        http=_Protocol,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(patience) + 1,
        timeout_graceful_shutdown=_GRACE,
    )
    _Server(config, service, patience, announce).run()
    if service.failure is not None:
        raise service.failure


class _Protocol(HttpToolsProtocol):
    """Answers what is not HTTP with a problem document, too."""

    def send_400_response(self, msg: str) -> None:
        content = msgspec.json.encode(Problem(HTTPStatus(400).phrase, 400, f"this is not HTTP: {msg}"))
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {PROBLEM}\r\ncontent-length: {len(content)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + content)
        self.transport.close()


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, service: Service, patience: float, announce: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._service, self._patience, self._announce = service, patience, announce
        self._idle: WeakKeyDictionary[Any, tuple[Any, int]] = WeakKeyDictionary()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            found = self.servers[0].sockets[0].getsockname()
            host = f"[{found[0]}]" if ":" in found[0] else found[0]
            self._announce(f"http://{host}:{found[1]}")

    async def on_tick(self, counter: int) -> bool:
        if counter % _SWEEP == 0:
            self._sweep(counter)
        return await super().on_tick(counter) or self._service.failure is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.end_streams()
        await super().shutdown(sockets)

    def _sweep(self, counter: int) -> None:
        """Close connections on which nothing has moved for a while: clients that are slow, do not read, or are gone."""
        for connection in list(self.server_state.connections):
            cycle, unsent = getattr(connection, "cycle", None), connection.transport.get_write_buffer_size()
            if cycle is not None and not (cycle.response_complete or unsent):
                self._idle.pop(connection, None)  # the service is answering this request
                continue
            last, since = self._idle.get(connection, ((cycle, unsent), counter))
            since = since if last == (cycle, unsent) else counter
            self._idle[connection] = (cycle, unsent), since
            if counter - since > 2 * self._patience * _TICKS:
                (connection.transport.abort if unsent else connection.transport.close)()


def _raise_limit() -> None:
    """Raise the limit of open connections to the most that the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
