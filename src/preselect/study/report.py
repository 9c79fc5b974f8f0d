"""Report a study: tables for the terminal, and one self-contained HTML page with everything."""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from preselect.named.tables import write_count
from preselect.reports.html import Cell, render, write_page
from preselect.study.figures import write_figures, write_tradeoff
from preselect.study.plan import Plan, Setting
from preselect.study.results import Results, name_figure
from preselect.study.statistics import PairedComparison, Summary, find_least_p

_Content = TypeVar("_Content")
_Table: TypeAlias = list[list[Any]]  # the header first
_LEAST_PRINTED = 0.001  # smaller p-values are printed as less than this


def write_report(results: Results) -> Path:
    """Write the figures and report.html, which contains them, into the folder of the results; return the page's path.

    Parameters
    ----------
    results : Results
        What to report. Nothing but its folder is read.
    """
    write_figures(results)
    plan, tradeoff = results.plan, write_tradeoff(results)
    page = render(
        "study.html",
        title=plan.title,
        plan=plan,
        manifest=results.manifest,
        about=plan.describe(results.find_data(plan.settings[0]).rounds),
        ratios={name: lay_out_ratios(plan, values) for name, values in results.compute_ratios().items()},
        tradeoff=tradeoff and tradeoff.read_bytes(),
        winners=[name_winners(results, measure) for measure in plan.measures],
        sections=[_make_section(results, measure) for measure in plan.measures],
        costs=_tabulate_costs(results),
    )
    return write_page(results.folder / "report.html", page)


def name_winners(results: Results, measure: str) -> str:
    """Describe which policies have the smallest mean, and in how many settings."""
    means: dict[Setting, dict[str, float]] = {}
    for (setting, policy), summary in results.summarise(measure).items():
        means.setdefault(setting, {})[policy] = summary.mean
    counts = Counter(min(of_policy, key=lambda policy: of_policy[policy]) for of_policy in means.values()).most_common()
    if not counts:
        return "Nothing has been computed yet."
    (first, most), *others = counts
    where = f" in {most} of {len(means)} settings" if len(means) > 1 else ""
    listed = "".join(f", {policy} in {count}" for policy, count in others)
    return f"{results.plan.measures[measure].title}: {first} has the smallest mean{where}{listed}."


def _make_section(results: Results, measure: str) -> dict[str, Any]:
    return {
        "measure": results.plan.measures[measure],
        "figure": (results.folder / f"{name_figure(measure)}.png").read_bytes(),
        "summary": tabulate_summaries(results, measure),
        "baselines": _tabulate_baselines(results, measure),
        "paired": _tabulate_comparisons(results, measure),
        "limits": _explain_limits(list(results.compare(measure).values())),
    }


def tabulate_summaries(results: Results, measure: str) -> _Table:
    """Tabulate the totals of each policy in each setting, the header first; the smallest mean is marked."""
    found = results.summarise(measure)
    smallest: dict[Any, float] = {}
    for (setting, _), summary in found.items():
        smallest[setting] = min(summary.mean, smallest.get(setting, math.inf))
    cells = {key: _format_summary(summary, best=summary.mean == smallest[key[0]]) for key, summary in found.items()}
    return lay_out(results.plan, cells, Cell("–"))


def _format_summary(summary: Summary, *, best: bool) -> Cell:
    spread = f"[{summary.median:.1f}; {summary.lower:.1f}, {summary.upper:.1f}]" if summary.repetitions > 1 else ""
    return Cell(format_mean(summary.mean, summary.standard_error), spread, best)


def format_mean(mean: float, error: float, sign: str = "-") -> str:
    """Return a mean ± its standard error; the mean alone if the error is NaN, as for a single repetition.

    `sign` is "+" to mark positive means, too.

    >>> format_mean(12.34, 0.56), format_mean(12.34, math.nan, sign="+")
    ('12.3 ± 0.6', '+12.3')
    """
    text = f"{mean:{sign}.1f}"
    return text if math.isnan(error) else f"{text} ± {error:.1f}"


def _tabulate_baselines(results: Results, measure: str) -> _Table:
    """Tabulate the baselines by setting; empty if there are none."""
    plan = results.plan
    found = {setting: results.find_data(setting).baselines.get(measure, {}) for setting in plan.settings}
    names = list(dict.fromkeys(name for values in found.values() for name in values))
    rows = [
        [str(setting), *(f"{values[name]:.1f}" if name in values else "–" for name in names)]
        for setting, values in found.items()
    ]
    return [[plan.heading, *names], *rows] if names else []


def _tabulate_comparisons(results: Results, measure: str) -> _Table:
    """Tabulate the first policy against the others; empty if there are none."""
    found = results.compare(measure)
    header = [results.plan.heading, "against", "mean difference ± s.e.", "p (mean)", "smaller : larger", "p (sign)"]
    rows = [[str(setting), policy, *_format_comparison(one)] for (setting, policy), one in found.items()]
    return [header, *rows] if rows else []


def _format_comparison(found: PairedComparison) -> list[str]:
    difference = format_mean(found.difference, found.standard_error, sign="+")
    return [difference, _format_p(found.p_mean), f"{found.wins} : {found.losses}", _format_p(found.p_sign)]


def _format_p(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.2g}".removeprefix("0") if value >= _LEAST_PRINTED else f"< {_LEAST_PRINTED}".replace("0.", ".")


def _explain_limits(found: list[PairedComparison]) -> str:
    """Describe how small p-values can be, or why there are none; empty if they can be small."""
    if not found:
        return ""
    pairs, repetitions = len(found), max(one.repetitions for one in found)
    least = find_least_p(repetitions, pairs)
    if least < _LEAST_PRINTED:
        return ""
    numbers = f"{write_count(repetitions, 'repetition')} and {write_count(pairs, 'comparison')}"
    hidden = any(math.isnan(one.p_mean) for one in found)
    return f"With {numbers} no p can be below {_format_p(least)}{', so none is shown' if hidden else ''}."


def _tabulate_costs(results: Results) -> _Table:
    costs = {key: "{:.1f} / {:.1f}".format(*cost) for key, cost in results.compute_costs().items()}
    return lay_out(results.plan, costs, "–")


def lay_out(plan: Plan, cells: Mapping[tuple[Setting, str], _Content], missing: _Content) -> list[list[str | _Content]]:
    """Arrange cells in rows, the header first; the longer one of settings and policies becomes the rows."""
    across: list[list[str | _Content]] = [[plan.heading, *plan.policies]]
    across += [
        [str(setting), *(cells.get((setting, policy), missing) for policy in plan.policies)]
        for setting in plan.settings
    ]
    if len(plan.policies) <= len(plan.settings):
        return across
    return [list(column) for column in zip(*across, strict=True)]


def lay_out_ratios(plan: Plan, values: Mapping[tuple[Setting, str], float]) -> list[list[str]]:
    """Arrange one ratio by settings and policies, the header first, with medians over groups of settings."""
    middle = _compute_medians(plan, values)
    rows = [(str(setting), [values.get((setting, policy)) for policy in plan.policies]) for setting in plan.settings]
    rows += [
        (f"median, {group}", [middle.get((group, policy)) for policy in plan.policies])
        for group in dict.fromkeys(map(plan.name_group, plan.settings))
    ]
    return [[plan.heading, *plan.policies], *([name, *map(_format_ratio, row)] for name, row in rows)]


def _format_ratio(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"


def _compute_medians(plan: Plan, values: Mapping[tuple[Setting, str], float]) -> dict[tuple[str, str], float]:
    """Return the median of each policy's values over the settings of each group, ignoring NaN."""
    groups: dict[tuple[str, str], list[float]] = {}
    for (setting, policy), value in values.items():
        if not math.isnan(value):
            groups.setdefault((plan.name_group(setting), policy), []).append(value)
    return {group: float(np.median(among)) for group, among in groups.items()}
