"""Environments, where rounds come from: simulations, and replays of measured data."""

from preselect.environments.aslib import Scenario, par10
from preselect.environments.baselines import FixedSet, best_fixed_set, regret_baselines, single_best, virtual_best
from preselect.environments.choices import ChoiceReplay, choice_baselines
from preselect.environments.environment import Environment
from preselect.environments.race_replay import RaceReplay
from preselect.environments.regret import regrets
from preselect.environments.runtime_replay import RuntimeReplay
from preselect.environments.runtime_table import RuntimeTable
from preselect.environments.synthetic import VARIATIONS, Drifting, FixedArms, Misspecified, Signed, Synthetic

__all__ = [
    "VARIATIONS",
    "ChoiceReplay",
    "Drifting",
    "Environment",
    "FixedArms",
    "FixedSet",
    "Misspecified",
    "RaceReplay",
    "RuntimeReplay",
    "RuntimeTable",
    "Scenario",
    "Signed",
    "Synthetic",
    "best_fixed_set",
    "choice_baselines",
    "par10",
    "regret_baselines",
    "regrets",
    "single_best",
    "virtual_best",
]
