"""Start a service with the options of the command `preselect serve`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from starlette.routing import BaseRoute

from preselect.arguments import number
from preselect.serve.app import Service
from preselect.serve.backend import Backend
from preselect.serve.journal_engine import JournalEngine
from preselect.serve.keys import Keys
from preselect.serve.limits import ServiceLimits
from preselect.serve.log import start_logs
from preselect.serve.memory import MemoryEngine
from preselect.serve.metrics import Metrics
from preselect.serve.replica import Replica
from preselect.serve.server import run
from preselect.serve.shared_engine import SharedEngine
from preselect.serve.stored import StoredEngine
from preselect.serve.writer import Writer
from preselect.store import open_storage

_MEMORY = "memory:"  # keeps nothing


def make_limits(given: Mapping[str, Any]) -> ServiceLimits:
    """Return limits: the given ones, and defaults for the others."""
    names = {"expires": "expires_s", "patience": "patience_s"}
    known = {names.get(name, name): value for name, value in given.items()}
    for one in fields(ServiceLimits):
        if one.name in known:
            number(known[one.name], one.name, above=0.0)
    return ServiceLimits(**known)


def _open_backend(store: str, journal: str | None, limits: ServiceLimits, metrics: Metrics) -> Backend:
    """Open what keeps the preselectors."""
    if journal is not None:
        return Writer(JournalEngine(journal), limits, metrics)
    if store.startswith(("postgresql://", "postgres://")):
        return Replica(SharedEngine(store, limits), limits, metrics)
    engine = MemoryEngine(limits) if store == _MEMORY else StoredEngine(open_storage(store, write=True), limits)
    return Writer(engine, limits, metrics)


def serve(
    store: str,
    host: str,
    port: int,
    keys: Path | None,
    limits: ServiceLimits,
    *,
    journal: str | None = None,
    log_level: str,
    announce: Callable[[str], None],
    routes: Sequence[BaseRoute] = (),
) -> None:
    """Serve until a signal arrives; `routes` are further pages."""
    start_logs(log_level)
    metrics = Metrics()
    read = None if keys is None else Keys.read(keys)
    backend = _open_backend(store, journal, limits, metrics)
    service = Service(backend, keys=read, limits=limits, metrics=metrics, routes=routes)
    run(service, host, port, patience=limits.patience_s, announce=announce)
