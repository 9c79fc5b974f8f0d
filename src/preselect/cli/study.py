"""`preselect study`: run policies on environments, and show results again."""

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from preselect.cli.progress import Bar, show_progress
from preselect.environments import VARIATIONS, RuntimeReplay, Synthetic
from preselect.errors import ResultsError
from preselect.policies import registry
from preselect.study import (
    AslibPlan,
    AslibSetting,
    Plan,
    Results,
    SapsPlan,
    SapsSetting,
    Summary,
    SyntheticPlan,
    SyntheticSetting,
    run,
    write_report,
)
from preselect.study.plan import MAX_REPETITIONS
from preselect.study.report import format_mean, lay_out, lay_out_ratios
from preselect.study.results import Task, make_tables
from preselect.study.synthetic import MAX_HORIZON

_DEFAULT = SyntheticPlan()
_PAPERS_LAMBDA = 10.0  # for tables that do not come with the library
_FORMAT = click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Print a table, or everything as JSON.",
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _add_common_options(folder: str, policies: Sequence[str], repetitions: int) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options that all studies have."""
    known = ", ".join(registry.POLICIES)
    options = (
        click.option("--out", type=click.Path(path_type=Path), default=Path(folder), show_default=True,
                     help="Folder for results. An unfinished study in the folder is resumed; a finished one is extended."),
        click.option("--policies", multiple=True, metavar="NAMES",
                     help=f"Comma-separated. Known are {known}, also with parameters as in 'cppl(omega=0.5)'; your own "
                     f"is module:Class. The first is compared with the others.  [default: {','.join(policies)}]"),
        click.option("--reps", type=click.IntRange(1, MAX_REPETITIONS), default=repetitions, show_default=True,
                     help="Repetitions; run again with more to add them to the folder."),
        click.option("--seed", type=int, default=0, show_default=True, help="Determines everything random."),
        click.option("--workers", type=int, default=-1,
                     help="Processes; results do not depend on their number.  [default: one per core]"),
        click.option("--cluster", metavar="ADDRESS",
                     help="Run on a Dask cluster instead; the address is that of its scheduler, as in tcp://host:8786."),
        _FORMAT,
    )  # fmt: skip

    def add_options(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add_options


def _split_policies(given: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(name for text in given for name in registry.split(text)))
    if given and not found:
        raise click.BadParameter(f"--policies names no policy: {', '.join(map(repr, given))}")
    return found or default


def _split_integers(text: str, option: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise click.BadParameter(f"cannot read {option} {text!r}; write integers as in 2,3,5") from None


@click.group()
def study() -> None:
    """Run policies on environments; results go to a folder.

    \b
    preselect study synthetic --quick --out results     the paper's first experiment, on a small scale
    preselect study saps                                its second one, on the table of run times that is included
    preselect study aslib SCENARIO...                   races replayed from ASlib scenarios
    preselect study show results                        print the table of a study again
    """


@study.command()
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="N,D,K",
    help="Arms, features, choices; may be given several times.  [default: n 20, 50, 100 × (d, k) (5, 3), (10, 5), (20, 10)]",
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
@_add_common_options("results/synthetic", _DEFAULT.policies, _DEFAULT.repetitions)
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
    """Run the paper's synthetic study: cumulative regret of policies, by setting (n, d, k).

    Each round shows n arms with fresh features; a policy chooses k; one of them wins, drawn from the Plackett-Luce model
    with a hidden θ*. Writes curves.npz, summary.csv, paired.csv, figures (PNG and SVG) and report.html. Blocks of
    repetitions are written as soon as they are finished: after Ctrl-C the same command resumes.
    """  # fmt: skip
    plan = SyntheticPlan(
        settings=tuple(dict.fromkeys(SyntheticSetting.parse(text) for text in scenarios)) or _DEFAULT.settings,
        policies=_split_policies(policies, _DEFAULT.policies),
        repetitions=10 if quick and not _is_given(context, "reps") else reps,
        horizon=500 if quick and not _is_given(context, "horizon") else horizon,
        feedback=feedback,
        variation=variation,
        seed=seed,
    )
    _carry_out(plan, **running)


@study.command()
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder with a table of run times.  [default: the included table]"
)
@click.option("--k", "choices", default="3,5,10", show_default=True, help="How many to choose; a panel for each.")
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
    type=float,
    help="λ of the utilities exp(-λ seconds).  [default: the paper's 10; 100 on the included table, cut off at 0.1 s]",
)
@_add_common_options("results/saps", SapsPlan.policies, SapsPlan.repetitions)
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

    Every instance of the table comes once, in random order; a policy chooses k of the parametrizations by features of
    both. Drawn for comparison: a random set, the k arms with the largest mean utility, and the best fixed set in
    hindsight.
    """
    plan = SapsPlan(
        settings=tuple(SapsSetting(k) for k in _split_integers(choices, "--k")),
        policies=_split_policies(policies, SapsPlan.policies),
        repetitions=reps,
        data=None if data is None else str(data),
        feedback=feedback,
        scale=scale if scale is not None else SapsPlan.scale if data is None else _PAPERS_LAMBDA,
        seed=seed,
    )
    _carry_out(plan, **running)


@study.command()
@click.argument("folders", nargs=-1, required=True, metavar="SCENARIO...", type=click.Path(path_type=Path))
@click.option(
    "--k", "choices", default="3", show_default=True, help="How many algorithms to race; several as in 2,3,5."
)
@click.option("--free-features", is_flag=True, help="Do not add the time for computing features to that of races.")
@_add_common_options("results/aslib", AslibPlan.policies, AslibPlan.repetitions)
def aslib(
    folders: tuple[Path, ...],
    choices: str,
    free_features: bool,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    **running: Any,
) -> None:
    """Replay races on ASlib scenarios, each a folder: instances in random order, the fastest algorithm wins.

    Where none of the chosen algorithms solves an instance, there is no winner. Reported are the PAR10 of the race, the
    resources that it takes on k cores, and how far it is above the virtual best solver, relative to the gap of the
    single best solver and of the best fixed set of k, both chosen in hindsight.
    """
    plan = AslibPlan(
        settings=tuple(AslibSetting(str(folder), k) for folder in folders for k in _split_integers(choices, "--k")),
        policies=_split_policies(policies, AslibPlan.policies),
        repetitions=reps,
        charge=not free_features,
        seed=seed,
    )
    _carry_out(plan, **running)


@study.command()
@click.argument("folder", type=click.Path(path_type=Path))
@_FORMAT
def show(folder: Path, style: str) -> None:
    """Print the table of a study's results, finished or not. Only the folder of results is needed."""
    _print(Results.open(folder), style)


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def _carry_out(plan: Plan, out: Path, workers: int, cluster: str | None, style: str) -> None:
    """Compute what is missing, with progress; draw, report and print."""
    if workers < -1 or workers == 0:
        raise click.BadParameter(f"--workers is {workers}; give a number of processes, or -1 for one per core")
    results = Results.create(out, plan)
    results.record_command(_write_command(results.plan, out))
    with _explain_interrupt(results, plan):
        with show_progress("blocks") as bar:
            run(results, plan, workers=workers, cluster=cluster, report=partial(_show_block, bar))
        report = write_report(results)
    _print(results, style)
    click.echo(f"report: {report}", err=True)


def _show_block(bar: Bar, done: int, total: int, task: Task | None) -> None:
    """Show that a block is finished, or, without a task, how many are finished at the start."""
    if task is not None:
        bar.update(done, total, str(task))
        return
    bar.restart(done, total)
    if 0 < done < total:
        click.echo(f"resuming: {done} of {total} blocks are finished", err=True)


@contextmanager
def _explain_interrupt(results: Results, plan: Plan) -> Iterator[None]:
    """On Ctrl-C, say what is kept and how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        kept, total = results.count_blocks(plan)
        click.echo(f"\ninterrupted: {kept} of {total} blocks are kept; the same command resumes", err=True)
        sys.exit(130)


def _print(results: Results, style: str) -> None:
    if style == "json":
        click.echo(json.dumps(_as_json(results), indent=2, allow_nan=False))
        return
    plan = results.plan
    measure, (_, _, label) = next(iter(plan.measures.items()))
    found = results.summarise(measure)
    if not found:
        raise ResultsError(f"{results.folder} holds no finished block yet")
    unfinished = len(results.find_pending(plan))
    if unfinished:
        click.echo(f"unfinished: {unfinished} blocks are missing", err=True)
    cells = lay_out(plan, {key: _format_summary(summary) for key, summary in found.items()}, "–")
    shown = "mean ± standard error" if any(one.repetitions > 1 for one in found.values()) else "mean"
    _print_table(f"{label} in the end, {shown} (repetitions)", cells)
    for name, values in results.compute_ratios().items():
        _print_table(name, lay_out_ratios(plan, values))


def _print_table(title: str, cells: list[list[str]]) -> None:
    header, *rows = cells
    table = Table()
    for column, name in enumerate(header):
        table.add_column(Text(name), justify="right" if column else "left")
    for row in rows:
        table.add_row(*map(Text, row))  # not markup: names may have brackets
    click.echo(title)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _format_summary(summary: Summary) -> str:
    return f"{format_mean(summary.mean, summary.standard_error)} ({summary.repetitions})"


def _as_json(results: Results) -> dict[str, object]:
    tables = make_tables(results)
    shown = {name: tables[name] for name in ("summary", "ratios", "paired")}
    return {"parameters": results.plan.as_json(), **shown}


def _write_command(plan: Plan, out: Path) -> str:
    """Return the command that computes a plan again, quoted so that it can be pasted into a shell.

    >>> _write_command(SapsPlan(data="my tables", scale=10.0), Path("out"))
    "preselect study saps --data 'my tables' --out out"
    """
    variants = {AslibPlan: _write_aslib, SapsPlan: _write_saps, SyntheticPlan: _write_synthetic}
    lines = variants[type(plan)](plan, ["--out", str(out)])
    return " &&\n".join(shlex.join(["preselect", "study", plan.kind, *line]) for line in lines)


def _write_synthetic(plan: Any, out: list[str]) -> list[list[str]]:
    default = SyntheticPlan()
    scenarios = [part for n, d, k in plan.settings for part in ("--scenario", f"{n},{d},{k}")]
    given = scenarios if plan.settings != default.settings else []
    names = {name: name for name in ("horizon", "feedback", "variation", "seed")} | {"repetitions": "reps"}
    return [[*given, *_write_policies(plan, default), *_write_options(plan, default, names), *out]]


def _write_saps(plan: Any, out: list[str]) -> list[list[str]]:
    default = SapsPlan() if plan.data is None else SapsPlan(scale=_PAPERS_LAMBDA)
    names = {"data": "data", "feedback": "feedback", "scale": "lambda", "repetitions": "reps", "seed": "seed"}
    choices = ["--k", _join(k for (k,) in plan.settings)] if plan.settings != default.settings else []
    return [[*choices, *_write_policies(plan, default), *_write_options(plan, default, names), *out]]


def _write_aslib(plan: Any, out: list[str]) -> list[list[str]]:
    """Return one command for each group of scenarios with the same values of k."""
    default = AslibPlan(settings=plan.settings)
    choices: dict[str, list[int]] = {}
    for folder, k in plan.settings:
        choices.setdefault(folder, []).append(k)
    groups: dict[str, list[str]] = {}
    for folder, ks in choices.items():
        groups.setdefault(_join(ks), []).append(folder)
    names = {"repetitions": "reps", "seed": "seed"}
    options = [*_write_policies(plan, default), *_write_options(plan, default, names), *out]
    free = [] if plan.charge else ["--free-features"]
    return [["--k", ks, *free, *options, *_guard(folders)] for ks, folders in groups.items()]


def _write_policies(plan: Plan, default: Plan) -> list[str]:
    return ["--policies", _join(plan.policies)] if plan.policies != default.policies else []


def _write_options(plan: Plan, default: Plan, names: dict[str, str]) -> list[str]:
    """Write the options, by the name of the parameter, whose values are not the default."""
    changed = [name for name in names if getattr(plan, name) != getattr(default, name)]
    return [part for name in changed for part in (f"--{names[name]}", str(getattr(plan, name)))]


def _join(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _guard(folders: list[str]) -> list[str]:
    """Keep folders from being taken for options."""
    return ["--", *folders] if any(folder.startswith("-") for folder in folders) else folders
