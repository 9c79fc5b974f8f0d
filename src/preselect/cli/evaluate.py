"""`preselect evaluate`: estimate what other policies would have won on logs."""

from functools import partial
from pathlib import Path

import click

from preselect.cli.logs import journal_name
from preselect.cli.progress import Bar, show_progress
from preselect.errors import InputError
from preselect.files import require_ours
from preselect.loading import load
from preselect.offline import Evaluation, evaluate, read_logs
from preselect.offline.evaluation_page import format_interval, list_warnings, write_evaluation_page
from preselect.policies import registry
from preselect.preselector import Preselector
from preselect.reports.html import is_page


@click.command("evaluate", short_help="Estimate from logs what policies would have won.")
@click.argument("logs", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--policies",
    multiple=True,
    metavar="NAMES",
    default=("newton,random",),
    show_default=True,
    help="Policies, separated by commas, as `preselect policies` lists them; also with parameters as in "
    "'newton(beta=1.0)', or files of saved preselectors (*.npz).",
)
@click.option(
    "--learn-from",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.5,
    show_default=True,
    help="Share of rounds, from the beginning, to learn from; policies are evaluated on the others.",
)
@click.option(
    "--identity/--no-identity", default=True, show_default=True, help="Whether arms have weights of their own."
)
@click.option(
    "--nobody-may-win",
    is_flag=True,
    help="Count rounds without a winner as won by nobody; otherwise they are left out.",
)
@click.option("--every-arm", is_flag=True, help="Let policies choose among all arms of FILE in every round.")
@journal_name
@click.option("--by-model", is_flag=True, help="Estimate by a model even if FILE has propensities.")
@click.option(
    "--draws",
    type=click.IntRange(1, 1_000_000),
    default=200,
    show_default=True,
    help="How many sets to draw in each round from a policy that chooses at random.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random numbers.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File for an HTML page with the results. An earlier page is replaced; any other file that exists is an error and "
    "stays as it is.",
)
def evaluate_policies(
    logs: Path,
    policies: tuple[str, ...],
    learn_from: float,
    identity: bool,
    nobody_may_win: bool,
    every_arm: bool,
    name: str | None,
    by_model: bool,
    draws: int,
    seed: int,
    out: Path | None,
) -> None:
    """Estimate what policies would have won if they had chosen in the rounds of FILE, with 95 % intervals.

    FILE is a table of rounds (`preselect logs --help` describes it) or a journal. It should also list the arms that
    could have been shown but were not (shown is 0), because policies choose among these, too.

    \b
    What is estimated depends on which probabilities FILE has:
        set_propensity, with --nobody-may-win
            picks: the share of rounds in which some arm is picked
        propensity
            wins of the policy's arms against the arms shown with them
        neither
            what a model expects, which may be wrong

    Policies learn from the first half of the rounds and are evaluated on the second half, unless --learn-from says
    otherwise.

    \b
    Count rounds without a winner, and write a page:
        preselect evaluate clicks.csv --nobody-may-win --out evaluation.html
    Evaluate a saved preselector on a journal:
        preselect evaluate preselect.journal --every-arm --policies tuned.npz
    """
    if out is not None:
        require_ours(out, is_page)
    named = {name: _find(name) for text in policies for name in registry.split(text)}
    options = {"identity": identity, "nobody_may_win": nobody_may_win, "every_arm": every_arm, "by_model": by_model}
    table = read_logs(logs, name=name)
    with show_progress("rounds") as bar:
        report = partial(_show, bar)
        found = evaluate(table, named, learn_from=learn_from, draws=draws, seed=seed, report=report, **options)
    _print(found)
    if out is not None:
        click.echo(f"page: {write_evaluation_page(out, found, f'Evaluation on {logs.name}')}", err=True)


def _find(name: str) -> str | Preselector:
    """Return the name of a policy unchanged, or load the preselector if the name is that of a file."""
    if not name.endswith(".npz"):
        registry.parse(name)  # raises an error now, not after the logs were read
        return name
    found = load(name)
    if not isinstance(found, Preselector):
        raise InputError(f"{name} holds a policy without names of arms; evaluate a saved Preselector")
    return found


def _show(bar: Bar, done: int, total: int, policy: str) -> None:
    bar.update(done, total, policy)


def _print(found: Evaluation) -> None:
    click.echo(f"learnt from the first {found.learnt_from} rounds, evaluated on the {found.rounds} after them")
    if found.reason:
        click.echo(f"This is a model's opinion ({found.reason}): it is wrong wherever the model is.")
    click.echo(f"{found.measure}: {found.meaning}")
    click.echo(f"{'':<20} {'':<16} {'estimate, 95 % interval':>24} {'lead over the logs':>26}")
    for value in found.policies:
        for place, (method, estimate, lead) in enumerate(value.estimates):
            name = "" if place else value.policy
            by = format_interval(lead, "+") if any(lead) else ""
            click.echo(f"{name:<20} {method:<16} {format_interval(estimate):>24} {by:>26}".rstrip())
    for warning in list_warnings(found):
        click.echo(warning, err=True)
