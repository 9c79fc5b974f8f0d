"""Tables of results: rows for CSV and JSON files, and grids of text for the terminal and the report."""

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from numpy.typing import NDArray

from preselect import state
from preselect.files import write_whole
from preselect.study.plan import Plan, Setting
from preselect.study.results import Results
from preselect.study.statistics import medians

_Rows: TypeAlias = list[dict[str, Any]]
_Content = TypeVar("_Content")


def write_tables(results: Results) -> None:
    """Write curves.npz, summary.csv, ratios.csv, paired.csv and timing.csv."""
    parameters = {"parameters": results.plan.as_json()}
    state.write(results.folder / "curves.npz", "StudyCurves", parameters, _collect_curves(results))
    for name, rows in make_tables(results).items():
        _write_csv(results.folder / f"{name}.csv", rows)


def make_tables(results: Results) -> dict[str, _Rows]:
    """Return the rows of each table, by its name."""
    measures = list(results.plan.measures)
    return {
        "summary": [row for measure in measures for row in _list_summaries(results, measure)],
        "ratios": _list_ratios(results),
        "paired": [row for measure in measures for row in _list_comparisons(results, measure)],
        "timing": _list_costs(results),
    }


def _collect_curves(results: Results) -> dict[str, NDArray[Any]]:
    curves: dict[str, NDArray[Any]] = {}
    for measure in results.plan.measures:
        for (setting, policy), values in results.load(measure).items():
            where = ",".join(map(str, setting))
            curves[f"rounds|{where}"] = results.space_checkpoints(setting)
            curves[f"{measure}|{where}|{policy}"] = values
    return curves


def _list_summaries(results: Results, measure: str) -> _Rows:
    return [
        {**setting._asdict(), "policy": policy, "measure": measure, **asdict(found)}
        for (setting, policy), found in results.summarise(measure).items()
    ]


def _list_ratios(results: Results) -> _Rows:
    return [
        {**setting._asdict(), "policy": policy, "ratio": name, "value": value}
        for name, values in results.compute_ratios().items()
        for (setting, policy), value in values.items()
    ]


def _list_comparisons(results: Results, measure: str) -> _Rows:
    first = results.plan.policies[0]
    return [
        {**setting._asdict(), "policy": first, "against": policy, "measure": measure, **asdict(found)}
        for (setting, policy), found in results.compare(measure).items()
    ]


def _list_costs(results: Results) -> _Rows:
    return [
        {**setting._asdict(), "policy": policy, "policy_us": round(alone, 2), "us": round(whole, 2)}
        for (setting, policy), (alone, whole) in results.compute_costs().items()
    ]


def _write_csv(path: Path, rows: _Rows) -> None:
    text = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    write_whole(path, text.getvalue())


def lay_out(plan: Plan, cells: Mapping[tuple[Setting, str], _Content], missing: _Content) -> list[list[str | _Content]]:
    """Arrange cells by settings and policies, the header first; the longer list goes down, so that lines stay short."""
    across: list[list[str | _Content]] = [[plan.heading, *plan.policies]]
    across += [
        [str(setting), *(cells.get((setting, policy), missing) for policy in plan.policies)]
        for setting in plan.settings
    ]
    if len(plan.policies) <= len(plan.settings):
        return across
    return [list(column) for column in zip(*across, strict=True)]


def lay_out_ratios(plan: Plan, values: Mapping[tuple[Setting, str], float]) -> list[list[str]]:
    """Arrange one ratio by settings and policies, the header first, with the median over the settings of each k."""
    middle = medians(values)
    rows = [(str(setting), [values.get((setting, policy)) for policy in plan.policies]) for setting in plan.settings]
    rows += [
        (f"median, k = {k}", [middle.get((k, policy)) for policy in plan.policies])
        for k in sorted({k for k, _ in middle})
    ]
    return [[plan.heading, *plan.policies], *([name, *map(_format_ratio, row)] for name, row in rows)]


def _format_ratio(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"
