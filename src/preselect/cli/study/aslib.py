"""`preselect study aslib`: races replayed from ASlib scenarios."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import click

from preselect.cli.study.common import add_common_options, carry_out, split_integers, split_policies
from preselect.study import AslibPlan, AslibSetting


@click.command(short_help="Replay races from ASlib scenarios.")
@click.argument("folders", nargs=-1, required=True, metavar="SCENARIO...", type=click.Path(path_type=Path))
@click.option(
    "--k", "choices", default="3", show_default=True, help="How many algorithms to race; several as in 2,3,5."
)
@click.option("--free-features", is_flag=True, help="Do not add the time for computing features to that of races.")
@click.option(
    "--after",
    "budgets",
    default="0",
    show_default=True,
    help="Budgets of after-races, as shares of the CPU time of the races; several as in 0,0.5,1.",
)
@add_common_options("results/aslib", AslibPlan.policies, AslibPlan.repetitions)
def aslib(
    folders: tuple[Path, ...],
    choices: str,
    free_features: bool,
    budgets: str,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    **running: Any,
) -> None:
    """Replay races on ASlib scenarios, each a folder: instances in random order, the fastest algorithm wins.

    If none of the chosen algorithms solves an instance, there is no winner. The report has the PAR10 of the race, the
    resources that it takes on k cores, and how far it is above the virtual best solver, relative to the gap of the
    single best solver and of the best fixed set of k, both chosen in hindsight.

    In after-races, algorithms that were not chosen race against the winner's time once the race is over. They cost CPU
    time, which is counted separately, but the answer does not wait for them.
    """
    several = product(map(str, folders), split_integers(choices, "--k"), _split_budgets(budgets))
    plan = AslibPlan(
        settings=tuple(AslibSetting(*one) for one in several),
        policies=split_policies(policies, AslibPlan.policies),
        repetitions=reps,
        charge=not free_features,
        seed=seed,
    )
    carry_out(plan, **running)


def _split_budgets(text: str) -> list[float]:
    try:
        budgets = list(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        budgets = [math.nan]
    if not all(0.0 <= budget < math.inf for budget in budgets):
        raise click.BadParameter(f"cannot read --after {text!r}; write numbers of at least 0, as in 0,0.5,1")
    return budgets
