"""The command line that computes a study again, quoted so that it can be pasted into a shell."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from preselect.study import AslibPlan, Plan, SapsPlan, SyntheticPlan

PAPERS_LAMBDA = 10.0  # for tables that do not come with the library


def write_command(plan: Plan, out: Path) -> str:
    """Return the command for a plan whose results go to a folder.

    >>> write_command(SapsPlan(data="my tables", scale=10.0), Path("out"))
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
    default = SapsPlan() if plan.data is None else SapsPlan(scale=PAPERS_LAMBDA)
    names = {"data": "data", "feedback": "feedback", "scale": "lambda", "repetitions": "reps", "seed": "seed"}
    choices = ["--k", _join(k for (k,) in plan.settings)] if plan.settings != default.settings else []
    return [[*choices, *_write_policies(plan, default), *_write_options(plan, default, names), *out]]


def _write_aslib(plan: Any, out: list[str]) -> list[list[str]]:
    """Return a line for each group of scenarios that are raced with the same numbers of algorithms."""
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
