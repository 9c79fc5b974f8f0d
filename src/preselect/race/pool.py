"""A pool: the arms that may race, how many at a time, their limits, and what counts as an answer.

`read_pool` in `preselect.race.pool_file` reads a pool from its file. An `Arm` is a command with placeholders; on an
instance it becomes a `Racer`, a command that is ready to run.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path

from preselect.arguments import integer, number
from preselect.errors import InputError
from preselect.race.supervision import Limits, Racer

PLACEHOLDERS = ("instance", "seed", "timeout")

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class FeatureSource:
    """Where the features of an instance come from.

    Parameters
    ----------
    kind : str, default "none"
        "sat" computes the SATzilla features of a formula, "command" runs a program, "csv" reads a table, "none" has no
        features.
    clause_graph : bool, default False
        Whether "sat" includes the costly features of the clause graph.
    command : tuple of str
        The program of "command" and its arguments, with the placeholder {instance}.
    file : Path, optional
        The table of "csv".
    seconds : float, default 10
        The time that computing the features of one instance may take.
    """

    kind: str = "none"
    clause_graph: bool = False
    command: tuple[str, ...] = ()
    file: Path | None = None
    seconds: float = 10.0


@dataclass(frozen=True)
class Success:
    """What counts as an answer.

    Parameters
    ----------
    exit_codes : tuple of int, default (10, 20)
        Exit codes that mean an answer.
    pattern : str, optional
        A regular expression that the output of an answer matches; the exit code does not matter then.
    verifier : str or tuple of str, default "none"
        "model" checks the output of SAT solvers (see `preselect.race.answers`), "none" trusts every answer, and a
        command with the placeholder {output} exits with 0 if the answer is right.
    """

    exit_codes: tuple[int, ...] = (10, 20)
    pattern: str | None = None
    verifier: str | tuple[str, ...] = "none"


@dataclass(frozen=True)
class Arm:
    """A command that may race, as the pool file describes it.

    Parameters
    ----------
    name : str
        The arm's name.
    command : tuple of str
        The program and its arguments, with the placeholders {instance}, {seed} and {timeout}.
    features : mapping of str to float
        Numbers that describe the arm, so that what is learnt about one arm helps with similar ones.
    environment : mapping of str to str
        Environment variables to set for the command.
    success : Success
        What counts as its answer.
    """

    name: str
    command: tuple[str, ...]
    features: Mapping[str, float]
    environment: Mapping[str, str]
    success: Success


@dataclass(frozen=True)
class Pool:
    """What a pool file says.

    Parameters
    ----------
    path : Path
        The pool file.
    arms : mapping of str to Arm
        The arms by name.
    k : int
        How many arms race on an instance.
    policy : str
        How to choose them, for instance "cppl(omega=0.5)".
    seed : int
        Seeds the policy and the racers.
    journal : Path
        Where decisions and outcomes are kept.
    limits : Limits
        Time, memory and output of a race.
    features : FeatureSource
        Where the features of instances come from.
    """

    path: Path
    arms: Mapping[str, Arm]
    k: int
    policy: str
    seed: int
    journal: Path
    limits: Limits
    features: FeatureSource

    def override(self, *, k: int | None = None, seconds: float | None = None) -> "Pool":
        """Return the pool with another number of racers or another time limit, where one is given."""
        chosen = self.k if k is None else check_k(integer(k, "k", 1), len(self.arms))
        return replace(self, k=chosen, limits=self._limit(self.limits.seconds if seconds is None else seconds))

    def shorten(self, seconds: float) -> "Pool":
        """Return the pool with a time limit of at most `seconds`."""
        return replace(self, limits=self._limit(min(seconds, self.limits.seconds)))

    def _limit(self, seconds: float) -> Limits:
        return Limits(number(seconds, "seconds", above=0.0), self.limits.memory, self.limits.output)

    def make_racer(self, arm: str, instance: str | PathLike[str], seed: int) -> Racer:
        """Make the command that an arm runs on an instance."""
        if arm not in self.arms:
            raise InputError(f"there is no arm {arm!r:.80} in {self.path}; its arms are {', '.join(self.arms)}")
        path, timeout = fspath(Path(instance).absolute()), str(math.ceil(self.limits.seconds))
        values = {"instance": path, "seed": str(integer(seed, "seed", 0)), "timeout": timeout}
        command, success = self.arms[arm].command, self.arms[arm].success
        verifier = success.verifier if isinstance(success.verifier, tuple) else None
        if verifier and "{output}" in path:  # the supervisor would replace it there too
            raise InputError(f"the path {path!r} contains {{output}}, which is a placeholder; rename it")
        return Racer(
            name=arm,
            command=fill(command, values),
            environment=self.arms[arm].environment,
            exit_codes=success.exit_codes,
            pattern=success.pattern,
            verifier=verifier and fill(verifier, values),
        )


def check_k(k: int, arms: int) -> int:
    """Return k if there are that many arms."""
    if k > arms:
        raise InputError(f"k={k}, but there {'is only 1 arm' if arms == 1 else f'are only {arms} arms'}")
    return k


def fill(command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Replace the placeholders in a command; placeholders inside the values stay as they are.

    >>> fill(["solve", "--seed={seed}", "{instance}"], {"seed": "1", "instance": "a {seed}.cnf"})
    ('solve', '--seed=1', 'a {seed}.cnf')
    """
    return tuple(_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), argument) for argument in command)


def find_placeholders(command: Sequence[str]) -> list[str]:
    """Find the names of all placeholders in a command.

    >>> find_placeholders(["solve", "--seed={seed}", "{instance}"])
    ['seed', 'instance']
    """
    return [name for argument in command for name in _PLACEHOLDER.findall(argument)]
