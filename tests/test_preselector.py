"""The facade: names, scaling, arms that join, files."""

import inspect
import pickle

import numpy as np
import pytest

import preselect
import preselect.state
from preselect import InputError, NoWinner, Preselector, Scaling, StateFileError, Void
from preselect.policies import registry

SOLVERS = {"cadical": {"cdcl": 1, "age": 5.0}, "saps": {"cdcl": 0, "age": 20.0}, "kissat": {"cdcl": 1, "age": None}}


def race(chooser, rounds, seed=0, k=2):
    """`saps` is best on small instances, `kissat` on large ones; the others come last."""
    generator = np.random.default_rng(seed)
    chosen = []
    for _ in range(rounds):
        size = float(generator.integers(1, 1000))
        decision = chooser.select({"size": size, "ratio": 4.2}, k=k)
        best = "saps" if size < 500 else "kissat"
        winner = best if best in decision.names else decision.names[0]
        chooser.learn(decision, winner=winner)
        chosen.append(best in decision.names)
    return chosen


def test_it_learns_which_arm_suits_which_context():
    chooser = Preselector([*SOLVERS, "a", "b", "c"], ["size", "ratio"], seed=0)
    assert np.mean(race(chooser, 300)[200:]) > 0.95
    assert chooser.scores({"size": 900, "ratio": 4.2})["kissat"] == max(chooser.scores([900, 4.2]).values())
    assert max(chooser.scores([50, 4.2]), key=chooser.scores([50, 4.2]).get) == "saps"


@pytest.mark.parametrize("policy", registry.POLICIES)
def test_any_policy_by_name_with_arms_that_join_and_files(policy, tmp_path):
    chooser = Preselector(SOLVERS, ["size", "ratio"], policy=policy, seed=1)
    race(chooser, 10)
    early = chooser.select([10.0, 4.2], k=2)
    for name in "abcde":
        chooser.add(name, {"cdcl": 1})
    chooser.learn(early, ranking=reversed(early.names))
    race(chooser, 10, seed=2, k=3)
    chooser.save(tmp_path / "state.npz")
    again = preselect.load(tmp_path / "state.npz")
    assert isinstance(again, Preselector)
    assert again.arms == chooser.arms == [*SOLVERS, *"abcde"]
    assert race(again, 20, seed=3) == race(chooser, 20, seed=3)
    assert again.scores([1.0, 2.0]) == chooser.scores([1.0, 2.0])


def test_an_arm_that_joins_is_tried():
    chooser = Preselector(["a", "b", "c"], seed=0)
    for _ in range(50):
        decision = chooser.select(k=2)
        chooser.learn(decision, winner=min(decision.names))
    chooser.add("new")
    seen = 0
    for _ in range(30):
        decision = chooser.select(k=2)
        seen += "new" in decision.names
        chooser.learn(decision, winner="new" if "new" in decision.names else decision.names[0])
    assert seen > 25


def test_arms_that_join_change_nothing_for_the_others():
    """Room for more arms is room only: the same choices as with the arms that there are."""
    one, other = Preselector(["a", "b", "c"], ["size", "ratio"], seed=0), Preselector(["a"], ["size", "ratio"], seed=0)
    for name in "bc":
        other.add(name)
    assert other.policy.d > one.policy.d
    context = {"size": 3.0, "ratio": 1.0}
    for _ in range(30):
        decisions = [chooser.select(context, k=2, eligible=["a", "b", "c"]) for chooser in (one, other)]
        assert set(decisions[0].names) == set(decisions[1].names)
        for chooser, decision in zip((one, other), decisions, strict=True):
            chooser.learn(decision, winner=max(decision.names))


def test_only_shared_weights_without_identity():
    chooser = Preselector({str(i): {"quality": i} for i in range(30)}, identity=False, seed=0)
    assert chooser.policy.d == 1
    for _ in range(40):
        decision = chooser.select(k=3)
        chooser.learn(decision, winner=max(decision.names, key=int))
    assert set(chooser.select(k=3).names) == {"27", "28", "29"}
    chooser.add("30", {"quality": 30})
    assert chooser.select(k=1).names == ("30",)


def test_outcomes_other_than_a_winner():
    chooser = Preselector(["a", "b", "c"], policy="newton(beta=0)", seed=0)
    decision = chooser.select(k=3)
    chooser.learn(decision, outcome=NoWinner())
    chooser.learn(decision, outcome=Void())
    chooser.learn(decision, ranking=["b", "a"])
    assert (chooser.policy.no_winners, chooser.policy.voids, chooser.policy.observations) == (1, 1, 1)
    assert chooser.scores()["b"] > chooser.scores()["a"] > chooser.scores()["c"]


def test_a_decision_survives_pickling():
    chooser = Preselector(["a", "b", "c"], seed=0)
    decision = chooser.select(k=2)
    copy = pickle.loads(pickle.dumps(decision))
    assert copy.names == decision.names
    assert repr(copy) == repr(decision)
    chooser.learn(copy, winner=copy.names[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.select({"size": 1.0}, k=1), r"context must give \['size', 'ratio'\], got \['size'\]; None says"),
        (lambda c: c.select([1.0], k=1), r"context must have 2 values, \['size', 'ratio'\], got 1"),
        (lambda c: c.select([1.0, "x"], k=1), "ratio is 'x'; use a"),
        (lambda c: c.select([1.0, np.inf], k=1), "ratio is inf; use a finite number"),
        (lambda c: c.select([1.0, 1.0], k=4), "k must be from 1 to n=3, .* got 4"),
        (lambda c: c.select([1.0, 1.0], k=1, eligible=["glucose"]), r"eligible must name arms among .*, got 'glucose'"),
        (lambda c: c.select([1.0, 1.0], k=1, eligible="saps"), "eligible must be a list of names, got 'saps'"),
        (lambda c: c.add("saps"), "name must be a text that no arm has yet, got 'saps'"),
        (lambda c: c.add("new", {"colour": 1}), r"features of new must be among \['cdcl', 'age'\], got \['colour'\]"),
        (lambda c: c.learn(c.select([1, 1], k=1)), "learn must be given one of winner, ranking or outcome, got 0"),
        (
            lambda c: c.learn(None, outcome=NoWinner(), after=0.5),
            "after must come with a winner, got 0.5 without; NoWinner takes it as an argument",
        ),
        (lambda c: c.learn(None, winner="saps"), "decision must be what select returned, got None"),
        (
            lambda c: c.learn(c.select([1, 1], k=2, eligible=["saps", "kissat"]), winner="cadical"),
            r"winner must name arms that were chosen, \[.*\], got 'cadical'",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(call, message):
    chooser = Preselector(SOLVERS, ["size", "ratio"], seed=0)
    race(chooser, 5)
    before = chooser.scores([1.0, 1.0])
    with pytest.raises(InputError, match=message):
        call(chooser)
    assert chooser.arms == list(SOLVERS)
    if "learn" not in message and "chosen" not in message:
        assert chooser.scores([1.0, 1.0]) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arms": ["a", "a"]}, r"arms must be distinct names, got \['a', 'a'\]"),
        ({"arms": "abc"}, "arms must be a list of names, got 'abc'"),
        ({"arms": ["a", "b"], "identity": False}, "arms must have features if identity is False, got none"),
        ({"arms": ["a", "b"], "policy": "clever"}, "unknown policy 'clever'"),
        (
            {"arms": map(str, range(900)), "context": list("abcdef")},
            "at most 5000 joint features, got 6300: say identity",
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
    with pytest.raises(StateFileError, match=r"other\.npz holds a CPPL, expected a Preselector"):
        Preselector.load(tmp_path / "other.npz")
    file = preselect.state.read(tmp_path / "one.npz")
    file.arrays["values"] = np.zeros((5, 1))
    preselect.state.write(tmp_path / "one.npz", file.kind, file.header, file.arrays)
    with pytest.raises(StateFileError, match=r"not a complete Preselector state: an array has shape \(5, 1\)"):
        preselect.load(tmp_path / "one.npz")


def test_scaling_follows_what_was_seen():
    generator = np.random.default_rng(0)
    rows = generator.normal([5.0, -300.0, 7.0], [2.0, 50.0, 0.0], (500, 3))
    rows[generator.random((500, 3)) < 0.2] = np.nan
    scaling = Scaling(3)
    for row in rows:
        scaling.learn(row)
    logs = np.sign(rows) * np.log1p(np.abs(rows))
    deviations = np.nanstd(logs, axis=0)
    expected = (logs - np.nanmean(logs, axis=0)) / np.where(deviations > 1e-9, deviations, np.inf)
    np.testing.assert_allclose(scaling(rows), np.nan_to_num(expected).clip(-3, 3) * 2 / np.sqrt(3), atol=1e-9)
    assert np.abs(scaling([1e9, -1e9, 1e9])).max() == pytest.approx(6 / np.sqrt(3))
    with pytest.raises(InputError, match="values must be 3 numbers, finite or NaN for missing"):
        scaling.learn([1.0, 2.0, np.inf])


def test_a_policy_given_per_feature_cannot_grow():
    with pytest.raises(
        InputError, match="precision must be one number for a policy to be extended, got one per feature"
    ):
        preselect.Newton(d=2, precision=[1.0, 2.0]).widen(4)
    with pytest.raises(InputError, match="d must be at least the 3 features that there are, got 2"):
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
    chooser = Preselector(["a", "b", "c"], context=[f"x{i}" for i in range(999)], seed=0)
    before = chooser.to_bytes()
    with pytest.raises(InputError, match="at most 5000 joint features, got 6000"):
        chooser.add("d")
    assert chooser.arms == ["a", "b", "c"]
    assert chooser.to_bytes() == before
