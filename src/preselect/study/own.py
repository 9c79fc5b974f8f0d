"""The study on environments of the user's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from preselect.arguments import integer, show
from preselect.environments import Environment, regrets
from preselect.errors import InputError, PreselectError
from preselect.outcomes import Outcome
from preselect.own_classes import check_parameters, digest_class, import_class, parse_call
from preselect.policies import Random
from preselect.study.plan import Measure, Plan, SettingData, group_by_k
from preselect.study.synthetic import MAX_HORIZON, REGRETS

_METHODS = ("context", "outcome", "truth")
_NEEDED = "an environment has d, context(), outcome(decision) and truth()"


class OwnSetting(NamedTuple):
    """An environment of your own, and how many arms are chosen in each of its rounds.

    Parameters
    ----------
    environment : str
        Its class as module:Class, also with parameters as in "routes:Routes(n=20)".
    k : int
        Arms to choose.
    """

    environment: str
    k: int

    def __str__(self) -> str:
        return f"{self.environment}, k = {self.k}"


@dataclass(frozen=True)
class OwnPlan(Plan):
    """A study on environments of your own, which `preselect.environments.Environment` describes.

    An environment is made with a keyword `seed`, a numpy SeedSequence, and the parameters that its setting names. One
    without a method `measure` is judged by regret: its `truth` returns the log-utilities of all arms.

    Parameters
    ----------
    settings : tuple of OwnSetting
        Environments with the number of arms to choose; at least one.
    policies : tuple of str, default newton, cppl, max-theta and random
        Policies; the first is compared with the others.
    repetitions : int, default 10
        Repetitions of each policy in each setting.
    horizon : int, default 1000
        Rounds of a repetition, at most 100,000,000.
    criteria : tuple of (name, title, meaning, label), optional
        The measures by which policies are judged; by default those of the environments, which have to be the same.
    seed : int, default 0
        Seed of all random numbers.
    block : int, default 1
        Repetitions that are computed and written together.
    """

    kind = "run"
    title = "Study on environments of one's own"
    heading = "environment"
    setting_type = OwnSetting
    shares_scale = False

    settings: tuple[OwnSetting, ...] = ()
    policies: tuple[str, ...] = ("newton", "cppl", "max-theta", "random")
    repetitions: int = 10
    horizon: int = 1000
    criteria: tuple[tuple[str, str, str, str], ...] = ()
    seed: int = 0
    block: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.horizon <= MAX_HORIZON:
            raise InputError(f"horizon is {self.horizon}; a study has 1 to {MAX_HORIZON} rounds")
        for _, k in self.settings:
            integer(k, "k", 1)
        found = self.criteria or _find_criteria(self.settings)
        object.__setattr__(self, "criteria", tuple((one[0], *Measure(*one[1:])) for one in found))

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures by which policies are judged."""
        return {name: Measure(*words) for name, *words in self.criteria}

    def describe(self, rounds: int) -> str:
        """Describe what was played."""
        return f"{rounds} rounds of each environment"

    def read_data(self, setting: OwnSetting) -> SettingData:
        """Play two rounds to find mistakes in the environment; return the horizon and d."""
        d, measures = _try_rounds(setting)
        if set(measures) != set(self.measures):
            expected = ", ".join(self.measures)
            raise InputError(
                f"{setting.environment} measures {', '.join(measures)}, but the study {expected}; "
                "environments of one study measure the same"
            )
        return SettingData(self.horizon, d, {})

    def make_environment(self, setting: OwnSetting, seed: np.random.SeedSequence) -> Environment:
        """Return the rounds of one repetition."""
        environment: Environment = _make(setting.environment, seed)
        return environment

    def digest_sources(self) -> dict[str, str]:
        """Return digests of the files of policies and environments."""
        environments = {setting.environment for setting in self.settings}
        return super().digest_sources() | {name: digest_class(_find_class(name)[0]) for name in sorted(environments)}

    def _write_arguments(self, out: list[str]) -> list[list[str]]:
        default = OwnPlan(self.settings, criteria=self.criteria)
        return group_by_k(self.settings, [*self._write_options(default, {"horizon": "horizon"}), *out])


def _find_class(environment: str) -> tuple[Any, dict[str, Any]]:
    """Return the class and the parameters of an environment that is given as text."""
    if not isinstance(environment, str) or ":" not in environment:
        raise InputError(f"an environment is written as module:Class, not as {show(environment)}")
    name, parameters = parse_call(environment, "environment")
    known = import_class(name, "environment")
    if not callable(known):
        raise InputError(f"{show(name)} is {show(known)}, not a class of environments")
    if isinstance(known, type):
        check_parameters(name, known, parameters)
    return known, parameters


def _make(name: str, seed: np.random.SeedSequence) -> Any:
    make, parameters = _find_class(name)
    try:
        environment = make(**{**parameters, "seed": seed})
    except TypeError as error:
        raise InputError(f"{name} cannot be made with seed and its parameters: {error}") from None
    except Exception as error:  # whatever its constructor raises
        raise InputError(f"{name} cannot be made: {type(error).__name__}: {error}") from None
    missing = [f"{method}()" for method in _METHODS if not callable(getattr(environment, method, None))]
    missing += [] if hasattr(environment, "d") else ["d, the number of its features"]
    if missing:
        raise InputError(f"{name} has no {', no '.join(missing)}; {_NEEDED}")
    if not hasattr(environment, "measure"):
        environment.measure = regrets
    return environment


def _try_rounds(setting: OwnSetting) -> tuple[int, dict[str, Measure]]:
    """Play two rounds; return the number of features, and the measures."""
    name = setting.environment
    environment = _make(name, np.random.SeedSequence(0))
    with _blame(name, "d"):
        d = integer(environment.d, "d", 1)
    policy, truths, arms = Random(d=d, seed=0), [], []
    for _ in range(2):
        with _blame(name, "context()"):
            decision = policy.select(_expect_context(environment.context(), d, setting.k), setting.k)
        with _blame(name, "outcome()"):
            policy.learn(decision, _expect_outcome(environment.outcome(decision)))
        with _blame(name, "truth()"):
            truths.append(np.asarray(environment.truth(), dtype=np.float64))
        arms.append(decision.arms)
    with _blame(name, "measure()"):
        found = environment.measure(np.array(truths), np.array(arms))
        _expect_measures(found)
    with _blame(name, "measures"):
        words = {**REGRETS, **getattr(environment, "measures", {})}
        return d, {measure: Measure(*words.get(measure, _name_measure(measure))) for measure in found}


def _expect_context(context: Any, d: int, k: int) -> Any:
    shape = getattr(context, "shape", None) or np.shape(context)
    if len(shape) != 2 or shape[1] != d:
        raise InputError(f"its shape is {shape}; return a row for each arm, with d={d} features")
    if shape[0] < k:
        raise InputError(f"it has only {shape[0]} arms, but k={k} are to be chosen")
    return context


def _expect_outcome(outcome: object) -> Outcome:
    if not isinstance(outcome, Outcome):
        raise InputError(f"{show(outcome)} is no outcome; return a Winner, a Ranking, NoWinner() or Void()")
    return outcome


def _expect_measures(found: object) -> None:
    wrong = not isinstance(found, dict) or not found
    if wrong or any(np.shape(values) != (2,) for values in found.values()):  # type: ignore[attr-defined]
        raise InputError(f"{show(found)} is not a dictionary with an array of one number per round for each measure")


def _name_measure(name: str) -> Measure:
    words = name.replace("_", " ")
    return Measure(words.capitalize(), "as the environment measures it", f"cumulative {words}")


def _find_criteria(settings: tuple[OwnSetting, ...]) -> list[tuple[str, str, str, str]]:
    _, measures = _try_rounds(settings[0])
    return [(name, *words) for name, words in measures.items()]


@contextmanager
def _blame(name: str, step: str) -> Iterator[None]:
    """Turn an error of an environment into an InputError that says in which step it failed."""
    try:
        yield
    except PreselectError as error:
        raise InputError(f"{name}, {step}: {error}") from None
    except Exception as error:  # the environment's own
        raise InputError(f"{name}, {step}: {type(error).__name__}: {error}") from None
