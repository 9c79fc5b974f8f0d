"""`preselect study`: run policies on environments, and show results again. One module per study."""

import click

from preselect.cli.study.aslib import aslib
from preselect.cli.study.choices import choices
from preselect.cli.study.coverage import coverage
from preselect.cli.study.own import run_own
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
    preselect study choices FILE... --k 3               tables of contexts and rankings
    preselect study run my_module:MyEnvironment --k 3   environments of your own
    preselect study coverage                            do the widths of CPPL and Newton contain the truth?
    preselect study show results                        print the table of a study again
    """


for _command in (synthetic, saps, aslib, choices, run_own, coverage, show):
    study.add_command(_command)
