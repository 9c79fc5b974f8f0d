"""Where the supervisor's process begins."""

from __future__ import annotations

import os
import resource

from .containment import NAMESPACE, SUBREAPER, become_subreaper, run_in_namespace
from .launching import IGNORED_SIGNALS
from .messages import ClientGoneError, decode, emit, receive
from .race import Race

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal


def main() -> None:
    """Supervise the race that standard input describes."""
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        problem = _find_problem()
        if problem is None:
            _supervise(_read_specification())
        else:
            emit({"event": "failed", "reason": problem})
    except ClientGoneError:
        return


def _find_problem() -> str | None:
    """Say what this machine lacks to supervise a race, if anything."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        return f"racing needs pidfd_open, available since Linux 5.3: {error}"
    return None


def _read_specification() -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        data += receive()
    # the client's pidfd: a child that the client forked could hold standard input open after the client has died
    found: dict[str, Any] = {**decode(data), "client": os.pidfd_open(os.getppid())}
    return found


def _supervise(specification: dict[str, Any]) -> None:
    """Race at the requested level, or by default at the best one available."""
    level = specification["level"]
    if level != SUBREAPER:
        reason = run_in_namespace(lambda: _race(specification, NAMESPACE))
        if level == NAMESPACE:
            emit({"event": "unavailable", "reason": reason})
            return
    become_subreaper()
    _race(specification, SUBREAPER)


def _race(specification: dict[str, Any], level: str) -> None:
    try:
        Race(specification, level).run()
    except ClientGoneError:
        return
