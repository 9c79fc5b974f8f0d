"""The paper's first study (Section 6.1): synthetic rounds with n arms, d features and k choices."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from preselect.environments import VARIATIONS, Environment, Synthetic
from preselect.errors import InputError
from preselect.study.plan import Measure, Plan, SettingData

MAX_HORIZON = 100_000_000

REGRETS = {
    "best_arm": Measure(
        "Regret of the best arm",
        "the paper's regret: the share of the best arm's utility that the best chosen arm lacks",
        "cumulative regret",
    ),
    "top_k": Measure(
        "Regret of the set",
        "the share of the k best arms' total utility that the chosen k lack",
        "cumulative regret of the set",
    ),
}


class SyntheticSetting(NamedTuple):
    """The size of a synthetic problem.

    Parameters
    ----------
    n : int
        Arms shown in each round.
    d : int
        Features of an arm, at least 1.
    k : int
        Arms to choose, fewer than n.
    """

    n: int
    d: int
    k: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a setting written as n,d,k.

        >>> SyntheticSetting.parse("20,5,3")
        SyntheticSetting(n=20, d=5, k=3)
        """
        try:
            n, d, k = (int(number) for number in text.split(","))
        except ValueError:
            raise InputError(f"cannot read the setting {text!r}; write three integers n,d,k as in 20,5,3") from None
        return cls(n, d, k)

    def __str__(self) -> str:
        return f"({self.n}, {self.d}, {self.k})"


@dataclass(frozen=True)
class SyntheticPlan(Plan):
    """The paper's first study: n arms with d features, drawn afresh in every round; k of them are chosen.

    Parameters
    ----------
    settings : tuple of SyntheticSetting, default the paper's nine
        Problem sizes.
    policies : tuple of str, default ("cppl", "max-theta", "epsilon-greedy", "mm", "newton")
        Policies; the first is compared with the others.
    repetitions : int, default 100
        Repetitions of each policy in each setting.
    horizon : int, default 2000
        Rounds of a repetition, at most 100,000,000.
    feedback : {"winner", "ranking"}, default "winner"
        What is observed of the chosen arms.
    variation : str, default "paper"
        How rounds are made; a key of `preselect.environments.VARIATIONS`.
    seed : int, default 0
        Seed of all random numbers.
    block : int, default 5
        Repetitions that are computed and written together.

    """

    kind = "synthetic"
    title = "Synthetic study"
    heading = "(n, d, k)"
    measures = REGRETS
    setting_type = SyntheticSetting

    settings: tuple[SyntheticSetting, ...] = tuple(
        SyntheticSetting(n, d, k) for d, k in ((5, 3), (10, 5), (20, 10)) for n in (20, 50, 100)
    )
    policies: tuple[str, ...] = ("cppl", "max-theta", "epsilon-greedy", "mm", "newton")
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
                raise InputError(f"n={n}, d={d}, k={k} cannot be played: k goes from 1 to n - 1, d from 1")
        if self.horizon < 1:
            raise InputError(f"horizon is {self.horizon}; a study needs at least 1 round")
        if self.horizon > MAX_HORIZON:
            raise InputError(f"horizon is {self.horizon}; a study has at most {MAX_HORIZON} rounds")
        if self.feedback not in Synthetic.feedbacks:
            raise InputError(f"unknown feedback {self.feedback!r}; choose one of {', '.join(Synthetic.feedbacks)}")
        if self.variation not in [*VARIATIONS]:  # which compares what cannot be hashed, too
            raise InputError(f"unknown variation {self.variation!r}; choose one of {', '.join(VARIATIONS)}")

    def describe(self, rounds: int) -> str:  # noqa: ARG002
        """Describe what was varied."""
        return f"variation: {self.variation}, feedback: {self.feedback}"

    def describe_setting(self, setting: SyntheticSetting) -> str:
        """Return the title of a setting's panel in figures."""
        return f"n = {setting.n}, d = {setting.d}, k = {setting.k}"

    def read_data(self, setting: SyntheticSetting) -> SettingData:
        """Return the horizon and d; nothing is read."""
        return SettingData(self.horizon, setting.d, {})

    def make_environment(self, setting: SyntheticSetting, seed: np.random.SeedSequence) -> Environment:
        """Return the rounds of one repetition."""
        return VARIATIONS[self.variation](setting.n, setting.d, feedback=self.feedback, seed=seed)

    def _write_arguments(self, out: list[str]) -> list[list[str]]:
        default = type(self)()
        scenarios = [part for n, d, k in self.settings for part in ("--scenario", f"{n},{d},{k}")]
        given = scenarios if self.settings != default.settings else []
        names = {name: name for name in ("horizon", "feedback", "variation")}
        return [[*given, *self._write_options(default, names), *out]]
