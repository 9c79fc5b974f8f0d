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
from preselect.study.plan import Facts, Plan, Setting
from preselect.study.plans import find_plan

_FORMAT = "preselect-study"
_OTHERS = ("sources", "command", "version", "software", "machine")  # what is written as it is


def _find_software() -> dict[str, str]:
    return {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}


def _find_machine() -> dict[str, Any]:
    return {"platform": platform.platform(), "processors": os.cpu_count()}


@dataclass(frozen=True)
class Manifest:
    """What a folder of results holds."""

    plan: Plan
    facts: dict[Setting, Facts]
    sources: dict[str, str] = field(default_factory=dict)  # digests of files with policies of one's own
    command: str = ""  # computes the study again; empty if it was not started by a command
    version: str = preselect.__version__
    software: dict[str, str] = field(default_factory=_find_software)
    machine: dict[str, Any] = field(default_factory=_find_machine)

    @classmethod
    def gather(cls, plan: Plan) -> Self:
        """Make the manifest of a new study; reads its data."""
        sources = {policy: registry.digest_source(policy) for policy in plan.policies if registry.digest_source(policy)}
        return cls(plan, {setting: plan.gather_facts(setting) for setting in plan.settings}, sources)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest in a folder."""
        content = _read_content(folder / "manifest.json")
        try:
            plan = find_plan(content["study"]).from_json(content["parameters"])
            facts = {plan.setting_type(*found.pop("setting")): Facts(**found) for found in content.get("facts", [])}
            others = {name: content[name] for name in _OTHERS if name in content}
            return cls(plan, facts, **others)
        except (TypeError, KeyError, AttributeError) as error:
            wrong = f"{type(error).__name__}: {error}"
            raise ResultsError(
                f"{folder / 'manifest.json'} cannot be read by preselect {preselect.__version__} ({wrong})"
            ) from None

    def write(self, folder: Path) -> None:
        """Write the manifest into a folder."""
        write_whole(folder / "manifest.json", f"{self}\n")

    def __str__(self) -> str:
        return json.dumps(self._as_json(), indent=2, ensure_ascii=False)

    def _as_json(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "study": self.plan.kind,
            "parameters": self.plan.as_json(),
            "facts": [{"setting": list(setting), **found._asdict()} for setting, found in self.facts.items()],
            **{name: getattr(self, name) for name in _OTHERS},
        }

    def join(self, folder: Path) -> Self:
        """Return this manifest with what a folder already holds added, or raise an error if it does not fit."""
        self._check_fits(folder, _read_content(folder / "manifest.json"))
        kept = type(self).read(folder)
        facts, sources = {**kept.facts, **self.facts}, {**kept.sources, **self.sources}
        return replace(self, plan=self.plan.join(kept.plan), facts=facts, sources=sources)

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
