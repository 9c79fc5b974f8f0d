"""Live pages: send parts of a page as HTML whenever they change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec

from preselect.errors import PreselectError
from preselect.serve.backend import Backend
from preselect.serve.dashboard import views
from preselect.serve.dashboard.templates import render
from preselect.serve.dashboard.views import Belief
from preselect.serve.dashboard.watch import Watch, Watches

_PAUSE = 1.0  # seconds between two updates
_BELIEF = 2.0  # seconds for which estimates are used again
_MOST_SHOWN = 15  # how many arms the panel of estimates shows


class _Parts(msgspec.Struct, frozen=True):
    """The parts of a page that have changed, by the names of their elements."""

    number: int
    parts: dict[str, str]


class _Rendered(NamedTuple):
    """The parts of a page as last rendered; those that change slowly are rendered only when the belief is read."""

    at: float
    belief: Belief
    slow: dict[str, str]
    quick: dict[str, str]


class Live:
    """Renders parts of pages, once for all visitors.

    Parameters
    ----------
    backend : Backend
        Keeps the preselectors.
    watches : Watches
        Follow them.
    """

    def __init__(self, backend: Backend, watches: Watches) -> None:
        self._backend, self._watches = backend, watches
        self._beliefs: dict[str, tuple[float, Belief]] = {}
        self._rendered: dict[str, _Rendered] = {}

    async def read_belief(self, name: str) -> Belief:
        """Return what is believed about a preselector's arms, at most two seconds old.

        Parameters
        ----------
        name : str
            The preselector.
        """
        kept = self._beliefs.get(name)
        if kept is None or time.monotonic() > kept[0] + _BELIEF:
            kept = self._beliefs[name] = time.monotonic(), await self._backend.inspect(name, views.read_belief)
        return kept[1]

    def forget(self, name: str) -> None:
        """Read again what is believed, because arms have changed.

        Parameters
        ----------
        name : str
            The preselector.
        """
        self._beliefs.pop(name, None)
        self._rendered.pop(name, None)

    async def render_parts(self, watch: Watch) -> dict[str, str]:
        """Return all parts of a preselector's page.

        Parameters
        ----------
        watch : Watch
            Follows the preselector.
        """
        kept = self._rendered.get(watch.name)
        if kept is None or time.monotonic() > kept.at + 0.9 * _PAUSE:
            belief = await self.read_belief(watch.name)
            slow = kept.slow if kept is not None and kept.belief is belief else _render_slow(watch, belief)
            kept = _Rendered(time.monotonic(), belief, slow, _render_quick(watch, belief))
            self._rendered[watch.name] = kept
        return kept.slow | kept.quick

    async def follow(self, name: str) -> AsyncIterator[_Parts]:
        """Yield the parts that have changed, at most once a second; the first time all of them.

        Parameters
        ----------
        name : str
            The preselector.
        """
        watch = await self._watches.find(name)
        sent: dict[str, str] = {}
        while True:
            watch.use()
            try:
                parts = await self.render_parts(watch)
            except PreselectError:  # the service is stopping, or cannot read; the next attempt may succeed
                parts = sent
            changed = {part: text for part, text in parts.items() if sent.get(part) != text}
            if changed or not sent:
                yield _Parts(watch.aggregate.number, changed)
                sent = dict(parts)
            await asyncio.sleep(_PAUSE)


def _render_slow(watch: Watch, belief: Belief) -> dict[str, str]:
    aggregate = watch.aggregate
    rows = views.list_arms(belief, aggregate)
    return _render(
        ("estimates", "weights", "calibration", "delays", "races"),
        name=watch.name,
        arms=views.draw_intervals(rows[:_MOST_SHOWN]),
        arms_in_all=len(rows),
        nobody=belief.nobody,
        weights=views.describe_weights(belief, aggregate),
        calibration=views.describe_calibration(aggregate),
        delays=views.describe_delays(aggregate),
        races=views.describe_races(aggregate.races),
    )


def _render_quick(watch: Watch, belief: Belief) -> dict[str, str]:
    aggregate = watch.aggregate
    return _render(
        ("signs", "recent", "first"),
        name=watch.name,
        watch=watch,
        signs=views.describe_signs(aggregate, len(belief.arms), belief.version),
        recent=aggregate.recent,
        first_slot=aggregate.first_slot,
    )


def _render(names: tuple[str, ...], **values: Any) -> dict[str, str]:
    return {name: render(f"parts/{name}.html", **values) for name in names}
