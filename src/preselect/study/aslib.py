"""The ASlib study: races of k algorithms on the instances of measured scenarios."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from preselect.context import Floats
from preselect.environments import Environment, RaceReplay, Scenario, best_fixed_set, single_best, virtual_best
from preselect.errors import InputError
from preselect.policies import registry
from preselect.study.plan import Measure, Plan, SettingData, group_by_k, write_list

_EXTRA = "CPU time of after-races / CPU time of races"

_MEASURES = {
    "par10": Measure(
        "PAR10 of the race",
        "seconds until one of the chosen algorithms has solved the instance, ten times the cutoff if none has; where "
        "qualities are compared, the share of the quality that the best one loses, without a unit",
        "cumulative PAR10, s",
    ),
    "excess": Measure(
        "Above the virtual best",
        "PAR10 of the race minus that of the instance's fastest algorithm, for which no features are computed",
        "cumulative PAR10 above VBS, s",
    ),
    "resources": Measure(
        "Resources",
        "PAR10 of the race times the k cores that it takes, and the CPU time of its after-race",
        "cumulative PAR10 × k, s",
    ),
}


class AslibSetting(NamedTuple):
    """A scenario, and how many of its algorithms are raced on each instance.

    Parameters
    ----------
    folder : str or path
        Folder of the scenario.
    k : int
        Algorithms to race, at most as many as the scenario has.
    after : float, default 0
        The budget of after-races, as a share of the CPU time of the races.
    """

    folder: str
    k: int
    after: float = 0.0

    def __str__(self) -> str:
        return f"{Path(self.folder).name}, {self.describe()}"

    def describe(self) -> str:
        """Describe how races are run, without the scenario."""
        return f"k = {self.k}" + (f", after-races {self.after:g}" if self.after else "")


@dataclass(frozen=True)
class AslibPlan(Plan):
    """Races on ASlib scenarios: every instance once, in random order; the fastest of the chosen algorithms wins.

    Parameters
    ----------
    settings : tuple of AslibSetting
        Folders of scenarios with the number of algorithms to race; at least one.
    policies : tuple of str, default the policy for races, newton in three ways, cppl, max-theta and random
        Policies; the first is compared with the others.
    repetitions : int, default 10
        Repetitions of each policy in each setting, each with its own order of instances.
    charge : bool, default True
        Whether the time to compute an instance's features is added to the time of its race, and taken from its limit.
    seed : int, default 0
        Seed of all random numbers.
    block : int, default 1
        Repetitions that are computed and written together.

    """

    kind = "aslib"
    title = "Algorithm selection on ASlib scenarios"
    heading = "scenario"
    measures = _MEASURES
    setting_type = AslibSetting
    shares_scale = False
    quotients: ClassVar[dict[str, tuple[str, str]]] = {_EXTRA: ("extra", "cpu")}

    settings: tuple[AslibSetting, ...] = ()
    policies: tuple[str, ...] = (
        registry.RACING,
        "newton(outside=True)",
        "newton(outside=True, choose='cover')",
        "newton",
        "cppl",
        "max-theta",
        "random",
    )
    repetitions: int = 10
    charge: bool = True
    seed: int = 0
    block: int = 1

    def describe(self, rounds: int) -> str:  # noqa: ARG002
        """Describe what was varied."""
        return f"race feedback, time for features {'charged, except to baselines' if self.charge else 'not charged'}"

    def read_data(self, setting: AslibSetting) -> SettingData:
        """Return the numbers of instances and of joint features, and the baselines, which pay for no features."""
        scenario = _read_scenario(setting.folder)
        n = len(scenario.algorithms)
        if not 1 <= setting.k <= n:
            raise InputError(f"k={setting.k}, but {setting.folder} has {n} algorithms; choose k from 1 to {n}")
        baselines = _compute_baselines(scenario.costs, setting.k)
        return SettingData(len(scenario.instances), RaceReplay.count_features(scenario), baselines)

    def make_environment(self, setting: AslibSetting, seed: np.random.SeedSequence) -> Environment:
        """Return the rounds of one repetition."""
        return RaceReplay(_read_scenario(setting.folder), charge=self.charge, seed=seed, after=setting.after)

    @classmethod
    def normalise(cls, setting: AslibSetting) -> AslibSetting:
        """Return a setting in the form that the command uses."""
        return AslibSetting(str(Path(setting.folder)), setting.k, float(setting.after))

    def list_seeds(self, setting: AslibSetting) -> tuple[int | str, ...]:
        """Return the scenario's name and k: neither the place of its folder nor after-races change the orders."""
        return os.path.basename(os.path.abspath(setting.folder)), setting.k

    def name_group(self, setting: AslibSetting) -> str:
        """Describe how races are run: medians are taken over scenarios."""
        return setting.describe()

    def compute_ratios(self, data: SettingData, total: float) -> dict[str, float]:
        """Return how far a total lies above the virtual best, relative to the best fixed set and the single best."""
        totals = data.baselines["par10"]
        virtual = totals["virtual best"]
        gaps = {name: totals[name] - virtual for name in ("best fixed set", "single best")}
        return {
            f"(x - virtual best) / ({name} - virtual best)": (total - virtual) / gap if gap > 0 else float("nan")
            for name, gap in gaps.items()
        }

    def _write_arguments(self, out: list[str]) -> list[list[str]]:
        free = [] if self.charge else ["--free-features"]
        options = [*self._write_options(AslibPlan(settings=self.settings), {}), *out]
        groups: dict[str, list[tuple[str, int]]] = {}
        for folder in dict.fromkeys(setting.folder for setting in self.settings):
            here = [setting for setting in self.settings if setting.folder == folder]
            budgets = write_list(dict.fromkeys(str(setting.after).removesuffix(".0") for setting in here))
            groups.setdefault(budgets, []).extend(dict.fromkeys((folder, setting.k) for setting in here))
        return [
            line
            for budgets, pairs in groups.items()
            for line in group_by_k(pairs, [*free, *(["--after", budgets] if budgets != "0" else []), *options])
        ]


def _compute_baselines(costs: Floats, k: int) -> dict[str, dict[str, float]]:
    """Return the totals of the virtual best, the single best and the best fixed set of k, by measure."""
    virtual, single, fixed = virtual_best(costs), single_best(costs), best_fixed_set(costs, k).cost
    means = {
        "par10": {"virtual best": virtual, "single best": single, "best fixed set": fixed},
        "excess": {"single best": single - virtual, "best fixed set": fixed - virtual},
        "resources": {"single best": single, "best fixed set": fixed * k},
    }
    return {measure: {name: mean * len(costs) for name, mean in found.items()} for measure, found in means.items()}


def _read_scenario(folder: str) -> Scenario:
    """Read a scenario with the feature steps that it recommends, once in a process."""
    return _read_absolute(os.path.abspath(folder))


@cache
def _read_absolute(folder: str) -> Scenario:
    return Scenario.read(folder, steps="default")
