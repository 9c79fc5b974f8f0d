"""`preselect study`: run policies on environments, and show results again. One module per study."""

import click

from preselect.cli.study.aslib import aslib
from preselect.cli.study.saps import saps
from preselect.cli.study.show import show
from preselect.cli.study.synthetic import synthetic


@click.group()
def study() -> None:
    """Run policies on environments; results go to a folder.

    \b
    preselect study synthetic --quick --out results     the paper's first experiment, on a small scale
    preselect study saps                                its second one, on the table of run times that is included
    preselect study aslib SCENARIO...                   races replayed from ASlib scenarios
    preselect study show results                        print the table of a study again
    """


for _command in (synthetic, saps, aslib, show):
    study.add_command(_command)
