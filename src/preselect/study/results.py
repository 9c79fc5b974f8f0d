"""Results of a study on disk: a manifest, one file per finished block, and what is derived from them.

manifest.json    version, parameters, seeds, software
blocks/          one file per (scenario, policy, block of repetitions), written when it is finished
curves.npz       cumulative regret at the checkpoints, arranged by scenario and policy
summary.csv      regret at the horizon, one row per scenario and policy
paired.csv       the first policy compared with each other one, on common random numbers
timing.csv       µs per round; the one file that differs from run to run
"""

import csv
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import preselect
from preselect import state
from preselect.errors import PreselectError, StateFileError
from preselect.study.plan import Plan, Scenario, Task
from preselect.study.play import Repetition
from preselect.study.regret import Comparison, Summary, compare, summarise

KIND = "StudyBlock"
MEASURES = ("best_arm", "top_k")


class ResultsError(PreselectError):
    """A folder of results cannot be used as asked. Nothing in it was changed."""


@dataclass(frozen=True)
class Results:
    """A folder and the plan whose results it holds, whole or in part."""

    folder: Path
    plan: Plan

    @classmethod
    def create(cls, folder: Path, plan: Plan) -> "Results":
        """Use a folder for a plan: a new one, or one that holds results of the same kind, to which these are added."""
        manifest = folder / "manifest.json"
        if manifest.exists():
            _check_same(folder, _read(manifest), plan)
            plan = cls.open(folder).plan.joined(plan)
        try:
            (folder / "blocks").mkdir(parents=True, exist_ok=True)
            _write(manifest, json.dumps(_manifest(plan), indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise ResultsError(f"cannot write results to {folder}: {error.strerror or error}") from None
        return cls(folder, plan)

    @classmethod
    def open(cls, folder: Path) -> "Results":
        """The results in a folder."""
        parameters = _read(folder / "manifest.json")["parameters"]
        try:
            scenarios = tuple(Scenario(*numbers) for numbers in parameters.pop("scenarios"))
            return cls(folder, Plan(scenarios=scenarios, policies=tuple(parameters.pop("policies")), **parameters))
        except (TypeError, KeyError) as error:
            raise ResultsError(f"{folder / 'manifest.json'} is not one of this version: {error}") from None

    def pending(self, plan: Plan) -> list[Task]:
        """Blocks of a plan that are not there yet, or cannot be read."""
        return [task for task in plan.tasks() if not self._has(task)]

    def _has(self, task: Task) -> bool:
        try:
            state.read(self.folder / "blocks" / task.file).expect(KIND)
        except StateFileError:
            return False
        return True

    def write_block(self, task: Task, repetitions: list[Repetition]) -> None:
        """Keep a finished block, whole or not at all."""
        path = self.folder / "blocks" / task.file
        arrays = {
            name: np.array([getattr(repetition, name) for repetition in repetitions])
            for name in (*MEASURES, "policy_seconds", "seconds")
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            state.write(path, KIND, {"task": asdict(task)}, arrays)
        except OSError as error:
            raise ResultsError(f"cannot write results to {path}: {error.strerror or error}") from None

    def load(self, name: str) -> dict[tuple[Scenario, str], NDArray[Any]]:
        """One array of all finished blocks, by scenario and policy, repetitions in order."""
        found: dict[tuple[Scenario, str], list[NDArray[Any]]] = {}
        for task in self.plan.tasks():
            if self._has(task):
                block = state.read(self.folder / "blocks" / task.file)
                found.setdefault((task.scenario, task.policy), []).append(block.arrays[name])
        return {key: np.concatenate(blocks) for key, blocks in found.items()}

    def summaries(self, measure: str = "best_arm") -> dict[tuple[Scenario, str], Summary]:
        """Regret at the horizon."""
        return {key: summarise(curves[:, -1]) for key, curves in self.load(measure).items()}

    def comparisons(self, measure: str = "best_arm") -> dict[tuple[Scenario, str], Comparison]:
        """The first policy against each other one, over the repetitions that both have."""
        curves = self.load(measure)
        found = {}
        for scenario in self.plan.scenarios:
            for policy in self.plan.policies[1:]:
                both = [curves.get((scenario, name)) for name in (self.plan.policies[0], policy)]
                if both[0] is not None and both[1] is not None:
                    common = min(len(both[0]), len(both[1]))
                    found[scenario, policy] = compare(both[0][:common, -1], both[1][:common, -1])
        return found

    def costs(self) -> dict[tuple[Scenario, str], tuple[float, float]]:
        """µs per round, of the policy alone and with the loop around it."""
        policy, whole = self.load("policy_seconds"), self.load("seconds")
        scale = 1e6 / self.plan.horizon
        return {key: (scale * float(policy[key].mean()), scale * float(whole[key].mean())) for key in policy}

    def write_tables(self) -> None:
        """Write what is derived from the blocks: curves, summary, paired comparisons, timing."""
        curves: dict[str, NDArray[Any]] = {"rounds": self.plan.checkpoints}
        summary, paired, timing = [], [], []
        for measure in MEASURES:
            for (scenario, policy), values in self.load(measure).items():
                curves[f"{measure}|{scenario.n},{scenario.d},{scenario.k}|{policy}"] = values
            for (scenario, policy), found in self.summaries(measure).items():
                summary.append({**scenario._asdict(), "policy": policy, "regret": measure, **asdict(found)})
            for (scenario, policy), compared in self.comparisons(measure).items():
                against = {"policy": self.plan.policies[0], "against": policy, "regret": measure}
                paired.append({**scenario._asdict(), **against, **asdict(compared)})
        for (scenario, policy), (alone, whole) in self.costs().items():
            timing.append({**scenario._asdict(), "policy": policy, "policy_us": round(alone, 2), "us": round(whole, 2)})
        state.write(self.folder / "curves.npz", "StudyCurves", {"parameters": self.plan.as_json()}, curves)
        for name, rows in (("summary", summary), ("paired", paired), ("timing", timing)):
            _write_csv(self.folder / f"{name}.csv", rows)


def _manifest(plan: Plan) -> dict[str, Any]:
    return {
        "format": "preselect-study",
        "version": preselect.__version__,
        "parameters": plan.as_json(),
        "software": {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__},
        "machine": {"platform": platform.platform(), "processors": os.cpu_count()},
    }


def _check_same(folder: Path, manifest: dict[str, Any], plan: Plan) -> None:
    version = manifest.get("version")
    if version != preselect.__version__:
        raise ResultsError(
            f"{folder} holds results of preselect {version}, this is {preselect.__version__}; choose another folder"
        )
    for name, value in plan.identity.items():
        kept = manifest["parameters"].get(name)
        if kept != value:
            raise ResultsError(f"{folder} holds results with {name}={kept}, asked for {value}; choose another folder")


def _read(manifest: Path) -> dict[str, Any]:
    try:
        content = json.loads(manifest.read_text())
    except FileNotFoundError:
        raise ResultsError(f"{manifest.parent} holds no results of a study: there is no {manifest.name}") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read {manifest}: {error}") from None
    if not isinstance(content, dict) or content.get("format") != "preselect-study" or "parameters" not in content:
        raise ResultsError(f"{manifest} is not the manifest of a study")
    return content


def _write(path: Path, text: str) -> None:
    """Replace a text file whole."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text)
    temporary.replace(path)


def _write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    rows = list(rows)
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", newline="") as file:
        if rows:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    temporary.replace(path)
