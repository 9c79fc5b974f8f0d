"""All processes of a race: start them, tell which racer each belongs to, notice exits, and kill them."""

from __future__ import annotations

import errno
import os
import resource
import select
import time

from .labels import VERIFIER, Labels
from .processes import Process, find_descendants, list_pids, read_process
from .system import die_with_parent, give_up_privileges, reset_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import NoReturn
else:
    import _signal as signal

MEGABYTE = 2**20
KILLING_SECONDS = 10.0

_LARGEST_FILE = 2**63 - 1  # bytes that Linux can count
_GATE_SECONDS = 5.0
_REAPING_SECONDS = 0.02
_DYING_SECONDS = 0.005


class Gate:
    """Where racers wait, so that all of them start together."""

    def __init__(self) -> None:
        self.gate_in, self.gate_out = os.pipe()
        self.arrivals_in, self.arrivals_out = os.pipe()

    def wait(self) -> bool:
        """Wait in a racer's process until the gate opens; return False if the supervisor has died."""
        os.close(self.gate_out)  # this end, if open, would keep the pipe from ending when the supervisor dies
        os.write(self.arrivals_out, b".")
        return bool(os.read(self.gate_in, 1))

    def open_for(self, count: int) -> float:
        """Open the gate once `count` racers wait, or after a few seconds if some have died; return the time."""
        limit, missing, poll = time.monotonic() + _GATE_SECONDS, count, select.poll()
        poll.register(self.arrivals_in, select.POLLIN)
        while missing > 0 and poll.poll(max(0.0, limit - time.monotonic()) * 1000):
            missing -= len(os.read(self.arrivals_in, missing))
        opening_time = time.monotonic()
        os.write(self.gate_out, b"." * count)
        for descriptor in (self.gate_in, self.gate_out, self.arrivals_in, self.arrivals_out):
            os.close(descriptor)
        return opening_time


class Launcher:
    """Starts commands, each in its own session, with its output in files of limited size."""

    def __init__(self, max_megabytes: float, labels: Labels) -> None:
        self.pid, self.labels = os.getpid(), labels
        self.max_bytes = _cap_at_hard_limit(int(max_megabytes * MEGABYTE))
        self.null = os.open(os.devnull, os.O_RDONLY)
        self.errors_in, self.errors_out = os.pipe()
        os.set_blocking(self.errors_in, False)
        self.start_errors: dict[int, str] = {}
        self.nice = 0  # the nice value of the processes

    def launch(
        self,
        number: int,
        command: Sequence[str],
        environment: dict[str, str],
        files: tuple[int, int],
        gate: Gate | None = None,
    ) -> int:
        """Fork a process that executes the command with `files` as its output and errors."""
        pid = os.fork()
        if pid == 0:
            try:
                self._set_up(number, files)
                if gate is None or gate.wait():
                    _execute(command, {**environment, **self.labels.make_mark(number)})
            except Exception as error:
                reason = _explain(error, command[0]).encode(errors="surrogateescape")
                os.write(self.errors_out, f"{number} {reason.hex()}\n".encode())
            finally:
                os._exit(127)
        return pid

    def _set_up(self, number: int, files: tuple[int, int]) -> None:
        """Give a forked process its own session, signals, limits and files, and let it die with the supervisor."""
        os.setsid()
        os.nice(self.nice)
        die_with_parent(self.pid)
        reset_signals()
        give_up_privileges()
        self.labels.limit_this_process(number)
        for standard, descriptor in enumerate((self.null, *files)):
            os.dup2(descriptor, standard)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.max_bytes, self.max_bytes))

    def get_start_error(self, number: int) -> str | None:
        """Return why a process that has exited could not execute its command; None if it could."""
        try:
            for line in os.read(self.errors_in, 65536).splitlines():
                sender, _, reason = line.decode().partition(" ")
                self.start_errors[int(sender)] = bytes.fromhex(reason).decode(errors="surrogateescape")
        except BlockingIOError:
            pass
        return self.start_errors.pop(number, None)


def _execute(command: Sequence[str], environment: dict[str, str]) -> NoReturn:
    name = command[0]
    denied: OSError | None = None
    for folder in [""] if "/" in name else environment.get("PATH", os.defpath).split(":"):
        try:
            os.execve(os.path.join(folder, name), list(command), environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            denied = error
    raise denied or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _explain(error: Exception, name: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"no such command: {name:.300}"
    if isinstance(error, PermissionError):
        return f"not executable: {name:.300}"
    return f"{getattr(error, 'strerror', None) or error}: {name:.300}"


def _cap_at_hard_limit(size: int) -> int:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    return min(size, _LARGEST_FILE if hard == resource.RLIM_INFINITY else hard)


class Children:
    """All processes below the supervisor.

    Calls `on_exit(number, code, cpu_seconds)` for each process that exits, with the number of its racer. The code is
    None for an orphan, a process that was not started here but by a racer.
    """

    def __init__(
        self,
        launcher: Launcher,
        poll: select.poll,
        on_exit: Callable[[int, int | None, float], None],
        racers: int,
    ) -> None:
        self.launcher, self.poll, self.on_exit = launcher, poll, on_exit
        self.numbers = (VERIFIER, *range(racers))
        self.started: dict[int, tuple[int, int]] = {}  # by pid: the racer's number, and the pidfd
        self.sessions: dict[int, int] = {}  # by session: the racer's number
        self.owners: dict[tuple[int, int], int] = {}  # by pid and start time: the racer's number
        self.has_backlog = False  # whether there are dead processes that have not been reaped yet

    def start(
        self,
        number: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        files: tuple[int, int],
        gate: Gate | None = None,
    ) -> None:
        """Start a command as a racer or as the verifier, and watch it."""
        pid = self.launcher.launch(number, command, {**os.environ, **environment}, files, gate)
        pidfd = os.pidfd_open(pid)
        self.started[pid] = (number, pidfd)
        self.poll.register(pidfd, select.POLLIN)
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
            _kill_group(pid)
        _, status, usage = os.wait4(pid, 0)
        cpu_seconds = usage.ru_utime + usage.ru_stime
        if was_started:
            self.on_exit(self._forget(pid), os.waitstatus_to_exitcode(status), cpu_seconds)
        elif owner is not None and owner != VERIFIER:
            self.on_exit(owner, None, cpu_seconds)

    def _forget(self, pid: int) -> int:
        number, pidfd = self.started.pop(pid)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        return number

    # ownership

    def find_by_owner(self) -> dict[int | None, dict[int, Process]]:
        """Find the living processes of each racer and of the verifier, and, under None, those of unknown racers."""
        found: dict[int | None, dict[int, Process]] = {owner: {} for owner in (*self.numbers, None)}
        owners: dict[int, int | None] = {}
        for pid, process in find_descendants().items():
            owner = owners[pid] = self._find_owner(pid, process, owners.get(process[0]))
            found[owner][pid] = process
        return found

    def _find_owner(self, pid: int, process: Process, owner_of_parent: int | None) -> int | None:
        """Find the racer of a process: from an earlier scan, by session, by parent or by label."""
        owner = self._get_known_owner(pid, process)
        if owner is None:
            owner = self.launcher.labels.read_number(pid) if owner_of_parent is None else owner_of_parent
        if owner is None or owner not in self.numbers:
            return None
        self.owners[pid, process[2]] = owner
        return owner

    def _get_known_owner(self, pid: int, process: Process) -> int | None:
        _, session, start_time, _ = process
        return self.owners.get((pid, start_time), self.sessions.get(session))

    # the end

    def kill_all(self, *, everything: bool) -> str | None:
        """Kill until no child is left; return a sentence about survivors, None if there are none.

        With `everything`, kill whatever can be signalled; otherwise the children that /proc shows. Scanning /proc takes
        longer than the death of the racers' groups, so it waits for these first.
        """
        start = time.monotonic()
        for pid in self.started:
            _kill_group(pid)
        while self.reap():
            passed = time.monotonic() - start
            if passed > KILLING_SECONDS:
                return f"processes {', '.join(map(str, find_descendants()))} did not die within {KILLING_SECONDS:g} s"
            if everything:
                _kill_everything()
            elif passed > _DYING_SECONDS:
                _kill_children()
            time.sleep(0.0005)
        return None


def _kill_children() -> None:
    """Kill all children, each on sight: a process that keeps forking and exiting changes its pid.

    Their orphans become children, which the next call kills.
    """
    this = os.getpid()
    for pid in sorted(list_pids(), reverse=True):
        process = read_process(pid)
        if process is not None and process[0] == this:
            kill_with_groups([pid])


def kill_with_groups(processes: Iterable[int]) -> None:
    """Kill processes and their groups; a whole group dies at once, so none of its processes can fork away."""
    for pid in processes:
        try:
            _kill_group(os.getpgid(pid))
        except ProcessLookupError:
            continue
        _kill(pid)


def _kill_group(group: int) -> None:
    """Kill a process group, unless it is the supervisor's own."""
    # 0 stands for this group, or for one that this namespace does not show; killing -1 would kill every process
    if group > 1 and group != os.getpgrp():
        _kill(-group)


def _kill_everything() -> None:
    """Kill every process that can be signalled; only for the init process of a namespace."""
    _kill(-1)


def _kill(target: int) -> None:
    """Kill a process, or a group if `target` is negative; the caller detects survivors."""
    try:
        os.kill(target, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
