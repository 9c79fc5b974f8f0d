"""The plan of the paper's first study (Section 6.1): synthetic rounds, by number of arms, features and choices."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from preselect.environments import VARIATIONS, Environment, Synthetic
from preselect.errors import InputError
from preselect.study.plan import Measure, Plan, options

REGRETS = {
    "best_arm": Measure(
        "Regret of the best arm",
        "the paper's: what the best chosen arm lacks of the best arm's utility, relatively",
        "cumulative regret",
    ),
    "top_k": Measure(
        "Regret of the set",
        "what the chosen k lack of the summed utility of the k best arms, relatively",
        "cumulative top-k regret",
    ),
}


class SyntheticSetting(NamedTuple):
    """n arms shown, d features, k to choose."""

    n: int
    d: int
    k: int

    @classmethod
    def parse(cls, text: str) -> "SyntheticSetting":
        """A setting written as n,d,k.

        >>> SyntheticSetting.parse("20,5,3")
        SyntheticSetting(n=20, d=5, k=3)
        """
        try:
            n, d, k = (int(number) for number in text.split(","))
        except ValueError:
            raise InputError(f"setting must be three integers n,d,k, got {text!r}") from None
        return cls(n, d, k)

    def __str__(self) -> str:
        return f"({self.n}, {self.d}, {self.k})"


DEFAULT_SETTINGS = tuple(SyntheticSetting(n, d, k) for d, k in ((5, 3), (10, 5), (20, 10)) for n in (20, 50, 100))
DEFAULT_POLICIES = ("cppl", "max-theta", "epsilon-greedy", "mm")


@dataclass(frozen=True)
class SyntheticPlan(Plan):
    """Scenarios of n arms with d features, fresh in every round, of which k are chosen."""

    kind = "synthetic"
    title = "Synthetic study"
    heading = "(n, d, k)"
    measures = REGRETS

    settings: tuple[SyntheticSetting, ...] = DEFAULT_SETTINGS
    policies: tuple[str, ...] = DEFAULT_POLICIES
    repetitions: int = 100
    horizon: int = 2000
    feedback: str = "winner"
    variation: str = "paper"
    seed: int = 0
    block: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        for n, d, k in self.settings:
            if not 1 <= k < n or d < 1:
                raise InputError(f"a setting needs 1 ≤ k < n and d ≥ 1, got n={n}, d={d}, k={k}")
        if self.horizon < 1:
            raise InputError(f"horizon must be at least 1, got {self.horizon}")
        if self.feedback not in Synthetic.feedbacks:
            raise InputError(f"feedback must be one of {', '.join(Synthetic.feedbacks)}, got {self.feedback!r}")
        if self.variation not in VARIATIONS:
            raise InputError(f"variation must be one of {', '.join(VARIATIONS)}, got {self.variation!r}")

    @property
    def identity(self) -> dict[str, Any]:
        """What must agree for results to belong together."""
        return {name: getattr(self, name) for name in ("horizon", "feedback", "variation", "seed", "block")}

    @property
    def about(self) -> str:
        """What was varied."""
        return f"variation: {self.variation}, feedback: {self.feedback}"

    def horizon_of(self, setting: SyntheticSetting) -> int:  # noqa: ARG002
        """Rounds of a repetition."""
        return self.horizon

    def features_of(self, setting: SyntheticSetting) -> int:
        """Number of joint features."""
        return setting.d

    def environment(self, setting: SyntheticSetting, seed: np.random.SeedSequence) -> Environment:
        """The rounds of one repetition."""
        return VARIATIONS[self.variation](setting.n, setting.d, feedback=self.feedback, seed=seed)

    def command(self, folder: str) -> str:
        """The command that computes this study again."""
        parts = ["preselect study synthetic"]
        if self.settings != DEFAULT_SETTINGS:
            parts += [f"--scenario {n},{d},{k}" for n, d, k in self.settings]
        if self.policies != DEFAULT_POLICIES:
            parts += [f"--policies '{','.join(self.policies)}'"]
        named = {name: name for name in ("horizon", "feedback", "variation", "seed")}
        return " ".join([*parts, *options(self, SyntheticPlan(), **named, repetitions="reps"), f"--out {folder}"])

    @classmethod
    def from_json(cls, parameters: dict[str, Any]) -> Self:
        """The plan that `as_json` gave."""
        settings = tuple(SyntheticSetting(*numbers) for numbers in parameters.pop("settings"))
        return cls(settings=settings, policies=tuple(parameters.pop("policies")), **parameters)
