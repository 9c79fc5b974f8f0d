"""The facade: names, scaling, arms that join, files."""

import copy
import inspect
import pickle
import pydoc

import numpy as np
import pytest

import preselect
import preselect.state
from preselect import InputError, NoWinner, Preselector, StateFileError, Void
from preselect.policies import registry

SOLVERS = {"cadical": {"cdcl": 1, "age": 5.0}, "saps": {"cdcl": 0, "age": 20.0}, "kissat": {"cdcl": 1, "age": None}}


def race(preselector, rounds, seed=0, k=2):
    """`saps` is best on small instances, `kissat` on large ones; the others come last."""
    generator = np.random.default_rng(seed)
    chosen = []
    for _ in range(rounds):
        size = float(generator.integers(1, 1000))
        decision = preselector.select({"size": size, "ratio": 4.2}, k=k)
        best = "saps" if size < 500 else "kissat"
        winner = best if best in decision.names else decision.names[0]
        preselector.learn(decision, winner=winner)
        chosen.append(best in decision.names)
    return chosen


def test_it_learns_which_arm_suits_which_context():
    preselector = Preselector([*SOLVERS, "a", "b", "c"], ["size", "ratio"], seed=0)
    assert np.mean(race(preselector, 300)[200:]) > 0.95
    assert (
        preselector.select({"size": 900, "ratio": 4.2}, k=2).names[0] == "kissat"
    )  # the leader, by the estimate alone
    assert preselector.select([50, 4.2], k=2).names[0] == "saps"


@pytest.mark.parametrize("policy", registry.POLICIES)
def test_any_policy_by_name_with_arms_that_join_and_files(policy, tmp_path):
    preselector = Preselector(SOLVERS, ["size", "ratio"], policy=policy, seed=1)
    race(preselector, 10)
    early = preselector.select([10.0, 4.2], k=2)
    for name in "abcde":
        preselector.add(name, {"cdcl": 1})
    preselector.learn(early, ranking=reversed(early.names))
    race(preselector, 10, seed=2, k=3)
    preselector.save(tmp_path / "state.npz")
    again = preselect.load(tmp_path / "state.npz")
    assert isinstance(again, Preselector)
    assert again.arms == preselector.arms == [*SOLVERS, *"abcde"]
    assert race(again, 20, seed=3) == race(preselector, 20, seed=3)
    assert again.scores([1.0, 2.0]) == preselector.scores([1.0, 2.0])


def test_an_arm_that_joins_is_tried():
    preselector = Preselector(["a", "b", "c"], seed=0)
    for _ in range(50):
        decision = preselector.select(k=2)
        preselector.learn(decision, winner=min(decision.names))
    preselector.add("new")
    seen = 0
    for _ in range(30):
        decision = preselector.select(k=2)
        seen += "new" in decision.names
        preselector.learn(decision, winner="new" if "new" in decision.names else decision.names[0])
    assert seen > 25


def test_arms_that_join_change_nothing_for_the_others():
    """Room for more arms is room only: the same choices as with the arms that there are."""
    one, other = Preselector(["a", "b", "c"], ["size", "ratio"], seed=0), Preselector(["a"], ["size", "ratio"], seed=0)
    for name in "bc":
        other.add(name)
    assert other.policy.d > one.policy.d
    context = {"size": 3.0, "ratio": 1.0}
    for _ in range(30):
        decisions = [preselector.select(context, k=2, eligible=["a", "b", "c"]) for preselector in (one, other)]
        assert set(decisions[0].names) == set(decisions[1].names)
        for preselector, decision in zip((one, other), decisions, strict=True):
            preselector.learn(decision, winner=max(decision.names))


def test_only_shared_weights_without_identity():
    arms = {str(i): {"quality": i} for i in range(30)}
    preselector = Preselector(arms, policy="newton(beta=0.5)", identity=False, seed=0)
    assert preselector.policy.d == 1
    for _ in range(40):
        decision = preselector.select(k=3)
        preselector.learn(decision, winner=max(decision.names, key=int))
    assert set(preselector.select(k=3).names) == {"27", "28", "29"}
    preselector.add("30", {"quality": 30})
    assert preselector.select(k=2).names == ("30", "29")


def test_outcomes_other_than_a_winner():
    preselector = Preselector(["a", "b", "c"], policy="newton(beta=0)", seed=0)
    decision = preselector.select(k=3)
    preselector.learn(decision, outcome=NoWinner())
    preselector.learn(decision, outcome=Void())
    preselector.learn(decision, ranking=["b", "a"])
    assert (preselector.policy.no_winners, preselector.policy.voids, preselector.policy.observations) == (1, 1, 1)
    assert preselector.scores()["b"] > preselector.scores()["a"] > preselector.scores()["c"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_a_copy_learns_on_like_the_original(duplicate):
    one = Preselector(SOLVERS, ["size", "ratio"], seed=0)
    race(one, 10)
    other = duplicate(one)
    before = one.to_bytes()
    assert race(other, 20, seed=1) == race(duplicate(one), 20, seed=1)
    assert one.to_bytes() == before
    race(one, 20, seed=1)
    assert other.to_bytes() == one.to_bytes() != before


def test_decisions_of_another_preselector_are_refused():
    small, large = Preselector(["a", "b"], seed=0), Preselector(["a", "b", "c"], seed=0)
    decision = large.select(k=2, eligible=["b", "c"])
    with pytest.raises(InputError, match="there is no arm 'c'; the arms are 'a', 'b'"):
        small.learn(decision, winner=decision.names[0])
    other = Preselector({"a": {"age": 1.0}, "b": {"age": 2.0}}, ["size"], seed=0).select([1.0], k=2)
    with pytest.raises(InputError, match="the decision has 'size', but the features of the context are none here"):
        small.learn(other, winner="a")


def test_decisions_are_learnt_from_by_name():
    """Two preselectors whose arms joined in another order learn the same from the same decision."""
    one, other = (Preselector(names, ["size"], policy="newton(beta=0)", seed=0) for names in (["a", "b"], ["b", "a"]))
    for size in (1.0, 5.0, 3.0, 30.0):
        decision = one.select([size], k=2)
        other.select([size], k=2)
        for preselector in (one, other):
            preselector.learn(decision, winner="a" if size > 4 else "b")
    assert other.scores([9.0]) == pytest.approx(one.scores([9.0]), abs=1e-12)
    assert one.scores([9.0])["a"] > one.scores([9.0])["b"]


@pytest.mark.parametrize("name", [name for name in dir(Preselector) if not name.startswith("_")])
def test_help_fits_on_a_screen(name):
    text = pydoc.plain(pydoc.render_doc(getattr(Preselector, name)))
    assert len(text.splitlines()) <= 32
    assert max(map(len, text.splitlines())) <= 300
    if inspect.isfunction(getattr(Preselector, name)):
        for parameter in list(inspect.signature(getattr(Preselector, name)).parameters)[1:]:
            assert f"{parameter} : " in text


def test_a_decision_survives_pickling():
    preselector = Preselector(["a", "b", "c"], seed=0)
    decision = preselector.select(k=2)
    again = pickle.loads(pickle.dumps(decision))
    assert again.names == decision.names
    assert repr(again) == repr(decision)
    preselector.learn(again, winner=again.names[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.select({"size": 1.0}, k=1), "the context lacks 'ratio'; give None for"),
        (
            lambda c: c.select({"size": 1.0, "ratio": 1.0, "hue": 2}, k=1),
            "the context has 'hue', but only these features are known: 'size', 'ratio'",
        ),
        (lambda c: c.select([1.0], k=1), "context has length 1, but its features are 'size', 'ratio'"),
        (lambda c: c.select(1.0, k=1), "context is 1.0; give values by name, or a list of them"),
        (lambda c: c.select("12", k=1), "context is '12'; give values by name, or a list of them"),
        (lambda c: c.select([1.0, "x"], k=1), "ratio is 'x'; use a finite number"),
        (lambda c: c.select([1.0, np.inf], k=1), "ratio is inf; use a finite number"),
        (
            lambda c: c.select([1.0, 1.0], k=4),
            "k=4 is too many; the arms to choose from are 'cadical', 'saps', 'kissat'",
        ),
        (lambda c: c.select([1.0, 1.0], k=0), "k is 0; use an integer of at least 1"),
        (
            lambda c: c.select([1.0, 1.0], k=2, eligible=["saps"]),
            "k=2 is too many; the arms to choose from are 'saps'",
        ),
        (lambda c: c.select([1.0, 1.0], k=1, eligible=[]), "k=1 is too many; the arms to choose from are none"),
        (lambda c: c.select([1.0, 1.0], k=2, eligible=["saps"] * 2), "eligible has 'saps' more than once"),
        (
            lambda c: c.select([1.0, 1.0], k=1, eligible=["glucose"]),
            "there is no arm 'glucose'; the arms are 'cadical', 'saps', 'kissat'",
        ),
        (lambda c: c.select([1.0, 1.0], k=1, eligible="saps"), "eligible is 'saps'; use a list of names"),
        (lambda c: c.add("saps"), "there is an arm 'saps' already; use another name"),
        (lambda c: c.add(7), "the name of an arm is 7; use a string"),
        (lambda c: c.arm("new"), "there is no arm 'new'"),
        (lambda c: c.add("new", {"hue": 1}), "'new' has 'hue', but the features of arms are 'cdcl', 'age'"),
        (
            lambda c: c.learn(c.select([1, 1], k=2)),
            "exactly one of winner, ranking, ratings and outcome; 0 were given",
        ),
        (
            lambda c: c.learn(None, outcome=NoWinner(), after=0.5),
            r"after=0\.5 needs a winner; for a race without one use outcome=NoWinner\(after\)",
        ),
        (lambda c: c.learn(None, winner="saps"), "decision is None; give what select returned"),
        (
            lambda c: c.learn(c.select([1, 1], k=2, eligible=["saps", "kissat"]), winner="cadical"),
            "'cadical' was not chosen; the decision has '(saps', 'kissat|kissat', 'saps)'",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(call, message):
    preselector = Preselector(SOLVERS, ["size", "ratio"], seed=0)
    race(preselector, 5)
    before = preselector.scores([1.0, 1.0])
    with pytest.raises(InputError, match=message):
        call(preselector)
    assert preselector.arms == list(SOLVERS)
    if "exactly" not in message and "chosen" not in message:
        assert preselector.scores([1.0, 1.0]) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arms": ["a", "a"]}, "arms has 'a' more than once; use distinct names"),
        ({"arms": ["a", 2]}, "arms has 2 as a name; use strings"),
        ({"arms": "abc"}, "arms is 'abc'; use a list of names"),
        (
            {"arms": ["a", "b"], "identity": False},
            "without identities arms differ by their features only; give them some",
        ),
        ({"arms": ["a", "b"], "policy": "clever"}, "unknown policy 'clever'"),
        (
            {"arms": map(str, range(900)), "context": list("abcdef"), "policy": "cppl"},
            "arms and context make 6300 joint features, and at most 5000 are possible; use identity",
        ),
    ],
)
def test_bad_construction_is_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        Preselector(**arguments)


def test_files_that_do_not_fit_are_refused(tmp_path):
    Preselector(["a", "b"], seed=0).save(tmp_path / "one.npz")
    preselect.CPPL(d=2, seed=0).save(tmp_path / "other.npz")
    assert isinstance(preselect.load(tmp_path / "other.npz"), preselect.CPPL)
    with pytest.raises(StateFileError, match=r"other\.npz holds a CPPL, not a Preselector"):
        Preselector.load(tmp_path / "other.npz")
    file = preselect.state.read(tmp_path / "one.npz")
    file.arrays["values"] = np.zeros((5, 1))
    preselect.state.write(tmp_path / "one.npz", file.kind, file.header, file.arrays)
    with pytest.raises(StateFileError, match=r"not a complete Preselector state: values has shape \(5, 1\)"):
        preselect.load(tmp_path / "one.npz")


def test_a_policy_given_per_feature_cannot_grow():
    with pytest.raises(InputError, match="precision was given per feature"):
        preselect.Newton(d=2, precision=[1.0, 2.0]).widen(4)
    with pytest.raises(InputError, match="d=2, but the policy already has 3 features"):
        preselect.Newton(d=3).widen(2)


@pytest.mark.parametrize(
    "name", [name for name in registry.POLICIES if name not in ("mm", "random", "cppl", "ofu-mnl")]
)
def test_an_extended_policy_goes_on_as_if_the_features_had_always_been_zero(name):
    """Not for CPPL and OFU-MNL+, whose widths depend on d itself."""
    make, _ = registry.parse(name)
    fixed = {"theta_0": 0.5} if "theta_0" in inspect.signature(make).parameters else {}
    fixed |= {"c_1": 1.0, "threshold": 1.0} if name == "colstim" else {}
    short, long = make(d=3, seed=0, **fixed), make(d=5, seed=0, **fixed)
    generator = np.random.default_rng(1)
    for _ in range(20):
        decision = short.select(generator.random((6, 3)), 3)
        wide = preselect.Decision.of(
            arms=decision.arms,
            rows=np.hstack((decision.rows, np.zeros((3, 2)))),
            scores=decision.scores,
            widths=decision.widths,
            ids=decision.ids,
            round=decision.round,
        )
        short.learn(decision, preselect.Winner(decision.arms[0]))
        long.learn(wide, preselect.Winner(decision.arms[0]))
    X = generator.random((6, 5))
    if name == "ucb-mnl":  # its radius depends on d as well
        assert np.allclose(short.widen(5).theta, long.theta)
    else:
        np.testing.assert_allclose(short.widen(5).scores(X), long.scores(X), rtol=1e-6)


def test_an_arm_for_which_there_is_no_room_does_not_join():
    preselector = Preselector(["a", "b", "c"], context=[f"x{i}" for i in range(999)], policy="max-theta", seed=0)
    before = preselector.to_bytes()
    with pytest.raises(InputError, match="make 6000 joint features"):
        preselector.add("d")
    assert preselector.arms == ["a", "b", "c"]
    assert preselector.to_bytes() == before


def test_k_has_to_be_given():
    with pytest.raises(InputError, match="say how many arms"):
        Preselector(["a", "b"], seed=0).select()


def test_a_set_of_one_that_teaches_nothing_is_warned_of_once(tmp_path):
    """In the caller's line; not if NoWinner teaches something, and not again after a file or a replay."""
    preselector = Preselector(["a", "b"], seed=0)
    with pytest.warns(UserWarning, match="the winner of a set of one teaches nothing; choose k=2 or more") as warned:
        preselector.select(k=1)
    assert warned[0].filename == __file__
    for _ in range(50):
        decision = preselector.select(k=1)
        preselector.learn(decision, winner=decision.names[0])
    assert not preselector.policy.theta.any()
    Preselector(["a", "b"], seed=0).select(k=2)
    Preselector(["a", "b"], policy="newton(outside=True)", seed=0).select(k=1)
    preselector.save(tmp_path / "one.npz")
    preselect.load(tmp_path / "one.npz").select(k=1)


def test_a_warning_that_is_an_error_changes_nothing():
    preselector = Preselector(["a", "b"], seed=0)
    before = preselector.to_bytes()
    with pytest.raises(UserWarning):  # the tests turn warnings into errors
        preselector.select(k=1)
    assert preselector.to_bytes() == before
