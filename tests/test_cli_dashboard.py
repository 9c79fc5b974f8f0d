"""`preselect race --dashboard`: the page is there while races run, shows them, and ends with the command."""

import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from processes import find_marked, wait_until

ANSWER = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"


@pytest.fixture
def raced(pool, tmp_path):
    """A command that has raced once and waits for another file; and the address of its dashboard."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "first.cnf").write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    os.utime(inbox / "first.cnf", (1.0, 1.0))
    path = pool({"one": ANSWER, "other": "sleep 60"}, features='from = "none"')
    command = [sys.executable, "-m", "preselect", "race", path, "--watch", inbox, "--dashboard", "--output", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        yield process, next(line.split()[1] for line in process.stderr if line.startswith("dashboard: "))
        process.kill()


def read(address):
    request = urllib.request.Request(address, headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def shows(address, text):
    try:
        return text in read(address)
    except OSError:  # it starts, or the journal has not been begun
        return False


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGKILL])
def test_a_dashboard_shows_races_while_they_run_and_ends_with_the_command(token, raced, number):
    process, address = raced
    wait_until(lambda: shows(address + "/preselectors/pool", "first.cnf"))
    wait_until(lambda: shows(address + "/preselectors/pool", "Seconds saved"))
    assert "Retire" not in read(address + "/preselectors/pool/arms")
    process.send_signal(number)
    process.wait()
    wait_until(lambda: not find_marked(token))
    assert not shows(address, "")
