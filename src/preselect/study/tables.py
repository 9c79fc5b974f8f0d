"""Tables of a study: rows for frames, and the files curves.npz, summary.csv, ratios.csv, paired.csv and timing.csv."""

import csv
import io
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from preselect import state
from preselect.files import write_whole
from preselect.study.plan import Plan, Setting
from preselect.study.results import Finished, Results
from preselect.study.statistics import PairedComparison, Summary

_Rows: TypeAlias = list[dict[str, Any]]

_COLUMNS = {  # after those of the setting
    "summary": ["policy", "measure", *(field.name for field in fields(Summary))],
    "ratios": ["policy", "ratio", "value"],
    "paired": ["policy", "against", "measure", *(field.name for field in fields(PairedComparison))],
    "timing": ["policy", "policy_us", "us"],
}


def write_tables(results: Results) -> None:
    """Write curves.npz, summary.csv, ratios.csv, paired.csv and timing.csv."""
    parameters = {"parameters": results.plan.as_json()}
    state.write(results.folder / "curves.npz", "StudyCurves", parameters, _collect_curves(results))
    for name, rows in make_tables(results).items():
        _write_csv(results.folder / f"{name}.csv", list_columns(results.plan, name), rows)


def make_tables(results: Results) -> dict[str, _Rows]:
    """Return the rows of each table, by its name; None stands for NaN, such as the error of a single repetition."""
    return {name: [_drop_nan(row) for row in list_rows(results, name)] for name in _COLUMNS}


def list_rows(results: Results, table: str) -> _Rows:
    """Return the rows of a table, by its name."""
    measures = list(results.plan.measures)
    if table in ("summary", "paired"):
        listed = _list_summaries if table == "summary" else list_comparisons
        return [row for measure in measures for row in listed(results, measure)]
    return _list_ratios(results) if table == "ratios" else _list_costs(results)


def list_columns(plan: Plan, table: str) -> list[str]:
    """Return the names of the columns of a table, by its name."""
    return [*plan.setting_type._fields, *_COLUMNS[table]]


def _drop_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in row.items()}


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


def list_comparisons(results: Results, measure: str) -> _Rows:
    """Return the first policy compared with each other one, a row for each setting and policy."""
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


def list_totals(results: Results) -> _Rows:
    """Return the measures at the horizon, a row for each setting, policy and repetition."""
    return [row for key, found in results.read_finished().items() for row in _list_points(results, key, found, -1)]


def list_curves(results: Results) -> _Rows:
    """Return the measures at every checkpoint, a row for each setting, policy, repetition and checkpoint."""
    rows: _Rows = []
    for key, found in results.read_finished().items():
        for point, number in enumerate(results.space_checkpoints(key[0]).tolist()):
            rows += [{**row, "round": number} for row in _list_points(results, key, found, point)]
    return rows


def _list_points(results: Results, key: tuple[Setting, str], found: Finished, point: int) -> _Rows:
    setting, policy = key
    head = {**setting._asdict(), "policy": policy}
    sums = {measure: found.arrays[measure][:, point].tolist() for measure in results.plan.measures}
    return [
        {**head, "repetition": repetition, **{measure: values[row] for measure, values in sums.items()}}
        for row, repetition in enumerate(found.repetitions.tolist())
    ]


def _write_csv(path: Path, header: list[str], rows: _Rows) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=header)
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())
