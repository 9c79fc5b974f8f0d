"""Find the decisions that are due to expire."""

from __future__ import annotations

from heapq import heapify, heappop, heappush


class Deadlines:
    """The decisions that wait, and the next of them to expire. Memory is bounded by how many wait."""

    def __init__(self) -> None:
        self._expires: dict[str, tuple[float, str]] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._expires)

    def add(self, id: str, expires: float, name: str) -> None:
        """Remember that a decision of a preselector waits until a certain time."""
        self._expires[id] = expires, name
        heappush(self._heap, (expires, id))

    def discard(self, id: str) -> None:
        """Forget a decision that is no longer waiting."""
        self._expires.pop(id, None)
        if len(self._heap) > 2 * len(self._expires) + 1000:
            self._heap = [(expires, one) for one, (expires, _) in self._expires.items()]
            heapify(self._heap)

    def list_due(self, now: float, most: int) -> list[str]:
        """Return at most `most` decisions that have expired by now; only `discard` forgets them."""
        due: list[tuple[float, str]] = []
        while self._heap and self._heap[0][0] <= now and len(due) < most:
            expires, first = heappop(self._heap)
            known = self._expires.get(first)
            if known is not None and known[0] == expires:
                due.append((expires, first))
        for one in due:
            heappush(self._heap, one)
        return [first for _, first in due]

    def find(self, id: str) -> tuple[float, str] | None:
        """Return when a decision expires, and its preselector; None if it does not wait."""
        return self._expires.get(id)
