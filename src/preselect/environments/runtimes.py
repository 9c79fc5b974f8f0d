"""Tables of run times, of algorithms on instances, as rounds: the paper's second study (Section 6.2).

A table is a folder. Either as the paper's: `cpu_times.tsv` (instances x algorithms, seconds), `features.csv` (instances
x features), `parameters.json` (rows [alpha, rho, ps, wp], one per algorithm). Or as `preselect sat runtimes` and
`preselect sat features` write them: `runs.csv` and `features.csv`, of the paper's 20 parametrizations. Files may be
compressed.
"""

import csv
import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from preselect.context import Floats, StructuredContext
from preselect.decision import Decision
from preselect.environments.regret import regrets
from preselect.errors import InputError
from preselect.features import Kronecker, Reduction
from preselect.files import read_text
from preselect.outcomes import NoWinner, Outcome, Ranking, Winner
from preselect.sat import runtimes
from preselect.sat.parametrizations import PRINTED

FEEDBACKS = ("winner", "ranking", "race")


@dataclass(frozen=True, eq=False)
class RuntimeTable:
    """Seconds of every algorithm on every instance, whether it solved it, and what is known of both beforehand."""

    instances: list[str]
    seconds: Floats  # instances x algorithms; the cutoff where not solved
    solved: NDArray[np.bool_]  # all true where the table does not say
    features: Floats  # instances x features
    feature_names: list[str]
    parameters: Floats  # algorithms x 4

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> Self:
        """Read a table's folder."""
        place = Path(folder)
        names, columns, features = _read_numbers(_find(place, "features.csv"), ",")
        if _there(place, "cpu_times.tsv"):
            rows, _, seconds = _read_numbers(_find(place, "cpu_times.tsv"), "\t")
            solved = np.ones(seconds.shape, dtype=np.bool_)
            parameters = _read_parameters(_find(place, "parameters.json"))
        else:
            rows, seconds, solved = _read_runs(_find(place, "runs.csv"))
            parameters = PRINTED
        if seconds.shape[1] != len(parameters):
            raise InputError(
                f"{place} must have one algorithm per parametrization, got {seconds.shape[1]} and {len(parameters)}"
            )
        row_of = {name: row for row, name in enumerate(names)}
        missing = [name for name in rows if name not in row_of]
        if missing:
            raise InputError(f"{place} must have features of every instance, got none of {missing[0]}")
        ordered = features[[row_of[name] for name in rows]]
        return cls(rows, seconds, solved, ordered, columns, parameters)

    @classmethod
    def shipped(cls) -> Self:
        """The table that comes with this library: small-world colouring instances of mixed size and ratio."""
        with resources.as_file(resources.files("preselect") / "data" / "saps") as folder:
            return cls.read(folder)

    def log_utilities(self, scale: float) -> Floats:
        """The paper's utilities exp(-λ R), as logarithms."""
        return -scale * self.seconds


@cache
def table(folder: str | None) -> RuntimeTable:
    """The table in a folder, or the shipped one; read once."""
    return RuntimeTable.shipped() if folder is None else RuntimeTable.read(folder)


class Runtimes:
    """Instances of a table in random order, each once, with the paper's preprocessing and Kronecker features.

    Instance features are scaled and reduced as in the paper (see Reduction) over the whole table, arm features scaled
    to [0, 1]; the joint features are arm ⊗ instance. Utilities are exp(-λ R). A `winner` or a `ranking` is drawn from
    the Plackett-Luce model with these utilities; in a `race` the truly fastest of the chosen wins.
    """

    def __init__(
        self,
        data: RuntimeTable,
        *,
        scale: float = 10.0,
        feedback: str = "ranking",
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.data, self.feedback = data, feedback
        generator = np.random.default_rng(seed)
        self._order = generator.permutation(len(data.instances))
        self._utilities = data.log_utilities(scale)
        self._perturbed = self._utilities + generator.gumbel(size=self._utilities.shape)
        self._arms, self._contexts = joint_features(data)
        self._join = Kronecker()
        self._round = -1
        self.d = self._arms.shape[1] * self._contexts.shape[1]

    @property
    def _instance(self) -> int:
        return int(self._order[self._round])

    def context(self) -> StructuredContext:
        """Go on to the next instance."""
        self._round += 1
        return self._join(self._arms, self._contexts[self._instance])

    def outcome(self, decision: Decision) -> Outcome:
        """A draw from the model, or who is fastest; tables do not tell their cutoff, so not after which share of it."""
        arms, i = decision.arms, self._instance
        if self.feedback == "race":
            running = arms[self.data.solved[i, arms]]
            return Winner(running[self.data.seconds[i, running].argmin()]) if len(running) else NoWinner()
        ranked = arms[np.argsort(-self._perturbed[i, arms])]
        return Winner(ranked[0]) if self.feedback == "winner" else Ranking(ranked)

    def truth(self) -> Floats:
        """True log-utilities of all arms in this round."""
        known: Floats = self._utilities[self._instance]
        return known

    def measure(self, truths: Floats, arms: NDArray[np.int64]) -> dict[str, Floats]:
        """Regret of the best arm and of the set."""
        return regrets(truths, arms)


_FEATURES: dict[int, tuple[Floats, Floats]] = {}


def joint_features(data: RuntimeTable) -> tuple[Floats, Floats]:
    """Arms and contexts as the paper's preprocessing leaves them; computed once per table."""
    if id(data) not in _FEATURES:
        contexts = Reduction().fit(data.features, data.feature_names).transform(data.features)
        low, high = data.parameters.min(axis=0), data.parameters.max(axis=0)
        _FEATURES[id(data)] = (data.parameters - low) / (high - low), contexts
    return _FEATURES[id(data)]


def yardsticks(data: RuntimeTable, scale: float, k: int) -> dict[str, dict[str, float]]:
    """Regret over all instances, by measure, of a random set (in expectation), of the k arms with the largest mean
    utility, and of a good fixed set chosen in hindsight (greedily, then by swaps).
    """
    u = data.log_utilities(scale)
    share = np.exp(u - u.max(axis=1, keepdims=True))
    by_mean = np.argsort(-np.exp(u).mean(axis=0))[:k]
    found = {"random set": _random_set(u, k), "top k by mean utility": _totals(u, by_mean)}
    return {**found, "best fixed set": _totals(u, _best_set(share, k))}


def _totals(u: Floats, arms: NDArray[np.int64]) -> dict[str, float]:
    return {name: float(values.sum()) for name, values in regrets(u, np.tile(arms, (len(u), 1))).items()}


def _random_set(u: Floats, k: int) -> dict[str, float]:
    """In expectation: of the sorted utilities, the j-th smallest is the best of C(j - 1, k - 1) of the C(n, k) sets."""
    n = u.shape[1]
    share = np.sort(np.exp(u - u.max(axis=1, keepdims=True)), axis=1)
    chances = np.array([math.comb(j, k - 1) for j in range(n)]) / math.comb(n, k)
    reached = k * share.mean(axis=1) / share[:, -k:].sum(axis=1)
    return {"best_arm": float((1.0 - share @ chances).sum()), "top_k": float((1.0 - reached).sum())}


def _best_set(share: Floats, k: int) -> NDArray[np.int64]:
    """Greedily the arms that add most to the share of the best utility that is reached, then swaps while they help."""
    chosen: list[int] = []
    for _ in range(k):
        reached = share[:, chosen].max(axis=1, initial=0.0)
        gains = np.maximum(share, reached[:, None]).sum(axis=0)
        gains[chosen] = -np.inf
        chosen.append(int(gains.argmax()))
    while True:
        best, swap = share[:, chosen].max(axis=1).sum(), None
        for place in range(k):
            reached = share[:, chosen[:place] + chosen[place + 1 :]].max(axis=1, initial=0.0)
            gains = np.maximum(share, reached[:, None]).sum(axis=0)
            if gains.max() > best + 1e-9:
                best, swap = gains.max(), (place, int(gains.argmax()))
        if swap is None:
            return np.array(chosen)
        chosen[swap[0]] = swap[1]


def _there(place: Path, name: str) -> Path | None:
    return next(
        (place / f"{name}{suffix}" for suffix in ("", ".gz", ".xz") if (place / f"{name}{suffix}").exists()), None
    )


def _find(place: Path, name: str) -> Path:
    found = _there(place, name)
    if found is None:
        raise InputError(f"{place} must be a folder with a table of run times, got no {name} in it")
    return found


def _read_numbers(path: Path, separator: str) -> tuple[list[str], list[str], Floats]:
    """Names of the rows, names of the columns, and the numbers of a table with both."""
    rows = list(csv.reader(read_text(path).splitlines(), delimiter=separator))
    if len(rows) < 2:
        raise InputError(f"{path} must have a header and at least one row, got {len(rows)} lines")
    numbers = np.empty((len(rows) - 1, len(rows[0]) - 1))
    for place, row in enumerate(rows[1:]):
        try:
            numbers[place] = [float(value) for value in row[1:]]
        except ValueError as error:
            raise InputError(f"{path}, line {place + 2}: {error}") from None
    return [row[0] for row in rows[1:]], rows[0][1:], numbers


def _read_parameters(path: Path) -> Floats:
    try:
        parameters = np.array(json.loads(read_text(path)), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path} must be a JSON list of rows of numbers, got something else: {error}") from None
    if parameters.ndim != 2:
        raise InputError(f"{path} must be a JSON list of rows of numbers, got shape {parameters.shape}")
    return parameters


def _read_runs(path: Path) -> tuple[list[str], Floats, NDArray[np.bool_]]:
    lines = runtimes.read_runtimes(path)
    instances = list(dict.fromkeys(line.instance for line in lines))
    row_of = {name: row for row, name in enumerate(instances)}
    shape = (len(instances), max((line.parametrization for line in lines), default=0))
    seconds, solved = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
    for line in lines:
        where = row_of[line.instance], line.parametrization - 1
        seconds[where], solved[where] = line.seconds, line.solved
    whole = np.isfinite(seconds).all(axis=1)
    if not whole.any():
        raise InputError(f"{path} must have runs of all parametrizations on some instance, got none")
    kept: Any = np.flatnonzero(whole)
    return [instances[row] for row in kept], seconds[kept], solved[kept]
