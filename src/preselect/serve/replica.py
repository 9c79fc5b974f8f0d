"""A backend for several replicas of the service on one storage: all of them answer, and one of them learns."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from preselect.errors import ConflictError, JournalError, OverloadedError, PreselectError
from preselect.serve.limits import ServiceLimits
from preselect.serve.log import log
from preselect.serve.metrics import Metrics
from preselect.serve.schemas import ArmTerms, Description
from preselect.serve.shared_engine import SharedEngine
from preselect.serve.writer import Writer

_ATTEMPTS = 3  # how often to try a step if other processes are faster
_PATIENCE = 10.0  # seconds to wait for the leader to accept or refuse a proposal
_PAUSE = 0.02  # seconds between two checks
_LISTEN = 1.0  # seconds


class Replica(Writer):
    """A Backend over a storage that others write too.

    Decisions and outcomes are durable when they are answered; the process that leads learns from them soon after. Arms
    join, change and leave once the leader has accepted that.

    Parameters
    ----------
    engine : SharedEngine
        Does the steps.
    limits : ServiceLimits
        How many requests may wait.
    metrics : Metrics
        Where commits are counted.
    """

    def __init__(self, engine: SharedEngine, limits: ServiceLimits, metrics: Metrics) -> None:
        super().__init__(engine, limits, metrics)  # type: ignore[arg-type]
        self._shared = engine
        self._listener = threading.Thread(target=self._listen, name="preselect-listener", daemon=True)
        self._is_over = threading.Event()
        self._is_woken = False

    async def start(self) -> None:
        """See Backend."""
        await super().start()
        self._listener.start()

    async def put_arm(self, name: str, arm: str, terms: ArmTerms) -> tuple[Description, bool]:
        """See Backend."""
        is_new = await self._agree(name, lambda: self._submit(self._shared.propose_arm, name, arm, terms))
        return await self.describe(name), is_new

    async def retire_arm(self, name: str, arm: str) -> None:
        """See Backend."""

        async def propose() -> tuple[str | None, bool]:
            return await self._submit(self._shared.propose_retirement, name, arm), False

        await self._agree(name, propose)

    async def close(self) -> None:
        """See Backend."""
        self._is_over.set()
        await super().close()

    async def _agree(self, name: str, propose: Callable[[], Any]) -> bool:
        """Repeat a proposal until the leader accepts it or nothing would change; return whether the arm is new."""
        for _ in range(_ATTEMPTS):
            key, is_new = await propose()
            if key is None or await self._wait_for(name, key):
                return bool(is_new)
        raise ConflictError(f"others are changing {name} at the same time; read it again, then retry")

    async def _wait_for(self, name: str, key: str) -> bool:
        limit = time.monotonic() + _PATIENCE
        while time.monotonic() < limit:
            fate = await self._submit(self._shared.find_fate, name, key)
            if fate is not None:
                return bool(fate)
            await asyncio.sleep(_PAUSE)
        raise OverloadedError("the change has not been accepted yet, but may still be; it is safe to repeat it")

    def _wake(self) -> None:
        """Make the thread look for new events; called in the event loop."""
        if not self._is_woken:
            self._is_woken = True
            future = self._loop.create_future()
            future.add_done_callback(self._note_woken)
            self._queued += 1
            self._queue.put((self._shared.note_news, (), future))

    def _note_woken(self, future: asyncio.Future[Any]) -> None:
        self._is_woken = False
        if not future.cancelled():
            future.exception()  # whatever failed is logged

    # --- in threads ---------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        listener = self._shared.listen()
        while not self._is_over.is_set():
            try:
                has_news = listener.wait(_LISTEN)
            except PreselectError:
                has_news = False
                self._is_over.wait(_LISTEN)
            if has_news and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._wake)
        listener.close()

    def _run(self, steps: list[Any]) -> list[Any]:
        expired = self._catch_up()
        results: list[Any] = [None] * len(steps)
        again = set(range(len(steps)))
        try:
            for count in range(_ATTEMPTS):
                for place in sorted(again):
                    results[place] = self._attempt(place, steps[place], is_again=count > 0)
                again = self._shared.commit()
                if not again:
                    break
        except Exception as error:  # some steps may have happened; callers find out by repeating them
            self._fail(error)
            return [error] * len(steps)
        finally:
            self._shared.finish()
        for place in again:
            results[place] = OverloadedError("other processes did the same at the same time; try again in a moment")
        self._is_working = not any(isinstance(result, JournalError) for result in results)
        if steps or expired:
            self._metrics.count_commit(len(steps), expired)
        return results

    def _attempt(self, place: int, step: Any, *, is_again: bool) -> Any:
        call, arguments, _ = step
        self._shared.begin(place, is_again)
        try:
            return call(*arguments)
        except PreselectError as error:
            return error
        except Exception as error:
            self._shared.drop(place)
            return error

    def _catch_up(self) -> int:
        try:
            return self._shared.catch_up()
        except Exception as error:
            self._fail(error)
            return 0

    def _fail(self, error: Exception) -> None:
        self._is_working = not isinstance(error, JournalError)
        self._metrics.count_failure()
        unexpected = None if isinstance(error, PreselectError) else error
        log(logging.ERROR, "the storage failed", error=unexpected, detail=str(error))
