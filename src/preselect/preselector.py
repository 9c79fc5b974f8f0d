"""`Preselector`, the main class: arms and features by name, any policy, arms that join later, save and load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from preselect.arguments import boolean, distinct_names, one_of, show, warn_about_single_arm
from preselect.context import Floats
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.guard import serial
from preselect.joint_features import JointFeatures
from preselect.logs.logs import Logs
from preselect.logs.ranked import RankedRows, rank_rows
from preselect.named.arms import NamedArms
from preselect.named.decision import NamedDecision, arrange_values, name_decision
from preselect.named.feedback import MISSING, Names, Places, Ratings, list_besides, make_outcome
from preselect.named.readable_state import ReadableState
from preselect.named.roster import Groups, Limits, Prices, Roster, Terms
from preselect.named.values import Features, Values, Vector, list_features, read_context
from preselect.outcomes import NoWinner, Outcome
from preselect.policies import capacities, registry
from preselect.policies.belief import BeliefPolicy
from preselect.policies.estimators import OnlineNewton
from preselect.policies.propensities import list_chosen
from preselect.posterior import join_rows, maximise_logs


class Preselector(NamedArms, ReadableState):
    """Chooses k of some named arms for a context, and learns from which of them wins.

    Every arm has weights of its own: one for itself and one for each feature of the context. What arms have in common
    is learnt through their features. Features may have any scale, because they are scaled by what has been seen of them
    so far (see Scaling), and any of them may be missing. Only `learn` renews the scaling, from time to time, and then
    converts what was learnt to the new one. In the paper's terms the joint features of an arm are (its features, its
    identity) ⊗ (1, context).

    Several threads may use one preselector: their calls wait for each other.

    Parameters
    ----------
    arms : iterable of str, or mapping of str to mapping or to vector, default ()
        The names of the arms; or each name with the arm's features: numbers by name, or all in order, such as an
        embedding, and then they are called x0, x1 and so on.
    context : iterable of str, default ()
        The names of the features that describe a round.
    policy : str, default "newton"
        A policy by name, with or without parameters, such as "newton(beta=1.0)", or your own as "module:Class".
        `preselect policies` lists them.
    identity : bool, default True
        Whether every arm has weights of its own. With False only arm features count: for arms that are so numerous or
        short-lived that little can be learnt about each.
    nobody_may_win : bool, default False
        Whether `winner=None` is learnt from: rounds may end without a winner, as when nothing is clicked. Turns on the
        outside option of policies that have one ("newton", "thompson"); needs `identity`.
    covariance : "full" or "blocks", optional
        How the uncertainty of the weights is kept: "full" is exact, but takes memory for the square of the number of
        joint features, at most 5000; "blocks" keeps one block for the features of arms and one for each arm's own
        weights (newton and thompson without discount), for any number of arms. By default blocks above 1000 joint
        features.
    groups : mapping of str to str, optional
        The group of each arm, such as {"a": "sport"}, for limits in `select`; arms left out belong to none.
    prices : mapping of str to float, optional
        The price of each arm, at least 0, for a budget in `select`.
    seed : int, optional
        Makes the choices reproducible. Without a seed they differ from run to run.

    Examples
    --------
    >>> preselector = Preselector(["a", "b", "c"], context=["size"], seed=0)
    >>> decision = preselector.select({"size": 3.0}, k=2)
    >>> preselector.learn(decision, winner=decision.names[1])
    >>> preselector.add("d")
    >>> sorted(preselector.scores({"size": 1.0}))
    ['a', 'b', 'c', 'd']
    """

    def __init__(
        self,
        arms: Names | Mapping[str, Features | Vector] = (),
        context: Names = (),
        *,
        policy: str = registry.DEFAULT,
        identity: bool = True,
        nobody_may_win: bool = False,
        covariance: str | None = None,
        groups: Groups | None = None,
        prices: Prices | None = None,
        seed: int | None = None,
    ) -> None:
        features_of = arms if isinstance(arms, Mapping) else {name: {} for name in distinct_names(arms, "arms")}
        self.context = distinct_names(context, "context")
        self.features = list_features(features_of)
        self.identity, self._has_warned, self.version = boolean(identity, "identity"), False, 0
        if not (self.identity or self.features):
            raise InputError("without identities arms differ by their features only; give them some")
        self._roster, self._terms = Roster(), Terms()
        capacity = max(len(features_of), 1) if self.identity else 0
        self._joint = JointFeatures(len(self.features), len(self.context), capacity)
        make, parameters = registry.parse(policy)
        if boolean(nobody_may_win, "nobody_may_win"):
            parameters = registry.turn_on_outside(make, parameters, self.identity)
        self.covariance = None if covariance is None else one_of(covariance, "covariance", ("full", "blocks"))
        self.policy = capacities.make(make, {"seed": seed, **parameters}, self._joint, self.covariance)
        for name, features in features_of.items():
            self.add(name, features)
        self._terms.set_all(self._roster, groups, prices)
        self._joint.renew()

    @classmethod
    def fit(
        cls,
        logs: Logs,
        *,
        policy: str = registry.DEFAULT,
        identity: bool = True,
        nobody_may_win: bool = False,
        seed: int | None = None,
    ) -> Self:
        """Make a preselector that is fitted to all rounds of logs at once, and continues to learn from there.

        Its weights maximise the posterior: the likelihood of all outcomes times the policy's prior. Features are scaled
        by all contexts and arms of the logs; those that are the same for all arms in the end, by all rows.

        Parameters
        ----------
        logs : Logs
            What `preselect.logs.read` returns. An arm has the features of its last row.
        policy : str, default "newton"
            A policy that keeps a belief about its weights: "newton" or "thompson", with parameters or without.
        identity : bool, default True
            Whether every arm has weights of its own.
        nobody_may_win : bool, default False
            Whether rounds in which no arm was placed count as won by nobody; otherwise they are left out.
        seed : int, optional
            Makes future choices reproducible.
        """
        if not isinstance(logs, Logs):
            raise InputError(f"logs is {show(logs)}; use what preselect.logs.read returns")
        made = cls(
            logs.describe_arms(),
            logs.context,
            policy=policy,
            identity=identity,
            nobody_may_win=nobody_may_win,
            covariance="full",
            seed=seed,
        )
        if not isinstance(made.policy, BeliefPolicy) or not isinstance(made.policy.estimate, OnlineNewton):
            raise InputError(f"policy is {show(policy)}, which cannot start from logs; use newton or thompson")
        made._joint.see_all(logs.contexts)
        made._joint.see_rows(logs.values)
        prior, outside = made.policy.estimate.prior, made.policy.outside
        found, seen = maximise_logs(made._joint, logs, made._roster.slots, prior, outside)
        made.policy.adopt(found.block, seen, found.outcomes, found.without_winner)
        made.version += 1
        return made

    @serial
    def select(
        self,
        context: Values | None = None,
        k: int | None = None,
        *,
        eligible: Names | None = None,
        include: Names | None = None,
        at_most: Limits | None = None,
        budget: float | None = None,
        groups: Groups | None = None,
        propensities: bool = False,
    ) -> NamedDecision:
        """Choose k arms for a round.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round: numbers by name, or in the order in which they were named in the constructor.
            None or NaN stands for a value that is not known. Leave it out if the preselector has no context features.
        k : int
            How many arms to choose; always given. The winner of a set of one teaches only policies with `outside`.
        eligible : iterable of str, optional
            The arms to choose from; all of them by default.
        include : iterable of str, optional
            Arms that have to be in the set, even if their scores are low.
        at_most : mapping of str to int, optional
            How many arms of a group may be in the set, such as {"sport": 2}. The set is the best one allowed.
        budget : float, optional
            The most that the set may cost; it may then have fewer than k arms (see Rules).
        groups : mapping of str to str, optional
            The groups of some arms in this round only, instead of their own; None for no group.
        propensities : bool, default False
            Whether the decision records the probability with which each of its arms was chosen, if the policy is
            random.

        Returns
        -------
        NamedDecision
            `names` are the chosen arms, best first. Give it back to `learn` with the outcome, now or later.
        """
        given = {"include": include, "at_most": at_most, "budget": budget, "groups": groups}
        decision = self._choose(context, k, self.policy.next_seed, eligible, given, propensities)
        if len(decision._names) == 1 and not (self.policy.outside or self._has_warned):
            self._has_warned = True
            warn_about_single_arm()
        self._count(decision._context)
        return decision

    @serial
    def choose(
        self,
        context: Values | None = None,
        k: int | None = None,
        *,
        seed: int,
        eligible: Names | None = None,
        include: Names | None = None,
        at_most: Limits | None = None,
        budget: float | None = None,
        groups: Groups | None = None,
        propensities: bool = False,
    ) -> NamedDecision:
        """Choose as `select` does, but change nothing: the same state, arguments and seed give the same decision.

        Use it if several processes choose with copies of one state. The process that learns from their decisions gives
        each of them to `record`, and to `learn` when its outcome is known.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        k : int
            How many arms to choose.
        seed : int
            The seed of all random numbers, at least 0.
        eligible : iterable of str, optional
            The arms to choose from; all of them by default.
        include : iterable of str, optional
            Arms that have to be in the set.
        at_most : mapping of str to int, optional
            How many arms of a group may be in the set.
        budget : float, optional
            The most that the set may cost.
        groups : mapping of str to str, optional
            The groups of some arms in this round only.
        propensities : bool, default False
            Whether the decision records the probability with which each of its arms was chosen.
        """
        given = {"include": include, "at_most": at_most, "budget": budget, "groups": groups}
        return self._choose(context, k, seed, eligible, given, propensities)

    def _choose(
        self,
        context: Values | None,
        k: int | None,
        seed: int,
        eligible: Names | None,
        given: dict[str, Any],
        propensities: bool,
    ) -> NamedDecision:
        """Do what `choose` does; `given` are its arguments about rules, by name."""
        values = read_context(context, self.context)
        k, among, rules = self._terms.read_rules(self._roster, k, eligible, **given)
        shown, chances = self._show(values), None
        decision = self.policy.decide(shown, k, seed, eligible=among, rules=rules)
        if boolean(propensities, "propensities"):
            found = self.policy.propensities(shown, k, eligible=among, rules=rules, seed=seed)
            chances = list_chosen(found, decision._arms)
        known = self._joint.values[decision._ids]  # which are slots
        labels = tuple(self.context), tuple(self.features)
        include = () if rules is None else rules.include.tolist()
        extras = self.version, include, chances, self._roster.departures
        return name_decision(decision, self._roster.names, values, known, labels, *extras)

    @serial
    def record(self, decision: NamedDecision) -> None:
        """Count a decision that another process made with `choose`: its round, and its context for later scaling.

        `select` does this by itself.

        Parameters
        ----------
        decision : NamedDecision
            What `choose` returned, here or elsewhere.
        """
        self._count(arrange_values(decision, self.context, self.features)[0])

    def _count(self, context: Floats) -> None:
        """Count a decision in this context."""
        self._joint.see(context)
        self.policy.rounds += 1
        self.version += 1

    @serial
    def learn(
        self,
        decision: NamedDecision,
        *,
        winner: str | None = MISSING,
        ranking: Places | None = None,
        ratings: Ratings | None = None,
        outcome: Outcome | None = None,
        after: float | None = None,
        also: Names | None = None,
    ) -> None:
        """Learn from the outcome of a decision: give a winner, a ranking, ratings or another outcome.

        Parameters
        ----------
        decision : NamedDecision
            What `select` returned, in this round or in an earlier one.
        winner : str or None, optional
            The chosen arm that won; None if nobody did, such as a visitor who clicked nothing (see `nobody_may_win`).
        ranking : iterable of str, or of lists of str, optional
            The chosen arms, or the best of them, best first. Arms that are tied are in a list: [["a", "b"], "c"].
        ratings : mapping of str to float, optional
            A number for every chosen arm, the higher the better: a ranking, in which equal ratings are ties.
        outcome : Outcome, optional
            Any other outcome, such as NoWinner() or Void().
        after : float, optional
            With a winner: how long the race took, as a share of its time limit, from 0 to 1.
        also : iterable of str, optional
            Arms that competed alongside the chosen ones, such as solvers that ran once the answer was known: see
            `suggest`. The outcome is then about all of them together, and any of them may have won. In an outcome that
            gives positions, such as Winner(3), they come after the chosen arms.
        """
        besides = list_besides(decision, also)
        made = make_outcome(
            decision,
            winner=winner,
            ranking=ranking,
            ratings=ratings,
            outcome=outcome,
            after=after,
            also=besides,
            nobody_may_win=self.policy.outside,
        )
        arms = self._roster.find_chosen(decision.names, decision.departures)
        if besides:
            arms = np.append(arms, [self._find(name) for name in besides])
        context, features = arrange_values(decision, self.context, self.features)
        places = np.arange(len(arms))
        ranked = made.positions(places)  # refuses strangers before anything changes
        if ranked.size or (isinstance(made, NoWinner) and self.policy.outside):
            self._renew_scaling()
        known, k = self._joint.values[arms], len(decision.names)
        if features is not None:
            known[:k] = features
        rows = self._joint.rows(arms, known, context)
        bounds = np.full((2, len(arms)), np.nan)
        bounds[:, :k] = decision._bounds.reshape(2, k)
        self.policy.learn(Decision(places, bounds.ravel(), rows, arms, decision.round), made)
        self.version += 1

    @serial
    def _weigh_logs(self, logs: Logs) -> tuple[RankedRows, Floats]:
        """Return the outcomes of logs, and the estimated log-utility of each of their rows; 0 for NOBODY.

        Parameters
        ----------
        logs : Logs
            Rounds with the features that the preselector has, about arms that it knows.
        """
        if not isinstance(self.policy, BeliefPolicy):
            raise InputError(f"{type(self.policy).__name__} has no weights for all rounds; use newton or thompson")
        slots = np.array([self._find(name) for name in logs.arms], dtype=np.int64)
        outcomes = rank_rows(logs, self.policy.outside)
        return outcomes, join_rows(self._joint, logs, slots, outcomes) @ self.policy.estimate.theta

    def __repr__(self) -> str:
        found = {"groups": self._terms.groups, "prices": self._terms.prices}
        terms = "".join(f", {name}={value}" for name, value in found.items() if value)
        return f"Preselector(arms={self.arms}, context={self.context}{terms}, policy={self.policy!r})"

    def _renew_scaling(self) -> None:
        """Renew the scaling if that is due, and convert what was learnt to the new one."""
        change = self._joint.renew()
        if change is not None:
            self.policy.transform(change)
