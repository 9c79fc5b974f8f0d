"""All processes of a race: those that the supervisor has started, and their descendants."""

from __future__ import annotations

import os
import select
import time

from .processes import (
    Process,
    find_descendants,
    kill_children,
    kill_everything,
    kill_group,
    read_environment,
    read_process,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "PRESELECT_RACE"  # environment variable of racers: the race's token, a dot, the racer's number
VERIFIER = -1  # takes the place of a racer's number
KILLING_SECONDS = 10.0

_REAPING_SECONDS = 0.02
_DYING_SECONDS = 0.005


class Children:
    """All processes below the supervisor.

    Calls `on_exit(number, code, cpu_seconds)` for each process that exits, with the number of its racer. The code is
    None for an orphan, a process that was not started here but by a racer.
    """

    def __init__(
        self, poll: select.poll, racers: int, token: str, on_exit: Callable[[int, int | None, float], None]
    ) -> None:
        self.poll, self.token, self.on_exit = poll, token, on_exit
        self.numbers = {str(number).encode(): number for number in range(racers)}
        self.started: dict[int, tuple[int, int]] = {}  # by pid: the racer's number, and the pidfd
        self.sessions: dict[int, int] = {}  # by session: the racer's number
        self.owners: dict[tuple[int, int], int] = {}  # by pid and start time: the racer's number
        self.has_backlog = False  # whether there are dead processes that have not been reaped yet

    def mark(self, owner: int | str) -> dict[str, str]:
        """Return the variable by which a process and its descendants can be attributed to their owner."""
        return {MARK: f"{self.token}.{owner}"}

    def add(self, pid: int, number: int) -> None:
        """Watch a process that was started as a racer or as the verifier."""
        pidfd = os.pidfd_open(pid)
        self.started[pid] = (number, pidfd)
        self.poll.register(pidfd, select.POLLIN)
        if number != VERIFIER:
            self.sessions[pid] = number

    # exits

    def reap(self) -> bool:
        """Reap dead processes; return whether any process is left, dead or alive.

        Stops after a while, so that a fork bomb does not block the race.
        """
        limit = time.monotonic() + _REAPING_SECONDS
        self.has_backlog = True
        try:
            while time.monotonic() < limit:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None:
                    self.has_backlog = False
                    break
                self._reap_one(found.si_pid)
        except ChildProcessError:
            self.has_backlog = False
            return False
        return True

    def _reap_one(self, pid: int) -> None:
        # until wait4 the pid cannot belong to another process or group
        was_started, process = pid in self.started, read_process(pid)
        owner = None if process is None else self._get_known_owner(pid, process)
        if was_started:
            kill_group(pid)
        _, status, usage = os.wait4(pid, 0)
        cpu_seconds = usage.ru_utime + usage.ru_stime
        if was_started:
            self.on_exit(self._forget(pid), os.waitstatus_to_exitcode(status), cpu_seconds)
        elif owner is not None:
            self.on_exit(owner, None, cpu_seconds)

    def _forget(self, pid: int) -> int:
        number, pidfd = self.started.pop(pid)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        return number

    # ownership

    def find_by_racer(self) -> list[dict[int, Process]]:
        """Find the living processes of each racer."""
        found: list[dict[int, Process]] = [{} for _ in self.numbers]
        owners: dict[int, int | None] = {}
        for pid, process in find_descendants().items():
            owner = owners[pid] = self._find_owner(pid, process, owners.get(process[0]))
            if owner is not None:
                found[owner][pid] = process
        return found

    def _find_owner(self, pid: int, process: Process, owner_of_parent: int | None) -> int | None:
        """Find the racer of a process: as known before, or by session, by parent, by mark."""
        owner = self._get_known_owner(pid, process)
        if owner is None:
            owner = self._read_owner_from_mark(pid) if owner_of_parent is None else owner_of_parent
        if owner is not None:
            self.owners[pid, process[2]] = owner
        return owner

    def _get_known_owner(self, pid: int, process: Process) -> int | None:
        _, session, start_time, _ = process
        return self.owners.get((pid, start_time), self.sessions.get(session))

    def _read_owner_from_mark(self, pid: int) -> int | None:
        start = f"{MARK}={self.token}.".encode()
        marks = [text[len(start) :] for text in read_environment(pid) if text.startswith(start)]
        return self.numbers.get(marks[0]) if marks else None

    # the end

    def kill_all(self, *, everything: bool) -> str | None:
        """Kill until the kernel knows no child any more; return a sentence about survivors, None if there are none.

        With `everything`, kill whatever can be signalled; otherwise the children that /proc shows. Scanning /proc takes
        longer than the death of the racers' groups, so it waits for these first.
        """
        start = time.monotonic()
        for pid in self.started:
            kill_group(pid)
        while self.reap():
            passed = time.monotonic() - start
            if passed > KILLING_SECONDS:
                return f"processes {', '.join(map(str, find_descendants()))} did not die within {KILLING_SECONDS:g} s"
            if everything:
                kill_everything()
            elif passed > _DYING_SECONDS:
                kill_children()
            time.sleep(0.0005)
        return None
