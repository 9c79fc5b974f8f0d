"""The command `preselect`: one module per subcommand, which parses arguments, calls the library and prints."""

import os
import sys
from contextlib import suppress


def main() -> None:
    """Entry point of `preselect`."""
    _open_standard_streams()
    try:
        from preselect.cli.main import preselect
    except ImportError as error:
        if error.name not in {"click", "rich"}:
            raise
        sys.exit("preselect: the command needs click and rich; run pip install '.[cli]' in a checkout of preselect")
    try:
        preselect()
    finally:
        _discard_unwritten()


def _open_standard_streams() -> None:
    """Replace closed standard streams (`>&-`) by the null device; files opened later must not take their numbers."""
    with suppress(OSError):  # there may be no null device
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)
        for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
            if getattr(sys, name) is None:
                setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _discard_unwritten() -> None:
    """Drop output that cannot be written; its error has been reported, and Python would report it again on exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
