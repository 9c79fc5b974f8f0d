"""The paper's second study (Section 6.2): which k parametrizations of SAPS to run on an instance."""

import os
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from preselect.arguments import number
from preselect.environments import Environment, RuntimeReplay, RuntimeTable, regret_baselines
from preselect.errors import InputError
from preselect.study.plan import Plan, SettingData, write_list
from preselect.study.synthetic import REGRETS

PAPERS_LAMBDA = 10.0  # the default for tables that do not come with the library


class SapsSetting(NamedTuple):
    """How many parametrizations run on each instance.

    Parameters
    ----------
    k : int
        Parametrizations to choose, fewer than the table has.
    """

    k: int

    def __str__(self) -> str:
        return f"k = {self.k}"


@dataclass(frozen=True)
class SapsPlan(Plan):
    """The paper's second study: every instance of a table once, in random order; regret of utilities exp(-λ seconds).

    Parameters
    ----------
    settings : tuple of SapsSetting, default k = 3, 5 and 10
        Numbers of parametrizations to choose.
    policies : tuple of str, default newton, newton with cover, and the paper's four
        Policies; the first is compared with the others.
    repetitions : int, default 50
        Repetitions of each policy for each k, each with its own order of instances.
    data : str or None, default None
        Folder of a table of run times; None for the table that comes with the library.
    feedback : {"winner", "ranking", "race"}, default "ranking"
        What is observed of the chosen arms: a winner or ranking drawn from the model, or which one was really fastest.
    scale : float, default 100.0
        λ of the utilities, per second. The paper has 10; runs of the shipped table end after 0.1 s.
    seed : int, default 0
        Seed of all random numbers.
    block : int, default 5
        Repetitions that are computed and written together.

    """

    kind = "saps"
    title = "Algorithm selection study"
    heading = "k"
    measures = REGRETS
    setting_type = SapsSetting

    settings: tuple[SapsSetting, ...] = (SapsSetting(3), SapsSetting(5), SapsSetting(10))
    policies: tuple[str, ...] = ("newton", "newton(choose='cover')", "cppl", "max-theta", "epsilon-greedy", "mm")
    repetitions: int = 50
    data: str | None = None
    feedback: str = "ranking"
    scale: float = 100.0
    seed: int = 0
    block: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feedback not in RuntimeReplay.feedbacks:
            raise InputError(f"unknown feedback {self.feedback!r}; choose one of {', '.join(RuntimeReplay.feedbacks)}")
        object.__setattr__(self, "scale", number(self.scale, "scale", above=0.0))

    def describe(self, rounds: int) -> str:
        """Describe what was varied."""
        source = "the shipped table" if self.data is None else f"the table in {self.data}"
        return f"{rounds} instances of {source}, {self.feedback} feedback, λ = {self.scale:g}"

    def read_data(self, setting: SapsSetting) -> SettingData:
        """Return the numbers of instances and of joint features, and total regrets of choices that learn nothing."""
        table = _read_table(self.data)
        arms, contexts = table.joint_features
        n = len(arms)
        if not 1 <= setting.k < n:
            raise InputError(f"k={setting.k}, but the table has {n} algorithms; choose k from 1 to {n - 1}")
        found = regret_baselines(table.log_utilities(self.scale), setting.k)
        baselines = {measure: {name: totals[measure] for name, totals in found.items()} for measure in self.measures}
        return SettingData(len(table.instances), arms.shape[1] * contexts.shape[1], baselines)

    def make_environment(self, setting: SapsSetting, seed: np.random.SeedSequence) -> Environment:  # noqa: ARG002
        """Return the rounds of one repetition."""
        return RuntimeReplay(_read_table(self.data), scale=self.scale, feedback=self.feedback, seed=seed)

    def _write_arguments(self, out: list[str]) -> list[list[str]]:
        default = SapsPlan() if self.data is None else SapsPlan(scale=PAPERS_LAMBDA)
        choices = ["--k", write_list(k for (k,) in self.settings)] if self.settings != default.settings else []
        names = {"data": "data", "feedback": "feedback", "scale": "lambda"}
        return [[*choices, *self._write_options(default, names), *out]]


def _read_table(folder: str | None) -> RuntimeTable:
    """Read the table in a folder, or the one that comes with the library; cached in this process."""
    return _read_absolute(None if folder is None else os.path.abspath(folder))


@cache
def _read_absolute(folder: str | None) -> RuntimeTable:
    return RuntimeTable.read_shipped() if folder is None else RuntimeTable.read(folder)
