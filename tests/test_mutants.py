"""The list of mutants fits the sources and the tests, and the runner tells who survives and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time

import mutants
import pytest
from test_structure import ROOT, tree_of

LISTED = mutants.read_mutants(ROOT)


def test_there_are_many_and_none_twice():
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in LISTED}) == len(LISTED) >= 40


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: mutant.file)
def test_each_changes_one_place_and_names_tests_that_exist(mutant):
    mutant.find_line(ROOT)
    assert mutant.new != mutant.old
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert file != "test_golden.py"  # a trace shows that something changed, not that it is wrong
        names = {getattr(node, "name", None) for node in tree_of(ROOT / "tests" / file).body}
        assert not name or name in names


@pytest.fixture
def small_project(tmp_path):
    """A package of one line, a test of a part of it, and a list of mutants."""

    def write(*changes, test="assert DOUBLE(2) == 4"):
        (tmp_path / "src" / "preselect").mkdir(parents=True)
        (tmp_path / "src" / "preselect" / "__init__.py").write_text("DOUBLE = lambda x: 2 * x + 0 * 1\n")
        (tmp_path / "tests").mkdir()
        head = "import time\nfrom preselect import *\ndef test():\n    "
        (tmp_path / "tests" / "test_double.py").write_text(head + test)
        (tmp_path / "pyproject.toml").write_text("")
        tables = (
            f'[[mutant]]\nfile = "__init__.py"\nold = "{old}"\nnew = "{new}"\ntests = ["test_double.py"]\n'
            for old, new in changes
        )
        (tmp_path / "tests" / "mutants.toml").write_text("".join(tables))
        return tmp_path

    return write


def test_killed_and_survived_are_told_apart(small_project, capsys):
    root = small_project(("2 * x", "3 * x"), ("0 * 1", "0 * 2"))
    assert mutants.main(["--workers", "1"], root) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "1/2 killed: __init__.py:1: 2 * x -> 3 * x",
        "2/2 SURVIVED: __init__.py:1: 0 * 1 -> 0 * 2",
    ]
    assert lines[3].startswith("1 of 2 mutants killed in ")
    assert lines[4:] == ["survived: __init__.py:1: 0 * 1 -> 0 * 2"]


@pytest.mark.parametrize(
    ("change", "test", "message"),
    [
        (("4 * x", "3 * x"), "assert DOUBLE(2) == 4", "occurs 0 times in __init__.py, not once"),
        (("x", "y"), "assert DOUBLE(2) == 4", "occurs 2 times in __init__.py, not once"),
        (("2 * x", "3 * x"), "assert DOUBLE(2) == 5", "the tests have to pass before anything is mutated"),
        (("2 * x", "2 * * x"), "assert DOUBLE(2) == 4", "cannot be run"),
    ],
)
def test_a_list_that_does_not_fit_is_an_error(small_project, change, test, message):
    with pytest.raises(ValueError, match=message):
        mutants.main(["--workers", "1"], small_project(change, test=test))


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing_behind(small_project, tmp_path, number):
    begun, temporary = tmp_path / "begun", tmp_path / "temporary"
    temporary.mkdir()
    root = small_project(("2 * x", "3 * x"), test=f"open({str(begun)!r}, 'w').close(); time.sleep(60)")
    program = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); import mutants; mutants.start({str(root)!r})"
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE) as process:
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.communicate(timeout=30)[1].strip() == b"interrupted"
    assert process.returncode == 1
    assert list(temporary.iterdir()) == []
