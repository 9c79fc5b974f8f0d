"""Every policy against the public conformance suite; and the suite against policies that are broken on purpose."""

from functools import partial

import numpy as np
import pytest

from preselect import EpsilonGreedy, MaxTheta, Random, testing
from preselect.policies import registry

VARIANTS = [
    *registry.POLICIES,
    "newton(bonus='arm', discount=0.9)",
    "newton(choose='cover')",
    "newton(outside=True, discount=0.95)",
    "thompson(draws='slot', precision=[1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3])",
    "thompson(choose='cover')",
    "ts-mnl(choose='cover')",
    "ucb-mnl(every=7)",
]


@pytest.mark.parametrize(("check", "context", "outcome"), list(testing.combinations()))
@pytest.mark.parametrize("policy", VARIANTS)
def test_conformance(policy, check, context, outcome):
    make, parameters = registry.parse(policy)
    testing.CHECKS[check](partial(make, **parameters), testing.CONTEXTS[context], testing.OUTCOMES[outcome])


class Mutating(MaxTheta):
    """Sorts its input in place."""

    def _choose(self, context, k, eligible):
        chosen = super()._choose(context, k, eligible)
        if isinstance(context, np.ndarray):
            context.sort()
        return chosen


class Deaf(MaxTheta):
    """Ignores eligibility."""

    def _choose(self, context, k, eligible):  # noqa: ARG002
        return super()._choose(context, k, np.empty(0, dtype=bool))


class Forgetful(MaxTheta):
    """Saves half of what it has learnt."""

    _state = ("theta_hat",)


class Hoarding(MaxTheta):
    """Keeps every decision."""

    def _observe(self, decision, ranking):
        super()._observe(decision, ranking)
        self.__dict__.setdefault("history", []).append(decision.rows.copy())


class Gullible(MaxTheta):
    """Learns before it checks."""

    def learn(self, decision, outcome):
        self.theta_hat += 1.0
        super().learn(decision, outcome)


class Unseeded(EpsilonGreedy):
    """Draws from a generator of its own."""

    def _choose(self, context, k, eligible):
        self._generator = np.random.default_rng()
        return super()._choose(context, k, eligible)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Mutating, "inputs_kept"),
        (Deaf, "eligibility"),
        (Forgetful, "state_round_trip"),
        (Hoarding, "memory"),
        (Gullible, "bad_outcomes"),
        (Gullible, "uninformative_outcomes"),
        (Unseeded, "repeats"),
    ],
)
def test_the_suite_notices_a_broken_policy(broken, check):
    with pytest.raises(AssertionError):
        testing.CHECKS[check](broken, testing.CONTEXTS["array"], testing.OUTCOMES["winner"])


def test_the_whole_suite_in_one_call_names_what_failed():
    testing.check_policy(Random)
    with pytest.raises(AssertionError, match=r"memory, array context, winner outcomes: .* bytes more"):
        testing.check_policy(Hoarding)
