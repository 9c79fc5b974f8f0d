"""Arms that leave, change and come back; more joint features than a full covariance could have; features as vectors."""

import json
import pickle

import numpy as np
import pytest

from preselect import InputError, NamedDecision, NoWinner, Preselector, StateFileError, state
from preselect.block_context import unpack
from preselect.policies import registry

CONTEXT = ["x", "y"]


def play(preselector, rounds, generator, k=2):
    for _ in range(rounds):
        decision = preselector.select(generator.normal(size=2), k=k)
        preselector.learn(decision, winner=decision.names[generator.integers(k)])


def make(arms, **arguments):
    return Preselector(list(arms) if isinstance(arms, str) else arms, CONTEXT, seed=0, **arguments)


@pytest.mark.parametrize("policy", sorted(registry.POLICIES))
@pytest.mark.parametrize("features", [False, True])
def test_what_was_learnt_about_others_stays_when_an_arm_leaves(policy, features):
    generator = np.random.default_rng(1)
    arms = {name: {"age": float(age)} if features else {} for age, name in enumerate("abcd")}
    preselector = make(arms, policy=policy)
    play(preselector, 30, generator)
    contexts = generator.normal(size=(3, 2))
    before = [preselector.scores(context) for context in contexts]
    preselector.remove("b")
    assert preselector.arms == ["a", "c", "d"]
    for context, old in zip(contexts, before, strict=True):
        new = preselector.scores(context)
        assert list(new) == ["a", "c", "d"]
        if policy in ("newton", "thompson", "mm", "random", "ts-mnl", "epsilon-greedy", "max-theta", "linucb"):
            lead = {name: old[name] - old["a"] for name in new}  # the leader's score is a lead over itself
            if policy != "newton":
                assert {name: new[name] - new["a"] for name in new} == pytest.approx(lead, abs=1e-9)
    again = Preselector.from_bytes(preselector.to_bytes())
    assert again.arms == preselector.arms
    assert again.to_bytes() == preselector.to_bytes()
    for one in (preselector, again):
        one.add("e", {"age": 2.0} if features else None)
    play(preselector, 10, np.random.default_rng(2))
    play(again, 10, np.random.default_rng(2))
    assert again.to_bytes() == preselector.to_bytes()
    assert set(preselector.select([0.0, 0.0], k=4).names) == {"a", "c", "d", "e"}


@pytest.mark.parametrize("covariance", ["full", "blocks"])
@pytest.mark.parametrize("policy", ["newton", "thompson", "newton(outside=True)"])
def test_an_arm_in_the_place_of_another_starts_from_the_prior(policy, covariance):
    generator = np.random.default_rng(3)
    preselector = make("abcd", policy=policy, covariance=covariance)
    for _ in range(40):
        decision = preselector.select(generator.normal(size=2), k=2)
        preselector.learn(decision, winner="b" if "b" in decision.names else decision.names[0])
    preselector.remove("b")
    preselector.add("b")  # the same name, and the same slot
    estimate = preselector.policy.estimate
    places = preselector._joint.list_places(preselector._find("b"))
    assert not estimate.theta[places].any()
    if covariance == "full":
        np.testing.assert_array_equal(estimate.P[places][:, places], np.eye(3))
        assert np.count_nonzero(estimate.P[places]) == 3
        np.testing.assert_allclose(estimate.A @ estimate.P, np.eye(12), atol=1e-8)
    else:
        np.testing.assert_array_equal(estimate.P.own[1], [1.0, 0.0, 1.0, 0.0, 0.0, 1.0])


def test_a_marginal_belief_is_the_dense_one_without_the_arm():
    """Mean and covariance of all other weights are exactly what they were."""
    preselector = make("abcd", covariance="full")
    play(preselector, 50, np.random.default_rng(4))
    P, theta = preselector.policy.P.copy(), preselector.policy.theta.copy()
    preselector.remove("c")
    rest = np.setdiff1d(np.arange(12), np.arange(6, 9))
    np.testing.assert_array_equal(preselector.policy.P[np.ix_(rest, rest)], P[np.ix_(rest, rest)])
    np.testing.assert_array_equal(preselector.policy.theta[rest], theta[rest])


def test_a_decision_that_waits_for_an_arm_that_left_is_refused():
    preselector = make("abc")
    decision = preselector.select([0.0, 1.0], k=3)
    preselector.remove("a")
    before = preselector.to_bytes()
    with pytest.raises(InputError, match="there is no arm 'a'"):
        preselector.learn(decision, winner="b")
    with pytest.raises(InputError, match="there is no arm 'a'"):
        preselector.remove("a")
    with pytest.raises(InputError, match="there is no arm 'a'"):
        preselector.select([0.0, 1.0], k=1, eligible=["a"])
    assert preselector.to_bytes() == before


@pytest.mark.parametrize(
    ("policy", "covariance"),
    [*((policy, None) for policy in sorted(registry.POLICIES)), ("newton", "blocks"), ("thompson", "blocks")],
)
def test_an_arm_does_not_take_the_outcomes_of_another_that_had_its_name(policy, covariance):
    preselector = make("abc", policy=policy, covariance=covariance)
    early = preselector.select([0.0, 1.0], k=3)
    preselector.remove("a")
    preselector.add("a")
    between = preselector.select([0.0, 1.0], k=3)
    preselector.remove("b")
    late = preselector.select([0.0, 1.0], k=2)
    copies = [preselector, Preselector.from_bytes(preselector.to_bytes())]
    for one in copies:
        before = one.to_bytes()
        for decision in (early, NamedDecision.from_json(early.to_json()), pickle.loads(pickle.dumps(early))):
            for act in (
                lambda one=one, of=decision: one.learn(of, winner="c"),
                lambda one=one, of=decision: one.explain(of),
            ):
                with pytest.raises(InputError, match=r"there is no arm 'b'|earlier arm 'a'"):
                    act()
        one.add("b")
        for decision, names in ((early, "ab"), (between, "b")):
            with pytest.raises(InputError, match=f"an earlier arm '[{names}]', which has left"):
                one.learn(decision, winner="c")
        one.learn(NamedDecision.from_record(*late.to_record()), winner="a")  # neither of its arms has left
        one.learn(one.select([0.0, 1.0], k=3), winner="b")
        assert one.to_bytes() != before
    assert copies[0].to_bytes() == copies[1].to_bytes()


def test_decisions_and_states_that_count_no_departures_go_on():
    """Those of earlier versions, in which an arm had left and joined again."""
    preselector = make("abc")
    preselector.remove("b")
    preselector.add("b")
    decision = preselector.select([0.0, 1.0], k=3)
    text = json.loads(decision.to_json())
    assert text.pop("departures") == 1
    file = state.unpack(preselector.to_bytes(), "file")
    assert (file.header.pop("departures"), file.header.pop("after")) == (1, [0, 0, 1])
    old = Preselector.from_bytes(state.pack(file.kind, file.header, file.arrays))
    for one in (decision, NamedDecision.from_json(json.dumps(text))):
        old.learn(one, winner="b")
    early = old.select([0.0, 1.0], k=3)
    assert early.departures == 0
    old.remove("b")
    old.add("b")
    with pytest.raises(InputError, match="an earlier arm 'b'"):
        old.learn(early, winner="a")
    unknown = NamedDecision.from_json(json.dumps(text))
    assert unknown.departures is None
    old.learn(unknown, winner="a")  # it does not say when it was made


def test_states_with_departures_that_cannot_be_are_refused():
    preselector = make("abc")
    preselector.remove("b")
    preselector.add("b")
    for changed in (
        {"departures": 0},
        {"departures": -1},
        {"departures": "x"},
        {"after": [0, 0]},
        {"after": [0, 0, 2]},
    ):
        file = state.unpack(preselector.to_bytes(), "file")
        with pytest.raises(StateFileError):
            Preselector.from_bytes(state.pack(file.kind, {**file.header, **changed}, file.arrays))


def test_eligible_arms_are_meant_by_name_after_others_left():
    preselector = make("abcdef")
    play(preselector, 10, np.random.default_rng(5))
    preselector.remove("b")
    preselector.remove("a")
    preselector.add("z")
    assert set(preselector.select([1.0, 0.0], k=2, eligible=["e", "z"]).names) == {"e", "z"}
    assert preselector.arms == ["c", "d", "e", "f", "z"]


def test_other_features_count_from_then_on():
    preselector = make({"a": {"age": 1.0}, "b": {"age": 2.0}, "c": {"age": 3.0}})
    play(preselector, 20, np.random.default_rng(6))
    preselector.change("a", {"age": 3.0})
    assert preselector.arm("a") == {"age": 3.0}
    play(preselector, 1, np.random.default_rng(7))
    preselector.change("a", {})
    assert preselector.arm("a") == {"age": None}
    with pytest.raises(InputError, match="'a' has 'size'"):
        preselector.change("a", {"size": 3.0})


def test_arms_may_be_vectors():
    generator = np.random.default_rng(8)
    vectors = generator.normal(size=(4, 3))
    by_vector = make(dict(zip("abcd", vectors, strict=True)))
    by_name = make(
        {name: dict(zip(["x0", "x1", "x2"], row, strict=True)) for name, row in zip("abcd", vectors, strict=True)}
    )
    for one in (by_vector, by_name):
        one.add("e", [0.1, None, 0.3])
        play(one, 10, np.random.default_rng(9))
    assert by_vector.to_bytes() == by_name.to_bytes()
    assert by_vector.arm("e") == {"x0": 0.1, "x1": None, "x2": 0.3}
    with pytest.raises(InputError, match="'f' has 2 features in order"):
        by_vector.add("f", [1.0, 2.0])
    with pytest.raises(InputError, match="use one form for all arms"):
        make({"a": [1.0], "b": [1.0, 2.0]})
    with pytest.raises(InputError, match="use one form for all arms"):
        make({"a": [1.0], "b": {"x": 2.0}})


def test_blocks_are_taken_where_they_are_needed_and_what_was_learnt_is_kept():
    """300 weights fit into a full covariance; with room for 512 arms there are 1536."""
    preselector = make([str(arm) for arm in range(256)])
    assert preselector.policy.blocks is None
    play(preselector, 10, np.random.default_rng(10))
    theta = preselector.policy.theta.copy()
    preselector.add("new")
    assert preselector.policy.blocks == (0, 3)
    np.testing.assert_array_equal(preselector.policy.theta[: len(theta)], theta)
    again = Preselector.from_bytes(preselector.to_bytes())
    for one in (preselector, again):
        play(one, 5, np.random.default_rng(11))
    assert again.to_bytes() == preselector.to_bytes()
    assert make([str(arm) for arm in range(400)], covariance="full").policy.blocks is None
    assert make([str(arm) for arm in range(400)], policy="newton(discount=0.9)").policy.blocks is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "cppl", "covariance": "blocks"}, "cannot keep covariance='blocks': use newton or thompson"),
        ({"policy": "newton(discount=0.5)", "covariance": "blocks"}, "discount=1"),
        ({"covariance": "diagonal"}, "use 'full' or 'blocks'"),
        ({"policy": "linucb"}, "make 6000 joint features, and at most 5000 .* newton or thompson without discount"),
    ],
)
def test_what_cannot_be_is_said(arguments, message):
    with pytest.raises(InputError, match=message):
        make([str(arm) for arm in range(2000)], **arguments)


def test_many_arms_learn():
    """Among 2000 arms with blocks the one that always wins is found, also after arms have left and nobody has won."""
    generator = np.random.default_rng(12)
    preselector = make([str(arm) for arm in range(2000)], policy="newton(outside=True)")
    for turn in range(60):
        decision = preselector.select(generator.normal(size=2), k=3, eligible=["7", *map(str, range(100, 130))])
        if "7" in decision.names:
            preselector.learn(decision, winner="7")
        else:
            preselector.learn(decision, outcome=NoWinner())
        if turn == 30:
            for arm in range(100, 110):
                preselector.remove(str(arm))
                preselector.add(str(arm))
    assert preselector.select([0.0, 0.0], k=2).names[0] == "7"


def test_churn_neither_grows_nor_forgets_the_others():
    """Sizes of all that is kept after ten generations of arms are those after one."""
    generator = np.random.default_rng(13)
    for policy in ("newton", "cppl", "linucb"):
        preselector = make([f"0-{arm}" for arm in range(8)], policy=policy)
        sizes = []
        for generation in range(1, 11):
            for arm in range(8):
                preselector.remove(f"{generation - 1}-{arm}")
                preselector.add(f"{generation}-{arm}")
            play(preselector, 4, generator)
            sizes.append(preselector.policy.d)
        assert sizes == [24] * 10
        assert preselector._joint.n_slots == 8


@pytest.mark.parametrize("policy", sorted(registry.POLICIES))
@pytest.mark.parametrize("covariance", [None, "blocks"])
def test_contexts_may_have_more_features_later(policy, covariance):
    """Utilities stay where they were, but for the prior, whatever the new feature is; then it is learnt from."""
    if covariance == "blocks" and policy not in ("newton", "thompson"):
        return
    generator = np.random.default_rng(15)
    arms = {name: {"age": float(age)} for age, name in enumerate("abcd")}
    preselector = make(arms, policy=policy, covariance=covariance)
    play(preselector, 30, generator)
    waiting = preselector.select([0.3, -0.2], k=2)
    seen = getattr(preselector.policy, "_seen_features", 0)
    linear = policy in ("newton", "thompson", "epsilon-greedy", "max-theta", "linucb", "mm", "random")
    before = utilities(preselector, [0.3, -0.2]) if linear else None
    preselector.add_context("z")
    assert preselector.context == ["x", "y", "z"]
    if before is not None:
        np.testing.assert_allclose(utilities(preselector, [0.3, -0.2, 5.0]), before, atol=0.15 * np.abs(before).max())
    assert getattr(preselector.policy, "_seen_features", 0) == seen
    if seen:
        assert preselector.policy.seen.sum() == seen
    preselector.learn(waiting, winner=waiting.names[0])  # in its round z was not known
    for z in (1.0, 2.0, 4.0, 3.0) * 8:
        decision = preselector.select([0.1, 0.2, z], k=2)
        preselector.learn(decision, winner=decision.names[0])
    again = Preselector.from_bytes(preselector.to_bytes())
    assert again.select([0.0, 0.0, 1.0], k=2) == preselector.select([0.0, 0.0, 1.0], k=2)
    with pytest.raises(InputError, match="'z' more than once"):
        preselector.add_context("z")


def utilities(preselector, context):
    shown = preselector._show(np.array(context))
    if not hasattr(preselector.policy, "theta"):
        return np.array(list(preselector.scores(context).values()))
    return shown.utilities(preselector.policy.theta[None])[:, 0]


@pytest.mark.soak
def test_a_day_of_churn_with_blocks_keeps_its_size():
    generator = np.random.default_rng(14)
    preselector = make([f"arm {arm}" for arm in range(200)], covariance="blocks")
    sizes, joined = [], 200
    for _ in range(24):
        for name in generator.choice(preselector.arms, 20, replace=False):
            preselector.remove(str(name))
            preselector.add(f"arm {joined}")
            joined += 1
        play(preselector, 600, generator, k=3)
        sizes.append(len(preselector.to_bytes()))
        assert np.linalg.eigvalsh(unpack(preselector.policy.P.own, 3)).min() > 0.0
    assert max(sizes) < 1.1 * sizes[1]


def test_a_feature_that_is_the_same_for_all_arms_for_a_while_keeps_its_weight():
    made = Preselector({"a": {"reduced": 0.0}, "b": {"reduced": 1.0}}, seed=0)
    for one in np.random.default_rng(0).random(100) < 0.5:
        for name, reduced in (("a", one), ("b", not one)):
            made.change(name, {"reduced": float(reduced)})
        made.learn(made.select(k=2), winner="a" if one else "b")
    made.change("a", {"reduced": 0.0})
    made.change("b", {"reduced": 0.0})
    made.add("c", {"reduced": 0.0})
    made.learn(made.select(k=3), winner="a")
    made.change("b", {"reduced": 1.0})
    utilities = {name: one.utility for name, one in made.estimates().items()}
    assert utilities["b"] > max(utilities["a"], utilities["c"]) + 2.0
