"""`preselect logs`: tables of rounds."""

import sys
from pathlib import Path

import click

from preselect.cli.instances import make_visible
from preselect.errors import InputError
from preselect.logs import Problem
from preselect.offline import check_logs, read_logs

_MOST = 100  # problems that are printed

journal_name = click.option(
    "--name", help="Name of the journal, if FILE holds several, such as a preselector of the service."
)


@click.group(short_help="Check tables of rounds before they are learnt from.")
def logs() -> None:
    """Check tables of rounds: which arms were shown, in what context, and how they came out.

    \b
    A table is a CSV or Parquet file with one row for each arm of each round:
        round           name of the round
        arm             name of the arm
        place           1 for the winner, 2 for the next, equal if tied; or empty
        shown           1, or 0 for an arm that could have been shown but was not
        propensity      probability with which the arm was shown, if known
        set_propensity  probability with which exactly these arms were shown
        arm.NAME        a feature of the arm: a number, or empty if not known
        context.NAME    a feature of the round: the same in all its rows
    Only the first three columns are needed.
    """


@logs.command(short_help="Say what is wrong with FILE, line by line.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@journal_name
def check(file: Path, name: str | None) -> None:
    """Say what is wrong with FILE, line by line, or what is in it.

    FILE is a table of rounds, a journal, a file of PrefLib, or rankings of the sushi data. The exit code is 1 if
    anything is wrong.
    """
    try:
        found = read_logs(file, name=name)
    except InputError:
        _list_problems(check_logs(file, name=name))
        raise
    won = int(found.winners.sum())
    click.echo(f"{len(found)} rounds of {len(found.arms)} arms, {won} with a winner; everything can be read")
    click.echo(f"features of a round: {make_visible(', '.join(found.context)) or 'none'}")
    click.echo(f"features of arms: {make_visible(', '.join(found.features)) or 'none'}")


def _list_problems(problems: list[Problem]) -> None:
    """Print what is wrong, if it is wrong with single lines, and exit."""
    for problem in problems[:_MOST]:
        click.echo(make_visible(problem.message))
    if len(problems) > _MOST:
        click.echo(f"and {len(problems) - _MOST} more")
    if problems:
        sys.exit(1)
