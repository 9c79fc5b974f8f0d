"""The study on tables of choices: k arms of each round are shown, and the one that was ranked best wins."""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from preselect.arguments import boolean
from preselect.environments import ChoiceReplay, Environment, choice_baselines
from preselect.errors import InputError
from preselect.logs import Logs
from preselect.offline import read_logs
from preselect.study.plan import Measure, Plan, SettingData, group_by_k


class ChoicesSetting(NamedTuple):
    """A table of choices, and how many arms are shown in each round.

    Parameters
    ----------
    file : str or path
        The table, in any form that `preselect fit` reads.
    k : int
        Arms to show, at most as many as any round has.
    """

    file: str
    k: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}, k = {self.k}"


@dataclass(frozen=True)
class ChoicesPlan(Plan):
    """Tables of choices: every round once, in random order; of the k shown arms, the one that was ranked best wins.

    Parameters
    ----------
    settings : tuple of ChoicesSetting
        Tables with the number of arms to show; at least one.
    policies : tuple of str, default newton, newton with an outside option, cppl, max-theta and random
        Policies; the first is compared with the others. Where only winners are known, many rounds have no winner among
        the shown arms, and only policies with an outside option learn from these.
    repetitions : int, default 10
        Repetitions of each policy in each setting, each with its own order of rounds.
    feedback : {"winner", "ranking"}, default "winner"
        What is observed of the arms that are shown.
    with_identity : bool, default True
        Whether every arm has weights of its own, besides those of its features.
    seed : int, default 0
        Seed of all random numbers.
    block : int, default 1
        Repetitions that are computed and written together.
    """

    kind = "choices"
    title = "Study on tables of choices"
    heading = "table"
    measures = {  # noqa: RUF012
        "misses": Measure("Misses", "1 if the arm that was ranked best is not among those that are shown", "misses"),
        "better": Measure(
            "Better arms",
            "how many arms were ranked better than all that are shown",
            "cumulative number of better arms",
        ),
    }
    setting_type = ChoicesSetting
    shares_scale = False

    settings: tuple[ChoicesSetting, ...] = ()
    policies: tuple[str, ...] = ("newton", "newton(outside=True)", "cppl", "max-theta", "random")
    repetitions: int = 10
    feedback: str = "winner"
    with_identity: bool = True
    seed: int = 0
    block: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feedback not in ChoiceReplay.feedbacks:
            raise InputError(f"unknown feedback {self.feedback!r}; choose one of {', '.join(ChoiceReplay.feedbacks)}")
        object.__setattr__(self, "with_identity", boolean(self.with_identity, "with_identity"))

    def describe(self, rounds: int) -> str:  # noqa: ARG002
        """Describe what was varied."""
        return f"{self.feedback} feedback, arms {'with' if self.with_identity else 'without'} weights of their own"

    def read_data(self, setting: ChoicesSetting) -> SettingData:
        """Return the numbers of rounds and of joint features, and the totals of choices that learn nothing."""
        logs = _read_table(setting.file)
        sizes = np.add.reduceat(logs.shown.astype(np.int64), logs.starts[:-1])
        least, most = int(sizes.min()), int(sizes.max())
        if most == 1:
            raise InputError(f"no round of {setting.file} shows more than one arm, so there is nothing to choose")
        if not 1 <= setting.k <= min(least, most - 1):
            size = f"every round of {setting.file} shows" if least == most else f"a round of {setting.file} shows only"
            raise InputError(f"k={setting.k}, but {size} {least} arms; choose k from 1 to {min(least, most - 1)}")
        d = ChoiceReplay(logs, identity=self.with_identity).d
        return SettingData(len(logs), d, choice_baselines(logs, setting.k))

    def make_environment(self, setting: ChoicesSetting, seed: np.random.SeedSequence) -> Environment:
        """Return the rounds of one repetition."""
        return ChoiceReplay(_read_table(setting.file), identity=self.with_identity, feedback=self.feedback, seed=seed)

    @classmethod
    def normalise(cls, setting: ChoicesSetting) -> ChoicesSetting:
        """Return a setting in the form that the command uses."""
        return ChoicesSetting(str(Path(setting.file)), setting.k)

    def digest_sources(self) -> dict[str, str]:
        """Return digests of the policies' files, and of the contents of the tables."""
        files = dict.fromkeys(setting.file for setting in self.settings)
        return super().digest_sources() | {file: _digest(_read_table(file)) for file in files}

    def _write_arguments(self, out: list[str]) -> list[list[str]]:
        identity = [] if self.with_identity else ["--no-identity"]
        options = [*identity, *self._write_options(ChoicesPlan(self.settings), {"feedback": "feedback"}), *out]
        return group_by_k(self.settings, options)


def _digest(logs: Logs) -> str:
    found = hashlib.sha256()
    for value in vars(logs).values():
        found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return found.hexdigest()[:16]


def _read_table(file: str) -> Logs:
    """Read a table, cached in this process until the file changes."""
    path = os.path.abspath(file)
    return _read_version(path, os.stat(path).st_mtime_ns)


@cache
def _read_version(path: str, changed: int) -> Logs:  # noqa: ARG001
    return read_logs(path)
