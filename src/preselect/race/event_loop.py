"""Two ways for a race to wait: block its thread, or use an event loop.

A race is written once, as coroutines that await only the methods of a `Waiter`. Those of `BLOCKING` never suspend, so
`run_blocking` needs no event loop: a blocking race works in any thread, also below a running event loop, and Ctrl-C
interrupts it at once. `asyncio.run` would delay an interrupt until the thread that computes features is done.
"""

import asyncio
import os
import select
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Waiter(Protocol):
    """Waits for the events of a race."""

    async def read(self, descriptor: int, seconds: float) -> bytes | None:
        """Read what arrives within `seconds`; None if nothing does."""

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that may take long."""

    async def finish(self, function: Callable[[], object]) -> None:
        """Call a function that must run to its end even if the race is cancelled."""


class _Blocking:
    async def read(self, descriptor: int, seconds: float) -> bytes | None:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return os.read(descriptor, 65536) if poll.poll(seconds * 1000) else None

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    async def finish(self, function: Callable[[], object]) -> None:
        function()


class _EventLoop:
    async def read(self, descriptor: int, seconds: float) -> bytes | None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(descriptor, ready.set)
        try:
            async with asyncio.timeout(seconds):  # wait_for would swallow a cancellation that arrives with an event
                await ready.wait()
        except TimeoutError:
            return None
        finally:
            loop.remove_reader(descriptor)
        return os.read(descriptor, 65536)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(function, *arguments)

    async def finish(self, function: Callable[[], object]) -> None:
        await asyncio.shield(asyncio.to_thread(function))


BLOCKING: Waiter = _Blocking()
EVENT_LOOP: Waiter = _EventLoop()


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits only with `BLOCKING`, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking race awaited something that needs an event loop")
