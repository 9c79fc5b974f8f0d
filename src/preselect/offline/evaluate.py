"""`evaluate`: estimate what other policies would have won on logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from preselect.arguments import integer, number, show
from preselect.context import Floats, Integers
from preselect.errors import InputError
from preselect.logs import Logs
from preselect.offline.choosing import Chooser, train
from preselect.offline.estimates import Interval, count_effective, self_normalise
from preselect.offline.logged_rounds import LoggedRound, fill_in_propensities, have_all_propensities, list_rounds
from preselect.offline.measures import Hits, Picks, Weighted, Wins
from preselect.preselector import Preselector

_LOGGED = "as logged"
_LEAST = 20  # the fewest rounds to learn from, and to evaluate on
_MODEL = "newton"

_Measure: TypeAlias = Picks | Wins | Hits


class Estimate(NamedTuple):
    """What a policy would have won, estimated in one way.

    Parameters
    ----------
    method : str
        "observed", "self-normalised", "doubly robust" or "the model".
    value : Interval
        The estimate.
    lead : Interval
        The estimate minus what was won in the logs, on the same rounds.
    """

    method: str
    value: Interval
    lead: Interval


class PolicyValue(NamedTuple):
    """A policy and what it would have won.

    Parameters
    ----------
    policy : str
        Its name; "as logged" for what was really shown.
    estimates : tuple of Estimate
        The estimates: the most trustworthy first, the model's opinion last.
    effective : float
        The effective number of rounds that tell something about this policy; NaN if only the model was asked.
    effective_wins : float
        The effective number of wins among them; NaN if only the model was asked.
    support : Interval
        The mean of the weights, which should be 1. If it is clearly below 1, the policy shows arms that the logs never
        show, about which only the model can say anything. NaN if only the model was asked.
    """

    policy: str
    estimates: tuple[Estimate, ...]
    effective: float
    effective_wins: float
    support: Interval


@dataclass(frozen=True)
class Evaluation:
    """What policies would have won on logs.

    Parameters
    ----------
    measure : str
        What was counted: "picks", "wins" or "hits"; see `preselect.offline.measures`.
    meaning : str
        What that means, in half a sentence.
    reason : str
        Why only a model could be asked; empty if the estimates follow from propensities.
    learnt_from : int
        How many rounds, counted from the first, policies and the model learnt from.
    rounds : int
        How many rounds after them were evaluated.
    policies : tuple of PolicyValue
        What was logged, then the policies in the order in which they were given.
    """

    measure: str
    meaning: str
    reason: str
    learnt_from: int
    rounds: int
    policies: tuple[PolicyValue, ...]


def evaluate(
    logs: Logs,
    policies: Iterable[str] | Mapping[str, str | Preselector],
    *,
    learn_from: float = 0.5,
    identity: bool = True,
    nobody_may_win: bool = False,
    every_arm: bool = False,
    by_model: bool = False,
    draws: int = 200,
    seed: int = 0,
    report: Callable[[int, int, str], None] | None = None,
) -> Evaluation:
    """Estimate what policies would have won if they had chosen in the rounds of logs.

    Policies learn from the first rounds and are evaluated on the others, without learning any more. In each round they
    choose as many arms as were shown. If the logs have the probabilities with which arms were shown, estimates are
    computed from these (see `preselect.offline.measures`), otherwise from a model that is fitted to the first rounds.
    All intervals are 95 % confidence intervals.

    Parameters
    ----------
    logs : Logs
        What `preselect.logs.read` returns, in the order in which rounds were played, with rows for arms that could
        have been shown but were not.
    policies : iterable of str, or mapping of str to str or Preselector
        Policies by name, or preselectors under names of your own. A preselector is evaluated as it is: it should not
        have learnt from the rounds that are evaluated.
    learn_from : float, default 0.5
        The share of rounds, from the first on, to learn from; above 0 and below 1.
    identity : bool, default True
        Whether arms have weights of their own, in policies and in the model.
    nobody_may_win : bool, default False
        Whether rounds without a winner count as won by nobody; otherwise they are left out.
    every_arm : bool, default False
        Whether every arm of the logs could have been shown in every round; otherwise only arms with a row in it.
    by_model : bool, default False
        Whether to use only the model even if the logs have propensities.
    draws : int, default 200
        How many sets to draw in each round from a policy that chooses at random.
    seed : int, default 0
        Seed of all random numbers.
    report : callable, optional
        Called as report(done, total, policy) after each round of each policy.
    """
    if not isinstance(logs, Logs):
        raise InputError(f"logs is {show(logs)}; use what preselect.logs.read returns")
    named = _name(policies)
    draws, seed = integer(draws, "draws", 1), integer(seed, "seed", 0)
    complete = fill_in_propensities(logs.list_every_arm() if every_arm else logs)
    first = round(number(learn_from, "learn_from", least=0.0, below=1.0) * len(logs))
    past, rest = complete.take(0, first), complete.take(first, len(logs))
    _check_sizes(past, rest)
    options = {"identity": identity, "nobody_may_win": nobody_may_win}
    kept = np.flatnonzero(rest.winners | nobody_may_win)
    if len(kept) < 2:
        raise InputError(
            f"{len(kept)} of the rounds to evaluate on have a winner, which is too few; with nobody_may_win=True "
            "(--nobody-may-win) those without a winner count, too"
        )
    measure, reason = _find_measure(rest, kept, nobody_may_win, by_model)
    model = Preselector.fit(past, policy=_MODEL, seed=seed, **options)
    rounds = list_rounds(rest, kept, past, model, seed)
    weigher = None if reason or isinstance(measure, Hits) else measure
    work = _Evaluator(measure, weigher, rounds, kept, draws, seed, report, len(named) * len(rounds))
    found = [work.evaluate_logged()]
    for name, policy in named.items():
        made = policy if isinstance(policy, Preselector) else train(policy, past, options, seed)
        found.append(work.evaluate(name, Chooser(name, made, rest)))
    return Evaluation(measure.name, measure.meaning, reason, first, len(rounds), tuple(found))


def _name(policies: Iterable[str] | Mapping[str, str | Preselector]) -> Mapping[str, str | Preselector]:
    if isinstance(policies, str):
        raise InputError(f"policies is {show(policies)}; give a list of names, such as [{show(policies)}]")
    if not isinstance(policies, Iterable):
        raise InputError(f"policies is {show(policies)}; give a list of names, such as ['newton', 'random']")
    named = policies if isinstance(policies, Mapping) else {policy: policy for policy in policies}
    if not named:
        raise InputError("no policy is given to evaluate; name one, such as newton")
    return named


def _check_sizes(past: Logs, rest: Logs) -> None:
    if min(len(past), len(rest)) < _LEAST:
        raise InputError(
            f"{len(past)} rounds to learn from and {len(rest)} to evaluate on are too few; each has to be at least "
            f"{_LEAST}"
        )
    if rest.shown.all():
        raise InputError(
            "no round has an arm that was not shown, so there is nothing to choose; add rows with shown=0 for the "
            "arms that were there, or say that every arm was there in every round (every_arm=True, --every-arm)"
        )


def _find_measure(logs: Logs, kept: Integers, nobody_may_win: bool, by_model: bool) -> tuple[_Measure, str]:
    """Return the measure, and why only a model can estimate it; the reason is empty if propensities suffice."""
    model = Picks() if nobody_may_win else Hits()
    if by_model:
        return model, "it was asked for"
    if nobody_may_win and have_all_propensities(logs, kept, "set_propensity"):
        return Picks(), ""
    if have_all_propensities(logs, kept, "propensity"):
        return Wins(nobody_may_win), ""
    return model, f"the logs do not say with which probability {'single ' * (not nobody_may_win)}arms were shown"


@dataclass
class _Evaluator:
    """An evaluation under way."""

    measure: _Measure
    weigher: Picks | Wins | None  # the measure, if propensities suffice to estimate it
    rounds: list[LoggedRound]
    kept: Integers
    draws: int
    seed: int
    report: Callable[[int, int, str], None] | None
    total: int
    done: int = 0

    def __post_init__(self) -> None:
        self.observed = np.array([one.won.sum() for one in self.rounds])
        self.logged = np.stack([self.measure.predict_logged(one) for one in self.rounds])
        self.expected = np.array([self.measure.expect(one) for one in self.rounds])
        self.most = float(self.expected.mean())  # that can be won in a round

    def evaluate_logged(self) -> PolicyValue:
        """Return what was won with the arms that were shown, and what the model expects of them."""
        estimates = [_compare("the model", self.logged, self.logged)]
        if not isinstance(self.measure, Hits):
            value = Interval.of_share(self.observed, self.most, len(self.rounds))
            estimates.insert(0, Estimate("observed", value, Interval(0.0, 0.0, 0.0)))
        return PolicyValue(
            _LOGGED,
            tuple(estimates),
            float(len(self.rounds)),
            count_effective(self.observed),
            Interval(1.0, 1.0, 1.0),
        )

    def evaluate(self, name: str, chooser: Chooser) -> PolicyValue:
        """Return what a policy would have won."""
        predicted, weighted = [], []
        for t, one in zip(self.kept.tolist(), self.rounds, strict=True):
            choice = chooser.choose(t, len(one.shown), self.draws, self.seed + t, self.measure.needs_sets)
            predicted.append(self.measure.predict(one, choice))
            if self.weigher is not None:
                weighted.append(self.weigher.weigh(one, choice))
            self._count(name)
        model = _compare("the model", np.stack(predicted), self.logged)
        if self.weigher is None:
            return PolicyValue(name, (model,), np.nan, np.nan, Interval(np.nan, np.nan, np.nan))
        return self._join(name, weighted, np.stack(predicted)[:, 0], model)

    def _join(self, name: str, weighted: list[Weighted], predicted: Floats, model: Estimate) -> PolicyValue:
        weights, wins, by_model = (np.array(column) for column in zip(*weighted, strict=True))
        effective = count_effective(weights)
        methods = {"doubly robust": predicted + wins - by_model}
        if np.count_nonzero(weights) > 1:
            methods = {"self-normalised": self_normalise(wins, weights, self.expected), **methods}
        estimates = [
            Estimate(
                method,
                Interval.of_share(numbers, self.most, effective),
                Interval.of(numbers - self.observed, effective=effective),
            )
            for method, numbers in methods.items()
        ]
        support = Interval.of(weights / self.most)
        return PolicyValue(name, (*estimates, model), effective, count_effective(wins), support)

    def _count(self, name: str) -> None:
        self.done += 1
        if self.report is not None:
            self.report(self.done, self.total, name)


def _compare(method: str, predicted: Floats, logged: Floats) -> Estimate:
    """Return the model's estimate, given its predictions, rounds x weights, with the best weights first."""
    leads = predicted - logged
    value, lead = (Interval.of(each[:, 0], each[:, 1:].mean(axis=0).var(ddof=1)) for each in (predicted, leads))
    return Estimate(method, value, lead)
