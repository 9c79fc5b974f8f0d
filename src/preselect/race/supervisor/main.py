"""The supervisor's process: it begins at `main`, and contains the race so that no process survives it.

There are two levels of containment.

"pid namespace": the race runs below its own init process with its own /proc, and dies with that init, whatever kills
it. Racers cannot signal processes outside. This needs root or unprivileged user namespaces.

"subreaper": orphans become children of the supervisor, which kills its children until none is left. If the supervisor
itself is killed, the racers die with it, but processes that they have started may survive.
"""

from __future__ import annotations

import os
import resource

from .messages import ClientGoneError, Connection, from_line, read_input
from .race import Race
from .racer import NAMESPACE, SUBREAPER
from .system import become_subreaper, die_with, mount_proc, reset_signals, unshare

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any, NoReturn
else:
    import _signal as signal

_IGNORED_SIGNALS = (  # ignored by the supervisor, not by racers
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXFSZ
)  # fmt: skip


def main() -> None:
    """Supervise the race that standard input describes."""
    reset_signals()
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))  # so that it can copy outputs, which may be as large
    try:
        specification = _read_specification()
        connection = Connection(specification["key"])
        problem = _find_problem()
        if problem is None:
            _supervise(specification, connection)
        else:
            connection.emit({"event": "failed", "reason": problem})
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
    while b"\n" not in data:
        data += read_input()
    if not data.endswith(b"\n") or data.count(b"\n") > 1:
        raise ClientGoneError  # so early, the only message that the client sends is to stop
    found: dict[str, Any] = from_line(data)
    return found


def _supervise(specification: dict[str, Any], connection: Connection) -> None:
    """Race at the requested level, or by default at the best one available."""
    # a pidfd, because a child of the client could hold standard input open after the client has died
    specification["client"] = os.pidfd_open(os.getppid())
    level = specification["level"]
    if level != SUBREAPER:
        reason = _run_in_namespace(lambda: _race(specification, connection, NAMESPACE))
        if level == NAMESPACE:
            connection.emit({"event": "unavailable", "reason": reason})
            return
    become_subreaper()
    _race(specification, connection, SUBREAPER)


def _race(specification: dict[str, Any], connection: Connection, level: str) -> None:
    try:
        Race(specification, connection, level).run()
    except ClientGoneError:
        return


def _run_in_namespace(race: Callable[[], None]) -> str | None:
    """Race in a new pid namespace and end this process with the race; if that is impossible, return the reason.

    A process cannot leave a namespace, so a child enters it: if that fails, this process is as before.
    """
    answer_in, answer_out = os.pipe()
    this = os.pidfd_open(os.getpid())
    middle = os.fork()
    if middle == 0:
        os.close(answer_in)
        try:
            _enter_namespace(race, this, answer_out)
        except Exception as error:
            os.write(answer_out, str(error).encode())
        finally:
            os._exit(1)
    os.close(this)
    os.close(answer_out)
    answer = os.read(answer_in, 4096).decode()
    os.close(answer_in)
    if answer == "racing":
        os.close(1)
    status = os.waitstatus_to_exitcode(os.waitpid(middle, 0)[1])
    if answer == "racing":
        os._exit(0 if status == 0 else 1)
    return answer or "the process that tried to create a pid namespace died"


def _enter_namespace(race: Callable[[], None], parent: int, answer_out: int) -> NoReturn:
    die_with(parent)
    this = os.pidfd_open(os.getpid())
    unshare()
    init = os.fork()
    if init == 0:
        die_with(this)
        mount_proc()
        os.write(answer_out, b"racing")
        os.close(answer_out)
        race()
        os._exit(0)
    for descriptor in (answer_out, this, 1):
        os.close(descriptor)
    os._exit(0 if os.waitpid(init, 0)[1] == 0 else 1)
