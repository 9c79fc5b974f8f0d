"""`preselect study`: run policies on environments, and look at results again."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from preselect.environments import VARIATIONS, RuntimeReplay, Synthetic
from preselect.errors import PreselectError
from preselect.policies import registry
from preselect.study.aslib import AslibPlan, AslibSetting
from preselect.study.plan import Plan, Task
from preselect.study.report import laid_out, ratio_table
from preselect.study.results import Results
from preselect.study.runner import run
from preselect.study.saps import SapsPlan, SapsSetting
from preselect.study.statistics import Summary
from preselect.study.synthetic import SyntheticPlan, SyntheticSetting

_DEFAULT = SyntheticPlan()
_FORMAT = click.option(
    "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print."
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _common(folder: str, policies: Sequence[str], repetitions: int) -> Callable[[_Command], _Command]:
    """The options that every study has."""
    ours = ", ".join(registry.POLICIES)
    options = (
        click.option("--out", type=click.Path(path_type=Path), default=Path(folder), show_default=True,
                     help="Folder for results; a folder with unfinished results of the same study is gone on with."),
        click.option("--policies", multiple=True, metavar="NAMES",
                     help=f"Comma-separated: {ours}, with parameters as in 'cppl(omega=0.5)', or your own as "
                     f"module:Class. The first one is compared with the others.  [default: {','.join(policies)}]"),
        click.option("--reps", type=int, default=repetitions, show_default=True,
                     help="Repetitions; more of them can be added later to the same folder."),
        click.option("--seed", type=int, default=0, show_default=True, help="Everything random follows from it."),
        click.option("--workers", type=int, default=-1,
                     help="Processes; results do not depend on it.  [default: one per core]"),
        click.option("--cluster", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler instead."),
        _FORMAT,
    )  # fmt: skip

    def decorated(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def _policies(given: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(name for text in given for name in registry.split(text)))
    if given and not found:
        raise click.BadParameter(f"must name at least one policy, got {list(given)}")
    return found or default


def _carry_out(plan: Plan, out: Path, workers: int, cluster: str | None, style: str) -> None:
    """Compute what is missing, with progress; draw, report and print."""
    if workers < -1 or workers == 0:
        raise click.BadParameter(f"must be a number of processes, or -1 for one per core, got {workers}")
    from preselect.study.figures import write_figures
    from preselect.study.report import write_report

    results = Results.create(out, plan)
    total = sum(1 for _ in plan.tasks())
    done = total - len(results.pending(plan))
    with _keeping(results, plan, total), _progress(done, total) as advance:
        run(results, plan, workers=workers, cluster=cluster, report=advance)
    with _keeping(results, plan, total):
        write_figures(results)
        report = write_report(results)
    _print(results, style)
    click.echo(f"report: {report}", err=True)


@click.group()
def study() -> None:
    """Run policies on environments, with results in a folder.

    \b
    preselect study synthetic --quick --out results     the paper's first experiment, small
    preselect study saps                                its second one, on the table that comes with this
    preselect study aslib scenarios/*                   races on scenarios that others measured
    preselect study show results                        its table again
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
    help="What is seen of the chosen arms.",
)
@click.option(
    "--variation",
    type=click.Choice(list(VARIATIONS)),
    default=_DEFAULT.variation,
    show_default=True,
    help="How rounds are made: as in the paper, or with one thing changed.",
)
@click.option("--horizon", type=int, default=_DEFAULT.horizon, show_default=True, help="Rounds.")
@click.option(
    "--quick", is_flag=True, help="10 repetitions of 500 rounds, unless said otherwise: a minute instead of many."
)
@_common("results/synthetic", _DEFAULT.policies, _DEFAULT.repetitions)
@click.pass_context
def synthetic(
    context: click.Context,
    scenarios: tuple[str, ...],
    feedback: str,
    variation: str,
    horizon: int,
    quick: bool,
    out: Path,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    workers: int,
    cluster: str | None,
    style: str,
) -> None:
    """The paper's synthetic study: cumulative regret of policies, by scenario.

    Each round shows n arms with fresh features; a policy chooses k; one of them wins, drawn from the Plackett-Luce model
    with a hidden θ*. Writes curves.npz, summary.csv, paired.csv, figures (PNG and SVG) and report.html. Finished
    blocks are kept at once: interrupt it and give the same command again to go on.
    """  # fmt: skip
    given = {name for name in ("horizon", "reps") if _was_given(context, name)}
    plan = SyntheticPlan(
        settings=tuple(dict.fromkeys(SyntheticSetting.parse(text) for text in scenarios)) or _DEFAULT.settings,
        policies=_policies(policies, _DEFAULT.policies),
        repetitions=10 if quick and "reps" not in given else reps,
        horizon=500 if quick and "horizon" not in given else horizon,
        feedback=feedback,
        variation=variation,
        seed=seed,
    )
    _carry_out(plan, out, workers, cluster, style)


@study.command()
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder with a table of run times.  [default: the shipped table]"
)
@click.option("--k", "choices", default="3,5,10", show_default=True, help="How many to choose; a panel for each.")
@click.option(
    "--feedback",
    type=click.Choice(RuntimeReplay.feedbacks),
    default=SapsPlan.feedback,
    show_default=True,
    help="What is seen: drawn from the model, or who is truly fastest.",
)
@click.option(
    "--lambda",
    "scale",
    type=float,
    help="λ of the utilities exp(-λ seconds).  [default: 10, the paper's; 100 on the shipped table, cut off at 0.1 s]",
)
@_common("results/saps", SapsPlan.policies, SapsPlan.repetitions)
def saps(
    data: Path | None,
    choices: str,
    feedback: str,
    scale: float | None,
    out: Path,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    workers: int,
    cluster: str | None,
    style: str,
) -> None:
    """The paper's second study: which parametrizations of SAPS to run on an instance.

    Every instance of the table comes once, in random order; a policy chooses k of the parametrizations by features of
    both. Drawn in: a random set, the k arms with the largest mean utility, and the best fixed set in hindsight.
    """
    plan = SapsPlan(
        settings=tuple(SapsSetting(k) for k in _integers(choices, "k")),
        policies=_policies(policies, SapsPlan.policies),
        repetitions=reps,
        data=None if data is None else str(data),
        feedback=feedback,
        scale=scale if scale is not None else SapsPlan.scale if data is None else 10.0,
        seed=seed,
    )
    _carry_out(plan, out, workers, cluster, style)


@study.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--k", "choices", default="3", show_default=True, help="How many algorithms to race; several as in 2,3,5."
)
@click.option("--free-features", is_flag=True, help="Do not add the time for computing features to that of races.")
@_common("results/aslib", AslibPlan.policies, AslibPlan.repetitions)
def aslib(
    folders: tuple[Path, ...],
    choices: str,
    free_features: bool,
    out: Path,
    policies: tuple[str, ...],
    reps: int,
    seed: int,
    workers: int,
    cluster: str | None,
    style: str,
) -> None:
    """Races on ASlib scenarios, replayed: FOLDERS of scenarios, instances in random order, the fastest solver wins.

    Where none of the chosen algorithms solves an instance, nobody wins. Reported: PAR10 of the race, the resources that
    it takes on k cores, and how far above the virtual best solver it is, in units of the gap of the best single solver
    and of the best fixed set of k, both chosen in hindsight.
    """
    plan = AslibPlan(
        settings=tuple(AslibSetting(str(folder), k) for folder in folders for k in _integers(choices, "k")),
        policies=_policies(policies, AslibPlan.policies),
        repetitions=reps,
        charge=not free_features,
        seed=seed,
    )
    _carry_out(plan, out, workers, cluster, style)


def _integers(text: str, argument: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise click.BadParameter(f"{argument} must be integers as in 2,3,5, got {text!r}") from None


@study.command()
@click.argument("folder", type=click.Path(path_type=Path))
@_FORMAT
def show(folder: Path, style: str) -> None:
    """Print the table of a study's results again, finished or not."""
    _print(Results.open(folder), style)


def _was_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


@contextmanager
def _progress(done: int, total: int) -> Iterator[Callable[[Task], None]]:
    """A bar with the time left on a terminal; a line now and then elsewhere."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("blocks,"),
                   TimeElapsedColumn(), TextColumn("gone,"), TimeRemainingColumn(), TextColumn("left"))  # fmt: skip
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("playing", total=total, completed=done)
            yield lambda task: progress.update(bar, advance=1, description=f"{task.policy} {task.setting}")
        return
    finished = done

    def line(_: Task) -> None:
        nonlocal finished
        finished += 1
        if finished == total or finished * 10 // total > (finished - 1) * 10 // total:
            print(f"{finished} of {total} blocks", file=sys.stderr, flush=True)

    if done < total:
        print(f"{done} of {total} blocks are there", file=sys.stderr, flush=True)
    yield line


@contextmanager
def _keeping(results: Results, plan: Plan, total: int) -> Iterator[None]:
    """On Ctrl-C say what is kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        kept = total - len(results.pending(plan))
        click.echo(f"\ninterrupted: {kept} of {total} blocks are kept; give the same command again to go on", err=True)
        sys.exit(130)


def _print(results: Results, style: str) -> None:
    if style == "json":
        click.echo(json.dumps(_as_json(results), indent=2, allow_nan=False))
        return
    plan = results.plan
    measure, (_, _, label) = next(iter(plan.measures.items()))
    found = results.summaries(measure)
    if not found:
        raise PreselectError(f"{results.folder} holds no finished block yet")
    unfinished = len(results.pending(plan))
    if unfinished:
        click.echo(f"unfinished: {unfinished} blocks are missing", err=True)
    cells = laid_out(plan, {key: _cell(summary) for key, summary in found.items()}, "–")
    _print_table(f"{label} in the end, mean ± standard error (repetitions)", cells)
    for name in results.ratios():
        _print_table(name, ratio_table(results, name))


def _print_table(title: str, cells: list[list[str]]) -> None:
    header, *rows = cells
    table = Table()
    for place, name in enumerate(header):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    click.echo(title)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _cell(summary: Summary) -> str:
    return f"{summary.mean:.1f} ± {summary.standard_error:.1f} ({summary.repetitions})"


def _as_json(results: Results) -> dict[str, object]:
    rows = [
        {**setting._asdict(), "policy": policy, "measure": measure, **asdict(summary)}
        for measure in results.plan.measures
        for (setting, policy), summary in results.summaries(measure).items()
    ]
    paired = [row for measure in results.plan.measures for row in results.paired_rows(measure)]
    tables = {"summary": rows, "ratios": results.ratio_rows(), "paired": paired}
    parameters = results.plan.as_json()
    parameters["scenarios"] = parameters.pop("settings")  # the word of the option, and of what was printed before
    return {"parameters": parameters, **{name: _plain(table) for name, table in tables.items()}}


def _plain(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """JSON knows no NaN."""
    return [{name: None if value != value else value for name, value in row.items()} for row in rows]
