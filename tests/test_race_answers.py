"""The built-in verifier of SAT solvers' answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pools import ARM, FORMULA, FULL, make_pool, write_script

from preselect.race.answers import _find_error, make_answer_check
from preselect.race.instance_features import Instance
from preselect.race.supervision import Supervision
from preselect.sat import dimacs


def judge(output, formula=FORMULA, exit_code=None):
    return _find_error(formula, output if isinstance(output, bytes) else output.encode(), exit_code)


@pytest.mark.parametrize(
    "output",
    [
        "s SATISFIABLE\nv 1 2 -3 4 0\n",
        "c a comment\nv 1 2\nv -3\nv 4 0\nc between\ns SATISFIABLE\nc v 7 s UNSATISFIABLE",
        "s SATISFIABLE\r\nv 1 2 -3 4 0\r\n",
        "s  SATISFIABLE \nv\nv\t1 2  -3 4",  # no end, an empty line, as some solvers print
        "s SATISFIABLE\nv 2 4 1 0\n",  # 3 is false if it is left out
        "s SATISFIABLE\nv 1 2 -3 4 0\nv -1 -2 0\n",  # the first model counts
        b"\xff\xfe\0 noise \x80\ns SATISFIABLE\nv 1 2 -3 4 0\nvalues \xff\nsat\n",
        "s SATISFIABLE\ns SATISFIABLE\nv 1 1 2 4 0\n",
        "s UNSATISFIABLE\n",
    ],
)
def test_right_answers(output):
    assert judge(output) is None


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "its output has no s line instead of either 's SATISFIABLE' or 's UNSATISFIABLE'"),
        ("SATISFIABLE\nv 1 2 -3 4 0", "no s line"),
        (
            "s SATISFIABLE\ns UNSATISFIABLE\nv 1 2 -3 4 0",
            "its output has 's SATISFIABLE' and 's UNSATISFIABLE' instead of either",
        ),
        ("s UNKNOWN\n", "its output has 's UNKNOWN' instead of either"),
        ("s SATISFIABLE\n", "no v lines"),
        ("s SATISFIABLE\nv\n", "its v lines do not satisfy clause 2"),
        ("s SATISFIABLE\nv 1 2 -3 5 0", "its v lines hold 5, but the formula has 4 variables"),
        ("s SATISFIABLE\nv 1 2 -3 -5 0", "its v lines hold -5"),
        ("s SATISFIABLE\nv 1 2 -3 99999999999999999999999 0", "but the formula has 4 variables"),
        ("s SATISFIABLE\nv 1 2 -3 -99999999999999999999999 0", "but the formula has 4 variables"),
        ("s SATISFIABLE\nv 1 2 -3 4 -1 0", "its v lines hold both 1 and -1"),
        ("s SATISFIABLE\nv 1 2 3 -4 0", "its v lines do not satisfy clause 3"),
        ("s SATISFIABLE\nv 1 2 -3 x4 0", "its v lines hold 'x'"),
        ("s SATISFIABLE\nv 1 2 -3 4.0 0", "its v lines hold '.'"),
        ("s SATISFIABLE\nv 1 2 - 3 4 0", "its v lines hold '1 2 - 3 4"),
        ("s SATISFIABLE\nv 1 2-3 4 0", "its v lines hold '1 2-3 4 0'"),
        ("s SATISFIABLE\nv 1 --2 0", "its v lines hold '1 --2 0'"),
        ("s SATISFIABLE\nv 1 2-", "its v lines hold '1 2-'"),
        ("s SATISFIABLE\nv 1 " + "2" * 1_000_000, "but the formula has 4 variables"),
        ("".join(f"s {i}\n" for i in range(100_000)), "its output has 's 0' and 's 1' and 's 2' instead"),
        (b"s SATISFIABLE\nv 1 2 \xff 0", "but only integers belong there"),
        (b"s \xff\n", "instead of either"),
    ],
)
def test_wrong_answers_and_why(output, message):
    assert message in judge(output)


def test_the_exit_code_must_fit():
    model, none = "s SATISFIABLE\nv 1 2 -3 4 0\n", "s UNSATISFIABLE\n"
    assert judge(model, exit_code=10) is None
    assert judge(model, exit_code=0) is None
    assert judge(none, exit_code=20) is None
    assert judge(model, exit_code=20) == ("exit code 20 means UNSATISFIABLE, but its output says 's SATISFIABLE'")
    assert "exit code 10 means SATISFIABLE" in judge(none, exit_code=10)


def test_formulas_without_clauses_and_with_an_empty_one():
    assert judge("s SATISFIABLE\nv 0\n", dimacs.Formula.of(0, [])) is None
    assert "clause 2" in judge("s SATISFIABLE\nv 1 0\n", dimacs.Formula.of(1, [[1], []]))


LITERAL = st.integers(1, 4).flatmap(lambda variable: st.sampled_from([variable, -variable]))


@given(st.lists(st.lists(LITERAL, max_size=3), max_size=6), st.lists(LITERAL, max_size=5))
def test_the_check_agrees_with_brute_force(clauses, literals):
    error = judge(f"s SATISFIABLE\nv {' '.join(map(str, literals))} 0\n",
                  dimacs.Formula.of(4, clauses))  # fmt: skip
    values = {variable: variable in literals for variable in range(1, 5)}
    consistent = not any(-literal in literals for literal in literals)
    holds = all(any(values[abs(literal)] == (literal > 0) for literal in clause) for clause in clauses)
    assert (error is None) == (consistent and holds)


def test_a_long_output_is_checked():
    variables = 1_000_000
    formula = dimacs.Formula.of(variables, [[i, -(i + 1)] for i in range(1, variables, 1000)])
    lines = (" ".join(map(str, range(first, first + 1000))) for first in range(1, variables, 1000))
    output = "c noise\n" * 2_000_000 + "s SATISFIABLE\n" + "".join(f"v {line}\n" for line in lines)
    assert judge(output, formula) is None
    assert "do not satisfy clause 1" in judge(output.replace("v 1 ", "v -1 ", 1), formula)


@pytest.mark.parametrize(
    "line",
    [
        b"s" + b" " * 300_000,
        b"v" + b" -" * 300_000,
        b"v\r" + b"\r" * 300_000,
        b"v 1" + b"\t" * 300_000,
        b"s \r" * 300_000,
    ],
)
def test_long_hostile_lines_take_no_longer_than_others(line):
    """A quadratic search would take minutes."""
    assert judge(line + b"\n" + line + b"x") is not None
    assert judge(b"s SATISFIABLE\n" + line + b"\n" + line + b"x") is not None


def test_only_arms_that_want_it_are_checked(tmp_path):
    instance = Instance(tmp_path / "f.cnf")
    dimacs.write_formula(FORMULA, instance.path)
    pool = make_pool(tmp_path, FULL)
    check = make_answer_check(pool, instance)
    assert "no v lines" in check(pool.make_racer("one", instance.path, 0), b"s SATISFIABLE\n", 10)
    assert check(pool.make_racer("three", instance.path, 0), b"s SATISFIABLE\n", 10) is None
    assert make_answer_check(make_pool(tmp_path, ARM), instance) is None


@pytest.mark.parametrize(("says", "code"), [("s SATISFIABLE\\nv 1 2 -3 0", 20), ("s UNSATISFIABLE", 10)])
def test_a_racer_whose_exit_code_and_output_disagree_does_not_win(tmp_path, says, code):
    formula = Instance(tmp_path / "tiny.cnf")
    dimacs.write_formula(dimacs.Formula.of(3, [[1, -2], [2, 3], [-1, -3]]), formula.path)
    write_script(tmp_path, "torn.sh", f"printf '{says}\\n'; exit {code}")
    write_script(tmp_path, "good.sh", "sleep 0.3; printf 's SATISFIABLE\\nv 1 2 -3 0\\n'; exit 10")
    arms = "".join(f'[arms.{name}]\ncommand = ["./{name}.sh", "{{instance}}"]\n' for name in ("torn", "good"))
    pool = make_pool(tmp_path, f'[features]\nfrom = "sat"\n{arms}')
    racers = [pool.make_racer(name, formula.path, 0) for name in pool.arms]
    result = Supervision(racers, pool.limits, folder=tmp_path / "race", check=make_answer_check(pool, formula)).run()
    assert [finish.status for finish in result.finishes] == ["wrong answer", "won"]
    assert result.finishes[0].detail.startswith(f"exit code {code} means ")
