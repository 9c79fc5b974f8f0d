"""The plan of the paper's second study (Section 6.2): which parametrizations of SAPS to run, by number of choices."""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from preselect.environments import Environment, RuntimeReplay, RuntimeTable, regret_baselines
from preselect.errors import InputError
from preselect.study.plan import Plan, options
from preselect.study.synthetic import REGRETS


class SapsSetting(NamedTuple):
    """k to choose."""

    k: int

    def __str__(self) -> str:
        return f"k = {self.k}"


DEFAULT_POLICIES = ("newton", "newton(choose='cover')", "cppl", "max-theta", "epsilon-greedy", "mm")


@cache
def _load_table(folder: str | None) -> RuntimeTable:
    """The table in a folder, or the shipped one; read once."""
    return RuntimeTable.read_shipped() if folder is None else RuntimeTable.read(folder)


@cache
def _compute_baselines(folder: str | None, scale: float, k: int) -> dict[str, dict[str, float]]:
    """Total regret of choices that learn nothing, by name and measure; computed once."""
    return regret_baselines(_load_table(folder).log_utilities(scale), k)


@dataclass(frozen=True)
class SapsPlan(Plan):
    """Every instance of a table once, in random order; regret of utilities exp(-λ R)."""

    kind = "saps"
    title = "Algorithm selection study"
    heading = "k"
    measures = REGRETS

    settings: tuple[SapsSetting, ...] = (SapsSetting(3), SapsSetting(5), SapsSetting(10))
    policies: tuple[str, ...] = DEFAULT_POLICIES
    repetitions: int = 50
    data: str | None = None
    feedback: str = "ranking"
    scale: float = 100.0  # the paper's λ is 10; runs of the shipped table end after 0.1 s
    seed: int = 0
    block: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feedback not in RuntimeReplay.feedbacks:
            raise InputError(f"feedback must be one of {', '.join(RuntimeReplay.feedbacks)}, got {self.feedback!r}")
        arms = len(self._table().parameters)
        for (k,) in self.settings:
            if not 1 <= k < arms:
                raise InputError(f"k must be from 1 to {arms - 1}, fewer than there are algorithms, got {k}")

    def _table(self) -> RuntimeTable:
        return _load_table(self.data)

    @property
    def identity(self) -> dict[str, Any]:
        """What must agree for results to belong together."""
        return {name: getattr(self, name) for name in ("data", "feedback", "scale", "seed", "block")}

    @property
    def about(self) -> str:
        """What was varied."""
        source = "the shipped table" if self.data is None else f"the table in {self.data}"
        return f"{len(self._table().instances)} instances of {source}, {self.feedback} feedback, λ = {self.scale:g}"

    def horizon_of(self, setting: SapsSetting) -> int:  # noqa: ARG002
        """Rounds of a repetition."""
        return len(self._table().instances)

    def features_of(self, setting: SapsSetting) -> int:  # noqa: ARG002
        """Number of joint features."""
        arms, contexts = self._table().joint_features
        return int(arms.shape[1] * contexts.shape[1])

    def environment(self, setting: SapsSetting, seed: np.random.SeedSequence) -> Environment:  # noqa: ARG002
        """The rounds of one repetition."""
        return RuntimeReplay(self._table(), scale=self.scale, feedback=self.feedback, seed=seed)

    def baselines(self, setting: SapsSetting, measure: str) -> dict[str, float]:
        """What sets that learn nothing add up to."""
        found = _compute_baselines(self.data, self.scale, setting.k)
        return {name: totals[measure] for name, totals in found.items()}

    def command(self, folder: str) -> str:
        """The command that computes this study again."""
        parts = ["preselect study saps"]
        if self.data is not None:
            parts.append(f"--data {self.data}")
        if self.settings != SapsPlan.settings:
            parts.append(f"--k {','.join(str(k) for (k,) in self.settings)}")
        if self.policies != DEFAULT_POLICIES:
            parts.append(f'--policies "{",".join(self.policies)}"')
        named = {"feedback": "feedback", "scale": "lambda", "repetitions": "reps", "seed": "seed"}
        return " ".join([*parts, *options(self, SapsPlan, **named), f"--out {folder}"])

    @classmethod
    def from_json(cls, parameters: dict[str, Any]) -> Self:
        """The plan that `as_json` gave."""
        settings = tuple(SapsSetting(*numbers) for numbers in parameters.pop("settings"))
        return cls(settings=settings, policies=tuple(parameters.pop("policies")), **parameters)
