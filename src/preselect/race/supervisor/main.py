"""Where the supervisor's process begins."""

from __future__ import annotations

import os
import resource

from .containment import NAMESPACE, SUBREAPER, become_subreaper, run_in_namespace
from .launching import IGNORED
from .messages import LifeLineError, decode, emit, hear
from .race import Race

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal


def main() -> None:
    """Supervise the race that standard input describes."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        reason = _missing()
        if reason is None:
            _supervise(_read_specification())
        else:
            emit({"event": "failed", "reason": reason})
    except LifeLineError:
        return


def _missing() -> str | None:
    """What a race needs and this machine lacks."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        return f"a race needs pidfd_open, which Linux has since 5.3: {error}"
    return None


def _read_specification() -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        data += hear()
    # processes that the client has forked may hold the life line when it is dead itself
    found: dict[str, Any] = {**decode(data), "client": os.pidfd_open(os.getppid())}
    return found


def _supervise(specification: dict[str, Any]) -> None:
    """Race at the level that is wanted, or else at the best that can be had."""
    wanted = specification["level"]
    if wanted != SUBREAPER:
        reason = run_in_namespace(lambda: _race(specification, NAMESPACE))
        if wanted == NAMESPACE:
            emit({"event": "unavailable", "reason": reason})
            return
    become_subreaper()
    _race(specification, SUBREAPER)


def _race(specification: dict[str, Any], level: str) -> None:
    try:
        Race(specification, level).run()
    except LifeLineError:
        return
