"""The command: one module per subcommand, which parses, calls and prints."""

import sys


def main() -> None:
    """Entry point of `preselect`."""
    try:
        from preselect.cli.main import preselect
    except ImportError as error:
        if error.name not in {"click", "rich"}:
            raise
        sys.exit("preselect: the command needs the extra [cli]: pip install 'preselect[cli]'")
    preselect()
