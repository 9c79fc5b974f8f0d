"""`preselect study choices`: tables of contexts and rankings as environments."""

from pathlib import Path
from typing import Any

import click

from preselect.cli.study.common import add_common_options, carry_out, split_integers, split_policies
from preselect.environments import ChoiceReplay
from preselect.study import ChoicesPlan, ChoicesSetting


@click.command(short_help="Replay tables of contexts and rankings.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--k", "choices", required=True, help="How many arms to show; several as in 2,3,5.")
@click.option(
    "--feedback",
    type=click.Choice(ChoiceReplay.feedbacks),
    default=ChoicesPlan.feedback,
    show_default=True,
    help="What is observed of the shown arms: the best one, or all that have a place, in order.",
)
@click.option("--no-identity", is_flag=True, help="Give arms no weights of their own, only their features.")
@add_common_options("results/choices", ChoicesPlan.policies, ChoicesPlan.repetitions)
def choices(
    files: tuple[Path, ...],
    choices: str,
    feedback: str,
    no_identity: bool,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    **running: Any,
) -> None:
    """Replay tables of choices: k of the n arms of a round are shown, and the one that was ranked best wins.

    FILE is a log as `preselect fit` reads it: a CSV or Parquet table (see docs/logs.md), a journal, a file of PrefLib,
    or the rankings of the sushi data (sushi3b.5000.10.order, with sushi3.udata and sushi3.idata beside it). Rounds
    come in random order, each once. If none of the arms that are shown has a place, there is no winner.
    """
    plan = ChoicesPlan(
        settings=tuple(ChoicesSetting(str(file), k) for file in files for k in split_integers(choices, "--k")),
        policies=split_policies(policies, ChoicesPlan.policies),
        repetitions=reps,
        feedback=feedback,
        with_identity=not no_identity,
        seed=seed,
    )
    carry_out(plan, **running)
