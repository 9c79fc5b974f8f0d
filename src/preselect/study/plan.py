"""Plans, which say what a study computes: settings × policies × repetitions in blocks, each with its own seeds.

What a setting is, and how its rounds are played, differs between studies: see the plans in `synthetic`, `saps`,
`aslib`, `choices` and `own` beside this file. A plan is a plain value; only `read_data` and `make_environment` read
data.

The file manifest.json in a folder of results says what was planned, so that results can be shown without the data,
extended, and computed again.
"""

import json
import os
import platform
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, get_type_hints

import numba
import numpy as np

import preselect
from preselect.arguments import as_plain
from preselect.environments import Environment
from preselect.errors import InputError, ResultsError
from preselect.files import write_whole
from preselect.policies import registry

_MANIFEST = "manifest.json"
_FORMAT = "preselect-study"
_OTHERS = ("sources", "command", "version", "software", "machine")  # fields of the manifest that are plain values
MAX_REPETITIONS = 1_000_000
_EXTENSIBLE = ("settings", "policies", "repetitions")  # the parameters by which a study in a folder may be extended

Setting: TypeAlias = Any  # a NamedTuple of plain values; k is one of them, the others depend on the study


class Measure(NamedTuple):
    """A quantity by which policies are judged; it is summed over the rounds, and less is better.

    Parameters
    ----------
    title : str
        Heading of its section in the report.
    meaning : str
        What one round adds to it, in half a sentence.
    label : str
        Label of the figure's vertical axis.
    """

    title: str
    meaning: str
    label: str


class SettingData(NamedTuple):
    """What a study knows about the data of a setting. It is kept with the results, which then do not need the data.

    Parameters
    ----------
    rounds : int
        Rounds of a repetition.
    d : int
        Number of joint features.
    baselines : dict of dict of float
        By measure and name: the total, over all rounds, of a choice that learns nothing. May be empty.
    """

    rounds: int
    d: int
    baselines: dict[str, dict[str, float]]

    def resembles(self, other: Self) -> bool:
        """Whether the same data may be behind both; totals may differ as they do between versions of numpy.

        Parameters
        ----------
        other : SettingData
            What is known about the other data.
        """
        ours, theirs = (
            {(measure, name): value for measure, totals in data.baselines.items() for name, value in totals.items()}
            for data in (self, other)
        )
        same = ours.keys() == theirs.keys() and np.allclose([*ours.values()], [theirs[key] for key in ours], rtol=1e-6)
        return self[:2] == other[:2] and same


@dataclass(frozen=True)
class Plan(ABC):
    """All parameters of a study. Those in `identity` determine each repetition; the others say how many there are.

    A subclass declares the class variables below and its own parameters, and defines the abstract methods.

    Parameters
    ----------
    settings : tuple
        The settings in which every policy is played.
    policies : tuple of str
        Policies as `preselect.policies.registry` reads them; the first is compared with the others.
    repetitions : int
        Repetitions of each policy in each setting, from 1 to 1,000,000.
    seed : int
        Seed of all random numbers; 0 or more.
    block : int
        Repetitions that are computed and written together, at least 1.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    heading: ClassVar[str]  # of a column of settings
    setting_type: ClassVar[type[Any]]
    shares_scale: ClassVar[bool] = True  # whether the numbers in the panels of one row of a figure are comparable
    quotients: ClassVar[dict[str, tuple[str, str]]] = {}  # for each name: two arrays of blocks, whose sums are divided

    settings: tuple[Setting, ...]
    policies: tuple[str, ...]
    repetitions: int
    seed: int
    block: int

    def __post_init__(self) -> None:
        if not self.settings or not self.policies:
            raise InputError("a study needs at least one setting and one policy")
        object.__setattr__(self, "settings", tuple(map(self.make_plain, self.settings)))
        for name in ("repetitions", "block", "seed", "horizon"):
            if hasattr(self, name):
                object.__setattr__(self, name, as_plain(getattr(self, name), int, name))
        for name in ("repetitions", "block"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; a study needs at least 1")
        if self.repetitions > MAX_REPETITIONS:
            raise InputError(f"repetitions is {self.repetitions}; a study has at most {MAX_REPETITIONS}")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; use a non-negative integer")

    @property
    def identity(self) -> dict[str, Any]:
        """The parameters that must agree for results to belong together, as plain values."""
        found = {name: value for name, value in asdict(self).items() if name not in _EXTENSIBLE}
        plain: dict[str, Any] = json.loads(json.dumps(found))
        return plain

    @property
    @abstractmethod
    def measures(self) -> dict[str, Measure]:
        """The measures by which policies are judged, the most important one first; mostly a class variable."""

    @abstractmethod
    def read_data(self, setting: Setting) -> SettingData:
        """Read a setting's data; raise an InputError if the setting does not fit them, such as too large a k."""

    @abstractmethod
    def make_environment(self, setting: Setting, seed: np.random.SeedSequence) -> Environment:
        """Return the rounds of one repetition."""

    @abstractmethod
    def describe(self, rounds: int) -> str:
        """Describe in a few words what was varied, for figures and reports; `rounds` is the length of a repetition."""

    @classmethod
    def make_plain(cls, setting: Setting) -> Setting:
        """Return a setting with plain values: what numpy calls an integer is none in a manifest."""
        kinds = get_type_hints(cls.setting_type)
        return cls.setting_type(
            *(as_plain(value, kinds[name], name) for name, value in zip(kinds, setting, strict=True))
        )

    @classmethod
    def normalise(cls, setting: Setting) -> Setting:
        """Return a setting in the form that the command uses, as in scenario for ./scenario/; by default unchanged."""
        return setting

    def list_seeds(self, setting: Setting) -> tuple[int | str, ...]:
        """Return the values of a setting that, with plan and repetition, determine random numbers: by default all."""
        return tuple(setting)

    def name_group(self, setting: Setting) -> str:
        """Describe the group of settings to which this one belongs when medians are taken."""
        return f"k = {setting.k}"

    def describe_setting(self, setting: Setting) -> str:
        """Return the title of a setting's panel in figures."""
        return str(setting)

    def digest_sources(self) -> dict[str, str]:
        """Return digests of the user's own files: results from before and after a change do not belong together."""
        return {policy: source for policy in self.policies if (source := registry.digest_source(policy))}

    def compute_ratios(self, data: SettingData, total: float) -> dict[str, float]:  # noqa: ARG002
        """Return a total of the first measure relative to the baselines, if there is a customary way to do so."""
        return {}

    def check(self) -> dict[Setting, SettingData]:
        """Read the data of every setting and construct every policy, to find mistakes before anything is computed."""
        policies = {policy: registry.parse(policy) for policy in self.policies}
        data = {setting: self.read_data(setting) for setting in self.settings}
        for policy, (make, parameters) in policies.items():
            for d in {found.d for found in data.values()}:
                try:
                    make(**{"d": d, "seed": 0, **parameters})
                except TypeError as error:
                    wrong = f"policy {policy} cannot be made with d, seed and its parameters"
                    raise InputError(f"{wrong}: {error}") from None
        return data

    def join(self, other: Self) -> Self:
        """Return this plan extended by the settings, policies and repetitions of another one with the same identity."""
        return replace(
            self,
            settings=tuple(dict.fromkeys(self.settings + other.settings)),
            policies=tuple(dict.fromkeys(self.policies + other.policies)),
            repetitions=max(self.repetitions, other.repetitions),
        )

    def write_command(self, out: str | PathLike[str]) -> str:
        """Return the command that computes the study again, ready to be pasted into a shell; empty if there is none.

        Parameters
        ----------
        out : str or path
            Folder for the results.
        """
        names = [*self.policies, *(value for setting in self.settings for value in setting)]
        if any(str(name).startswith("__main__:") for name in names):
            return ""  # no command can import from a notebook
        lines = self._write_arguments(["--out", str(out)])
        return " &&\n".join(shlex.join(["preselect", "study", self.kind, *line]) for line in lines)

    def _write_arguments(self, out: list[str]) -> list[list[str]]:  # noqa: ARG002
        """Return the arguments of each necessary command, including `out`."""
        return []

    def _write_options(self, default: "Plan", names: dict[str, str]) -> list[str]:
        """Write --policies and those options whose values are not the default; `names` maps parameters to options."""
        names = {"policies": "policies", **names, "repetitions": "reps", "seed": "seed"}
        changed = [name for name in names if getattr(self, name) != getattr(default, name)]
        return [part for name in changed for part in (f"--{names[name]}", _write_value(getattr(self, name)))]

    def as_json(self) -> dict[str, Any]:
        """Return all parameters as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, kind: str, parameters: dict[str, Any]) -> "Plan":
        """Return the plan of a kind with the parameters that `as_json` gave.

        The kinds are those of this library, which `preselect.study` imports, and other subclasses that have been
        imported.
        """
        known = {plan.kind: plan for plan in _find_subclasses(cls)}
        if kind not in known:
            raise ResultsError(f"there is no study called {kind!r}; known are {', '.join(known)}")
        settings = tuple(known[kind].setting_type(*values) for values in parameters["settings"])
        return known[kind](**{**parameters, "settings": settings, "policies": tuple(parameters["policies"])})


def _write_value(value: object) -> str:
    return write_list(value) if isinstance(value, tuple) else str(value)


def write_list(values: Iterable[object]) -> str:
    """Write values in the form that options take, with commas between them."""
    return ",".join(map(str, values))


def group_by_k(settings: Iterable[tuple[str, int]], options: list[str]) -> list[list[str]]:
    """Return the arguments of one command for each group of sources with the same values of k."""
    choices: dict[str, list[int]] = {}
    for source, k in settings:
        choices.setdefault(source, []).append(k)
    groups: dict[str, list[str]] = {}
    for source, ks in choices.items():
        groups.setdefault(write_list(ks), []).append(source)
    return [["--k", ks, *options, *_guard(sources)] for ks, sources in groups.items()]


def _guard(sources: list[str]) -> list[str]:
    """Add -- so that names of files and folders are not taken for options."""
    return ["--", *sources] if any(source.startswith("-") for source in sources) else sources


def _find_software() -> dict[str, str]:
    return {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}


def _find_machine() -> dict[str, Any]:
    return {"platform": platform.platform(), "processors": os.cpu_count()}


@dataclass(frozen=True)
class Manifest:
    """What a folder of results holds."""

    plan: Plan
    data: dict[Setting, SettingData]
    sources: dict[str, str] = field(default_factory=dict)  # digests of the user's files, by policy or source
    command: str = ""  # the command that computes the study again; empty if no command started it
    version: str = preselect.__version__
    software: dict[str, str] = field(default_factory=_find_software)
    machine: dict[str, Any] = field(default_factory=_find_machine)

    @classmethod
    def gather(cls, plan: Plan, folder: Path) -> Self:
        """Check a plan and make its manifest, joined with the manifest that the folder may already hold."""
        data = plan.check()
        manifest = cls(plan, data, plan.digest_sources())
        return manifest._join(folder) if (folder / _MANIFEST).exists() else manifest

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest in a folder."""
        content = _read_content(folder / _MANIFEST)
        try:
            plan = Plan.from_json(content["study"], content["parameters"])
            data = {plan.setting_type(*found.pop("setting")): SettingData(**found) for found in content.get("data", [])}
            others = {name: content[name] for name in _OTHERS if name in content}
            return cls(plan, data, **others)
        except (TypeError, KeyError, AttributeError) as error:
            wrong = f"{type(error).__name__}: {error}"
            raise ResultsError(
                f"{folder / _MANIFEST} cannot be read by preselect {preselect.__version__} ({wrong})"
            ) from None

    def write(self, folder: Path) -> None:
        """Write the manifest into a folder."""
        write_whole(folder / _MANIFEST, f"{self}\n")

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
        """Return this manifest extended by what a folder already holds; raise an error if they do not fit."""
        self._check_fits(folder, _read_content(folder / _MANIFEST))
        kept = type(self).read(folder)
        for setting in self.data.keys() & kept.data.keys():
            if not self.data[setting].resembles(kept.data[setting]):
                raise ResultsError(
                    f"{folder} holds results of {setting}, whose data have changed since; choose another folder"
                )
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
        for name, source in self.sources.items():
            if content.get("sources", {}).get(name, source) != source:
                raise ResultsError(f"{folder} holds results of {name}, which has changed since; {elsewhere}")


def _read_content(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise ResultsError(f"{path.parent} holds no results of a study: there is no {path.name}") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read {path}: {error}") from None
    ours = isinstance(content, dict) and content.get("format") == _FORMAT
    if not ours or not isinstance(content.get("parameters"), dict):
        raise ResultsError(f"{path} is not the manifest of a study")
    if "scenarios" in content["parameters"]:  # early manifests call settings scenarios
        content["parameters"]["settings"] = content["parameters"].pop("scenarios")
    return content


def find_plan_type(setting_type: type[Any]) -> type[Plan]:
    """Return the kind of plan that plays settings of a type."""
    found = {plan.setting_type: plan for plan in _find_subclasses(Plan)}
    if setting_type not in found:
        known = ", ".join(one.__name__ for one in found)
        raise InputError(f"{setting_type.__name__} is not the setting of a study; known are {known}")
    return found[setting_type]


def _find_subclasses(plan: Any) -> Iterator[type[Plan]]:
    for subclass in plan.__subclasses__():
        yield from _find_subclasses(subclass)
        yield subclass
