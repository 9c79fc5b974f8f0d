"""Processes as /proc shows them, and how to kill them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
else:
    import _signal as signal

Process = tuple[int, int, int, int]  # parent, session, when it started, pages in memory


def environment_of(pid: int) -> list[bytes]:
    """The environment with which a process was started; nothing if it is gone or not ours to see."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def process_of(pid: int) -> Process | None:
    """What /proc tells of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()
    return (int(fields[1]), int(fields[3]), int(fields[19]), int(fields[21])) if fields else None


def all_pids() -> list[int]:
    """The numbers of all processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants() -> dict[int, Process]:
    """All processes below this one, parents before their children."""
    everybody = {pid: process_of(pid) for pid in all_pids()}
    children: dict[int, list[int]] = {}
    for pid, process in everybody.items():
        if process is not None:
            children.setdefault(process[0], []).append(pid)
    found, open_ends = {}, [os.getpid()]
    while open_ends:
        for pid in children.get(open_ends.pop(), ()):
            process = everybody[pid]
            if process is not None and pid not in found:
                found[pid] = process
                open_ends.append(pid)
    return found


def kill_children() -> None:
    """Kill all children, each as soon as it is seen, since who forks and exits all the time is soon another.

    What they leave behind are children the next time.
    """
    this = os.getpid()
    for pid in sorted(all_pids(), reverse=True):
        process = process_of(pid)
        if process is not None and process[0] == this:
            kill_with_groups([pid])


def kill_with_groups(processes: Iterable[int]) -> None:
    """Kill processes and their groups: a group dies at once, so that nobody in it forks away."""
    for pid in processes:
        try:
            kill_group(os.getpgid(pid))
        except ProcessLookupError:
            continue
        _kill(pid)


def kill_group(group: int) -> None:
    """Kill a process group, unless it is the supervisor's own."""
    # 0 would be this group, or one that is not seen in this namespace, and 1 everybody
    if group > 1 and group != os.getpgrp():
        _kill(-group)


def kill_everybody() -> None:
    """Kill all that can be reached; only for the init of a namespace."""
    _kill(-1)


def _kill(target: int) -> None:
    """Kill a process, or a group (negative); who does not die is noticed elsewhere."""
    try:
        os.kill(target, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def signal_name(number: int) -> str:
    """What a signal is called."""
    names = (name for name in dir(signal) if name.startswith("SIG") and getattr(signal, name) == number)
    return next((name for name in names if not name.startswith("SIG_")), f"signal {number}")
