"""One self-contained HTML page about a study: figures, tables, paired tests, parameters, how to rerun."""

import json
import math
from collections.abc import Mapping
from html import escape
from pathlib import Path

from preselect.reports.html import image, page, table, write_page
from preselect.study.figures import file_name
from preselect.study.plan import Plan, Setting
from preselect.study.results import Results
from preselect.study.statistics import Summary, medians


def write_report(results: Results) -> Path:
    """Write report.html into the folder of the results."""
    return write_page(results.folder / "report.html", page(results.plan.title, _body(results)))


def _body(results: Results) -> str:
    plan = results.plan
    manifest = json.loads((results.folder / "manifest.json").read_text())
    sections = "".join(_measure(results, measure) for measure in plan.measures)
    return (
        f"<p class='note'>preselect {escape(manifest['version'])}; {escape(plan.about)}; "
        f"{plan.repetitions} repetitions, seed {plan.seed}; every policy meets the same arms and the same luck.</p>"
        f"{_ratios(results)}{sections}"
        f"<h2>Cost</h2><p class='note'>µs per round in the policy (select + learn), and with the loop around it.</p>"
        f"{_costs(results)}"
        f"<h2>Again</h2><pre>{escape(plan.command(results.folder.name))}</pre>"
        f"<h2>Parameters</h2><pre>{escape(json.dumps(manifest, indent=2, ensure_ascii=False))}</pre>"
    )


def _measure(results: Results, measure: str) -> str:
    title, meaning, _ = results.plan.measures[measure]
    drawn = (results.folder / f"{file_name(measure)}.png").read_bytes()
    return (
        f"<h2>{title}</h2><p class='note'>Cumulative; {meaning}.</p>"
        f"{image(drawn, f'{title} over the rounds, one panel per setting')}"
        f"<h3>At the horizon</h3><p class='note'>mean ± standard error; in brackets the median and the 5 % and 95 % "
        f"quantiles; the smallest mean in bold.</p>{_summary(results, measure)}{_baselines(results, measure)}"
        f"{_paired(results, measure)}"
    )


def _summary(results: Results, measure: str) -> str:
    plan, found = results.plan, results.summaries(measure)
    smallest = {
        setting: min(summary.mean for (where, _), summary in found.items() if where == setting) for setting, _ in found
    }
    return _grid(plan, {key: _cell(summary, smallest[key[0]]) for key, summary in found.items()})


def _baselines(results: Results, measure: str) -> str:
    plan = results.plan
    found = {setting: plan.baselines(setting, measure) for setting in plan.settings}
    named = list(dict.fromkeys(name for values in found.values() for name in values))
    if not named:
        return ""
    rows = [
        [escape(str(setting)), *(f"{values[name]:.1f}" if name in values else "–" for name in named)]
        for setting, values in found.items()
    ]
    return f"<p class='note'>What choices that learn nothing add up to:</p>{table([plan.heading, *named], rows)}"


def _cell(summary: Summary, smallest: float) -> str:
    best = " class=best" if summary.mean == smallest else ""
    spread = f"{summary.median:.1f}; {summary.lower:.1f}, {summary.upper:.1f}"
    return f"<td{best}>{summary.mean:.1f} ± {summary.standard_error:.1f}<br><small>[{spread}]</small>"


def _paired(results: Results, measure: str) -> str:
    plan, found = results.plan, results.comparisons(measure)
    if not found:
        return ""
    rows = [
        [str(setting), escape(policy), f"{c.difference:+.1f} ± {c.standard_error:.1f}", _p(c.p_mean),
         f"{c.wins} : {c.losses}", _p(c.p_sign)]
        for (setting, policy), c in found.items()
    ]  # fmt: skip
    return (
        f"<h3>{escape(plan.policies[0])} against the others, repetition by repetition</h3>"
        f"<p class='note'>Negative differences favour {escape(plan.policies[0])}. Sums have heavy right tails: the "
        f"mean is compared by a normal approximation (from 30 repetitions on), "
        f"and who is smaller more often by a sign test.</p>"
        + table([plan.heading, "against", "difference ± s.e.", "p", "smaller : larger", "p (sign)"], rows)
    )


def _p(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.2g}" if value >= 1e-6 else "&lt; 1e-6"


def _costs(results: Results) -> str:
    return _grid(results.plan, {key: "{:.1f} / {:.1f}".format(*cost) for key, cost in results.costs().items()})


def ratio_table(results: Results, name: str) -> list[list[str]]:
    """One ratio as rows of text, the header first: settings by policies, and the medians over settings for each k."""
    plan, values = results.plan, results.ratios()[name]
    middle = medians(values)
    of_scenarios = [
        [str(setting), *(_ratio(values.get((setting, policy))) for policy in plan.policies)]
        for setting in plan.settings
    ]
    of_medians = [
        [f"median, k = {k}", *(_ratio(middle.get((k, policy))) for policy in plan.policies)]
        for k in sorted({k for k, _ in middle})
    ]
    return [[plan.heading, *plan.policies], *of_scenarios, *of_medians]


def _ratio(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"


def _ratios(results: Results) -> str:
    found = results.ratios()
    if not found:
        return ""
    note = "<p class='note'>Of means over repetitions; less is better, and 1 is as good as the baseline.</p>"
    tables = ""
    for name in found:
        header, *rows = ratio_table(results, name)
        tables += f"<h3>{escape(name)}</h3>" + table(header, ([escape(first), *rest] for first, *rest in rows))
    return f"<h2>All settings</h2>{note}{tables}"


def laid_out(plan: Plan, cells: Mapping[tuple[Setting, str], str], missing: str) -> list[list[str]]:
    """Scenarios by policies as rows of text, the header first; the longer list goes down, so that lines stay short."""
    across = [[plan.heading, *plan.policies]]
    across += [
        [str(setting), *(cells.get((setting, policy), missing) for policy in plan.policies)]
        for setting in plan.settings
    ]
    if len(plan.policies) <= len(plan.settings):
        return across
    return [list(column) for column in zip(*across, strict=True)]


def _grid(plan: Plan, cells: Mapping[tuple[Setting, str], str]) -> str:
    header, *rows = laid_out(plan, cells, "–")
    return table(header, ([escape(name), *row] for name, *row in rows))
