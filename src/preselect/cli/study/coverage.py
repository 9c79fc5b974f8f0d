"""`preselect study coverage`: do confidence widths contain the truth?"""

from typing import Any

import click

from preselect.cli.study.common import add_common_options, carry_out, split_policies
from preselect.environments import Synthetic
from preselect.study import CoveragePlan, SyntheticSetting
from preselect.study.coverage import VARIATIONS_WITH_THETA
from preselect.study.synthetic import MAX_HORIZON

_DEFAULT = CoveragePlan()


@click.command(short_help="Check whether confidence widths contain the truth.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="N,D,K",
    help="Numbers of arms, features and choices; may be given several times.  [default: 20,5,3 and 20,10,5]",
)
@click.option(
    "--feedback",
    type=click.Choice(Synthetic.feedbacks),
    default=_DEFAULT.feedback,
    show_default=True,
    help="What is observed of the chosen arms.",
)
@click.option(
    "--variation",
    type=click.Choice(VARIATIONS_WITH_THETA),
    default=_DEFAULT.variation,
    show_default=True,
    help="How rounds are made; only variations in which θ* stays the same.",
)
@click.option(
    "--horizon",
    type=click.IntRange(1, MAX_HORIZON),
    default=_DEFAULT.horizon,
    show_default=True,
    help="Rounds of a repetition.",
)
@add_common_options("results/coverage", _DEFAULT.policies, _DEFAULT.repetitions)
def coverage(
    scenarios: tuple[str, ...],
    feedback: str,
    variation: str,
    horizon: int,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    **running: Any,
) -> None:
    """Compare what CPPL and Newton believe with the truth, in the paper's synthetic rounds.

    In every round: for how many arms is the true utility outside the estimate ± its width, how far is the estimate from
    θ*, and is it further away than the paper's Lemma 1 allows? The results are sums over the rounds; differences between
    the checkpoints in curves.npz show how they change.
    """  # fmt: skip
    plan = CoveragePlan(
        settings=tuple(dict.fromkeys(SyntheticSetting.parse(text) for text in scenarios)) or _DEFAULT.settings,
        policies=split_policies(policies, _DEFAULT.policies),
        repetitions=reps,
        horizon=horizon,
        feedback=feedback,
        variation=variation,
        seed=seed,
    )
    carry_out(plan, **running)
