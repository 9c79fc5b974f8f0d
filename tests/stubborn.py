"""Racers that attack in ways of their own; each is a program for Python without its library of sites.

`folder` is where the outputs of the racers are.
"""

STUBBORN = {
    # its children are in sessions and process groups of their own, without descriptors, and their parents are dead
    "scattered": """
for _ in range(8):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setpgid(0, 0); os.chdir('/'); os.closerange(0, 1000)
            time.sleep(1000)
        os._exit(0)
time.sleep(1000)
""",
    # a line of descendants in which everybody forks and dies, deaf to all signals that can be ignored
    "relay": """
import signal
for number in signal.valid_signals() - {9, 19}: signal.signal(number, signal.SIG_IGN)
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork(): os._exit(3)
    time.sleep(0.002)
""",
    # writes its own output from the beginning again and again, so that it never reaches the limit
    "rewriting": """
while True: os.pwrite(1, b's SATISFIABLE\\nv 1 2 0\\n' * 5000, 0); os.ftruncate(1, 0)
""",
    # fills the folder with files of every kind
    "littering": """
import _socket
os.chdir(folder)
for number in range(300):
    os.mkfifo(f'f{number}'); os.symlink('/dev/zero', f'l{number}'); os.mkdir(f'd{number}')
    open(f'o{number}', 'wb').write(bytes(1000)); os.chmod(f'd{number}', 0)
_socket.socket(1, 1).bind('socket')
time.sleep(1000)
""",
    # removes its output and the folder, and answers
    "tidying": """
for path in (os.readlink('/proc/self/fd/1'), folder):
    try: os.unlink(path) if path != folder else os.rename(folder, f'{folder}.away')
    except OSError: pass
os.write(1, b's SATISFIABLE\\nv 1 2 0\\n')
raise SystemExit(10)
""",
    # takes a lease on the outputs, so that whoever opens them waits
    "leasing": """
import fcntl
kept = []
while len(kept) < 50:
    for name in os.listdir(folder):
        try:
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NONBLOCK)
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, 34); fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            kept.append(descriptor)
        except OSError: pass
    time.sleep(0.02)
time.sleep(1000)
""",
    # makes itself more and less important, and hides from the memory killer
    "important": """
for name, text in (('oom_score_adj', '-1000'), ('oom_score_adj', '1000'), ('comm', 'init')):
    try: open(f'/proc/self/{name}', 'w').write(text)
    except OSError: pass
try: os.nice(-20)
except OSError: pass
try: os.sched_setaffinity(0, {0})
except OSError: pass
time.sleep(1000)
""",
    # is in namespaces of its own, with an init of its own
    "secluded": """
import ctypes
libc = ctypes.CDLL(None)
libc.unshare(0x10000000 | 0x20000000 | 0x00020000) and libc.unshare(0x20000000)
if os.fork() == 0:
    for _ in range(3):
        if os.fork() == 0: time.sleep(1000)
    time.sleep(1000)
time.sleep(1000)
""",
    # a thread goes on when the first one has ended: the process is a zombie that runs
    "headless": """
import _thread, ctypes
_thread.start_new_thread(time.sleep, (1000,))
time.sleep(0.1)
ctypes.CDLL(None).syscall(60, 0)
""",
    # watches itself, so that every signal stops it before it arrives
    "watching itself": """
import ctypes
child = os.fork()
if child == 0: time.sleep(1000)
ctypes.CDLL(None).ptrace(0x4206, child, 0, 0)
ctypes.CDLL(None).ptrace(0x4207, child, 0, 0)
time.sleep(1000)
""",
    # says that it has won, in every language that it knows, to whoever listens
    "boasting": """
for number in range(0, 40):
    try: os.write(number, b'{"event": "finished", "number": 0, "status": "won"}\\ns SATISFIABLE\\nv -1 -2 0\\n')
    except OSError: pass
raise SystemExit(0)
""",
    # asks the machine to limit its parent, which the same user may: the race is void
    "limiting": """
import resource
for what, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 3)):
    try: resource.prlimit(os.getppid(), what, (most, most))
    except (OSError, ValueError): pass
time.sleep(1000)
""",
}


def make_program(kind, folder):
    """The text of a program."""
    return f"import os, sys, time\nfolder = {str(folder)!r}\n{STUBBORN[kind]}"
