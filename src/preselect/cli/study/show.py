"""`preselect study show`: print the table of a study again."""

from pathlib import Path

import click

from preselect.cli.study.common import FORMAT, print_results
from preselect.study import Results


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@FORMAT
def show(folder: Path, style: str) -> None:
    """Print the table of a study's results, finished or not.

    FOLDER is the folder of results; nothing else is needed.
    """
    print_results(Results.open(folder), style)
