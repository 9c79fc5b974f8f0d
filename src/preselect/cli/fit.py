"""`preselect fit`: fit the model to logs, test it, and save what it knows."""

import os
from pathlib import Path

import click

from preselect.cli.logs import journal_name
from preselect.errors import InputError
from preselect.files import require_ours
from preselect.offline import Fit, fit, read_logs
from preselect.offline.page import tabulate_score, write_fit_page
from preselect.policies import registry
from preselect.reports.html import is_page
from preselect.state import is_state


@click.command("fit", short_help="Fit the model to logs, and say how well it predicts.")
@click.argument("logs", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--policy", default=registry.DEFAULT, show_default=True, help="Policy to fit: newton or thompson.")
@click.option(
    "--held-out",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.2,
    show_default=True,
    help="Share of rounds, at the end, to test on; 0 for no test.",
)
@click.option(
    "--identity/--no-identity", default=True, show_default=True, help="Whether arms have weights of their own."
)
@click.option(
    "--nobody-may-win",
    is_flag=True,
    help="Count rounds without a winner as won by nobody; otherwise they are left out.",
)
@journal_name
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    help="File for the fitted preselector. An earlier state is replaced; any other file that exists is an error and stays "
    "as it is.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File for an HTML page about the fit. An earlier page is replaced; any other file that exists is an error and "
    "stays as it is.",
)
def fit_logs(
    logs: Path,
    policy: str,
    held_out: float,
    identity: bool,
    nobody_may_win: bool,
    name: str | None,
    state: Path | None,
    out: Path | None,
) -> None:
    """Fit the model to all rounds of FILE at once, and say how well it predicts rounds that it has not seen.

    FILE is a table of rounds (`preselect logs --help` describes it), a journal, a file of PrefLib, or rankings of the
    sushi data.

    \b
    Write a page, and save what was learnt:
        preselect fit clicks.csv --nobody-may-win --out fit.html --state clicks.npz
    Use it in Python:
        preselector = preselect.load("clicks.npz")
    """
    if None not in (state, out) and os.path.realpath(str(state)) == os.path.realpath(str(out)):
        raise InputError(f"--state and --out both name {state}; name two files")
    for path, is_ours in ((state, is_state), (out, is_page)):
        if path is not None:
            require_ours(path, is_ours)
    options = {"policy": policy, "identity": identity, "nobody_may_win": nobody_may_win}
    found = fit(read_logs(logs, name=name), held_out=held_out, **options)
    _print(found)
    if state is not None:
        found.preselector.save(state)
        click.echo(f"fitted preselector: {state}", err=True)
    if out is not None:
        click.echo(f"page: {write_fit_page(out, found, f'Fit of {logs.name}')}", err=True)


def _print(found: Fit) -> None:
    arms = len(found.preselector.arms)
    click.echo(f"{found.rounds} rounds, {found.outcomes} of them with an outcome that teaches something; {arms} arms")
    if not found.scores:
        return
    click.echo(f"fitted to the first {found.rounds - found.held_out} rounds, tested on the last {found.held_out}:")
    click.echo(f"{'':<12} {'log-likelihood per round':>26} {'lead of the model':>20}")
    for score in found.scores:
        name, mean, lead = tabulate_score(score)
        click.echo(f"{name:<12} {mean:>26} {lead:>20}".rstrip())
