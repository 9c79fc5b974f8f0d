"""Processes as /proc shows them: their parents, sessions and environments, and those with a mark."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

Process = tuple[int, int, int, int]  # parent, session, start time, resident pages


def read_environment(pid: int) -> list[bytes]:
    """Read the environment with which a process was started; empty if it is gone or not readable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def read_process(pid: int) -> Process | None:
    """Read what /proc shows of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()
    return (int(fields[1]), int(fields[3]), int(fields[19]), int(fields[21])) if fields else None


def list_pids() -> list[int]:
    """List the pids of all visible processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def find_descendants() -> dict[int, Process]:
    """Find all processes below this one, parents before their children."""
    everything = {pid: read_process(pid) for pid in list_pids()}
    children: dict[int, list[int]] = {}
    for pid, process in everything.items():
        if process is not None:
            children.setdefault(process[0], []).append(pid)
    found, parents = {}, [os.getpid()]
    while parents:
        for pid in children.get(parents.pop(), ()):
            process = everything[pid]
            if process is not None and pid not in found:
                found[pid] = process
                parents.append(pid)
    return found


def _has_mark(pid: int, mark: str) -> bool:
    """Whether the environment of a process has a variable that begins with `mark`."""
    return any(text.startswith(mark.encode()) for text in read_environment(pid))


def kill_marked(mark: str, seconds: float) -> None:
    """Kill all processes with a mark in their environment, for at most `seconds`.

    Processes that have replaced their environment are not found.
    """
    limit = time.monotonic() + seconds
    while (found := [pid for pid in list_pids() if _has_mark(pid, mark)]) and time.monotonic() < limit:
        for pid in found:
            _kill_if_marked(pid, mark)
        time.sleep(0.001)


def _kill_if_marked(pid: int, mark: str) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if _has_mark(pid, mark):  # again: from now on the pid cannot pass to another process unnoticed
            signal.pidfd_send_signal(process, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(process)


def get_signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGSEGV."""
    names = (name for name in dir(signal) if name.startswith("SIG") and getattr(signal, name) == number)
    return next((name for name in names if not name.startswith("SIG_")), f"signal {number}")
