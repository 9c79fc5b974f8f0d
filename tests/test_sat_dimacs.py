"""DIMACS files: what is read, what is refused, error messages, and that what is written can be read again."""

import gzip
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preselect.errors import InputError
from preselect.sat import dimacs
from preselect.sat.dimacs import Formula


@st.composite
def formulas(draw, most_variables=8, most_clauses=12):
    variables = draw(st.integers(0, most_variables))
    literal = st.integers(1, variables).flatmap(lambda variable: st.sampled_from((variable, -variable)))
    clause = st.lists(literal, max_size=5) if variables else st.just([])
    return Formula.of(variables, draw(st.lists(clause, max_size=most_clauses)))


READABLE = {
    "plain": "p cnf 3 2\n1 -2 0\n2 3 0\n",
    "comments anywhere": "c first\ncnf comes next\np cnf 3 2\nc 7 0\n1 -2\nc in a clause\n0\n  c set in\n2 3 0\nc",
    "spanning lines": "p cnf 3 2\n1\n-2\n0\n2\n3\n0",
    "sharing a line": "p cnf 3 2\n1 -2 0 2 3 0",
    "the old ending": "p cnf 3 2\n1 -2 0\n2 3 0\n%\n0\n\n",
    "line ends of Windows": "c first\r\np cnf 3 2\r\n1 -2 0\r\n2 3 0\r\n%\r\n0\r\n",
    "tabs and blanks": "\n\n \tp\tcnf  3\t2 \n\n\t1\t-2 0\n \n2  3\t0 \n\n",
    "leading zeros": "p cnf 003 2\n01 -02 00 2 3 0",
}


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE)
def test_every_layout_reads_alike(text):
    expected = Formula.of(3, [[1, -2], [2, 3]])
    assert dimacs.parse_formula(text) == expected
    assert dimacs.parse_formula(text.encode()) == expected


def test_formulas_without_clauses_or_literals():
    assert list(dimacs.parse_formula("p cnf 0 0")) == []
    assert list(dimacs.parse_formula("p cnf 0 2\n0 0")) == [[], []]
    assert list(dimacs.parse_formula("p cnf 2 3\n0 1 2 0\n0")) == [[], [1, 2], []]


def test_variables_that_are_declared_and_not_used():
    text = "p cnf 1000000 1\n1000000 -1000000 0"
    assert list(dimacs.parse_formula(text)) == [[1_000_000, -1_000_000]]
    assert dimacs.parse_formula("p cnf 1000019 1\n1 0").variables == 1_000_019  # a million more than bytes
    with pytest.raises(InputError, match=r"t, line 1: the header declares 1000020 variables, far more than 19 bytes"):
        dimacs.parse_formula("p cnf 1000020 1\n1 0", "t")
    largest = 2**31 - 1
    assert list(Formula.of(largest, [[largest, -largest]])) == [[largest, -largest]]


def test_types():
    formula = dimacs.parse_formula("p cnf 3 2\n1 -2 0 2 3 0")
    assert (formula.literals.dtype, formula.starts.dtype) == (np.int32, np.int64)
    assert (formula.variables, formula.clauses) == (3, 2)


HEADER = "expected the header 'p cnf VARIABLES CLAUSES', found"
LITERAL = "expected an integer literal, found"
REFUSED = {
    "empty": ("", "t, line 0: the file ends before the header 'p cnf VARIABLES CLAUSES'"),
    "only comments": ("c\nc 1\n", "t, line 2: the file ends before the header"),
    "no header": ("c\n1 2 0\n", f"t, line 2: {HEADER} '1 2 0'"),
    "another format": ("p wcnf 2 1\n", f"line 1: {HEADER} 'p wcnf 2 1'"),
    "a number short": ("p cnf 2\n1 0", f"line 1: {HEADER} 'p cnf 2'"),
    "a number too many": ("p cnf 2 1 9\n1 0", f"line 1: {HEADER} 'p cnf 2 1 9'"),
    "header in words": ("p cnf two 1\n1 0", f"line 1: {HEADER} 'p cnf two 1'"),
    "negative header": ("p cnf -2 1\n1 0", f"line 1: {HEADER} 'p cnf -2 1'"),
    "too many variables": (
        "p cnf 2147483648 1\n1 0",
        "line 1: 2147483648 variables are too many; .* at most 2147483647",
    ),
    "a letter": ("p cnf 2 1\n\n1 x2 0", f"t, line 3: {LITERAL} 'x2'"),
    "a fraction": ("p cnf 2 1\n1.5 0", f"line 2: {LITERAL} '1.5'"),
    "a lone minus": ("p cnf 2 1\n1 - 0", f"line 2: {LITERAL} '-'"),
    "a second header": ("p cnf 2 1\np cnf 2 1\n1 0", f"line 2: {LITERAL} 'p'"),
    "a comment after a clause": ("p cnf 2 1\n1 0 c\n", f"line 2: {LITERAL} 'c'"),
    "beyond the header": ("p cnf 2 2\n1 0\n-3 0", "line 3: literal '-3', but the header declares only 2 variables"),
    "2 to the 64, and 1": ("p cnf 2 1\n18446744073709551617 0", "line 2: literal '1844.*declares only 2 variables"),
    "too few clauses": ("c\np cnf 2 3\n1 0\n", "t, line 2: the header declares 3 clauses, but the file has 1"),
    "too many clauses": ("p cnf 2 1\n1 0\n2 0\n", "line 1: the header declares 1 clauses, but the file has 2"),
    "not terminated": ("p cnf 2 2\n1 0\n2\n", "line 4: the file ends within a clause, before its final 0"),
    "the old ending in a clause": ("p cnf 2 1\n1\n%\n0\n", "line 3: the file ends within a clause"),
    "not text": (b"p cnf 2 1\n1 \xff\xfe 0", f"line 2: {LITERAL} "),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_malformed_text_is_refused_with_line_and_reason(text, message):
    with pytest.raises(InputError, match=message):
        dimacs.parse_formula(text, "t")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.cnf: No such file"):
        dimacs.read_formula(tmp_path / "none.cnf")
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory"):
        dimacs.read_formula(tmp_path)


@pytest.mark.parametrize(("suffix", "kind", "compress"), [(".gz", "gzip", gzip.compress), (".xz", "xz", lzma.compress)])
def test_compressed_files(tmp_path, suffix, kind, compress):
    text = b"p cnf 3 2\n1 -2 0\n2 3 0\n" + b"c padding, so that something is left to cut off\n" * 20
    path = tmp_path / f"a.cnf{suffix}"
    for there in (
        path,
        tmp_path / "a.cnf",
        tmp_path / "b.cnf.gz",
        tmp_path / "b.cnf.xz",
    ):  # what is in a file counts, whatever its name
        there.write_bytes(compress(text))
        assert list(dimacs.read_formula(there)) == [[1, -2], [2, 3]]
    for damaged in (compress(text)[:-9], compress(text)[:20], compress(text)[:20] + b"\x00" * 40):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=f"incomplete or damaged {kind} file"):
            dimacs.read_formula(path)
    for other in (text, b""):
        path.write_bytes(other)
        with pytest.raises(InputError, match=rf"is not a {kind} file, it begins with .*without \{suffix}"):
            dimacs.read_formula(path)


def test_errors_name_the_file(tmp_path):
    (tmp_path / "bad.cnf").write_text("p cnf 1 1\n1 2 0\n")
    with pytest.raises(InputError, match=r"bad\.cnf, line 2: "):
        dimacs.read_formula(tmp_path / "bad.cnf")


@given(formula=formulas(), suffix=st.sampled_from(("", ".gz", ".xz")))
def test_what_is_written_is_read(tmp_path_factory, formula, suffix):
    path = tmp_path_factory.getbasetemp() / f"written.cnf{suffix}"
    dimacs.write_formula(formula, path, comments=["made for a test", "two\nlines", ""])
    assert dimacs.read_formula(path) == formula


def test_written_text(tmp_path):
    path = tmp_path / "a.cnf"
    dimacs.write_formula(Formula.of(3, [[1, -2], [], [3]]), path, comments=["made\nby hand", ""])
    assert path.read_text() == "c made\nc by hand\nc\np cnf 3 3\n1 -2 0\n0\n3 0\n"


def test_equality():
    formula = Formula.of(3, [[1, 2], [3]])
    assert formula == Formula.of(3, [[1, 2], [3]])
    assert formula not in (Formula.of(4, [[1, 2], [3]]), Formula.of(3, [[1], [2, 3]]), Formula.of(3, [[1, 2], [-3]]), 3)


@pytest.mark.parametrize(
    ("variables", "literals", "starts", "message"),
    [
        (-1, [], [0], "variables is -1; use an integer of at least 0"),
        (2**31, [], [0], "2147483648 variables are too many; a formula has at most 2147483647"),
        (2, [1, 3], [0, 2], "3 is not a literal: with 2 variables, literals are ±1 to ±2"),
        (2, [1, 0], [0, 2], "0 is not a literal: with 2 variables, literals are ±1 to ±2"),
        (2, [1, -(2**31)], [0, 2], "-2147483648 is not a literal"),
        (2, [[1, 2]], [0, 1], r"literals have shape \(1, 2\)"),
        (2, [1, 2], [], "starts do not rise from 0 to 2, the number of literals"),
        (2, [1, 2], [0, 1], "starts do not rise from 0 to 2, the number of literals"),
        (2, [1, 2], [0, 2, 1, 2], "starts do not rise from 0 to 2, the number of literals"),
    ],
)
def test_impossible_formulas_are_refused(variables, literals, starts, message):
    with pytest.raises(InputError, match=message):
        Formula(variables, np.array(literals, dtype=np.int32), np.array(starts, dtype=np.int64))


def test_arrays_of_other_types_are_refused():
    with pytest.raises(InputError, match="arrays of int64 and int64; convert them to int32 and int64"):
        Formula(2, np.array([1, 2]), np.array([0, 2]))
    with pytest.raises(InputError, match="4294967297 is not a literal: with 2 variables"):
        Formula.of(2, [[2**32 + 1]])
