"""What a preselector can tell: estimates, explanations, propensities and scores by name."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from preselect.arguments import distinct_names
from preselect.context import Floats, Integers, StructuredContext
from preselect.errors import InputError
from preselect.guard import serial
from preselect.named.decision import NamedDecision, arrange_values
from preselect.named.estimates import Estimates, FeatureWeight, make_estimate
from preselect.named.explanations import ArmExplanation, Explanation, find_roles, name_contributions
from preselect.named.feedback import Names
from preselect.named.roster import Groups, Limits
from preselect.named.state import NamedState
from preselect.named.values import Values, read_context
from preselect.policies.beliefs import Belief, believe, predict, weigh, weigh_features


class Propensity(NamedTuple):
    """How likely it is that an arm is in the set.

    Parameters
    ----------
    probability : float
        The probability that the arm is in the set.
    standard_error : float
        Its standard error; 0 if it is exact.
    """

    probability: float
    standard_error: float


class ReadableState(NamedState):
    """A base of Preselector: what it believes, and why it decided as it did."""

    @property
    def slots(self) -> list[int]:
        """The number of each arm among the policy's weights for single arms, in the order of `arms`."""
        slots: list[int] = self._roster.slots.tolist()
        return slots

    @serial
    def estimates(self, context: Values | None = None, *, among: Names | None = None) -> Estimates:
        """Estimate every arm in a context: utility, standard error, bounds, chance of winning.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        among : iterable of str, optional
            The arms that chances and standard errors compare with; all of them by default.

        Returns
        -------
        Estimates
            An Estimate for every name, and the chance that nobody wins; printed, it is a table.
        """
        names = self.arms if among is None else distinct_names(among, "among")
        if not names:
            raise InputError("there is nothing to compare: no arm was given")
        compared = np.asarray(self._roster.locate(names), dtype=np.int64)
        belief = believe(self.policy, self._show(read_context(context, self.context)), compared)
        chances, nobody = predict(self.policy, belief.utilities[compared])
        of = dict(zip(names, chances.tolist(), strict=True))
        values = zip(self.arms, belief.utilities.tolist(), _list_errors(belief), strict=True)
        found = {name: make_estimate(utility, error, of.get(name)) for name, utility, error in values}
        return Estimates(found, nobody, tuple(names))

    @serial
    def feature_weights(self, context: Values | None = None) -> dict[str, FeatureWeight]:
        """Estimate what each feature of the arms adds to utilities in a context; empty for a policy without weights.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        found = weigh_features(self.policy, self._joint.deviations(read_context(context, self.context)))
        if found is None:
            return {}
        values = zip(self.features, found.utilities.tolist(), _list_errors(found), strict=True)
        return {name: FeatureWeight(*one) for name, *one in values}

    @serial
    def explain(self, decision: NamedDecision) -> Explanation:
        """Explain why the arms of a decision were chosen, by what is known now: print it, or see `to_dict`.

        Each arm has a role, a chance of winning in the set, a utility with its standard error, and what every feature
        adds to it.

        Parameters
        ----------
        decision : NamedDecision
            What `select` or `choose` returned.
        """
        context, features = arrange_values(decision, self.context, self.features)
        slots = self._roster.find_chosen(decision.names, decision.departures)
        known = self._joint.values[slots] if features is None else features
        found = weigh(self.policy, self._joint.rows(slots, known, context), slots)
        parts: list[dict[str, float]] | list[None] = [None] * len(slots)
        if found is None:
            belief = self._look_up(decision.names)
        else:
            belief, contributions = found
            parts = name_contributions(self._fold(contributions), self.features, self.context, self.identity)
        chances, nobody = predict(self.policy, belief.utilities)
        values = zip(belief.utilities.tolist(), _list_errors(belief), chances.tolist(), strict=True)
        described = zip(decision.names, self._find_roles(decision), values, parts, strict=True)
        arms = tuple(ArmExplanation(name, role, make_estimate(*one), part) for name, role, one, part in described)
        kind, changes = type(self.policy).__name__, self._count_changes(decision)
        return Explanation(arms, nobody, kind, decision.round, changes)

    @serial
    def suggest(
        self, decision: NamedDecision, many: int, *, seed: int = 0, eligible: Names | None = None
    ) -> tuple[str, ...]:
        """Return the names of the arms from which most would be learnt if they also competed, the best first.

        They are those about which least is known in the context of the decision. Nothing changes; `learn` takes them
        as `also`.

        Parameters
        ----------
        decision : NamedDecision
            What `select` or `choose` returned.
        many : int
            How many arms to name, at least 0; if there are fewer, all are named.
        seed : int, default 0
            The seed for breaking ties.
        eligible : iterable of str, optional
            The arms to choose names from; all by default. Arms that were chosen are left out.
        """
        shown = self._show(arrange_values(decision, self.context, self.features)[0])
        among = self.arms if eligible is None else distinct_names(eligible, "eligible")
        places = self._roster.locate([name for name in among if name not in decision.names])
        found = self.policy.suggest(shown, places, many, seed=seed)
        return tuple(self._roster.names[place] for place in found)

    @serial
    def propensities(
        self,
        context: Values | None = None,
        k: int | None = None,
        *,
        eligible: Names | None = None,
        include: Names | None = None,
        at_most: Limits | None = None,
        budget: float | None = None,
        groups: Groups | None = None,
        draws: int = 1000,
    ) -> dict[str, Propensity] | None:
        """The probability, over all seeds, that each arm is in the set that `select` would choose now.

        Logs with propensities can be used to evaluate other policies. None if the policy is random in breaking ties
        only.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        k : int
            How many arms to choose.
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
        draws : int, default 1000
            How many sets to draw if the probabilities cannot be computed: nearly always if there are rules.
        """
        shown = self._show(read_context(context, self.context))
        k, among, rules = self._terms.read_rules(
            self._roster, k, eligible, include=include, at_most=at_most, budget=budget, groups=groups
        )
        found = self.policy.propensities(shown, k, eligible=among, rules=rules, draws=draws)
        if found is None:
            return None
        pairs = zip(found.probabilities.tolist(), found.standard_errors.tolist(), strict=True)
        return {name: Propensity(*pair) for name, pair in zip(self.arms, pairs, strict=True)}

    @serial
    def scores(self, context: Values | None = None) -> dict[str, float]:
        """The scores by which the policy would rank the arms in a context now, by name: see `Policy.scores`.

        They are utilities plus something for exploration, and good for ranking only; to learn how good arms are, see
        `estimates`.

        Parameters
        ----------
        context : mapping, sequence or array, optional
            The features of the round, as in `select`.
        """
        scores = self.policy.scores(self._show(read_context(context, self.context)))
        return dict(zip(self.arms, scores.tolist(), strict=True))

    def _show(self, context: Floats) -> StructuredContext:
        """Return what the policy is shown of all arms."""
        return self._joint.show(context, None if self._roster.fills(self._joint.n_slots) else self._roster.slots)

    def _fold(self, contributions: Floats) -> Floats:
        """Return contributions as k x m x p numbers, for (arm's features, identity) ⊗ (1, context's features).

        The identities of other arms contribute 0.
        """
        k, m = len(contributions), len(self.features)
        parts = contributions.reshape(k, -1, 1 + len(self.context))
        own = parts[:, m:].sum(axis=1, keepdims=True)[:, : int(self.identity)]
        return np.concatenate((parts[:, :m], own), axis=1)

    def _look_up(self, names: tuple[str, ...]) -> Belief:
        """Return the estimates of a set by a policy without weights."""
        places: Integers = np.asarray(self._roster.locate(list(names)))
        utilities, errors = believe(self.policy, self._show(np.full(len(self.context), np.nan)), places)
        return Belief(utilities[places], None if errors is None else errors[places])

    def _find_roles(self, decision: NamedDecision) -> list[str]:
        explored = decision.seed is not None and self.policy.explores_with(decision.seed, decision.round)
        return find_roles(
            decision.scores - decision.widths, [name in decision.included for name in decision.names], explored
        )

    def _count_changes(self, decision: NamedDecision) -> int:
        """Count the changes of the state since the decision, apart from recording it."""
        return self.version - decision.version - (self.policy.rounds >= decision.round)


def _list_errors(belief: Belief) -> list[float | None]:
    if belief.errors is None:
        return [None] * len(belief.utilities)
    return cast("list[float | None]", belief.errors.tolist())
