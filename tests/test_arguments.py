"""Single arguments: what is given comes back as a plain Python value, and what does not fit is a plain sentence."""

import fractions
import re

import numpy as np
import pytest

from preselect import InputError
from preselect.arguments import boolean, integer, names, number, one_of


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (lambda: integer(np.int32(3), "k", 1), 3),
        (lambda: integer(2**63 - 1, "k", 1), 2**63 - 1),
        (lambda: integer(2**200, "seed", 0, 2**256 - 1), 2**200),
        (lambda: names(iter(["a", "b"]), "arms"), ["a", "b"]),
        (lambda: names(np.array(["a"]), "arms"), ["a"]),
        (lambda: number(np.float32(0.5), "x"), 0.5),
        (lambda: number(fractions.Fraction(1, 4), "x", above=0.0), 0.25),
        (lambda: number(2, "x", least=2.0, most=2.0), 2.0),
        (lambda: one_of("arm", "bonus", ("arm", "contrast")), "arm"),
        (lambda: boolean(np.True_, "outside"), True),
    ],
)
def test_values_come_back_as_plain_ones(check, expected):
    found = check()
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: integer(-1, "seed", 0), "seed is -1; use an integer of at least 0"),
        (lambda: integer(2.5, "k", 1), "k is 2.5; use an integer of at least 1"),
        (lambda: integer(-(10**5000), "k", 1), "k is an integer of 16610 bits; use an integer of at least 1"),
        (lambda: integer(10**5000, "k", 1), "k is an integer of 16610 bits; use an integer of at most 2**63 - 1"),
        (lambda: integer(2**63, "k", 1), "k is 9223372036854775808; use an integer of at most 2**63 - 1"),
        (lambda: integer(np.array([3]), "k", 1), "k is array([3]); use an integer of at least 1"),
        (lambda: integer(9, "k", 1, 8), "k is 9; use an integer of at most 8"),
        (lambda: names("ab", "arms"), "arms is 'ab'; use a list of names"),
        (lambda: names(b"ab", "arms"), "arms is b'ab'; use a list of names"),
        (lambda: names(np.array("ab"), "arms"), "arms is array('ab', dtype='<U2'); use a list of names"),
        (lambda: names([b"a"], "arms"), "arms has b'a' as a name; use strings"),
        (lambda: names([1, 2], "arms"), "arms has 1 as a name; use strings"),
        (lambda: names(["a", ""], "arms"), "arms has an empty name; use strings of at least one character"),
        (lambda: names([10**5000], "arms"), "arms has an integer of 16610 bits as a name; use strings"),
        (lambda: names([[10**5000]], "arms"), "arms has a list that cannot be shown as a name; use strings"),
        (lambda: number("2", "x"), "x is '2'; use a finite number"),
        (lambda: number(None, "x", least=0.0), "x is None; use a number of at least 0"),
        (lambda: number([1.0], "x"), "x is [1.0]; use a finite number"),
        (lambda: number(np.ones(1), "x"), "x is array([1.]); use a finite number"),
        (lambda: number(1j, "x"), "x is 1j; use a finite number"),
        (lambda: number(float("inf"), "x", above=0.0), "x is inf; use a finite number above 0"),
        (lambda: number(10**400, "x", least=0.5), f"x is {'1' + '0' * 79}; use a finite number of at least 0.5"),
        (lambda: number(10**5000, "x"), "x is an integer of 16610 bits; use a finite number"),
        (lambda: number(0, "x", above=0.0, most=1.0), "x is 0; use a number above 0 and at most 1"),
        (lambda: number(1, "x", least=0.0, below=1.0), "x is 1; use a number of at least 0 and below 1"),
        (lambda: one_of("none", "bonus", ("arm", "contrast")), "bonus is 'none'; use 'arm' or 'contrast'"),
        (lambda: one_of(["arm"], "bonus", ("arm", "contrast")), "bonus is ['arm']; use 'arm' or 'contrast'"),
        (lambda: boolean(1, "outside"), "outside is 1; use True or False"),
    ],
)
def test_what_does_not_fit_is_a_sentence(check, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        check()
