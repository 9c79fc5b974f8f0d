"""`preselect study`: run policies on environments, and show results again. One module per study."""

import click

from preselect.cli.study.aslib import aslib
from preselect.cli.study.choices import choices
from preselect.cli.study.coverage import coverage
from preselect.cli.study.own import run_own
from preselect.cli.study.saps import saps
from preselect.cli.study.show import show
from preselect.cli.study.synthetic import synthetic


@click.group(short_help="Run policies on environments, and report on the results.")
def study() -> None:
    """Run policies on environments; results go to a folder.

    \b
    Repeat the paper's first experiment on a small scale:
        preselect study synthetic --quick --out results
    Repeat its second one, on the table of run times that is included:
        preselect study saps
    Replay races from ASlib scenarios:
        preselect study aslib SCENARIO...
    Replay tables of contexts and rankings:
        preselect study choices FILE... --k 3
    Use an environment of your own:
        preselect study run my_module:MyEnvironment --k 3
    Check whether the confidence widths of CPPL and Newton contain the truth:
        preselect study coverage
    Print the table of a study again:
        preselect study show results
    """


for _command in (synthetic, saps, aslib, choices, run_own, coverage, show):
    study.add_command(_command)
