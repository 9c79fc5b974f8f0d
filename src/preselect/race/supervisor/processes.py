"""Processes as /proc shows them: their parents, sessions and memory, and those of a race."""

from __future__ import annotations

import os
import resource
import time

from .labels import Labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

Process = tuple[int, int, int, int]  # parent, session, start time, resident pages


def read_process(pid: int) -> Process | None:
    """Read what /proc shows about a process; None if it has ended."""
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


def hold_more_than(processes: dict[int, Process], size: float) -> bool:
    """Whether processes together hold more than `size` bytes of memory; pages that they share count once.

    Resident pages are known already, but count shared memory several times. Only if they are too many is it worth the
    time to read the exact shares.
    """
    resident = sum(process[3] for process in processes.values()) * resource.getpagesize()
    return resident > size and sum(_read_share(pid, process) for pid, process in processes.items()) > size


def _read_share(pid: int, process: Process) -> int:
    """Read the proportional set size of a process, in bytes; its resident size if only that is known."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            _, _, line = file.read().partition(b"\nPss:")
        return int(line.split(maxsplit=1)[0]) * 1024
    except (OSError, IndexError):
        return process[3] * resource.getpagesize()


def kill_labelled(labels: Labels, seconds: float) -> None:
    """Kill all processes of a race, and those that they start meanwhile, for at most `seconds` after a first look."""
    limit = time.monotonic() + seconds
    while found := [pid for pid in list_pids() if labels.is_on(pid)]:
        for pid in found:
            _kill_if_labelled(pid, labels)
        if time.monotonic() > limit:  # checked after the first look, which may take that long on a busy machine
            return
        time.sleep(0.001)


def _kill_if_labelled(pid: int, labels: Labels) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if labels.is_on(pid):  # checked again: with a pidfd, the pid cannot pass to another process unnoticed
            signal.pidfd_send_signal(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
    finally:
        os.close(process)


def get_signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGSEGV."""
    names = (name for name in dir(signal) if name.startswith("SIG") and getattr(signal, name) == number)
    return next((name for name in names if not name.startswith("SIG_")), f"signal {number}")
