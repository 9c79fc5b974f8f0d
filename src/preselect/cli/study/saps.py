"""`preselect study saps`: the paper's second study."""

from pathlib import Path
from typing import Any

import click

from preselect.cli.study.common import add_common_options, carry_out, split_integers, split_policies
from preselect.environments import RuntimeReplay
from preselect.study import SapsPlan, SapsSetting
from preselect.study.saps import PAPERS_LAMBDA


@click.command(short_help="Run the paper's second study, on run times of SAPS.")
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder with a table of run times.  [default: the included table]"
)
@click.option(
    "--k",
    "choices",
    default="3,5,10",
    show_default=True,
    help="How many parametrizations to choose; several as in 3,5,10.",
)
@click.option(
    "--feedback",
    type=click.Choice(RuntimeReplay.feedbacks),
    default=SapsPlan.feedback,
    show_default=True,
    help="What is observed: a winner or ranking drawn from the model, or, in a race, the one that is really fastest.",
)
@click.option(
    "--lambda",
    "scale",
    type=click.FloatRange(min=0, min_open=True),
    help="λ of the utilities exp(-λ seconds).  [default: the paper's 10; 100 on the included table, cut off at 0.1 s]",
)
@add_common_options("results/saps", SapsPlan.policies, SapsPlan.repetitions)
def saps(
    data: Path | None,
    choices: str,
    feedback: str,
    scale: float | None,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    **running: Any,
) -> None:
    """Run the paper's second study: which parametrizations of SAPS to run on an instance.

    Every instance of the table comes once, in random order; a policy chooses k parametrizations by features of both.
    The figures compare with a random set, the k arms with the largest mean utility, and the best fixed set in
    hindsight.
    """
    plan = SapsPlan(
        settings=tuple(SapsSetting(k) for k in split_integers(choices, "--k")),
        policies=split_policies(policies, SapsPlan.policies),
        repetitions=reps,
        data=None if data is None else str(data),
        feedback=feedback,
        scale=scale if scale is not None else SapsPlan.scale if data is None else PAPERS_LAMBDA,
        seed=seed,
    )
    carry_out(plan, **running)
