"""Two levels of containment, so that no process survives a race.

"pid namespace": the race runs below its own init process with its own /proc, and dies with that init, whatever kills
it. Racers cannot signal processes outside. This needs root or unprivileged user namespaces.

"subreaper": orphans become children of the supervisor, which kills its children until none is left. If the supervisor
itself is killed, the racers die with it, but processes that they have started may survive.
"""

from __future__ import annotations

import ctypes
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import NoReturn
else:
    import _signal as signal

NAMESPACE, SUBREAPER = "pid namespace", "subreaper"

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_MS_NOSUID_NODEV_NOEXEC, _MS_REC_SLAVE = 2 | 4 | 8, 0x4000 | 0x80000
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Adopt the orphans among this process's descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Make this process die when its parent, a process of the same namespace, does; now if that is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def run_in_namespace(race: Callable[[], None]) -> str | None:
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
    _die_with(parent)
    this = os.pidfd_open(os.getpid())
    _unshare()
    init = os.fork()
    if init == 0:
        _die_with(this)
        _mount_proc()
        os.write(answer_out, b"racing")
        os.close(answer_out)
        race()
        os._exit(0)
    for descriptor in (answer_out, this, 1):
        os.close(descriptor)
    os._exit(0 if os.waitpid(init, 0)[1] == 0 else 1)


def _die_with(parent: int) -> None:
    """Make this process die with the one behind the pidfd `parent`, whose pid another namespace does not show."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    if poll.poll(0):
        os._exit(1)
    os.close(parent)


def _unshare() -> None:
    """Put future children into a new pid namespace; without root that takes a user namespace with the same user."""
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWPID | _CLONE_NEWNS | (_CLONE_NEWUSER if user else 0)
    if _libc.unshare(flags) != 0:
        raise _error("unshare")
    if user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def _mount_proc() -> None:
    """Mount a /proc that shows the new namespace, invisible outside; mounts that happen outside are seen here."""
    slave = _libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_SLAVE), None)
    if slave != 0 or _libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(_MS_NOSUID_NODEV_NOEXEC), None) != 0:
        raise _error("mount /proc")


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise _error("prctl")


def _error(call: str) -> OSError:
    return OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
