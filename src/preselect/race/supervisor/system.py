"""System calls that Python does not offer, for the containment of processes."""

from __future__ import annotations

import ctypes
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_CAP_SYS_PTRACE = 19
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_MS_NOSUID_NODEV_NOEXEC, _MS_REC_SLAVE = 2 | 4 | 8, 0x4000 | 0x80000
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Adopt the orphans among this process's descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide() -> None:
    """Keep the memory and the open files of this process from others of the same user, as /proc would show them."""
    _prctl(_PR_SET_DUMPABLE, 0)


def give_up_privileges() -> None:
    """Never gain privileges from setuid programs, and, as root, drop the privilege to look into other processes."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(_CAP_SYS_PTRACE), 0, 0, 0)  # only root has it, and may drop it


def reset_signals() -> None:
    """Handle all signals by default and block none: a program inherits what its caller ignores or blocks."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def die_with_parent(parent: int) -> None:
    """Make this process die with its parent, which is in the same namespace; at once if the parent is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def die_with(parent: int) -> None:
    """Make this process die with the process of the pidfd `parent`, whose pid may be invisible in this namespace."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    if poll.poll(0):
        os._exit(1)
    os.close(parent)


def unshare() -> None:
    """Put future children into a new pid namespace; without root that takes a user namespace with the same user."""
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWPID | _CLONE_NEWNS | (_CLONE_NEWUSER if user else 0)
    if _libc.unshare(flags) != 0:
        raise _error("unshare")
    if user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def mount_proc() -> None:
    """Mount a /proc that shows the new namespace, invisible outside; mounts that happen outside are seen here."""
    slave = _libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_SLAVE), None)
    if slave != 0 or _libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(_MS_NOSUID_NODEV_NOEXEC), None) != 0:
        raise _error("mount /proc")


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise _error("prctl")


def _error(call: str) -> OSError:
    return OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
