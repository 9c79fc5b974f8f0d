"""Whatever the public face is given: only the package's own exceptions come out, and a refused call changes nothing."""

import inspect
import re
import warnings

import numpy as np
import pytest
from hostile import CALLS, VALUES, attempt, make_policy, make_preselector
from hypothesis import given
from hypothesis import strategies as st

from preselect import (
    Decision,
    InputError,
    NamedDecision,
    Newton,
    NoWinner,
    Preselector,
    Ranking,
    Rules,
    Scaling,
    Void,
    Winner,
)
from preselect.policies import registry

STEP = 31  # in `make test` every so many of all combinations


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Some of the values are names of files."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the winner of a set of one")
        yield


def call(name, changed):
    """Make a good call with some arguments replaced."""
    make, act, arguments = CALLS[name]
    attempt(make(), act, {key: value for key, value in arguments.items() if value is not inspect._empty} | changed)


def every_single_change():
    return [(name, key, value) for name in CALLS for key in CALLS[name][2] for value in VALUES]


@pytest.mark.parametrize("name", CALLS)
def test_good_arguments_are_taken(name):
    make, act, arguments = CALLS[name]
    if arguments.get("path") is None:
        act(make(), **{key: value for key, value in arguments.items() if value is not inspect._empty})


PUBLIC = {
    each.__name__: each
    for each in (Preselector, NamedDecision, Decision, Rules, Scaling, Winner, Ranking, NoWinner, Void)
} | registry.POLICIES
BY_THE_PACKAGE = {  # methods that are given only what the package made
    *("adopt", "check", "explores_with", "from_record", "split", "transform", "forget_seen", "widen_blocks"),
}


def list_public(owner):
    """Everything of a class that a caller gives arguments to, by the name of its row in the table."""
    yield owner.__name__, list(inspect.signature(owner).parameters)
    for method in set(dir(owner)) - BY_THE_PACKAGE:
        static = inspect.getattr_static(owner, method)
        function = getattr(static, "__func__", static)
        if inspect.isfunction(function) and (method == "__call__" or not method.startswith("_")):
            yield method.strip("_"), list(inspect.signature(function).parameters)[1:]


def list_untried(name, owner):
    """Parameters of public methods that are in no row of the table."""
    for method, parameters in list_public(owner):
        key = method if method[0].isupper() else f"{name}.{method}"
        tried = CALLS[key][2] if key in CALLS else {}
        yield from (f"{key}: {parameter}" for parameter in parameters if parameter not in tried)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_of_the_public_face_is_in_the_table(name):
    assert list(list_untried(name, PUBLIC[name])) == []


def test_a_parameter_that_is_in_no_row_is_noticed():
    class Larger(Preselector):
        def select(self, context=None, *, surprise=None):
            pass

        def wonder(self, why):
            pass

    Larger.__name__ = "Preselector"
    assert sorted(list_untried("Preselector", Larger)) == ["Preselector.select: surprise", "Preselector.wonder: why"]


def test_only_errors_of_the_package_come_out():
    for name, key, value in every_single_change()[::STEP]:
        call(name, {key: VALUES[value]})


@pytest.mark.soak
@pytest.mark.parametrize("name", CALLS)
def test_only_errors_of_the_package_come_out_of_every_call_with_every_value(name):
    for key in CALLS[name][2]:
        for value in VALUES.values():
            call(name, {key: value})


def leaves():
    numbers = st.one_of(st.integers(), st.floats(), st.sampled_from(["a", "b", "x", "", None, True, 10**400, 1j]))
    return st.one_of(numbers, st.sampled_from(list(VALUES)).map(lambda name: VALUES[name]))


ANY = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(["a", "b", "x", "y", 1, None]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(list(CALLS)), st.data())
def test_only_errors_of_the_package_come_out_of_calls_with_several_wrong_arguments(name, data):
    keys = data.draw(st.lists(st.sampled_from(list(CALLS[name][2])), min_size=1, unique=True))
    call(name, {key: data.draw(ANY, label=key) for key in keys if key != "path"})


def names_of(message):
    return f"^{re.escape(message)}$"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Preselector(b"ab"), "arms is b'ab'; use a list of names"),
        (lambda: Preselector([b"a"]), "arms has b'a' as a name; use strings"),
        (lambda: Preselector([1, 2]), "arms has 1 as a name; use strings"),
        (lambda: Preselector({1: {}}), "arms has 1 as a name; use strings"),
        (lambda: Preselector(["a", ""]), "arms has an empty name; use strings of at least one character"),
        (lambda: Preselector(["a"], identity="x"), "identity is 'x'; use True or False"),
        (
            lambda: Preselector({"a": None}),
            "the features of arm 'a' are None; give numbers by name, such as {'x': 1.0}, or a list",
        ),
        (lambda: Preselector({"a": {b"x": 1.0}}), "the features of arms has b'x' as a name; use strings"),
        (
            lambda: Preselector(["a"], policy=Newton),
            "a policy is given by its name, such as 'newton' or 'newton(beta=1.0)', not as "
            "<class 'preselect.policies.newton.Newton'>",
        ),
        (
            lambda: Preselector(["a"], policy=make_policy("mm")),
            "a policy is given by its name, such as 'newton' or 'newton(beta=1.0)', not as "
            "MM(d=4, rounds=1, observations=1)",
        ),
        (
            lambda: registry.parse(f"newton(beta={'-' * 5000}1)"),
            f"cannot read the policy 'newton(beta={'-' * 67}; write name or name(parameter=value, ...)",
        ),
        (lambda: Newton(d=None), "d is None; use an integer of at least 1"),
        (lambda: Newton(d=np.array([3])), "d is array([3]); use an integer of at least 1"),
        (lambda: Newton(d=10**400), f"d is 1{'0' * 79}; use an integer of at most 2**63 - 1"),
        (lambda: Newton(d=10**5000), "d is an integer of 16610 bits; use an integer of at most 2**63 - 1"),
        (
            lambda: Newton(d=2, mean=[1.0, 2.0, 3.0]),
            "mean has 3 entries; give one number for all features, or d=2 of them",
        ),
        (lambda: Newton(d=2, beta=np.array([1.0])), "beta is array([1.]); use a number of at least 0"),
        (
            lambda: make_preselector().select([1.0, 2.0], 2, eligible=["a", "a"]),
            "eligible has 'a' more than once; use distinct names",
        ),
        (
            lambda: make_preselector().select([1.0, 2.0], 10**5000),
            "k is an integer of 16610 bits; use an integer of at most 2**63 - 1",
        ),
        (
            lambda: Preselector({"a": [1.0], "b": [1.0, 2.0]}),
            "some arms have features by name and others in order, or not equally many; use one form for all arms",
        ),
        (
            lambda: make_preselector().add("new", [1.0]),
            "'new' has 1 features in order; the features of arms are 'x', 'y'",
        ),
        (
            lambda: make_preselector().propensities([1.0, 2.0], 2, include=["a", "a"]),
            "include has 'a' more than once; use distinct names",
        ),
        (
            lambda: make_preselector().select([1.0, 2.0], 2, at_most={"g": "two"}),
            "at_most['g'] is 'two'; use an integer of at least 0",
        ),
        (lambda: make_preselector().remove(7), "there is no arm 7; the arms are 'a', 'b', 'c', 'd', 'e'"),
        (lambda: make_preselector().add_context(7), "context has 7 as a name; use strings"),
        (lambda: make_preselector().select([1.0], 2), "context has length 1, but its features are 'x', 'y'"),
        (lambda: make_preselector().add(""), "the name of an arm is ''; use a string of at least one character"),
        (lambda: make_preselector().arm(["a"]), "there is no arm ['a']; the arms are 'a', 'b', 'c', 'd', 'e'"),
        (lambda: Winner(10**400), f"an arm is named by its position, an integer, not by 1{'0' * 79}"),
    ],
)
def test_misuse_is_a_sentence_in_the_words_of_the_caller(act, message):
    with pytest.raises(InputError, match=names_of(message)):
        act()


def test_a_policy_that_this_machine_cannot_hold_is_refused():
    for name in set(registry.POLICIES) - {"mm", "random"}:
        with pytest.raises(
            InputError, match=r"d=1000000000000 takes .* GiB, and this machine has .*; use fewer features"
        ):
            registry.POLICIES[name](d=10**12)
