"""`preselect study run`: run policies on environments of your own."""

from typing import Any

import click

from preselect.cli.study.common import add_common_options, carry_out, split_integers, split_policies
from preselect.study import OwnPlan, OwnSetting
from preselect.study.synthetic import MAX_HORIZON


@click.command("run")
@click.argument("environments", nargs=-1, required=True, metavar="MODULE:CLASS...")
@click.option("--k", "choices", required=True, help="How many arms to choose; several as in 2,3,5.")
@click.option(
    "--horizon",
    type=click.IntRange(1, MAX_HORIZON),
    default=OwnPlan.horizon,
    show_default=True,
    help="Rounds of a repetition.",
)
@add_common_options("results/run", OwnPlan.policies, OwnPlan.repetitions)
def run_own(
    environments: tuple[str, ...],
    choices: str,
    horizon: int,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    **running: Any,
) -> None:
    """Run policies on environments of your own.

    MODULE:CLASS is a class in a module that can be imported from here, also with parameters as in
    'routes:Routes(n=20)'. Its constructor takes a keyword argument seed. It has an attribute d, the number of features,
    and the methods context(), outcome(decision) and truth(); preselect.environments.Environment describes them. If it
    has a method measure(), policies are judged by that; otherwise they are judged by regret, and truth() returns the
    log-utilities of all arms.
    """
    plan = OwnPlan(
        settings=tuple(OwnSetting(name, k) for name in environments for k in split_integers(choices, "--k")),
        policies=split_policies(policies, OwnPlan.policies),
        repetitions=reps,
        horizon=horizon,
        seed=seed,
    )
    carry_out(plan, **running)
