"""The command, run in this process or, where the process is the point, in one of its own."""

import subprocess
import sys

from click.testing import CliRunner

from preselect.cli.main import preselect as command

PRESELECT = [sys.executable, "-m", "preselect"]


def preselect(*arguments, expect=0, given=""):
    """The result of a command in this process; anything but a sentence and an exit code is raised."""
    result = CliRunner().invoke(command, [*map(str, arguments)], input=given)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == expect, result.output
    return result


def start_preselect(*arguments, expect=0, **options):
    """The result of a command in a process of its own."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    result = subprocess.run([*PRESELECT, *map(str, arguments)], text=True, check=False, **streams)
    assert result.returncode == expect, (result.stdout, result.stderr)
    assert "Traceback" not in (result.stderr or "")
    return result
