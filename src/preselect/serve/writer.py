"""A backend with one thread that writes: it takes all queued requests, does them, commits once, and answers.

So all requests that arrive during a commit share the next commit, which waits for the disk once; the event loop never
waits for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from preselect.errors import InputError, JournalError, OverloadedError, PreselectError
from preselect.named.values import Values
from preselect.preselector import Preselector
from preselect.serve.answers import warm_up
from preselect.serve.engine import Engine
from preselect.serve.limits import ServiceLimits
from preselect.serve.log import log
from preselect.serve.metrics import Metrics
from preselect.serve.schemas import (
    ArmTerms,
    Decision,
    Description,
    Ending,
    NewDecision,
    NewOutcome,
    NewPreselector,
    NumberedOutcome,
    Result,
    Rounds,
    Update,
    Weights,
)
from preselect.store import Record

_MOST_STEPS = 512  # in one commit
_PAUSE = 0.5  # seconds between two updates of a stream, and between two checks for expired decisions

_Result = TypeVar("_Result")
_Step = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]"]


class Writer:
    """A Backend over an Engine that one thread owns.

    Parameters
    ----------
    engine : Engine
        Does the steps.
    limits : ServiceLimits
        How many requests may wait.
    metrics : Metrics
        Where commits are counted.
    """

    def __init__(self, engine: Engine, limits: ServiceLimits, metrics: Metrics) -> None:
        self._engine, self._limits, self._metrics = engine, limits, metrics
        self._queue: SimpleQueue[_Step | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="preselect-writer", daemon=True)
        self._queued, self._batches = 0, 0
        self._is_open, self._is_working = False, True
        metrics.watch("preselect_queue", "Requests that wait to be written.", lambda: self._queued)

    @property
    def is_read_only(self) -> bool:
        """See Backend."""
        return self._engine.is_read_only

    async def start(self) -> None:
        """Start the thread, which replays first."""
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._thread.start()
        await self._started
        self._is_open = True

    async def create(self, name: str, new: NewPreselector) -> tuple[Description, bool]:
        """See Backend."""
        return await self._submit(self._engine.create, name, new)

    async def describe(self, name: str) -> Description:
        """See Backend."""
        return await self._submit(self._engine.describe, name)

    async def describe_all(self) -> list[Description]:
        """See Backend."""
        return await self._submit(self._engine.describe_all)

    async def put_arm(self, name: str, arm: str, terms: ArmTerms) -> tuple[Description, bool]:
        """See Backend."""
        return await self._submit(self._engine.put_arm, name, arm, terms)

    async def retire_arm(self, name: str, arm: str) -> None:
        """See Backend."""
        await self._submit(self._engine.retire_arm, name, arm)

    async def decide(self, name: str, new: NewDecision) -> tuple[Decision, bool]:
        """See Backend."""
        return await self._submit(self._engine.decide, name, new)

    async def find_decision(self, id: str, within: str | None, explain: bool) -> Decision:
        """See Backend."""
        return await self._submit(self._engine.find_decision, id, within, explain)

    async def tell(self, id: str, outcome: NewOutcome, within: str | None) -> Ending:
        """See Backend."""
        return await self._submit(self._engine.tell, id, outcome, within)

    async def tell_many(self, outcomes: Sequence[NumberedOutcome], within: str | None) -> list[Result]:
        """See Backend."""
        return await self._submit(self._engine.tell_many, outcomes, within)

    async def weights(self, name: str, context: Values | None) -> Weights:
        """See Backend."""
        return await self._submit(self._engine.weights, name, context)

    async def rounds(self, name: str, after: int, limit: int) -> Rounds:
        """See Backend."""
        return await self._submit(self._engine.rounds, name, after, limit)

    async def history(self, name: str, after: int, limit: int) -> Sequence[Record]:
        """See Backend."""
        return await self._submit(self._engine.history, name, after, limit)

    async def inspect(self, name: str, read: Callable[[Preselector], _Result]) -> _Result:
        """See Backend."""
        return await self._submit(self._engine.inspect, name, read)

    async def subscribe(self, name: str, after: int | None) -> AsyncIterator[Update]:
        """See Backend."""
        seen, batches = None, -1
        while True:
            if batches != self._batches:
                batches = self._batches
                update = await self._submit(self._engine.update, name, after)
                if update.number != seen:
                    yield update
                    after = seen = update.number
            await asyncio.sleep(_PAUSE)

    async def is_ready(self) -> bool:
        """See Backend."""
        if self._is_open and not self._is_working:
            try:
                await self._submit(self._engine.check)
            except PreselectError:
                return False
        return self._is_open

    async def close(self) -> None:
        """See Backend."""
        self._is_open = False
        if self._thread.is_alive():
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)

    async def _submit(self, call: Callable[..., _Result], *arguments: Any) -> _Result:
        if not self._is_open:
            raise OverloadedError("the service is starting or stopping; try again in a moment")
        if self._queued >= self._limits.queue:
            raise OverloadedError(f"{self._queued} requests wait already; try again in a moment")
        future: asyncio.Future[_Result] = self._loop.create_future()
        self._queued += 1
        self._queue.put((call, arguments, future))
        return await future

    def _settle(self, steps: list[_Step], results: list[Any]) -> None:
        """Give the waiting requests their results; called in the event loop."""
        self._queued -= len(steps)
        self._batches += 1
        for (_, _, future), result in zip(steps, results, strict=True):
            if not future.done():  # its client has disconnected
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            warm_up()
            self._engine.start()
        except Exception as error:
            self._close_engine()
            self._loop.call_soon_threadsafe(self._started.set_exception, error)
            return
        self._loop.call_soon_threadsafe(self._started.set_result, None)
        is_over = False
        while not is_over:
            steps, is_over = self._take()
            results = self._run(steps)
            if steps:
                self._loop.call_soon_threadsafe(self._settle, steps, results)
        self._close_engine()

    def _close_engine(self) -> None:
        """Close what is stored; what was acknowledged is durable even if that fails."""
        try:
            self._engine.close()
        except JournalError as error:
            log(logging.ERROR, "the storage could not be closed", detail=str(error))

    def _take(self) -> tuple[list[_Step], bool]:
        """Return all that is queued, and whether nothing follows; waits for a while if nothing is there."""
        steps: list[_Step] = []
        try:
            step = self._queue.get(timeout=_PAUSE)
            while step is not None:
                steps.append(step)
                if len(steps) == _MOST_STEPS:
                    return steps, False
                step = self._queue.get_nowait()
        except Empty:
            return steps, False
        return steps, True

    def _run(self, steps: list[_Step]) -> list[Any]:
        expired = 0
        try:
            with self._engine.batch():
                results = [_attempt(call, arguments) for call, arguments, _ in steps]
                expired = self._engine.expire_due()
        except Exception as error:  # no step of the batch has happened
            self._metrics.count_failure()
            if not isinstance(error, PreselectError) and len(steps) > 1:  # others may succeed on their own
                return [self._run([step])[0] for step in steps]
            self._is_working = not isinstance(error, JournalError)
            log(
                logging.ERROR,
                "a commit failed",
                error=None if isinstance(error, JournalError) else error,
                detail=str(error),
            )
            return [error] * len(steps)
        self._is_working = True
        if steps or expired:
            self._metrics.count_commit(len(steps), expired)
        return results


def _attempt(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Do a step. An error after which nothing has changed becomes its result; any other error ends the batch."""
    try:
        return call(*arguments)
    except (InputError, OverloadedError) as error:
        return error
