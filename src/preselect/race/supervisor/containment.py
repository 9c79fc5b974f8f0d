"""Two levels of containment, so that nobody survives a race.

"pid namespace": the race runs below an init of its own, with its own /proc, and dies with it, whatever kills it; racers
can signal nobody outside. It needs root or unprivileged user namespaces. "subreaper": orphans become children of the
supervisor, which kills its children until it has none. If the supervisor itself is killed then, the racers die with it,
but not surely what they have started.
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
    """Have orphans below this process become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Die when the parent does, a process of the same namespace; at once if it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def run_in_namespace(race: Callable[[], None]) -> str | None:
    """Race below an init of its own; this process ends with it. If that cannot be done here, return the reason.

    Namespaces cannot be left again, so it is a child that enters them: if it fails, this process is as before.
    """
    said, saying = os.pipe()
    this = os.pidfd_open(os.getpid())
    middle = os.fork()
    if middle == 0:
        os.close(said)
        try:
            _enter_namespace(race, this, saying)
        except Exception as error:
            os.write(saying, str(error).encode())
        finally:
            os._exit(1)
    os.close(this)
    os.close(saying)
    answer = os.read(said, 4096).decode()
    os.close(said)
    if answer == "racing":
        os.close(1)
    status = os.waitstatus_to_exitcode(os.waitpid(middle, 0)[1])
    if answer == "racing":
        os._exit(0 if status == 0 else 1)
    return answer or "the process that tried it died"


def _enter_namespace(race: Callable[[], None], parent: int, saying: int) -> NoReturn:
    _die_with(parent)
    this = os.pidfd_open(os.getpid())
    _unshare()
    init = os.fork()
    if init == 0:
        _die_with(this)
        _mount_proc()
        os.write(saying, b"racing")
        os.close(saying)
        race()
        os._exit(0)
    for descriptor in (saying, this, 1):
        os.close(descriptor)
    os._exit(0 if os.waitpid(init, 0)[1] == 0 else 1)


def _die_with(parent: int) -> None:
    """Die when the parent does, which the pidfd `parent` stands for: from another namespace its number is not seen."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    if poll.poll(0):
        os._exit(1)
    os.close(parent)


def _unshare() -> None:
    """Have children in a pid namespace of their own; who is not root needs a user namespace for it, as who he is."""
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWPID | _CLONE_NEWNS | (_CLONE_NEWUSER if user else 0)
    if _libc.unshare(flags) != 0:
        raise _error("unshare")
    if user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def _mount_proc() -> None:
    """Show the processes of the new namespace in /proc; mounts outside are still seen, ours are not seen outside."""
    slave = _libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_SLAVE), None)
    if slave != 0 or _libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(_MS_NOSUID_NODEV_NOEXEC), None) != 0:
        raise _error("mount /proc")


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise _error("prctl")


def _error(call: str) -> OSError:
    return OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
