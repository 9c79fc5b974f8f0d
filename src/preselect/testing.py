"""A conformance suite: what every policy must do. Public, so that you can test your own.

    from preselect import testing
    testing.check_policy(MyPolicy)

runs every check on the kinds of context and outcome that it applies to. In pytest, parametrise over `combinations()`
and call `run` to see each check by name. A policy is made by `make(d=..., seed=...)`; a failure is an AssertionError
that says what does not hold.
"""

from __future__ import annotations

import copy
import pickle
import re
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect.conformance_rounds import CONTEXTS, MAX_ARMS, OUTCOMES, D, K, MakeContext, MakeOutcome, N
from preselect.context import StructuredContext
from preselect.errors import InputError
from preselect.features import Kronecker, OneHot
from preselect.outcomes import NoWinner, Ranking, Void, Winner
from preselect.policies import Policy
from preselect.policies.persistence import collect_state

__all__ = ["CHECKS", "CONTEXTS", "OUTCOMES", "PolicyCheck", "check_policy", "combinations", "run"]

_Make: TypeAlias = Callable[..., Policy]
_Body: TypeAlias = Callable[[_Make, MakeContext, MakeOutcome], None]


# --- what a check is --------------------------------------------------------------------------------------------------

_ONCE = [("array", "winner")]
_EACH_CONTEXT = [(context, "winner") for context in CONTEXTS]
_EACH_OUTCOME = [("array", outcome) for outcome in OUTCOMES]
_EACH = [*_EACH_CONTEXT, *_EACH_OUTCOME[1:]]
_NOT_PLAIN = [(context, outcome) for context in list(CONTEXTS)[1:] for outcome in ("winner", "nothing")]


@dataclass(frozen=True)
class PolicyCheck:
    """A check, and what it is run on.

    Parameters
    ----------
    body : callable
        Called with functions that make a policy, a context and an outcome; raises an AssertionError if the check fails.
    on : list of pairs of str
        The names of the contexts and outcomes that it applies to.
    """

    body: _Body
    on: list[tuple[str, str]]


CHECKS: dict[str, PolicyCheck] = {}


def _register(on: list[tuple[str, str]]) -> Callable[[_Body], _Body]:
    def keep(body: _Body) -> _Body:
        CHECKS[body.__name__.removeprefix("_check_")] = PolicyCheck(body, on)
        return body

    return keep


def combinations() -> Iterator[tuple[str, str, str]]:
    """Yield the name of every check with each context and outcome that it is run on."""
    for name, check in CHECKS.items():
        for context, outcome in check.on:
            yield name, context, outcome


def run(check: str, make: _Make, context: str = "array", outcome: str = "winner") -> None:
    """Run one check.

    Parameters
    ----------
    check : str
        A key of CHECKS.
    make : callable
        Makes a policy, given d and seed by keyword; a policy class, for instance.
    context, outcome : str
        Keys of CONTEXTS and OUTCOMES.
    """
    if outcome == "ties" and not make(d=D, seed=0).learns_ties:
        return  # `Policy.learn` refuses ties for such a policy
    CHECKS[check].body(make, CONTEXTS[context], OUTCOMES[outcome])


def check_policy(make: _Make) -> None:
    """Run every check on the contexts and outcomes that it applies to; an AssertionError says which one failed.

    Parameters
    ----------
    make : callable
        Makes a policy, given d and seed by keyword; a policy class, for instance.
    """
    for check, context, outcome in combinations():
        try:
            run(check, make, context, outcome)
        except AssertionError as error:
            raise AssertionError(f"{check}, {context} context, {outcome} outcomes: {error}") from error


def _play(
    policy: Policy, show: MakeContext, end: MakeOutcome, rounds: int, seed: int = 1, k: int = K
) -> list[list[int]]:
    """Play some rounds; return the arms chosen in each."""
    generator = np.random.default_rng(seed)
    chosen = []
    for _ in range(rounds):
        decision = policy.select(show(generator), k)
        policy.learn(decision, end(decision, generator))
        chosen.append(decision.arms.tolist())
    return chosen


@dataclass(frozen=True)
class _Snapshot:
    """Everything that `save` would write of a policy."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, policy: Policy) -> _Snapshot:
        return cls(*copy.deepcopy(collect_state(policy)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Snapshot) and self.header == other.header and self.has_arrays_of(other)

    def has_arrays_of(self, other: _Snapshot) -> bool:
        return all(np.array_equal(array, other.arrays[name]) for name, array in self.arrays.items())


# --- the checks -------------------------------------------------------------------------------------------------------


@_register(on=_EACH_CONTEXT)
def _check_first_choice(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """Before it has learnt anything a policy already chooses: k distinct arms, with rows, scores and widths."""
    shown = show(np.random.default_rng(0))
    policy = make(d=D, seed=0)
    for k in (1, K, N):
        decision = policy.select(shown, k)
        arms = decision.arms.tolist()
        assert len(set(arms)) == k and set(arms) <= set(range(N)), f"{arms} are not k={k} distinct arms"
        rows = np.asarray(shown, dtype=np.float64)[arms]
        assert np.array_equal(decision.rows, rows), "the rows are not those of the arms"
        assert decision.scores.shape == decision.widths.shape == (k,), "there is not one score and one width per arm"
        assert np.all(np.isfinite(decision.scores)), "some scores are not finite"
        assert np.all(np.isfinite(decision.widths)), "some widths are not finite"
    assert decision.round == 3 and policy.rounds == 3, "rounds are not counted from 1"


@_register(on=_EACH)
def _check_repeats(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """The same seed and the same rounds give the same choices."""
    runs = [_play(make(d=D, seed=7), show, end, 60) for _ in range(2)]
    assert runs[0] == runs[1], "two runs with the same seed differ"


@_register(on=_EACH_OUTCOME)
def _check_state_round_trip(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """A policy that was saved and loaded continues exactly as the original does, its generator included."""
    policy = make(d=D, seed=3)
    _play(policy, show, end, 30)
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "state.npz")
        loaded = type(policy).load(Path(folder) / "state.npz")
    _assert_same_future(policy, {"loaded policy": loaded}, show, end)


@_register(on=_EACH_OUTCOME)
def _check_copies(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """Copies, by `copy` or by pickle, continue as the original does, and leave it alone."""
    policy = make(d=D, seed=3)
    _play(policy, show, end, 30)
    others = {"copy": copy.copy(policy), "deep copy": copy.deepcopy(policy)}
    if _is_importable(type(policy)):
        others["unpickled copy"] = pickle.loads(pickle.dumps(policy))
    _assert_same_future(policy, others, show, end)


def _assert_same_future(policy: Policy, others: dict[str, Policy], show: MakeContext, end: MakeOutcome) -> None:
    """Play on with the policies: their choices and states are equal before and after, and they share nothing."""
    before = _Snapshot.of(policy)
    chosen = {}
    for name, other in others.items():
        assert before == _Snapshot.of(other), f"the state of the {name} differs"
        chosen[name] = _play(other, show, end, 30, seed=2)
        assert before == _Snapshot.of(policy), f"what the {name} learns changes the original"
    expected = _play(policy, show, end, 30, seed=2)
    for name, other in others.items():
        assert chosen[name] == expected, f"the {name} chooses other arms"
        assert _Snapshot.of(policy) == _Snapshot.of(other), f"the {name} learns something else"


def _is_importable(kind: type) -> bool:
    """Return whether pickle can find the class by its name."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


@_register(on=_EACH_CONTEXT)
def _check_inputs_kept(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """A policy does not change what it is given, and a decision does not change when the arms shown do."""
    shown = show(np.random.default_rng(0))
    before = np.array(shown)
    policy = make(d=D, seed=0)
    decision = policy.select(shown, K, eligible=[0, 2, 3, 5])
    policy.learn(decision, end(decision, np.random.default_rng(0)))
    assert np.array_equal(np.asarray(shown), before), "select or learn changed its input"
    rows = decision.rows.copy()
    (shown.context if isinstance(shown, StructuredContext) else shown)[...] = 0.0
    assert np.array_equal(decision.rows, rows), "the decision changed with the arms that were shown"


@_register(on=_EACH_CONTEXT)
def _check_eligibility(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """Arms that are not eligible are never chosen, given as mask or as positions; too few is an error."""
    policy = make(d=D, seed=0)
    generator = np.random.default_rng(5)
    for _ in range(40):
        mask = np.zeros(N, dtype=bool)
        mask[generator.choice(N, generator.integers(K, N + 1), replace=False)] = True
        given = mask if generator.random() < 0.5 else np.flatnonzero(mask)
        decision = policy.select(show(generator), K, eligible=given)
        arms = decision.arms.tolist()
        assert len(set(arms)) == K and mask[arms].all(), f"{arms} chosen of {np.flatnonzero(mask).tolist()}"
        policy.learn(decision, end(decision, generator))
    for wrong in ([0, 1], [0, 1, N], [1, 0, 1, 0, 1, 1], [[0], [1, 2]], np.ones(N + 1, dtype=bool)):
        _assert_refused(policy, "eligible", policy.select, show(generator), K, eligible=wrong)


@_register(on=_EACH_OUTCOME)
def _check_late_feedback(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """Outcomes may come late and in any order: decisions made in the meantime do not change what is learnt."""
    generator = np.random.default_rng(4)
    late, other = make(d=D, seed=0), make(d=D, seed=0)
    decisions = [late.select(show(generator), K) for _ in range(10)]
    outcomes = [end(decision, generator) for decision in decisions]
    for decision, outcome in reversed(list(zip(decisions, outcomes, strict=True))):
        late.learn(decision, outcome)
        other.learn(decision, outcome)  # made by another policy; a decision holds everything that learning needs
    one, same = (policy.scores(show(np.random.default_rng(1))) for policy in (late, other))
    assert np.array_equal(one, same), "what was learnt depends on more than decisions and outcomes"


@_register(on=_EACH)
def _check_arms_besides(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """An outcome may include arms that were not chosen; `suggest`, which names such arms, changes nothing."""
    policy, generator = make(d=D, seed=3), np.random.default_rng(4)
    for _ in range(10):
        X = show(generator)
        decision = policy.select(X, K)
        others = np.setdiff1d(np.arange(N), decision.arms)
        before = _Snapshot.of(policy)
        besides = policy.suggest(X, others, 2, seed=1)
        assert len(set(besides.tolist())) == 2 and set(besides) <= set(others), "suggest names other arms"
        longer = policy.extend(decision, X, besides)
        assert before == _Snapshot.of(policy), "naming or adding arms changes the policy"
        outcome = end(longer, generator)
        policy.learn(longer, outcome)
        again = make(d=D, seed=3)
        again.learn(longer, outcome)
        assert again.observations + again.no_winners + again.voids == 1, "an outcome of more arms is not counted"


@_register(on=_NOT_PLAIN)
def _check_structure(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """A structured context, or one in single precision, leads to the same choices as the plain array it stands for."""
    chosen = _play(make(d=D, seed=0), show, end, 60)
    plain = _play(make(d=D, seed=0), lambda generator: np.asarray(show(generator), dtype=np.float64), end, 60)
    assert list(map(sorted, chosen)) == list(map(sorted, plain)), "choices differ from those on the plain array"


@_register(on=_EACH_OUTCOME)
def _check_arms_come_and_go(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """The number of arms may differ from round to round."""
    policy = make(d=D, seed=0)
    generator = np.random.default_rng(6)
    for n in (4, 9, 3, MAX_ARMS, 5):
        decision = policy.select(generator.random((n, D)), K)
        assert sorted(set(decision.arms.tolist()) & set(range(n))) == sorted(decision.arms.tolist()), f"of {n} arms"
        policy.learn(decision, end(decision, generator))


@_register(on=_ONCE)
def _check_bad_contexts(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """Bad input to select is an InputError that names it, and leaves the state as it was."""
    policy = make(d=D, seed=0)
    _play(policy, show, end, 20)
    good = np.asarray(show(np.random.default_rng(0)))
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = good.copy()
        spoilt[2, 1] = bad
        kronecker, one_hot = Kronecker()(np.ones((N, 3)), [1.0, bad, 1.0, 1.0]), OneHot(N)([1.0, bad])
        for context in (spoilt, spoilt.astype(np.float32), kronecker, one_hot):
            _assert_refused(policy, "X", policy.select, context, K)
            _assert_refused(policy, "X", policy.scores, context)
    for wrong in (good[:, 1:], good[0], np.empty((0, D)), [["a"] * D] * N, None):
        _assert_refused(policy, "X", policy.select, wrong, K)
    for k in (0, -1, N + 1, 1.5, None):
        _assert_refused(policy, "k", policy.select, good, k)


@_register(on=_ONCE)
def _check_bad_outcomes(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """An outcome that does not fit its decision is an InputError, and leaves the state as it was."""
    policy = make(d=D, seed=0)
    _play(policy, show, end, 20)
    decision = policy.select(show(np.random.default_rng(0)), K)
    stranger = next(arm for arm in range(N) if arm not in decision.arms)
    _assert_refused(policy, "winner", policy.learn, decision, Winner(stranger))
    _assert_refused(policy, "ranking", policy.learn, decision, Ranking([decision.arms[0], stranger]))
    _assert_refused(policy, "ranking", lambda: policy.learn(decision, Ranking([decision.arms[0]] * 2)))
    _assert_refused(policy, "outcome", policy.learn, decision, decision.arms[0])
    _assert_refused(policy, "decision", policy.learn, None, Winner(0))


@_register(on=_ONCE)
def _check_uninformative_outcomes(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """Void teaches nothing, nor does NoWinner unless the policy has an outside option; both are counted."""
    policy = make(d=D, seed=0)
    _play(policy, show, end, 20)
    counts = policy.observations, policy.no_winners, policy.voids
    decision = policy.select(show(np.random.default_rng(0)), K)
    first = _Snapshot.of(policy)
    policy.learn(decision, NoWinner())
    second = _Snapshot.of(policy)
    for _ in range(2):
        policy.learn(decision, Void())
    third = _Snapshot.of(policy)
    assert (policy.observations, policy.no_winners - 1, policy.voids - 2) == counts, "outcomes are not counted"
    wrong = "NoWinner teaches although outside is False, or does not although it is True"
    assert first.has_arrays_of(second) != policy.outside, wrong
    assert second.has_arrays_of(third), "Void has taught something"


@_register(on=_ONCE)
def _check_memory(make: _Make, show: MakeContext, end: MakeOutcome) -> None:
    """Rounds do not pile up: memory stays flat, or grows by the rows of the outcomes if the policy keeps history."""
    policy = make(d=D, seed=0)
    rounds = 150
    allowed = 30_000 + (4 * 8 * rounds * K * D if policy.keeps_history else 0)
    _play(policy, show, end, 100 if policy.keeps_history else 300)  # until no more recent outcomes are kept
    tracemalloc.start()
    try:
        _play(policy, show, end, 50)
        before = tracemalloc.get_traced_memory()[0]
        _play(policy, show, end, rounds, seed=2)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < allowed, f"memory grew by {grown} bytes in {rounds} rounds; {allowed} are allowed"


def _assert_refused(policy: Policy, argument: str, call: Callable[..., object], *given: Any, **options: Any) -> None:
    """The call raises an InputError, in one sentence that names the argument, and changes nothing."""
    before = _Snapshot.of(policy)
    message = None
    try:
        call(*given, **options)
    except InputError as error:
        message = str(error)
    assert message is not None, f"a bad {argument} was accepted"
    assert re.search(rf"\b{argument}\b", message), f"the message does not name {argument}: {message}"
    assert not re.search(r"\n|[.!?]\s+[A-Z]", message), f"the message is more than one sentence: {message}"
    assert before == _Snapshot.of(policy), f"a bad {argument} changed the state"
