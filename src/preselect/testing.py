"""A conformance suite: what any policy must do, whoever wrote it. Public, so that you can test yours.

    from preselect import testing
    testing.check_policy(MyPolicy)

runs every check over every kind of outcome and of context. In pytest, parametrise over `CHECKS`, `OUTCOMES` and
`CONTEXTS` instead, to see each combination by name. A policy is made by `make(d=..., seed=...)`; a failure is an
AssertionError that says what does not hold.
"""

import re
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect import state
from preselect.context import StructuredContext
from preselect.decision import Decision
from preselect.errors import InputError
from preselect.features import Kronecker, OneHot
from preselect.outcomes import NoWinner, Outcome, Ranking, Void, Winner
from preselect.policies import Policy

N, D, K = 6, 12, 3
_MOST_ARMS = 30

Shown: TypeAlias = NDArray[Any] | StructuredContext
Make: TypeAlias = Callable[..., Policy]
MakeContext: TypeAlias = Callable[[np.random.Generator], Shown]
MakeOutcome: TypeAlias = Callable[[Decision, np.random.Generator], Outcome]
Check: TypeAlias = Callable[[Make, MakeContext, MakeOutcome], None]


# --- what rounds look like --------------------------------------------------------------------------------------------


def _array(generator: np.random.Generator) -> Shown:
    return generator.random((N, D))


def _single_precision(generator: np.random.Generator) -> Shown:
    return generator.random((N, D), dtype=np.float32)


def _kronecker(generator: np.random.Generator) -> Shown:
    return Kronecker()(generator.random((N, 3)), generator.random(4))


def _one_hot(generator: np.random.Generator) -> Shown:
    return OneHot(N)(generator.random(D // N))


CONTEXTS: dict[str, MakeContext] = {
    "array": _array,
    "single precision": _single_precision,
    "kronecker": _kronecker,
    "one-hot": _one_hot,
}


def _ranked(decision: Decision, generator: np.random.Generator) -> list[int]:
    """The chosen arms as the model ranks them, with luck that depends on who they are and not on their order."""
    u = decision.rows @ np.linspace(-1.0, 2.0, D) + generator.gumbel(size=_MOST_ARMS)[decision.arms]
    ranked: list[int] = decision.arms[np.argsort(-u)].tolist()
    return ranked


def _winner(decision: Decision, generator: np.random.Generator) -> Outcome:
    return Winner(_ranked(decision, generator)[0], after=generator.choice([1e-6, 0.05, 0.5]))


def _ranking(decision: Decision, generator: np.random.Generator) -> Outcome:
    return Ranking(_ranked(decision, generator))


def _top_two(decision: Decision, generator: np.random.Generator) -> Outcome:
    return Ranking(_ranked(decision, generator)[:2])


def _nothing(decision: Decision, generator: np.random.Generator) -> Outcome:
    luck = generator.random()
    return Void() if luck < 0.5 else NoWinner(after=1.0 if luck < 0.75 else None)


OUTCOMES: dict[str, MakeOutcome] = {
    "winner": _winner,
    "ranking": _ranking,
    "top-2": _top_two,
    "nothing": _nothing,
}


def _play(
    policy: Policy, show: MakeContext, end: MakeOutcome, rounds: int, seed: int = 1, k: int = K
) -> list[list[int]]:
    """Play some rounds; the arms chosen in each."""
    generator = np.random.default_rng(seed)
    chosen = []
    for _ in range(rounds):
        decision = policy.select(show(generator), k)
        policy.learn(decision, end(decision, generator))
        chosen.append(decision.arms.tolist())
    return chosen


def _snapshot(policy: Policy) -> state.StateFile:
    """All that `save` keeps of a policy."""
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "state.npz")
        return state.read(Path(folder) / "state.npz")


def _same(one: state.StateFile, other: state.StateFile) -> bool:
    return one.header == other.header and all(
        np.array_equal(array, other.arrays[name]) for name, array in one.arrays.items()
    )


# --- the checks -------------------------------------------------------------------------------------------------------


def check_first_choice(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """Before anything is learnt a policy already chooses: k distinct arms, with rows, scores and widths."""
    shown = show(np.random.default_rng(0))
    policy = make(d=D, seed=0)
    for k in (1, K, N):
        decision = policy.select(shown, k)
        arms = decision.arms.tolist()
        assert len(set(arms)) == k and set(arms) <= set(range(N)), f"k={k} distinct arms expected, got {arms}"
        assert np.array_equal(decision.rows, np.asarray(shown, dtype=np.float64)[arms]), (
            "rows are not those of the arms"
        )
        assert decision.scores.shape == decision.widths.shape == (k,), "one score and one width per arm expected"
        assert np.all(np.isfinite(decision.scores)), "scores must be finite"
        assert np.all(np.isfinite(decision.widths)), "widths must be finite"
    assert decision.round == 3 and policy.rounds == 3, "rounds are counted from 1"


def check_repeats(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """The same seed and the same rounds give the same choices."""
    runs = [_play(make(d=D, seed=7), show, end, 60) for _ in range(2)]
    assert runs[0] == runs[1], "two runs with the same seed differ"


def check_state_round_trip(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """Save, load and go on equals going on, to the last bit, generator included."""
    policy = make(d=D, seed=3)
    _play(policy, show, end, 30)
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "state.npz")
        loaded = type(policy).load(Path(folder) / "state.npz")
    assert _same(_snapshot(policy), _snapshot(loaded)), "the loaded state differs from the saved one"
    assert _play(policy, show, end, 30, seed=2) == _play(loaded, show, end, 30, seed=2), "choices differ after loading"
    assert _same(_snapshot(policy), _snapshot(loaded)), "states differ after going on"


def check_inputs_kept(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """What a policy is given is not changed, and a decision does not change when the arms shown do."""
    shown = show(np.random.default_rng(0))
    before = np.array(shown)
    policy = make(d=D, seed=0)
    decision = policy.select(shown, K, eligible=[0, 2, 3, 5])
    policy.learn(decision, end(decision, np.random.default_rng(0)))
    assert np.array_equal(np.asarray(shown), before), "select or learn changed its input"
    rows = decision.rows.copy()
    (shown.context if isinstance(shown, StructuredContext) else shown)[...] = 0.0
    assert np.array_equal(decision.rows, rows), "the decision changed with the arms that were shown"


def check_eligibility(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """Arms that are not eligible never appear, whichever way eligibility is said; too few is an error."""
    policy = make(d=D, seed=0)
    generator = np.random.default_rng(5)
    for _ in range(40):
        mask = np.zeros(N, dtype=bool)
        mask[generator.choice(N, generator.integers(K, N + 1), replace=False)] = True
        said = mask if generator.random() < 0.5 else np.flatnonzero(mask)
        decision = policy.select(show(generator), K, eligible=said)
        arms = decision.arms.tolist()
        assert len(set(arms)) == K and mask[arms].all(), f"{arms} chosen of {np.flatnonzero(mask).tolist()}"
        policy.learn(decision, end(decision, generator))
    _refused(policy, "eligible", policy.select, show(generator), K, eligible=[0, 1])
    _refused(policy, "eligible", policy.select, show(generator), K, eligible=[0, 1, N])
    _refused(policy, "eligible", policy.select, show(generator), K, eligible=[1, 0, 1, 0, 1, 1])
    _refused(policy, "eligible", policy.select, show(generator), K, eligible=[[0], [1, 2]])
    _refused(policy, "eligible", policy.select, show(generator), K, eligible=np.ones(N + 1, dtype=bool))


def check_late_feedback(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """Outcomes may come late and in any order: what was decided meanwhile does not spoil what is learnt."""
    generator = np.random.default_rng(4)
    late, other = make(d=D, seed=0), make(d=D, seed=0)
    decisions = [late.select(show(generator), K) for _ in range(10)]
    outcomes = [end(decision, generator) for decision in decisions]
    for decision, outcome in reversed(list(zip(decisions, outcomes, strict=True))):
        late.learn(decision, outcome)
        other.learn(decision, outcome)  # decided by somebody else: what is learnt is in the decision
    assert np.array_equal(late.scores(show(np.random.default_rng(1))), other.scores(show(np.random.default_rng(1)))), (
        "what was learnt depends on more than the decisions and outcomes"
    )


def check_structure(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """A structured context and the plain array it stands for give the same choices."""
    structured = _play(make(d=D, seed=0), show, end, 60)
    plain = _play(make(d=D, seed=0), lambda generator: np.asarray(show(generator), dtype=np.float64), end, 60)
    assert list(map(sorted, structured)) == list(map(sorted, plain)), (
        "choices differ between the structured context and the plain array"
    )


def check_arms_come_and_go(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """The number of arms may differ from round to round."""
    policy = make(d=D, seed=0)
    generator = np.random.default_rng(6)
    for n in (4, 9, 3, _MOST_ARMS, 5):
        decision = policy.select(generator.random((n, D)), K)
        assert sorted(set(decision.arms.tolist()) & set(range(n))) == sorted(decision.arms.tolist()), f"of {n} arms"
        policy.learn(decision, end(decision, generator))


def check_bad_contexts(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """Bad input to select is an InputError that names the argument, and leaves the state as it was."""
    policy = make(d=D, seed=0)
    _play(policy, show, end, 20)
    good = np.asarray(show(np.random.default_rng(0)))
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = good.copy()
        spoilt[2, 1] = bad
        _refused(policy, "X", policy.select, spoilt, K)
        _refused(policy, "X", policy.scores, spoilt)
        structured = Kronecker()(np.ones((N, 3)), [1.0, bad, 1.0, 1.0])
        _refused(policy, "X", policy.select, structured, K)
    for X in (good[:, 1:], good[0], np.empty((0, D)), [["a"] * D] * N, None):
        _refused(policy, "X", policy.select, X, K)
    for k in (0, -1, N + 1, 1.5, None):
        _refused(policy, "k", policy.select, good, k)


def check_bad_outcomes(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """An outcome that does not fit its decision is an InputError, and leaves the state as it was."""
    policy = make(d=D, seed=0)
    _play(policy, show, end, 20)
    decision = policy.select(show(np.random.default_rng(0)), K)
    stranger = next(arm for arm in range(N) if arm not in decision.arms)
    _refused(policy, "winner", policy.learn, decision, Winner(stranger))
    _refused(policy, "ranking", policy.learn, decision, Ranking([decision.arms[0], stranger]))
    _refused(policy, "ranking", lambda: policy.learn(decision, Ranking([decision.arms[0]] * 2)))
    _refused(policy, "outcome", policy.learn, decision, decision.arms[0])
    _refused(policy, "decision", policy.learn, None, Winner(0))


def check_uninformative_outcomes(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """Void teaches nothing, nor does NoWinner unless the policy has an outside option; both are counted."""
    policy = make(d=D, seed=0)
    _play(policy, show, end, 20)
    counts = policy.observations, policy.no_winners, policy.voids
    shown = show(np.random.default_rng(0))
    decision = policy.select(shown, K)
    first = _snapshot(policy)
    policy.learn(decision, NoWinner())
    second = _snapshot(policy)
    for _ in range(2):
        policy.learn(decision, Void())
    third = _snapshot(policy)
    assert (policy.observations, policy.no_winners - 1, policy.voids - 2) == counts, "outcomes are not counted"
    assert _same_arrays(first, second) != policy.outside, "NoWinner teaches, or not, against what the policy says"
    assert _same_arrays(second, third), "Void has taught something"


def _same_arrays(one: state.StateFile, other: state.StateFile) -> bool:
    return all(np.array_equal(array, other.arrays[name]) for name, array in one.arrays.items())


def check_memory(make: Make, show: MakeContext, end: MakeOutcome) -> None:
    """Rounds do not pile up: memory stays flat, or grows by the rows of the outcomes if the policy keeps history."""
    policy = make(d=D, seed=0)
    rounds = 150
    allowed = 30_000 + (4 * 8 * rounds * K * D if policy.keeps_history else 0)
    _play(policy, show, end, 100)
    tracemalloc.start()
    try:
        _play(policy, show, end, 50)
        before = tracemalloc.get_traced_memory()[0]
        _play(policy, show, end, rounds, seed=2)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < allowed, f"{grown} bytes more after {rounds} rounds, {allowed} allowed"


def _refused(policy: Policy, argument: str, call: Callable[..., object], *given: Any, **options: Any) -> None:
    """The call raises an InputError that names the argument, and changes nothing."""
    before = _snapshot(policy)
    message = None
    try:
        call(*given, **options)
    except InputError as error:
        message = str(error)
    assert message is not None, f"bad {argument} was accepted"
    assert re.search(rf"\b{re.escape(argument)}\b", message), f"the message does not name {argument}: {message}"
    assert _same(before, _snapshot(policy)), f"bad {argument} changed the state"


CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")
}


def combinations() -> Iterator[tuple[str, str, str]]:
    """Names of every check with every context and outcome it is to be run on."""
    for check in CHECKS:
        for context in CONTEXTS:
            for outcome in OUTCOMES:
                yield check, context, outcome


def check_policy(make: Make) -> None:
    """Run every check over every kind of context and outcome."""
    for check, context, outcome in combinations():
        try:
            CHECKS[check](make, CONTEXTS[context], OUTCOMES[outcome])
        except AssertionError as error:
            raise AssertionError(f"{check}, {context} context, {outcome} outcomes: {error}") from error
