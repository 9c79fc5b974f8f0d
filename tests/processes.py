"""Processes in tests: which ones are alive, and functions that run in a fork of this process.

A fork has imported and compiled everything already, which a new interpreter would need more than a second for.
"""

import gc
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path


def find_marked(token):
    """Find the processes with a token in their environment or arguments, except this one."""
    return [
        pid
        for pid in list_pids()
        if pid != os.getpid() and token.encode() in read_proc(pid, "environ") + read_proc(pid, "cmdline")
    ]


def find_inside(folder):
    """Find the processes that run in a folder, also those that have been forked and have not executed anything yet."""
    return [pid for pid in list_pids() if is_inside(pid, folder)]


def is_inside(pid, folder):
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(folder)
    except OSError:
        return False


def list_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read_proc(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def read_stat(pid):
    return read_proc(pid, "stat").rpartition(b")")[2].split() or [b"", b"-1"]


def get_parent(pid):
    return int(read_stat(pid)[1])


def is_dead(pid):
    """Whether a process is gone or a zombie."""
    return read_stat(pid)[0] in (b"", b"Z", b"X")


def find_zombies():
    return [pid for pid in list_pids() if read_stat(pid)[0] == b"Z" and get_parent(pid) == os.getpid()]


def list_descriptors():
    return sorted(os.listdir("/proc/self/fd"))


def wait_until(condition, seconds=180.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def wait_until_all_died(token, folder):
    """Wait until no process has the token or runs in the folder; twice, as one may fork and exit during a look."""
    wait_until(lambda: not any(find_marked(token) or find_inside(folder) for _ in range(2)), seconds=20)


def drop_hooks():
    """Drop the hooks of hypothesis and coverage, in a fork that will get signals.

    If Ctrl-C arrives while one of them runs, its exception may be lost, or a lock may stay locked.
    """
    gc.callbacks.clear()
    sys.settrace(None)


class Fork:
    """Runs a function in a fork of this process, in a session of its own; `output` reads what it prints.

    The exit code is that of SystemExit, 0 if the function returns, and 1 with a traceback if it raises anything else.
    Ctrl-C, SIGINT, works as in a command that was started from a terminal.
    """

    def __init__(self, function, *arguments, **options):
        reading, writing = os.pipe()
        errors_reading, errors_writing = os.pipe()
        with warnings.catch_warnings():  # of threads, which the fork does not use
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            os.close(errors_reading)
            self._run(lambda: function(*arguments, **options), writing, errors_writing)
        os.close(writing)
        os.close(errors_writing)
        self.output = os.fdopen(reading, "rb")
        self.errors = os.fdopen(errors_reading, "rb")

    @staticmethod
    def _run(call, output, errors):
        code = 1
        try:
            os.setsid()
            drop_hooks()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for source, target in ((output, 1), (errors, 2)):
                os.dup2(source, target)
                os.close(source)
            sys.stdout, sys.stderr = (os.fdopen(os.dup(place), "w") for place in (1, 2))
            call()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """Kill it and wait for its death."""
        self.send_signal(signal.SIGKILL)
        self.wait()

    def wait(self):
        """Wait for its end and return the exit code."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = None
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid is not None:
            self.kill()
        self.output.close()
        self.errors.close()
