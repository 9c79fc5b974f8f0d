"""The dashboard of a running command: a separate service that only reads the journal."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

# the dashboard ends with the command, however that ends
_SERVE = """
import sys
from preselect.race.supervisor.system import die_with_parent
die_with_parent(int(sys.argv.pop(1)))
from preselect.cli import main
main()
"""


@contextmanager
def show_dashboard(journal: Path, wanted: bool) -> Iterator[None]:
    """Serve a dashboard of a journal while the block runs, and print its address."""
    if not wanted:
        yield
        return
    arguments = [str(os.getpid()), "serve", "--journal", str(journal), "--port", "0"]
    command = [sys.executable, "-c", _SERVE, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, text=True) as process:
        assert process.stdout is not None
        try:
            words = process.stdout.readline().split()
            click.echo(f"dashboard: {words[1]}" if len(words) > 1 else "the dashboard could not be started", err=True)
            yield
        finally:
            process.terminate()
