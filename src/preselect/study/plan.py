"""What a study is to compute: settings × policies × blocks of repetitions, each with seeds of its own.

What a setting is, and how one repetition of a policy in it is played, differs from study to study: see the plans in
`synthetic`, `saps` and `aslib` beside this file.
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
from preselect.errors import InputError
from preselect.policies import registry

CURVE_POINTS = 200

Setting: TypeAlias = Any  # a NamedTuple of plain values with k among them; what it holds is the plan's business


class Measure(NamedTuple):
    """Something that adds up over the rounds, by which policies are judged: less is better."""

    title: str
    meaning: str
    label: str


@dataclass(frozen=True)
class Plan(ABC):
    """All parameters of a study. Those in `identity` decide what a repetition gives; the others, how many there are."""

    kind: ClassVar[str]
    title: ClassVar[str]
    heading: ClassVar[str]  # of a column of settings
    measures: ClassVar[dict[str, Measure]]
    kinds: ClassVar[dict[str, type["Plan"]]] = {}

    settings: tuple[Setting, ...]
    policies: tuple[str, ...]
    repetitions: int
    seed: int
    block: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Plan.kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        if not self.settings or not self.policies:
            raise InputError("a study needs at least one setting and one policy")
        for name in ("repetitions", "block"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise InputError(f"seed must not be negative, got {self.seed}")

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What must agree for results to belong together, as plain values."""

    @abstractmethod
    def horizon_of(self, setting: Setting) -> int:
        """Rounds of a repetition."""

    @abstractmethod
    def features_of(self, setting: Setting) -> int:
        """Number of joint features."""

    @abstractmethod
    def environment(self, setting: Setting, seed: np.random.SeedSequence) -> Environment:
        """The rounds of one repetition."""

    @abstractmethod
    def command(self, folder: str) -> str:
        """The command that computes this study again."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What was varied and how, in a few words, for figures and reports."""

    @classmethod
    @abstractmethod
    def from_json(cls, parameters: dict[str, Any]) -> Self:
        """The plan that `as_json` gave."""

    shares_scale: ClassVar[bool] = True  # whether the panels of a figure's row have comparable numbers

    def baselines(self, setting: Setting, measure: str) -> dict[str, float]:  # noqa: ARG002
        """What choices that learn nothing add up to over the rounds, where it can be computed."""
        return {}

    def ratios(self, setting: Setting, total: float) -> dict[str, float]:  # noqa: ARG002
        """A total of the first measure in units of its baselines, where there is a usual way to say it."""
        return {}

    def describe(self, setting: Setting) -> str:
        """A setting as a figure's title."""
        return ", ".join(f"{name} = {value}" for name, value in setting._asdict().items())

    def check(self) -> None:
        """Make every policy once, so that one that cannot be made is found out before anything is computed."""
        for policy in self.policies:
            make, parameters = registry.parse(policy)
            for setting in self.settings:
                try:
                    make(**{"d": self.features_of(setting), "seed": 0, **parameters})
                except TypeError as error:
                    raise InputError(f"policy {policy} must take d and seed and its parameters, got {error}") from None

    def checkpoints(self, setting: Setting) -> NDArray[np.int64]:
        """Rounds at which the sums are kept."""
        return checkpoints(self.horizon_of(setting))

    def tasks(self) -> Iterator["Task"]:
        """Block after block: all policies and settings have some repetitions before any has all."""
        for first in range(0, self.repetitions, self.block):
            for setting in self.settings:
                for policy in self.policies:
                    yield Task(self, setting, policy, first, min(first + self.block, self.repetitions))

    def joined(self, other: Self) -> Self:
        """This plan with the settings, policies and repetitions of another one of the same identity added."""
        return replace(
            self,
            settings=tuple(dict.fromkeys(self.settings + other.settings)),
            policies=tuple(dict.fromkeys(self.policies + other.policies)),
            repetitions=max(self.repetitions, other.repetitions),
        )

    def as_json(self) -> dict[str, Any]:
        """All parameters as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Task:
    """A block of repetitions of one policy in one setting: what is computed, written and lost as a whole."""

    plan: Plan
    setting: Setting
    policy: str
    first: int
    last: int

    @property
    def file(self) -> str:
        """Name of its file in the folder of blocks."""
        digest = hashlib.sha256(self.policy.encode()).hexdigest()[:8]
        where = "-".join(f"{name}{value}" for name, value in self.setting._asdict().items())
        return f"{_plain(where)}/{_plain(self.policy)}-{digest}/{self.first:05d}-{self.last:05d}.npz"

    def header(self) -> dict[str, Any]:
        """What it is, as plain values."""
        block = {"policy": self.policy, "first": self.first, "last": self.last}
        return {"study": self.plan.kind, **self.plan.identity, "scenario": list(self.setting), **block}

    def seeds(self, repetition: int) -> tuple[np.random.SeedSequence, int]:
        """Seeds of the environment and of the policy: the same for every policy (common random numbers)."""
        numbers = [value if isinstance(value, int) else _digest(value) for value in self.setting]
        environment, policy = np.random.SeedSequence((self.plan.seed, *numbers, repetition)).spawn(2)
        return environment, int(policy.generate_state(1)[0])


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def checkpoints(horizon: int) -> NDArray[np.int64]:
    """At most CURVE_POINTS rounds, evenly spaced, the last one included."""
    return np.unique(np.linspace(1, horizon, min(horizon, CURVE_POINTS)).round().astype(np.int64))


def options(plan: Plan, defaults: Plan | type[Plan], **named: str) -> list[str]:
    """Command-line options for the parameters of a plan that differ from its defaults: option by name of parameter."""
    return [
        f"--{option} {getattr(plan, name)}"
        for name, option in named.items()
        if getattr(plan, name) != getattr(defaults, name)
    ]
