"""manifest.json: what a folder of results holds, so that it can be shown without the data and computed again."""

import json
import os
import platform
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numba
import numpy as np

import preselect
from preselect.errors import ResultsError
from preselect.files import write_whole
from preselect.policies import registry
from preselect.study.plan import Plan, Setting, SettingData

_NAME = "manifest.json"
_FORMAT = "preselect-study"
_OTHERS = ("sources", "command", "version", "software", "machine")  # plain values, written as they are


def _find_software() -> dict[str, str]:
    return {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}


def _find_machine() -> dict[str, Any]:
    return {"platform": platform.platform(), "processors": os.cpu_count()}


@dataclass(frozen=True)
class Manifest:
    """What a folder of results holds."""

    plan: Plan
    data: dict[Setting, SettingData]
    sources: dict[str, str] = field(default_factory=dict)  # digests of the files of the user's own policies
    command: str = ""  # computes the study again; empty if it was not started by a command
    version: str = preselect.__version__
    software: dict[str, str] = field(default_factory=_find_software)
    machine: dict[str, Any] = field(default_factory=_find_machine)

    @classmethod
    def gather(cls, plan: Plan, folder: Path) -> Self:
        """Check a plan and make its manifest, joined with the one that the folder already holds."""
        data = plan.check()
        sources = {policy: source for policy in plan.policies if (source := registry.digest_source(policy))}
        manifest = cls(plan, data, sources)
        return manifest._join(folder) if (folder / _NAME).exists() else manifest

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest in a folder."""
        content = _read_content(folder / _NAME)
        try:
            plan = Plan.from_json(content["study"], content["parameters"])
            data = {plan.setting_type(*found.pop("setting")): SettingData(**found) for found in content.get("data", [])}
            others = {name: content[name] for name in _OTHERS if name in content}
            return cls(plan, data, **others)
        except (TypeError, KeyError, AttributeError) as error:
            wrong = f"{type(error).__name__}: {error}"
            raise ResultsError(
                f"{folder / _NAME} cannot be read by preselect {preselect.__version__} ({wrong})"
            ) from None

    def write(self, folder: Path) -> None:
        """Write the manifest into a folder."""
        write_whole(folder / _NAME, f"{self}\n")

    def __str__(self) -> str:
        return json.dumps(self._as_json(), indent=2, ensure_ascii=False)

    def _as_json(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "study": self.plan.kind,
            "parameters": self.plan.as_json(),
            "data": [{"setting": list(setting), **found._asdict()} for setting, found in self.data.items()],
            **{name: getattr(self, name) for name in _OTHERS},
        }

    def _join(self, folder: Path) -> Self:
        """Return this manifest with what a folder already holds added, or raise an error if it does not fit."""
        self._check_fits(folder, _read_content(folder / _NAME))
        kept = type(self).read(folder)
        data, sources = {**kept.data, **self.data}, {**kept.sources, **self.sources}
        return replace(self, plan=self.plan.join(kept.plan), data=data, sources=sources)

    def _check_fits(self, folder: Path, content: dict[str, Any]) -> None:
        elsewhere = "choose another folder"
        if content.get("version") != self.version:
            other = f"preselect {content.get('version')}, and this is {self.version}"
            raise ResultsError(f"{folder} holds results of {other}; {elsewhere}")
        if content.get("study") != self.plan.kind:
            raise ResultsError(f"{folder} holds results of another study, {content.get('study')}; {elsewhere}")
        for name, value in self.plan.identity.items():
            kept = content["parameters"].get(name)
            if kept != value:
                raise ResultsError(f"{folder} holds results with {name}={kept}, not {value}; {elsewhere}")
        for policy, source in self.sources.items():
            if content.get("sources", {}).get(policy, source) != source:
                raise ResultsError(f"{folder} holds results of {policy}, whose code has changed since; {elsewhere}")


def _read_content(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise ResultsError(f"{path.parent} holds no results of a study: there is no {path.name}") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read {path}: {error}") from None
    ours = isinstance(content, dict) and content.get("format") == _FORMAT
    if not ours or not isinstance(content.get("parameters"), dict):
        raise ResultsError(f"{path} is not the manifest of a study")
    if "scenarios" in content["parameters"]:  # what settings were called at first
        content["parameters"]["settings"] = content["parameters"].pop("scenarios")
    return content
