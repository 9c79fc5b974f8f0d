"""`preselect study synthetic`: the paper's first study."""

from typing import Any

import click

from preselect.cli.study.common import add_common_options, carry_out, split_policies
from preselect.environments import VARIATIONS, Synthetic
from preselect.study import SyntheticPlan, SyntheticSetting
from preselect.study.synthetic import MAX_HORIZON

_DEFAULT = SyntheticPlan()


@click.command(short_help="Run the paper's first study, on synthetic rounds.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="N,D,K",
    help="Numbers of arms, features and choices; may be given several times.  "
    "[default: n = 20, 50, 100, each with (d, k) = (5, 3), (10, 5), (20, 10)]",
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
    type=click.Choice(list(VARIATIONS)),
    default=_DEFAULT.variation,
    show_default=True,
    help="How rounds are made: as in the paper, or with one thing changed.",
)
@click.option(
    "--horizon",
    type=click.IntRange(1, MAX_HORIZON),
    default=_DEFAULT.horizon,
    show_default=True,
    help="Rounds of a repetition.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="10 repetitions of 500 rounds, unless --reps or --horizon say otherwise: a minute instead of many.",
)
@add_common_options("results/synthetic", _DEFAULT.policies, _DEFAULT.repetitions)
@click.pass_context
def synthetic(
    context: click.Context,
    /,
    scenarios: tuple[str, ...],
    feedback: str,
    variation: str,
    horizon: int,
    quick: bool,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    **running: Any,
) -> None:
    """Run the paper's first study, on synthetic rounds: cumulative regret of policies, by setting (n, d, k).

    Each round shows n arms with fresh features; a policy chooses k; one of them wins, drawn from the Plackett-Luce model
    with a hidden θ*. Writes curves.npz, summary.csv, paired.csv, figures (PNG and SVG) and report.html. Blocks of
    repetitions are written as soon as they are finished: after Ctrl-C the same command resumes.
    """  # fmt: skip
    plan = SyntheticPlan(
        settings=tuple(dict.fromkeys(SyntheticSetting.parse(text) for text in scenarios)) or _DEFAULT.settings,
        policies=split_policies(policies, _DEFAULT.policies),
        repetitions=10 if quick and not _is_given(context, "reps") else reps,
        horizon=500 if quick and not _is_given(context, "horizon") else horizon,
        feedback=feedback,
        variation=variation,
        seed=seed,
    )
    carry_out(plan, **running)


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
