"""The processes of a race: those that were started, what they leave behind, and whose each is."""

from __future__ import annotations

import os
import select
import time

from .processes import (
    Process,
    descendants,
    environment_of,
    kill_children,
    kill_everybody,
    kill_group,
    process_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "PRESELECT_RACE"  # in the environment of racers: the race's token, a dot, the racer's number
VERIFIER = -1  # stands in the place of a racer's number

REAPING_SECONDS = 0.02
DYING_SECONDS = 0.005
KILLING_SECONDS = 10.0


class Children:
    """All processes below the supervisor.

    `exited` is told whose process has exited, with which code, and its CPU time; the code is None if it is not one that
    was started here, but was left behind by one.
    """

    def __init__(
        self, poll: select.poll, racers: int, token: str, exited: Callable[[int, int | None, float], None]
    ) -> None:
        self.poll, self.token, self.exited = poll, token, exited
        self.numbers = {str(number).encode(): number for number in range(racers)}
        self.started: dict[int, tuple[int, int]] = {}  # whose, and the pidfd
        self.sessions: dict[int, int] = {}
        self.owners: dict[tuple[int, int], int] = {}
        self.behind = False  # more are dead than have been taken in

    def mark(self, of: int | str) -> dict[str, str]:
        """What stands in the environment of a process, and of what it starts, to tell whose it is."""
        return {MARK: f"{self.token}.{of}"}

    def add(self, pid: int, number: int) -> None:
        """Watch over a process that was started for a racer, or as the verifier."""
        pidfd = os.pidfd_open(pid)
        self.started[pid] = (number, pidfd)
        self.poll.register(pidfd, select.POLLIN)
        if number != VERIFIER:
            self.sessions[pid] = number

    # who exits

    def reap(self) -> bool:
        """Take in who is dead; whether anybody is left, dead or alive.

        Not for long at a time: who forks without end must not keep the race from going on.
        """
        limit = time.monotonic() + REAPING_SECONDS
        self.behind = True
        try:
            while time.monotonic() < limit:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if found is None:
                    self.behind = False
                    break
                self._take_in(found.si_pid)
        except ChildProcessError:
            self.behind = False
            return False
        return True

    def _take_in(self, pid: int) -> None:
        # its number stands for it, and for its group, only until wait4
        ours, process = pid in self.started, process_of(pid)
        owner = None if process is None else self._known_owner(pid, process)
        if ours:
            kill_group(pid)
        _, status, usage = os.wait4(pid, 0)
        cpu = usage.ru_utime + usage.ru_stime
        if ours:
            self.exited(self._forget(pid), os.waitstatus_to_exitcode(status), cpu)
        elif owner is not None:
            self.exited(owner, None, cpu)

    def _forget(self, pid: int) -> int:
        number, pidfd = self.started.pop(pid)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        return number

    # whose they are

    def by_racer(self) -> list[dict[int, Process]]:
        """The living processes of each racer."""
        held: list[dict[int, Process]] = [{} for _ in self.numbers]
        owners: dict[int, int | None] = {}
        for pid, process in descendants().items():
            owner = owners[pid] = self._owner(pid, process, owners.get(process[0]))
            if owner is not None:
                held[owner][pid] = process
        return held

    def _owner(self, pid: int, process: Process, owner_of_parent: int | None) -> int | None:
        """Whose a process is: known before, or by its session, by its parent, by its mark."""
        owner = self._known_owner(pid, process)
        if owner is None:
            owner = self._owner_by_mark(pid) if owner_of_parent is None else owner_of_parent
        if owner is not None:
            self.owners[pid, process[2]] = owner
        return owner

    def _known_owner(self, pid: int, process: Process) -> int | None:
        _, session, started, _ = process
        return self.owners.get((pid, started), self.sessions.get(session))

    def _owner_by_mark(self, pid: int) -> int | None:
        start = f"{MARK}={self.token}.".encode()
        marks = [text[len(start) :] for text in environment_of(pid) if text.startswith(start)]
        return self.numbers.get(marks[0]) if marks else None

    # the end

    def kill_all(self, *, everybody: bool) -> str | None:
        """Kill until nobody is left; the kernel says so when there is no child to wait for. Else say who is left.

        With `everybody` at once all that can be reached, else who is found in /proc to be a child. That takes longer
        than most need to die who are in the groups of racers.
        """
        start = time.monotonic()
        for pid in self.started:
            kill_group(pid)
        while self.reap():
            passed = time.monotonic() - start
            if passed > KILLING_SECONDS:
                return f"processes {', '.join(map(str, descendants()))} did not die within {KILLING_SECONDS:g} s"
            if everybody:
                kill_everybody()
            elif passed > DYING_SECONDS:
                kill_children()
            time.sleep(0.0005)
        return None
