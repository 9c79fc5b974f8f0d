import json
import pickle

import numpy as np
import pytest

from preselect import CPPL, Decision, InputError, NamedDecision, NoWinner, Ranking, Void, Winner

ARMS = np.array([7, 4, 2])


def test_positions_are_places_in_the_decision():
    assert Winner(2).positions(ARMS).tolist() == [2]
    assert Ranking([4, 2, 7]).positions(ARMS).tolist() == [1, 2, 0]
    assert Ranking(np.array([2])).positions(ARMS).tolist() == [2]
    assert NoWinner().positions(ARMS).size == Void().positions(ARMS).size == 0


def test_the_winner_may_be_in_any_place():
    many = np.arange(5000)
    places = [0, 1, *range(250, 260), 1023, 1024, 4999]
    assert [Winner(arm).positions(many)[0] for arm in places] == places


def test_outcomes_are_values():
    assert Winner(np.int64(3)) == Winner(3) != Winner(4)
    assert len({Winner(3), Winner(np.int32(3)), Ranking([1, 2]), Ranking((1, 2)), Void(), Void(), NoWinner()}) == 4
    assert Winner(3, after=0.5) == Winner(3, 0.5) != Winner(3)
    assert len({Winner(3, 0.5), Winner(3), NoWinner(1.0), NoWinner(), NoWinner(1)}) == 4
    assert (Winner(3, after=np.float32(0.5)).after, NoWinner(1).after, Ranking([1]).after, Void().after) == (
        0.5, 1.0, None, None,
    )  # fmt: skip
    assert [repr(outcome) for outcome in (Winner(3), Winner(3, after=0.5))] == ["Winner(3)", "Winner(3, after=0.5)"]
    assert [repr(outcome) for outcome in (NoWinner(), NoWinner(1))] == ["NoWinner()", "NoWinner(after=1.0)"]
    with pytest.raises(AttributeError):
        Winner(3).arm = 4
    with pytest.raises(AttributeError):
        Winner(3, after=0.1).after = 0.2
    with pytest.raises(AttributeError):
        Ranking([3]).arms = (4,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Winner(1.5), "an arm is named by its position, an integer, not by 1.5"),
        (lambda: Winner(None), "named by its position, an integer, not by None"),
        (lambda: Winner(1, after=-0.1), "after is -0.1; use a number of at least 0"),
        (lambda: NoWinner(after="late"), "after is 'late'; use a"),
        (lambda: Ranking(["a"]), "named by its position, an integer, not by 'a'"),
        (lambda: Ranking([]), "a ranking needs at least one arm; if no arm won, use NoWinner"),
        (lambda: Ranking(3), r"a ranking is a list of positions, not 3; for a single arm use Winner\(3\)"),
        (lambda: Ranking([1, 2, 1]), r"the ranking \[1, 2, 1\] names \[1\] more than once"),
        (lambda: Winner(3).positions(ARMS), r"the winner, 3, is not one of the selected arms \[7, 4, 2\]"),
        (lambda: Ranking([7, 3]).positions(ARMS), r"the ranking names \[3\], but the selected arms are \[7, 4, 2\]"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_decision_is_frozen():
    decision = CPPL(d=2, seed=0).select(np.eye(2), 1)
    for array in (decision.arms, decision.rows, decision.scores, decision.widths, decision.ids):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError):
        decision.round = 2
    assert repr(decision).startswith("Decision(round=1, arms=[")


def test_positions_are_read_only():
    for positions in (Winner(4).positions(ARMS), Ranking([4, 2]).positions(ARMS)):
        with pytest.raises(ValueError, match="read-only"):
            positions[0] = 0


def test_parts_that_do_not_fit_are_refused_and_those_that_do_are_copied():
    arms = np.arange(2)
    parts = {"arms": arms, "scores": np.zeros(2), "widths": np.zeros(2), "ids": arms, "round": 1}
    Decision.of(rows=np.eye(2), **parts)
    arms[0] = 5
    with pytest.raises(InputError, match=r"there are 2 arms, but .* have the lengths \[1, 2, 2, 2\]"):
        Decision.of(rows=np.eye(1), **parts)


def test_a_decision_can_be_put_together_from_its_parts():
    decision = CPPL(d=3, seed=0).select(np.random.default_rng(0).random((5, 3)), 2)
    parts = {name: getattr(decision, name) for name in ("arms", "rows", "scores", "widths", "ids", "round")}
    again = Decision.of(**parts)
    kept = pickle.loads(pickle.dumps(decision))
    for one in (kept, again):
        assert np.array_equal(one.scores, decision.scores)
        assert np.array_equal(one.widths, decision.widths)
        assert np.array_equal(one.rows, decision.rows)
        assert not one.rows.flags.writeable
    assert all(np.array_equal(getattr(again, name), part) for name, part in parts.items())


def named_decision():
    context, features = np.array([1e9, np.nan, -0.0]), np.array([[5.0, np.nan], [0.1, 2.0]])
    labels = ("size", "ratio", "age"), ("price", "weight")
    return NamedDecision(("a", "b"), np.array([3.0, 2.5, 0.25, 1 / 3]), context, features, labels, 7, 123, 19)


@pytest.mark.parametrize(
    "write_and_read",
    [
        lambda decision: NamedDecision.from_record(*decision.to_record()),
        lambda decision: NamedDecision.from_json(decision.to_json()),
        lambda decision: pickle.loads(pickle.dumps(decision)),
    ],
)
def test_a_decision_with_names_comes_back_bit_for_bit(write_and_read):
    decision = named_decision()
    again = write_and_read(decision)
    for name in ("names", "labels", "round", "seed", "version"):
        assert getattr(again, name) == getattr(decision, name)
    for name in ("scores", "widths", "context", "features"):
        assert getattr(again, name).tobytes() == getattr(decision, name).tobytes()
    assert again == decision
    assert again.arms.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        again.context[0] = 1.0


def test_a_decision_of_positions_comes_back_from_json_bit_for_bit():
    decision = CPPL(d=3, seed=0).select(np.random.default_rng(0).random((5, 3)), 2)
    again = Decision.from_json(decision.to_json())
    for name in ("arms", "scores", "widths", "rows", "ids"):
        assert getattr(again, name).tobytes() == getattr(decision, name).tobytes()
    assert (again.round, again.seed) == (decision.round, decision.seed)


@pytest.mark.parametrize("kind", [Decision, NamedDecision])
@pytest.mark.parametrize("damage", ["", "[]", "nonsense", b"\xff", None, 7, "[" * 100_000])
def test_what_is_not_a_decision_is_refused(kind, damage):
    with pytest.raises(InputError, match=r"the decision is not JSON|the text is not a"):
        kind.from_json(damage)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("names", ["a", "a"]),
        ("names", ["a"]),
        ("names", [1, 2]),
        ("scores", [1.0, "x"]),
        ("scores", [True, 1.0]),
        ("scores", [10**400, 1.0]),
        ("context", [1.0]),
        ("features", {"price": [1.0]}),
        ("features", 5),
        ("round", "x"),
        ("seed", [1]),
        ("version", None),
    ],
)
def test_a_damaged_decision_is_refused(part, value):
    found = json.loads(named_decision().to_json())
    found[part] = value
    with pytest.raises(InputError, match="the decision is damaged"):
        NamedDecision.from_json(json.dumps(found))
    del found[part]
    with pytest.raises(InputError, match="the decision is damaged"):
        NamedDecision.from_json(json.dumps(found))


def test_decisions_of_earlier_versions_come_back_with_the_context_of_their_event():
    old = {"chosen": ["a"], "arms": [4], "scores": [3.0], "widths": [0.25], "round": 7, "d": 2}
    numbers = np.array([3.0, 0.25, 1.0, 2.0])
    again = NamedDecision.from_record({**old, "context": {"size": 3.0, "ratio": None}}, numbers.tobytes())
    assert (again.features, again.seed, again.names) == (None, None, ("a",))
    np.testing.assert_array_equal(again.context, [3.0, np.nan])
    with_features = np.append(numbers, [6.0, 5.0])
    newer = {**old, "features": 1, "context": {"size": 5.0}}
    again = NamedDecision.from_record(newer, with_features.tobytes())
    assert (again.context.tolist(), again.features.tolist()) == ([5.0], [[6.0]])
    with pytest.raises(ValueError, match="the numbers do not fit the arms"):
        NamedDecision.from_record(newer, with_features.tobytes() + bytes(8))
