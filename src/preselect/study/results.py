"""Results of a study on disk: a manifest, one file per finished block, and what is derived from them.

manifest.json    version, parameters, seeds, software
blocks/          one file per (setting, policy, block of repetitions), written when it is finished
curves.npz       what was measured, summed up to the checkpoints, arranged by setting and policy
summary.csv      the sums at the horizon, one row per setting and policy
ratios.csv       the same in units of baselines, for studies that have a usual way to say it
paired.csv       the first policy compared with each other one, on common random numbers
timing.csv       µs per round; the one file that differs from run to run
"""

import csv
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

import preselect
from preselect import state
from preselect.errors import ResultsError, StateFileError
from preselect.policies import registry
from preselect.study.plan import Plan, Setting, Task
from preselect.study.play import Repetition
from preselect.study.statistics import PairedComparison, Summary, compare, summarise

KIND = "StudyBlock"
Key: TypeAlias = tuple[Setting, str]


@dataclass(frozen=True)
class Finished:
    """What is there of one policy in one setting: which repetitions, and arrays with a row for each of them."""

    repetitions: NDArray[np.int64]
    arrays: dict[str, NDArray[Any]]


class Results:
    """A folder and the plan whose results it holds, whole or in part."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self._finished: dict[Key, Finished] | None = None

    @classmethod
    def create(cls, folder: Path, plan: Plan) -> "Results":
        """Use a folder for a plan: a new one, or one that holds results of the same kind, to which these are added."""
        plan.check()
        sources = {policy: registry.digest_source(policy) for policy in plan.policies if registry.digest_source(policy)}
        manifest = folder / "manifest.json"
        if manifest.exists():
            kept = _read(manifest)
            _check_same(folder, kept, plan, sources)
            sources = {**kept.get("sources", {}), **sources}
            plan = plan.joined(cls.open(folder).plan)
        try:
            (folder / "blocks").mkdir(parents=True, exist_ok=True)
            _write(manifest, json.dumps(_manifest(plan, sources), indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise ResultsError(f"cannot write results to {folder}: {error.strerror or error}") from None
        return cls(folder, plan)

    @classmethod
    def open(cls, folder: Path) -> "Results":
        """The results in a folder."""
        manifest = _read(folder / "manifest.json")
        try:
            return cls(folder, Plan.kinds[manifest["study"]].from_json(manifest["parameters"]))
        except (TypeError, KeyError) as error:
            raise ResultsError(f"{folder / 'manifest.json'} is not one of this version: {error}") from None

    def finished(self) -> dict[Key, Finished]:
        """All repetitions that are there, read once; blocks that cannot be read or hold something else do not count."""
        if self._finished is None:
            self._finished = {}
            for setting in self.plan.settings:
                for policy in self.plan.policies:
                    blocks = self._blocks(Task(self.plan, setting, policy, 0, 1))
                    if blocks:
                        self._finished[setting, policy] = _joined(blocks)
        return self._finished

    def _blocks(self, task: Task) -> list[tuple[int, dict[str, NDArray[Any]]]]:
        """First repetition and arrays of each block of a policy in a setting."""
        found = []
        for path in sorted((self.folder / "blocks" / task.file).parent.glob("[0-9]*.npz")):
            try:
                file = state.read(path).expect(KIND)
                first, last = file.header["task"]["first"], file.header["task"]["last"]
                same = file.header["task"] == json.loads(json.dumps(replace(task, first=first, last=last).header()))
                shape = (last - first, len(self.plan.checkpoints(task.setting)))
                if same and all(file.arrays[measure].shape == shape for measure in self.plan.measures):
                    found.append((int(first), file.arrays))
            except (StateFileError, KeyError, TypeError):
                continue
        return found

    def pending(self, plan: Plan) -> list[Task]:
        """What of a plan is not there yet."""
        finished, tasks = self.finished(), []
        for task in plan.tasks():
            have = finished.get((task.setting, task.policy))
            missing = sorted(set(range(task.first, task.last)) - set(have.repetitions.tolist() if have else ()))
            if missing:
                tasks.append(replace(task, first=missing[0], last=missing[-1] + 1))
        return tasks

    def write_block(self, task: Task, repetitions: list[Repetition]) -> None:
        """Keep a finished block, whole or not at all."""
        self._finished = None
        path = self.folder / "blocks" / task.file
        arrays = {name: np.array([one.sums[name] for one in repetitions]) for name in self.plan.measures}
        arrays["policy_seconds"] = np.array([one.policy_seconds for one in repetitions])
        arrays["seconds"] = np.array([one.seconds for one in repetitions])
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            state.write(path, KIND, {"task": task.header()}, arrays)
        except OSError as error:
            raise ResultsError(f"cannot write results to {path}: {error.strerror or error}") from None

    def load(self, name: str) -> dict[Key, NDArray[Any]]:
        """One array of all that is finished, a row for each repetition."""
        return {key: found.arrays[name] for key, found in self.finished().items()}

    def summaries(self, measure: str) -> dict[Key, Summary]:
        """The sum at the horizon."""
        return {key: summarise(curves[:, -1]) for key, curves in self.load(measure).items()}

    def comparisons(self, measure: str) -> dict[Key, PairedComparison]:
        """The first policy against each other one, over the repetitions that both have."""
        finished, found = self.finished(), {}
        for setting in self.plan.settings:
            for policy in self.plan.policies[1:]:
                one, other = finished.get((setting, self.plan.policies[0])), finished.get((setting, policy))
                if one and other:
                    _, here, there = np.intersect1d(one.repetitions, other.repetitions, return_indices=True)
                    if len(here):
                        ends = one.arrays[measure][here, -1], other.arrays[measure][there, -1]
                        found[setting, policy] = compare(*ends)
        return found

    def ratios(self) -> dict[str, dict[Key, float]]:
        """The first measure's means in units of baselines, by the name of the ratio."""
        found: dict[str, dict[Key, float]] = {}
        for (setting, policy), summary in self.summaries(next(iter(self.plan.measures))).items():
            for name, value in self.plan.ratios(setting, summary.mean).items():
                found.setdefault(name, {})[setting, policy] = value
        return found

    def ratio_rows(self) -> list[dict[str, Any]]:
        """The ratios, one row each."""
        return [
            {**setting._asdict(), "policy": policy, "ratio": name, "value": value}
            for name, values in self.ratios().items()
            for (setting, policy), value in values.items()
        ]

    def costs(self) -> dict[Key, tuple[float, float]]:
        """µs per round, of the policy alone and with the loop around it."""
        policy, whole = self.load("policy_seconds"), self.load("seconds")
        scale = {key: 1e6 / self.plan.horizon_of(key[0]) for key in policy}
        return {key: (scale[key] * float(policy[key].mean()), scale[key] * float(whole[key].mean())) for key in policy}

    def write_tables(self) -> None:
        """Write what is derived from the blocks: curves, summary, paired comparisons, timing."""
        curves: dict[str, NDArray[Any]] = {}
        summary, paired, timing = [], [], []
        for measure in self.plan.measures:
            for (setting, policy), values in self.load(measure).items():
                where = ",".join(map(str, setting))
                curves[f"rounds|{where}"] = self.plan.checkpoints(setting)
                curves[f"{measure}|{where}|{policy}"] = values
            for (setting, policy), found in self.summaries(measure).items():
                summary.append({**setting._asdict(), "policy": policy, "measure": measure, **asdict(found)})
            paired += self.paired_rows(measure)
        for (setting, policy), (alone, whole) in self.costs().items():
            timing.append({**setting._asdict(), "policy": policy, "policy_us": round(alone, 2), "us": round(whole, 2)})
        state.write(self.folder / "curves.npz", "StudyCurves", {"parameters": self.plan.as_json()}, curves)
        for name, rows in (("summary", summary), ("ratios", self.ratio_rows()), ("paired", paired), ("timing", timing)):
            _write_csv(self.folder / f"{name}.csv", rows)

    def paired_rows(self, measure: str) -> list[dict[str, Any]]:
        """The paired comparisons, one row each."""
        return [
            {
                **setting._asdict(),
                "policy": self.plan.policies[0],
                "against": policy,
                "measure": measure,
                **asdict(found),
            }
            for (setting, policy), found in self.comparisons(measure).items()
        ]


def _joined(blocks: list[tuple[int, dict[str, NDArray[Any]]]]) -> Finished:
    """The repetitions of some blocks in order; of one that is there twice, the last block's."""
    place = {
        first + row: (block, row)
        for block, (first, arrays) in enumerate(blocks)
        for row in range(len(arrays["seconds"]))
    }
    order = sorted(place)
    arrays = {name: np.array([blocks[place[r][0]][1][name][place[r][1]] for r in order]) for name in blocks[0][1]}
    return Finished(np.array(order), arrays)


def _manifest(plan: Plan, sources: dict[str, str]) -> dict[str, Any]:
    return {
        "format": "preselect-study",
        "study": plan.kind,
        "version": preselect.__version__,
        "parameters": plan.as_json(),
        "sources": sources,
        "software": {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__},
        "machine": {"platform": platform.platform(), "processors": os.cpu_count()},
    }


def _check_same(folder: Path, manifest: dict[str, Any], plan: Plan, sources: dict[str, str]) -> None:
    version = manifest.get("version")
    if version != preselect.__version__:
        raise ResultsError(
            f"{folder} holds results of preselect {version}, this is {preselect.__version__}; choose another folder"
        )
    if manifest.get("study") != plan.kind:
        raise ResultsError(f"{folder} holds results of another study, {manifest.get('study')}; choose another folder")
    for name, value in plan.identity.items():
        kept = manifest["parameters"].get(name)
        if kept != value:
            raise ResultsError(f"{folder} holds results with {name}={kept}, asked for {value}; choose another folder")
    for policy, source in sources.items():
        if manifest.get("sources", {}).get(policy, source) != source:
            raise ResultsError(
                f"{folder} holds results of another {policy}, it has changed since; choose another folder"
            )


def _read(manifest: Path) -> dict[str, Any]:
    try:
        content = json.loads(manifest.read_text())
    except FileNotFoundError:
        raise ResultsError(f"{manifest.parent} holds no results of a study: there is no {manifest.name}") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read {manifest}: {error}") from None
    if (
        not isinstance(content, dict)
        or content.get("format") != "preselect-study"
        or not isinstance(content.get("parameters"), dict)
    ):
        raise ResultsError(f"{manifest} is not the manifest of a study")
    if "scenarios" in content["parameters"]:  # as settings were called before
        content["parameters"]["settings"] = content["parameters"].pop("scenarios")
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
