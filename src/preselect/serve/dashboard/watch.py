"""Keep the figures of preselectors up to date while someone is watching their pages."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from preselect.errors import PreselectError
from preselect.preselector import Preselector
from preselect.serve.backend import Backend
from preselect.serve.dashboard.aggregate import Aggregate
from preselect.serve.dashboard.series import make_series
from preselect.serve.stream import Streams

_PAGE = 500  # events that are read at once
_SLICE = 50  # events to count, in about a millisecond, before requests have their turn
_PAUSE = 0.5  # seconds between two checks for new events
_REST = 60.0  # seconds after the last request for a page until its figures are no longer updated
_FIRST_LOOK = 0.4  # seconds that the first page waits for the history, enough for a short one
_SERIES = 1.0  # seconds, at least, for which computed curves are used again
_SECONDS_A_POINT = 1 / 120  # curves of many points are used longer: they cost more, and change less visibly


class Watch:
    """A preselector that someone is watching.

    Parameters
    ----------
    backend : Backend
        Keeps the preselector.
    streams : Streams
        Say when the service stops.
    name : str
        Its name.
    outside : bool
        Whether its rounds may end without a winner.
    """

    def __init__(self, backend: Backend, streams: Streams, name: str, outside: bool) -> None:
        self.name, self.aggregate = name, Aggregate(outside)
        self._backend, self._streams = backend, streams
        self._task: asyncio.Task[None] | None = None
        self._used, self._is_current = 0.0, asyncio.Event()
        self._series: tuple[float, dict[str, Any]] | None = None  # when the curves expire, and the curves

    @property
    def is_current(self) -> bool:
        """Whether all of the history has been read."""
        return self._is_current.is_set()

    def use(self) -> None:
        """Note that someone is watching: for a while, the aggregate is kept up to date."""
        self._used = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._follow())

    async def prepare(self) -> None:
        """Begin to read the history, and wait a moment for the end of a short one."""
        self.use()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_current.wait(), _FIRST_LOOK)

    def read_series(self) -> dict[str, Any]:
        """Return the curves, which are computed once a second at most; long ones every five seconds."""
        now = time.monotonic()
        if self._series is None or now > self._series[0]:
            points = len(self.aggregate.timeline.buckets) if self.is_current else 0
            self._series = now + max(_SERIES, points * _SECONDS_A_POINT), make_series(self.aggregate)
        return self._series[1]

    async def _follow(self) -> None:
        self._is_current.clear()
        is_over = False
        while not is_over and time.monotonic() < self._used + _REST:
            try:
                records = await self._backend.history(self.name, self.aggregate.number, _PAGE)
            except PreselectError:  # the service is starting or stopping, or the storage fails; the page says so
                records = []
            for begin in range(0, len(records), _SLICE):
                self.aggregate.fold(records[begin : begin + _SLICE])
                await asyncio.sleep(0.0)
            if len(records) < _PAGE:
                self._is_current.set()
                is_over = await self._streams.pause(_PAUSE)


class Watches:
    """All preselectors that anyone has watched.

    Parameters
    ----------
    backend : Backend
        Keeps the preselectors.
    streams : Streams
        Say when the service stops.
    """

    def __init__(self, backend: Backend, streams: Streams) -> None:
        self._backend, self._streams = backend, streams
        self._by_name: dict[str, Watch] = {}

    async def find(self, name: str) -> Watch:
        """Return the watch of a preselector; raise a NotFoundError if there is none with this name.

        Parameters
        ----------
        name : str
            Its name.
        """
        if name not in self._by_name:
            outside = await self._backend.inspect(name, _may_end_without_winner)
            self._by_name.setdefault(name, Watch(self._backend, self._streams, name, outside))
        watch = self._by_name[name]
        await watch.prepare()
        return watch


def _may_end_without_winner(preselector: Preselector) -> bool:
    return preselector.policy.outside
