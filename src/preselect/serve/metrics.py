"""Figures for Prometheus. No label is taken from a caller, so the number of labels is bounded."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The figures of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "preselect_requests", "Requests by call and status.", ("call", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "preselect_request_seconds",
            "Seconds from a request to its answer, by call.",
            ("call",),
            registry=self._registry,
            buckets=_SECONDS,
        )
        self._commits = Histogram(
            "preselect_commit_steps", "Steps in one commit.", registry=self._registry, buckets=_STEPS
        )
        self._failures = Counter("preselect_commit_failures", "Commits that failed.", registry=self._registry)
        self._expired = Counter("preselect_expired", "Decisions that expired.", registry=self._registry)
        self.streams = Gauge("preselect_streams", "Streams that are open.", registry=self._registry)
        self._counters: dict[tuple[str, int], Counter] = {}
        self._timers: dict[str, Histogram] = {}

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a figure that is read when it is asked for."""
        Gauge(name, text, registry=self._registry).set_function(read)

    def count_request(self, call: str, status: int, seconds: float) -> None:
        """Count a request; the counters of a call are looked up once."""
        try:
            self._counters[call, status].inc()
            self._timers[call].observe(seconds)
        except KeyError:
            self._counters[call, status] = self._requests.labels(call, str(status))
            self._timers[call] = self._seconds.labels(call)
            self.count_request(call, status, seconds)

    def count_commit(self, steps: int, expired: int) -> None:
        """Count a commit, its steps, and the decisions that expired in it."""
        self._commits.observe(steps)
        if expired:
            self._expired.inc(expired)

    def count_failure(self) -> None:
        """Count a commit that failed."""
        self._failures.inc()

    def write(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        return generate_latest(self._registry)
