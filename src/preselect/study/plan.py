"""What a study computes: settings × policies × blocks of repetitions, each repetition with seeds of its own.

What a setting is, and how rounds are played in it, differs from study to study: see the plans in `synthetic`, `saps`
and `aslib` beside this file. A plan is a plain value; only `check` and `Task.start` read data.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.environments import Environment
from preselect.errors import InputError, ResultsError
from preselect.policies import Policy, registry

_CURVE_POINTS = 200
_EXTENSIBLE = ("settings", "policies", "repetitions")  # a study in a folder may grow by these

Setting: TypeAlias = Any  # a NamedTuple of plain values, k among them; the rest depends on the study


class Measure(NamedTuple):
    """A quantity that is summed over the rounds and by which policies are judged; less is better.

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
    """What a study knows about the data of a setting. Kept with the results, so that they outlive the data.

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


@dataclass(frozen=True)
class Plan(ABC):
    """All parameters of a study. Those in `identity` determine each repetition; the others, how many there are.

    A subclass declares the class variables below and its own parameters, and defines the abstract methods.

    Parameters
    ----------
    settings : tuple
        The settings in which every policy is played.
    policies : tuple of str
        Policies as `preselect.policies.registry` reads them; the first is compared with the others.
    repetitions : int
        Repetitions of each policy in each setting, at least 1.
    seed : int
        Determines everything random; 0 or more.
    block : int
        Repetitions that are computed and written together, at least 1.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    heading: ClassVar[str]  # of a column of settings
    measures: ClassVar[dict[str, Measure]]
    setting_type: ClassVar[type[Any]]
    shares_scale: ClassVar[bool] = True  # whether the numbers in the panels of one row of a figure are comparable

    settings: tuple[Setting, ...]
    policies: tuple[str, ...]
    repetitions: int
    seed: int
    block: int

    def __post_init__(self) -> None:
        if not self.settings or not self.policies:
            raise InputError("a study needs at least one setting and one policy")
        for name in ("repetitions", "block"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; a study needs at least 1")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; use a non-negative integer")

    @property
    def identity(self) -> dict[str, Any]:
        """The parameters that must agree for results to belong together, as plain values."""
        return {name: value for name, value in asdict(self).items() if name not in _EXTENSIBLE}

    @abstractmethod
    def read_data(self, setting: Setting) -> SettingData:
        """Read a setting's data; an InputError says what does not fit them, such as too large a k."""

    @abstractmethod
    def make_environment(self, setting: Setting, seed: np.random.SeedSequence) -> Environment:
        """Return the rounds of one repetition."""

    @abstractmethod
    def describe(self, rounds: int) -> str:
        """Say in a few words what was varied and how, for figures and reports; `rounds` are those of a repetition."""

    def describe_setting(self, setting: Setting) -> str:
        """Return the title of a setting's panel in figures."""
        return str(setting)

    def compute_ratios(self, data: SettingData, total: float) -> dict[str, float]:  # noqa: ARG002
        """Return a total of the first measure relative to the baselines, where there is a customary way to do so."""
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

    def make_tasks(self) -> Iterator["Task"]:
        """Yield the blocks so that every policy and setting has some repetitions before any has all."""
        for first in range(0, self.repetitions, self.block):
            for setting in self.settings:
                for policy in self.policies:
                    yield Task(self, setting, policy, first, min(first + self.block, self.repetitions))

    def join(self, other: Self) -> Self:
        """Return this plan with the settings, policies and repetitions of another of the same identity added."""
        return replace(
            self,
            settings=tuple(dict.fromkeys(self.settings + other.settings)),
            policies=tuple(dict.fromkeys(self.policies + other.policies)),
            repetitions=max(self.repetitions, other.repetitions),
        )

    def as_json(self) -> dict[str, Any]:
        """Return all parameters as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, kind: str, parameters: dict[str, Any]) -> "Plan":
        """Return the plan of a kind with the parameters that `as_json` gave.

        Known are the three of this library, which `preselect.study` imports, and every other subclass so far imported.
        """
        known = {plan.kind: plan for plan in _find_subclasses(cls)}
        if kind not in known:
            raise ResultsError(f"there is no study called {kind!r}; known are {', '.join(known)}")
        settings = tuple(known[kind].setting_type(*values) for values in parameters["settings"])
        return known[kind](**{**parameters, "settings": settings, "policies": tuple(parameters["policies"])})


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

    def start(self, repetition: int) -> tuple[Policy, Environment]:
        """Return the policy and the environment of a repetition; seeds are the same for every policy.

        Policies are therefore compared on common random numbers.
        """
        numbers = [value if isinstance(value, int) else _digest(value) for value in self.setting]
        of_environment, of_policy = np.random.SeedSequence((self.plan.seed, *numbers, repetition)).spawn(2)
        environment = self.plan.make_environment(self.setting, of_environment)
        make, parameters = registry.parse(self.policy)
        return make(**{"d": environment.d, "seed": int(of_policy.generate_state(1)[0]), **parameters}), environment


def _find_subclasses(plan: Any) -> Iterator[type[Plan]]:
    for subclass in plan.__subclasses__():
        yield from _find_subclasses(subclass)
        yield subclass


def _simplify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def space_checkpoints(rounds: int) -> NDArray[np.int64]:
    """Return the rounds at which sums are kept: at most 200, evenly spaced, the last one included."""
    return np.unique(np.linspace(1, rounds, min(rounds, _CURVE_POINTS)).round().astype(np.int64))
