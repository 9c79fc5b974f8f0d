"""The plan of the ASlib study: races of k algorithms on the instances of scenarios that others measured."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from preselect.environments import Environment, RaceReplay, Scenario, best_fixed_set, single_best, virtual_best
from preselect.errors import InputError
from preselect.policies import registry
from preselect.study.plan import Measure, Plan, options

DEFAULT_POLICIES = (
    registry.RACING,
    "newton(outside=True, choose='cover')",
    "newton",
    "cppl",
    "max-theta",
    "random",
)

_MEASURES = {
    "par10": Measure(
        "PAR10 of the race",
        "seconds until one of the chosen algorithms has solved the instance, ten times the cutoff if none has",
        "cumulative PAR10, s",
    ),
    "excess": Measure(
        "Above the virtual best",
        "PAR10 of the race, less that of the fastest algorithm for the instance, which pays for no features",
        "cumulative PAR10 above VBS, s",
    ),
    "resources": Measure("Resources", "the same, for all of the k cores that a race takes", "cumulative PAR10 × k, s"),
}


class AslibSetting(NamedTuple):
    """A scenario's folder, and k algorithms to run on each of its instances."""

    folder: str
    k: int

    def __str__(self) -> str:
        return f"{Path(self.folder).name}, k = {self.k}"


class Baselines(NamedTuple):
    """Mean cost per instance: of the best algorithm for each, of the best single one, and of the best fixed set."""

    virtual_best: float
    single_best: float
    fixed_set: float


@cache
def scenario(folder: str) -> Scenario:
    """The scenario in a folder, with the feature steps that it recommends; read once."""
    return Scenario.read(folder, steps="default")


@cache
def compute_baselines(setting: AslibSetting) -> Baselines:
    """The baselines of a setting; they pay for no features."""
    costs = scenario(setting.folder).costs
    return Baselines(virtual_best(costs), single_best(costs), best_fixed_set(costs, setting.k).cost)


@dataclass(frozen=True)
class AslibPlan(Plan):
    """Every instance of a scenario once, in random order; the fastest of the chosen algorithms wins."""

    kind = "aslib"
    title = "Algorithm selection on ASlib scenarios"
    heading = "scenario"
    shares_scale = False
    measures = _MEASURES

    settings: tuple[AslibSetting, ...] = ()
    policies: tuple[str, ...] = DEFAULT_POLICIES
    repetitions: int = 10
    charge: bool = True
    seed: int = 0
    block: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in self.settings:
            arms = len(scenario(setting.folder).algorithms)
            if not 1 <= setting.k <= arms:
                raise InputError(f"k must be from 1 to {arms}, the algorithms of {setting.folder}, got {setting.k}")

    @property
    def identity(self) -> dict[str, Any]:
        """What must agree for results to belong together."""
        return {name: getattr(self, name) for name in ("charge", "seed", "block")}

    @property
    def about(self) -> str:
        """What was varied."""
        return f"race feedback, time for features {'charged' if self.charge else 'not charged'}"

    def horizon_of(self, setting: AslibSetting) -> int:
        """Rounds of a repetition."""
        return len(scenario(setting.folder).instances)

    def features_of(self, setting: AslibSetting) -> int:
        """Number of joint features."""
        return RaceReplay(scenario(setting.folder)).d

    def environment(self, setting: AslibSetting, seed: np.random.SeedSequence) -> Environment:
        """The rounds of one repetition."""
        return RaceReplay(scenario(setting.folder), charge=self.charge, seed=seed)

    def describe(self, setting: AslibSetting) -> str:
        """A scenario as a figure's title."""
        return str(setting)

    def baselines(self, setting: AslibSetting, measure: str) -> dict[str, float]:
        """What choices that learn nothing add up to."""
        found, rounds = compute_baselines(setting), self.horizon_of(setting)
        fixed = {"single best": found.single_best, "best fixed set": found.fixed_set}
        if measure == "excess":
            fixed = {name: value - found.virtual_best for name, value in fixed.items()}
        elif measure == "resources":
            fixed["best fixed set"] *= setting.k
        else:
            fixed = {"virtual best": found.virtual_best, **fixed}
        return {name: value * rounds for name, value in fixed.items()}

    def ratios(self, setting: AslibSetting, total: float) -> dict[str, float]:
        """How far a total lies above the virtual best, by the gaps of the best fixed set and of the single best."""
        found = compute_baselines(setting)
        above = total / self.horizon_of(setting) - found.virtual_best
        gaps = {"best fixed set": found.fixed_set, "single best": found.single_best}
        return {
            f"(x - virtual best) / ({name} - virtual best)": above / gap if gap > 0 else float("nan")
            for name, gap in ((name, value - found.virtual_best) for name, value in gaps.items())
        }

    def command(self, folder: str) -> str:
        """The command that computes this study again."""
        folders = " ".join(dict.fromkeys(setting.folder for setting in self.settings))
        parts = [
            "preselect study aslib",
            folders,
            f"--k {','.join(map(str, dict.fromkeys(r.k for r in self.settings)))}",
        ]
        if self.policies != DEFAULT_POLICIES:
            parts.append(f'--policies "{",".join(self.policies)}"')
        if not self.charge:
            parts.append("--free-features")
        return " ".join([*parts, *options(self, AslibPlan, repetitions="reps", seed="seed"), f"--out {folder}"])

    @classmethod
    def from_json(cls, parameters: dict[str, Any]) -> Self:
        """The plan that `as_json` gave."""
        settings = tuple(AslibSetting(*values) for values in parameters.pop("settings"))
        return cls(settings=settings, policies=tuple(parameters.pop("policies")), **parameters)
