"""Every policy against the public conformance suite; and the suite against policies that are broken on purpose."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest

from preselect import EpsilonGreedy, InputError, MaxTheta, Preselector, Random, testing
from preselect.policies import registry
from preselect.policies.room import Randomness

VARIANTS = [
    *registry.POLICIES,
    "newton(bonus='arm', discount=0.9)",
    "newton(choose='cover')",
    "newton(outside=True, discount=0.95)",
    "thompson(draws='slot', precision=[1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3])",
    "thompson(choose='cover')",
    "ts-mnl(choose='cover', steps=1)",
    "ucb-mnl(every=7)",
]


@pytest.mark.parametrize(("check", "context", "outcome"), list(testing.combinations()))
@pytest.mark.parametrize("policy", VARIANTS)
def test_conformance(policy, check, context, outcome):
    make, parameters = registry.parse(policy)
    testing.run(check, partial(make, **parameters), context, outcome)


def test_every_check_runs_on_every_kind_that_it_is_about():
    kinds = {check: set(kind.on) for check, kind in testing.CHECKS.items()}
    every_context = {(context, "winner") for context in testing.CONTEXTS}
    every_outcome = {("array", outcome) for outcome in testing.OUTCOMES}
    assert kinds["repeats"] == every_context | every_outcome
    assert kinds["eligibility"] == kinds["first_choice"] == every_context
    assert kinds["copies"] == kinds["state_round_trip"] == every_outcome
    assert {context for context, _ in kinds["structure"]} == set(testing.CONTEXTS) - {"array"}
    assert kinds["memory"] == kinds["bad_contexts"] == {("array", "winner")}


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda chooser: pickle.loads(pickle.dumps(chooser))])
def test_a_copied_preselector_continues_as_the_original(make_copy):
    chooser = Preselector(["a", "b", "c"], context=["size"], seed=0)
    copied = make_copy(chooser)
    for one in (chooser, copied):
        decision = one.select({"size": 3.0}, k=2)
        one.learn(decision, winner=decision.names[1])
    assert copied.to_bytes() == chooser.to_bytes()
    assert copied.policy.theta.any()
    assert copied.scores({"size": 1.0}) == chooser.scores({"size": 1.0})


class Mutating(MaxTheta):
    """Sorts its input in place."""

    def _choose(self, context, k, eligible, randomness, rules):
        chosen = super()._choose(context, k, eligible, randomness, rules)
        context.X.sort()
        return chosen


class Deaf(MaxTheta):
    """Ignores eligibility."""

    def _choose(self, context, k, eligible, randomness, rules):  # noqa: ARG002
        return super()._choose(context, k, np.empty(0, dtype=bool), randomness, rules)


class Forgetful(MaxTheta):
    """Saves half of what it has learnt."""

    def _arrays(self):
        return {**super()._arrays(), "theta_bar": np.zeros(self.d)}


class Torn(MaxTheta):
    """Has views of its estimate, which part from it in a copy."""

    def __init__(self, *, d, seed=None):
        super().__init__(d=d, seed=seed)
        self.view = self.estimate.theta_bar

    def _arrays(self):
        return {**super()._arrays(), "theta_bar": self.view}


class Shared(MaxTheta):
    """Shares its estimate with its copies."""

    def __deepcopy__(self, memo):
        again = type(self)(d=self.d)
        vars(again).update(vars(self))
        return again


class Hoarding(MaxTheta):
    """Keeps every decision."""

    def _observe(self, rows, ranking, t):
        super()._observe(rows, ranking, t)
        self.__dict__.setdefault("past", []).append(rows.copy())


class Gullible(MaxTheta):
    """Learns before it checks."""

    def learn(self, decision, outcome):
        self.theta_hat[:] += 1.0
        super().learn(decision, outcome)


class Chatty(MaxTheta):
    """Says more than one sentence."""

    def learn(self, decision, outcome):
        try:
            super().learn(decision, outcome)
        except InputError as error:
            raise InputError(f"{error}. Try again") from None


class Unseeded(EpsilonGreedy):
    """Draws from a generator of its own."""

    def _choose(self, context, k, eligible, randomness, rules):  # noqa: ARG002
        return super()._choose(context, k, eligible, Randomness(int(np.random.default_rng().integers(1 << 40))), rules)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Mutating, "inputs_kept"),
        (Deaf, "eligibility"),
        (Forgetful, "state_round_trip"),
        (Torn, "copies"),
        (Shared, "copies"),
        (Chatty, "bad_outcomes"),
        (Hoarding, "memory"),
        (Gullible, "bad_outcomes"),
        (Gullible, "uninformative_outcomes"),
        (Unseeded, "repeats"),
    ],
)
def test_the_suite_notices_a_broken_policy(broken, check):
    with pytest.raises(AssertionError):
        testing.run(check, broken)


def test_the_whole_suite_in_one_call_names_what_failed():
    testing.check_policy(Random)
    with pytest.raises(AssertionError, match=r"memory, array context, winner outcomes: memory grew by .* bytes"):
        testing.check_policy(Hoarding)
