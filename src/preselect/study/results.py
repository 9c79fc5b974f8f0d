"""Results of a study in a folder: a manifest, one file per finished block, and tables and figures made from them.

manifest.json    version, parameters, what is known about the data, the command to compute it again, software
blocks/          one file per (setting, policy, block of repetitions), written when it is finished
curves.npz       what was measured, summed up to the checkpoints, by setting and policy
summary.csv      the sums at the horizon, one row per setting and policy
ratios.csv       the same relative to baselines, for studies in which that is customary
paired.csv       the first policy compared with each other one, on common random numbers
timing.csv       µs per round; the only table that differs from run to run
*.png, *.svg     a figure for each measure
report.html      all of it on one page
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect import state
from preselect.arguments import show
from preselect.errors import InputError, ResultsError, StateFileError
from preselect.study.plan import Manifest, Plan, Setting, SettingData
from preselect.study.statistics import PairedComparison, Summary, compare, summarise

_KIND = "StudyBlock"
_CURVE_POINTS = 200
_OURS = (
    "blocks",
    "curves.npz",
    "summary.csv",
    "ratios.csv",
    "paired.csv",
    "timing.csv",
    "report.html",
    "after-races.png",
)
_Key: TypeAlias = tuple[Setting, str]
_Arrays: TypeAlias = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """A block of repetitions of one policy in one setting: computed, written and lost as a whole."""

    plan: Plan
    setting: Setting
    policy: str
    first: int
    last: int  # exclusive

    def __str__(self) -> str:
        return f"{self.policy} {self.setting}"

    @property
    def file(self) -> str:
        """Name of its file in the folder of blocks."""
        digest = hashlib.sha256(self.policy.encode()).hexdigest()[:8]
        where = "-".join(f"{name}{value}" for name, value in self.setting._asdict().items())
        return f"{_simplify(where)}/{_simplify(self.policy)}-{digest}/{self.first:05d}-{self.last:05d}.npz"

    @property
    def header(self) -> dict[str, Any]:
        """Everything that determines the block, as plain values."""
        block = {"policy": self.policy, "first": self.first, "last": self.last}
        return {"study": self.plan.kind, **self.plan.identity, "setting": list(self.setting), **block}


@dataclass(frozen=True)
class Finished:
    """The finished repetitions of one policy in one setting, and arrays with a row for each of them."""

    repetitions: NDArray[np.int64]
    arrays: _Arrays


class Results:
    """The results of a study in a folder, complete or in part. Use `create` or `open`.

    Parameters
    ----------
    folder : str or path
        Where they are.
    manifest : Manifest
        What they are results of.
    """

    def __init__(self, folder: str | PathLike[str], manifest: Manifest) -> None:
        self.folder = Path(folder)
        self.manifest = manifest
        self._finished: dict[_Key, Finished] | None = None
        self._compared: dict[str, dict[_Key, PairedComparison]] = {}

    @classmethod
    def create(cls, folder: str | PathLike[str], plan: Plan) -> Self:
        """Prepare a folder for a plan; if it holds results of the same study, the plan is added to them.

        Parameters
        ----------
        folder : str or path
            A folder, which is created if necessary. It may hold results of a study with the same `identity`, finished
            or not, but no other files with names that results use.
        plan : Plan
            What is to be computed. Its data are read and its policies constructed, to find mistakes early.
        """
        folder = _expect_folder(folder)
        manifest = Manifest.gather(plan, folder)
        _refuse_foreign_files(folder, plan)
        try:
            (folder / "blocks").mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: a name with characters that no folder can have
            reason = getattr(error, "strerror", None) or error
            raise ResultsError(f"cannot write results to {show(str(folder))[1:-1]}: {reason}") from None
        results = cls(folder, manifest)
        results._write_manifest()
        return results

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Self:
        """Open the results in a folder; the data of the study are no longer needed.

        Parameters
        ----------
        folder : str or path
            A folder with a manifest.json.
        """
        return cls(folder, Manifest.read(_expect_folder(folder)))

    @property
    def plan(self) -> Plan:
        """Everything that was to be computed in this folder."""
        return self.manifest.plan

    def record_command(self, command: str) -> None:
        """Keep the command that computes the study again, for the report."""
        self.manifest = replace(self.manifest, command=command)
        self._write_manifest()

    def _write_manifest(self) -> None:
        try:
            self.manifest.write(self.folder)
        except InputError as error:
            raise ResultsError(f"cannot write results to {self.folder}: {error}") from None

    def find_data(self, setting: Setting) -> SettingData:
        """Return what is known about a setting's data, from the manifest or else from the data themselves."""
        if setting not in self.manifest.data:
            try:
                self.manifest.data[setting] = self.plan.read_data(setting)
            except (InputError, OSError) as error:
                raise ResultsError(
                    f"{self.folder} does not describe the data of {setting}, and they cannot be read ({error}); "
                    "move them back to where they were, or compute the study again"
                ) from None
        return self.manifest.data[setting]

    def space_checkpoints(self, setting: Setting) -> NDArray[np.int64]:
        """Return the rounds at which sums are kept."""
        return space_checkpoints(self.find_data(setting).rounds)

    def read_finished(self) -> dict[_Key, Finished]:
        """Read all finished repetitions, once; ignore blocks that are damaged or hold something else."""
        if self._finished is None:
            keys = [(setting, policy) for setting in self.plan.settings for policy in self.plan.policies]
            blocks = {key: self._read_blocks(Task(self.plan, *key, 0, 1)) for key in keys}
            self._finished = {key: _join(found) for key, found in blocks.items() if found}
        return self._finished

    def _read_blocks(self, task: Task) -> list[tuple[int, _Arrays]]:
        """Read the blocks of a policy in a setting: the first repetition and the arrays of each."""
        paths = sorted((self.folder / "blocks" / task.file).parent.glob("[0-9]*.npz"))
        points = len(self.space_checkpoints(task.setting)) if paths else 0
        return [block for path in paths if (block := self._read_block(path, task, points))]

    def _read_block(self, path: Path, task: Task, points: int) -> tuple[int, _Arrays] | None:
        try:
            file = state.read(path).expect(_KIND)
            header = {"setting" if name == "scenario" else name: value for name, value in file.header["task"].items()}
            first, last = header["first"], header["last"]
            same = header == json.loads(json.dumps(replace(task, first=first, last=last).header))
            shapes = {file.arrays[measure].shape for measure in self.plan.measures}
            return (int(first), file.arrays) if same and shapes == {(last - first, points)} else None
        except (StateFileError, KeyError, TypeError, AttributeError):
            return None

    def count_blocks(self, plan: Plan) -> tuple[int, int]:
        """Return how many blocks of a plan are finished, and how many there are.

        Parameters
        ----------
        plan : Plan
            The plan of these results, or a part of it.
        """
        total = sum(1 for _ in _make_tasks(plan))
        return total - len(self.find_pending(plan)), total

    def find_pending(self, plan: Plan) -> list[Task]:
        """Return the tasks of a plan that are not finished.

        Parameters
        ----------
        plan : Plan
            The plan of these results, or a part of it.
        """
        finished, tasks = self.read_finished(), []
        for task in _make_tasks(plan):
            have = finished.get((task.setting, task.policy))
            missing = sorted(set(range(task.first, task.last)) - set(have.repetitions.tolist() if have else ()))
            if missing:
                tasks.append(replace(task, first=missing[0], last=missing[-1] + 1))
        return tasks

    def write_block(self, task: Task, arrays: dict[str, NDArray[Any]]) -> None:
        """Write a finished block, whole or not at all.

        Parameters
        ----------
        task : Task
            What was computed.
        arrays : dict of array
            Each measure up to the checkpoints, "seconds" and "policy_seconds", with a row for each repetition.
        """
        self._finished = None
        self._compared.clear()
        path = self.folder / "blocks" / task.file
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            state.write(path, _KIND, {"task": task.header}, arrays)
        except OSError as error:
            raise ResultsError(f"cannot write results to {path}: {error.strerror or error}") from None

    def load(self, name: str) -> dict[_Key, NDArray[Any]]:
        """Return one array of every finished policy and setting, with a row for each repetition.

        Parameters
        ----------
        name : str
            A measure, "seconds" or "policy_seconds".
        """
        return {key: found.arrays[name] for key, found in self.read_finished().items()}

    def summarise(self, measure: str) -> dict[_Key, Summary]:
        """Summarise the sums at the horizon over the repetitions.

        Parameters
        ----------
        measure : str
            A key of `plan.measures`.
        """
        return {key: summarise(curves[:, -1]) for key, curves in self.load(measure).items()}

    def compare(self, measure: str) -> dict[_Key, PairedComparison]:
        """Compare the first policy with each of the others, over the repetitions that both have.

        p-values are adjusted for all of these comparisons, over policies and settings.

        Parameters
        ----------
        measure : str
            A key of `plan.measures`.

        """
        if measure not in self._compared:
            keys = [(setting, policy) for setting in self.plan.settings for policy in self.plan.policies[1:]]
            pairs = {key: self._pair(measure, *key) for key in keys}
            self._compared[measure] = compare({key: ends for key, ends in pairs.items() if len(ends[0])})
        return self._compared[measure]

    def _pair(self, measure: str, setting: Setting, policy: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the sums at the horizon of the first policy and of another, for the repetitions that both have."""
        first, other = (self.read_finished().get((setting, name)) for name in (self.plan.policies[0], policy))
        if first is None or other is None:
            return np.empty(0), np.empty(0)
        _, here, there = np.intersect1d(first.repetitions, other.repetitions, return_indices=True)
        return first.arrays[measure][here, -1], other.arrays[measure][there, -1]

    def compute_ratios(self) -> dict[str, dict[_Key, float]]:
        """Return, by name, the ratios of the first measure's means to baselines, and the quotients."""
        found: dict[str, dict[_Key, float]] = {}
        for (setting, policy), summary in self.summarise(next(iter(self.plan.measures))).items():
            for name, value in self.plan.compute_ratios(self.find_data(setting), summary.mean).items():
                found.setdefault(name, {})[setting, policy] = value
        for name, (above, below) in self.plan.quotients.items():
            over, under = self.load(above), self.load(below)
            shares = {key: float(over[key][:, -1].sum() / under[key][:, -1].sum()) for key in over}
            found |= {name: shares} if any(shares.values()) else {}
        return found

    def compute_costs(self) -> dict[_Key, tuple[float, float]]:
        """Return µs per round, of the policy alone and with the loop around it."""
        policy, whole = self.load("policy_seconds"), self.load("seconds")
        scale = {key: 1e6 / self.find_data(key[0]).rounds for key in policy}
        return {key: (scale[key] * float(policy[key].mean()), scale[key] * float(whole[key].mean())) for key in policy}


def space_checkpoints(rounds: int) -> NDArray[np.int64]:
    """Return the rounds at which sums are kept: at most 200, evenly spaced, the last one included."""
    return np.unique(np.linspace(1, rounds, min(rounds, _CURVE_POINTS)).round().astype(np.int64))


def _make_tasks(plan: Plan) -> Iterator[Task]:
    """Yield the blocks in an order that gives every policy and setting some repetitions before any has all."""
    for first in range(0, plan.repetitions, plan.block):
        for setting in plan.settings:
            for policy in plan.policies:
                yield Task(plan, setting, policy, first, min(first + plan.block, plan.repetitions))


def _simplify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _expect_folder(folder: str | PathLike[str]) -> Path:
    if not isinstance(folder, (str, PathLike)) or not os.fspath(folder):
        raise InputError(f"the folder of results is {show(folder)}; use a text or a path, such as '.' for this folder")
    return Path(folder)


def name_figure(measure: str) -> str:
    """Return the file name of a measure's figure, without suffix.

    >>> name_figure("top_k")
    'top-k'
    """
    return measure.replace("_", "-")


def _refuse_foreign_files(folder: Path, plan: Plan) -> None:
    """Raise a ResultsError if a folder without a manifest holds files that would be overwritten."""
    figures = [f"{name_figure(measure)}.{suffix}" for measure in plan.measures for suffix in ("png", "svg")]
    for name in (*_OURS, *figures):
        if (folder / name).exists() and not (folder / "manifest.json").exists():
            raise ResultsError(f"{folder} has a {name}, but no manifest.json of a study; choose another folder")


def _join(blocks: list[tuple[int, _Arrays]]) -> Finished:
    """Put the repetitions of blocks in order; the last block wins for duplicates."""
    sources = {first + row: (arrays, row) for first, arrays in blocks for row in range(len(arrays["seconds"]))}
    order = sorted(sources)
    joined = {name: np.array([sources[r][0][name][sources[r][1]] for r in order]) for name in blocks[0][1]}
    return Finished(np.array(order), joined)
