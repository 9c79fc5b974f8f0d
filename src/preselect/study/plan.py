"""What a study is to compute: scenarios × policies × blocks of repetitions, each with seeds of its own."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preselect.environments import VARIATIONS
from preselect.environments.synthetic import FEEDBACKS
from preselect.errors import InputError
from preselect.policies import names

CURVE_POINTS = 200


class Scenario(NamedTuple):
    """n arms shown, d features, k to choose."""

    n: int
    d: int
    k: int

    @classmethod
    def parse(cls, text: str) -> "Scenario":
        """A scenario written as n,d,k.

        >>> Scenario.parse("20,5,3")
        Scenario(n=20, d=5, k=3)
        """
        try:
            n, d, k = (int(number) for number in text.split(","))
        except ValueError:
            raise InputError(f"scenario must be three integers n,d,k, got {text!r}") from None
        return cls(n, d, k)

    def __str__(self) -> str:
        return f"({self.n}, {self.d}, {self.k})"


DEFAULT_SCENARIOS = tuple(Scenario(n, d, k) for d, k in ((5, 3), (10, 5), (20, 10)) for n in (20, 50, 100))
DEFAULT_POLICIES = ("cppl", "max-theta", "epsilon-greedy", "mm")


@dataclass(frozen=True)
class Task:
    """A block of repetitions of one policy in one scenario: what is computed, written and lost as a whole."""

    scenario: Scenario
    policy: str
    first: int
    last: int
    variation: str
    feedback: str
    horizon: int
    seed: int

    @property
    def file(self) -> str:
        """Name of its file in the folder of blocks."""
        plain = re.sub(r"[^a-z0-9]+", "-", self.policy.lower()).strip("-")
        digest = hashlib.sha256(self.policy.encode()).hexdigest()[:8]
        n, d, k = self.scenario
        return f"n{n}-d{d}-k{k}/{plain}-{digest}/{self.first:05d}-{self.last:05d}.npz"

    def seeds(self, repetition: int) -> tuple[np.random.SeedSequence, int]:
        """Seeds of the environment and of the policy: the same for every policy (common random numbers)."""
        environment, policy = np.random.SeedSequence((self.seed, *self.scenario, repetition)).spawn(2)
        return environment, int(policy.generate_state(1)[0])


@dataclass(frozen=True)
class Plan:
    """All parameters of a study. Those in `identity` decide what a repetition gives; the others, how many there are."""

    scenarios: tuple[Scenario, ...] = DEFAULT_SCENARIOS
    policies: tuple[str, ...] = DEFAULT_POLICIES
    repetitions: int = 100
    horizon: int = 2000
    feedback: str = "winner"
    variation: str = "paper"
    seed: int = 0
    block: int = 5

    def __post_init__(self) -> None:
        if not self.scenarios or not self.policies:
            raise InputError("a study needs at least one scenario and one policy")
        for n, d, k in self.scenarios:
            if not 1 <= k < n or d < 1:
                raise InputError(f"a scenario needs 1 ≤ k < n and d ≥ 1, got n={n}, d={d}, k={k}")
        for name in ("repetitions", "horizon", "block"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise InputError(f"seed must not be negative, got {self.seed}")
        if self.feedback not in FEEDBACKS:
            raise InputError(f"feedback must be one of {', '.join(FEEDBACKS)}, got {self.feedback!r}")
        if self.variation not in VARIATIONS:
            raise InputError(f"variation must be one of {', '.join(VARIATIONS)}, got {self.variation!r}")

    def check(self) -> None:
        """Make every policy once, so that one that cannot be made is found out before anything is computed."""
        for policy in self.policies:
            make, parameters = names.parse(policy)
            for scenario in self.scenarios:
                try:
                    make(**{"d": scenario.d, "seed": 0, **parameters})
                except TypeError as error:
                    raise InputError(f"policy {policy} must take d and seed and its parameters, got {error}") from None

    @property
    def identity(self) -> dict[str, Any]:
        """What must agree for results to belong together."""
        return {name: getattr(self, name) for name in ("horizon", "feedback", "variation", "seed", "block")}

    @property
    def checkpoints(self) -> NDArray[np.int64]:
        """Rounds at which the cumulative regret is kept."""
        return checkpoints(self.horizon)

    def tasks(self) -> Iterator[Task]:
        """Block after block: all policies and scenarios have some repetitions before any has all."""
        for first in range(0, self.repetitions, self.block):
            for scenario in self.scenarios:
                for policy in self.policies:
                    yield self.task(scenario, policy, first, min(first + self.block, self.repetitions))

    def task(self, scenario: Scenario, policy: str, first: int, last: int) -> Task:
        """The repetitions from `first` up to `last` of a policy in a scenario."""
        return Task(scenario, policy, first, last, self.variation, self.feedback, self.horizon, self.seed)

    def joined(self, other: "Plan") -> "Plan":
        """This plan with the scenarios, policies and repetitions of another one of the same identity added."""
        return replace(
            self,
            scenarios=tuple(dict.fromkeys(self.scenarios + other.scenarios)),
            policies=tuple(dict.fromkeys(self.policies + other.policies)),
            repetitions=max(self.repetitions, other.repetitions),
        )

    def as_json(self) -> dict[str, Any]:
        """All parameters as plain values."""
        return asdict(self)


def checkpoints(horizon: int) -> NDArray[np.int64]:
    """At most CURVE_POINTS rounds, evenly spaced, the last one included."""
    return np.unique(np.linspace(1, horizon, min(horizon, CURVE_POINTS)).round().astype(np.int64))
