"""The pool of a race: reading its file, features of instances, checking answers, finding solvers, trying arms."""

import os
import re
import shutil
import stat
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preselect import Preselector
from preselect.errors import InputError
from preselect.race.answers import checker, wrong_model
from preselect.race.check import try_arms
from preselect.race.commands import fill
from preselect.race.instance_features import Instance, feature_names, features_of
from preselect.race.pool import FeatureSource, read_pool
from preselect.race.solvers import KNOWN, Solver, find_solvers, write_pool
from preselect.race.supervision import supervise
from preselect.sat import dimacs
from preselect.sat import features as satzilla

FULL = """
k = 2
policy = "cppl(omega=0.5)"
seed = 7
journal = "log/race.journal"
[limits]
seconds = 2.5
memory = 4000
output = 8
[features]
from = "sat"
clause_graph = true
seconds = 3
[success]
exit_codes = [10, 20]
verifier = "model"
[arms.one]
command = ["solver", "-s{seed}", "--limit={timeout}", "{instance}"]
features = { cdcl = 1, size = 2.5, fast = true }
environment = { OMP_NUM_THREADS = "1", EMPTY = "" }
[arms."two words"]
command = ["./own/solver", "in={instance}"]
success = { pattern = "^s (UN)?SAT", verifier = ["./check", "{instance}", "--of={output}"] }
[arms.three]
command = ["/usr/bin/solver", "{instance}"]
success = { exit_codes = [0], verifier = "none" }
"""

ARM = '[arms.a]\ncommand = ["a", "{instance}"]\n'


def pool_file(folder, text):
    path = folder / "pool.toml"
    path.write_text(text)
    return path


def pool_of(folder, text):
    return read_pool(pool_file(folder, text))


def script(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


# --- reading ----------------------------------------------------------------------------------------------------------


def test_everything_that_a_pool_says_is_read(tmp_path):
    pool = pool_of(tmp_path, FULL)
    assert (pool.k, pool.policy, pool.seed) == (2, "cppl(omega=0.5)", 7)
    assert pool.journal == tmp_path / "log" / "race.journal"
    assert (pool.limits.seconds, pool.limits.memory, pool.limits.output) == (2.5, 4000, 8)
    assert pool.features == FeatureSource("sat", clause_graph=True, seconds=3)
    assert list(pool.arms) == ["one", "two words", "three"]
    one, two, three = pool.arms.values()
    assert one.features == {"cdcl": 1, "size": 2.5, "fast": 1}
    assert one.environment == {"OMP_NUM_THREADS": "1", "EMPTY": ""}
    assert (one.success.exit_codes, one.success.pattern, one.success.verifier) == ((10, 20), None, "model")
    assert two.command[0] == str(tmp_path / "own" / "solver")
    assert two.success.pattern == "^s (UN)?SAT"
    assert two.success.verifier == (str(tmp_path / "check"), "{instance}", "--of={output}")
    assert three.command[0] == "/usr/bin/solver"
    assert (three.success.exit_codes, three.success.verifier) == ((0,), "none")


def test_a_command_is_all_that_a_pool_needs(tmp_path):
    pool = pool_of(tmp_path, ARM)
    assert (pool.k, pool.seed, pool.limits.seconds, pool.limits.memory) == (1, 0, 60, None)
    assert pool.journal == tmp_path / "pool.journal"
    assert pool.features.kind == "none"
    assert pool.arms["a"].success.verifier == "none"
    sat = pool_of(tmp_path, '[features]\nfrom = "sat"\n' + ARM)
    assert sat.arms["a"].success.verifier == "model"


def test_an_arms_exit_codes_replace_the_pools_pattern(tmp_path):
    arms = f'{ARM}success = {{ exit_codes = [3] }}\n[arms.b]\ncommand = ["b", "{{instance}}"]\n'
    pool = pool_of(tmp_path, f'[success]\npattern = "x"\n{arms}')
    assert (pool.arms["a"].success.pattern, pool.arms["a"].success.exit_codes) == (None, (3,))
    assert pool.arms["b"].success.pattern == "x"


def test_relative_paths_hold_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    pool_file(tmp_path / "sub", '[features]\nfrom = "csv"\nfile = "f.csv"\n[arms.a]\ncommand = ["./a", "{instance}"]')
    monkeypatch.chdir(tmp_path)
    pool = read_pool("sub/pool.toml")
    assert pool.features.file == tmp_path / "sub" / "f.csv"
    assert pool.arms["a"].command[0] == str(tmp_path / "sub" / "a")
    assert pool.journal == tmp_path / "sub" / "pool.journal"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("k = \n" + ARM, "line 1: the file must be TOML"),
        (ARM + '[arms.b]\ncommand = ["', "line 4: the file must be TOML"),
        (ARM + "[arms.a]\n", "line 3: the file must be TOML"),
        ("x = " + "[" * 5000, "must be TOML, got values nested too deeply"),
        ("", "arms must have at least one, got none; add [arms.NAME]"),
        ("arms = 3", "arms must be a table, as in [arms], got 3"),
        ("[arms]\na = 3", "arms.a must be a table, as in [arms.a], got 3"),
        ('[arms.""]\ncommand = ["a", "{instance}"]', "arms must have names of printable characters, got ''"),
        ('[arms."a\\n"]\ncommand = ["a", "{instance}"]', "arms must have names of printable characters"),
        ("[arms.a]", "arms.a must have a command, got none; add command ="),
        ("sed = 1\n" + ARM, "the file must have only the keys k, policy, seed, journal, limits, features, success, "
         "arms, got 'sed'; did you mean 'seed'?"),
        ("zzzzzz = 1\n" + ARM, "got 'zzzzzz'; take it out"),
        ("[limits]\nsecond = 1\n" + ARM, "limits must have only the keys seconds, memory, output, got 'second'; "
         "did you mean 'seconds'?"),
        ("[features]\nform = 'sat'\n" + ARM, "did you mean 'from'?"),
        ("[success]\nexit_code = 1\n" + ARM, "did you mean 'exit_codes'?"),
        (ARM + "comand = 1", "arms.a must have only the keys command, features, environment, success"),
        (ARM + "success = { verify = 'none' }", "arms.a.success must have only the keys"),
        ("k = 2\n" + ARM, "k must be at most the number of arms, 1, got 2"),
        ("k = 0\n" + ARM, "k is 0; use an integer of at least 1"),
        ("k = 1.0\n" + ARM, "k is 1.0; use an integer of at least"),
        ("k = true\n" + ARM, "k is True; use an integer of at least"),
        ("k = 'two'\n" + ARM, "k is 'two'; use an integer of at least"),
        ("seed = -1\n" + ARM, "seed is -1; use an integer of at least 0"),
        ("policy = 'best'\n" + ARM, "unknown policy 'best'; there are"),
        ("policy = 'cppl(omga=1)'\n" + ARM, "cppl has no parameter omga"),
        ("policy = 3\n" + ARM, "policy must be a text that is not empty, got 3"),
        ("journal = ''\n" + ARM, "journal must be a text that is not empty, got ''"),
        ("limits = 3\n" + ARM, "limits must be a table"),
        ("[limits]\nseconds = 0\n" + ARM, "limits.seconds is 0; use a number above 0"),
        ("[limits]\nseconds = inf\n" + ARM, "limits.seconds is inf; use a finite number above 0"),
        ("[limits]\nmemory = '1'\n" + ARM, "limits.memory is '1'; use a"),
        ("[limits]\nmemory = true\n" + ARM, "limits.memory is True; use a"),
        ("[limits]\noutput = -1\n" + ARM, "limits.output is -1; use a number above 0"),
        ("[limits]\noutput = 1979-05-27\n" + ARM, "limits.output is datetime.date(1979, 5, 27); use a number above 0"),
        ("[features]\nfrom = 'stars'\n" + ARM, "features.from is 'st"),
        ("[features]\nseconds = 1\n" + ARM, "features.from is None"),
        ("[features]\nfrom = ['sat']\n" + ARM, "features.from is ['s"),
        ("[features]\nfrom = 'sat'\nfile = 'x'\n" + ARM, 'features.file must be left out unless from = "csv", got'),
        ("[features]\nfrom = 'csv'\n" + ARM, 'features.file must be given with from = "csv", got none'),
        ("[features]\nfrom = 'csv'\nfile = 1\n" + ARM, "features.file must be a text that is not empty, got 1"),
        ("[features]\nfrom = 'command'\n" + ARM, 'features.command must be given with from = "command", got none'),
        ("[features]\nfrom = 'command'\ncommand = ['f']\n" + ARM, "features.command must have {instance} where the"),
        ("[features]\nfrom = 'command'\ncommand = ['f', '{instance}', '{seed}']\n" + ARM,
         "features.command must have no placeholders but {instance}, got {seed}"),
        ("[features]\nfrom = 'sat'\nclause_graph = 1\n" + ARM, "features.clause_graph must be true or false, got 1"),
        ("[features]\nfrom = 'sat'\nseconds = -2\n" + ARM, "features.seconds is -2; use a number above 0"),
        ("[success]\nexit_codes = []\n" + ARM, "success.exit_codes must be a list of exit codes from 0 to 255, got []"),
        ("[success]\nexit_codes = [256]\n" + ARM, "success.exit_codes must be a list of exit codes from 0 to 255"),
        ("[success]\nexit_codes = [true]\n" + ARM, "success.exit_codes must be a list of exit codes from 0 to 255"),
        ("[success]\nexit_codes = 10\n" + ARM, "success.exit_codes must be a list of exit codes from 0 to 255, got 10"),
        ("[success]\npattern = '('\n" + ARM, "success.pattern must be a regular expression, got '(': "),
        ("[success]\npattern = 1\n" + ARM, "success.pattern must be a text that is not empty, got 1"),
        ("[success]\npattern = 'x'\nexit_codes = [1]\n" + ARM, "success must have exit_codes or a pattern, got both"),
        ("[success]\nverifier = 'modle'\n" + ARM, 'success.verifier must be "model", "none" or a list of a program'),
        ("[success]\nverifier = ['v', '{instance}']\n" + ARM, "success.verifier must have {output} where the path"),
        ("[success]\nverifier = ['v', '{output}', '{x}']\n" + ARM, "placeholders but {instance}, {seed}, {timeout}, "
         "{output}, got {x}"),
        ("[success]\nverifier = 3\n" + ARM, "success.verifier must be a list of texts, a program and its arguments"),
        ("[arms.a]\ncommand = 'a {instance}'", "arms.a.command must be a list of texts, a program and its arguments"),
        ("[arms.a]\ncommand = []", "arms.a.command must be a list of texts"),
        ("[arms.a]\ncommand = ['a', 1]", "arms.a.command must be a list of texts"),
        ("[arms.a]\ncommand = ['', '{instance}']", "the program of arms.a.command must be a text that is not empty"),
        ('[arms.a]\ncommand = ["a", "{instance}", "\\u0000"]', "arms.a.command must not have zero bytes"),
        ("[arms.a]\ncommand = ['a']", "arms.a.command must have {instance} where the path of the instance belongs"),
        ("[arms.a]\ncommand = ['a', '{file}']", "arms.a.command must have no placeholders but {instance}, {seed}, "
         "{timeout}, got {file}"),
        (ARM + "features = 3", "arms.a.features must be a table"),
        (ARM + "features = { x = 'big' }", "arms.a.features.x is 'big'; use a"),
        (ARM + "features = { x = nan }", "arms.a.features.x is nan; use a finite number"),
        (ARM + "environment = { X = 1 }", "arms.a.environment.X must be a text, got 1; write it in quotes"),
        (ARM + 'environment = { X = "\\u0000" }', "arms.a.environment.X must be a text"),
        (ARM + "environment = { 'A=B' = '1' }", "arms.a.environment must have names without ="),
        (ARM + "success = 3", "arms.a.success must be a table"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_pool_is_said_in_a_sentence(tmp_path, text, said):
    path = pool_file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_pool(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_a_pool_must_be_a_text_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.toml"):
        read_pool(tmp_path / "none.toml")
    (tmp_path / "pool.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_pool(tmp_path / "pool.toml")


# --- racers -----------------------------------------------------------------------------------------------------------


def test_a_racer_is_the_command_with_its_placeholders_filled_in(tmp_path, monkeypatch):
    pool = pool_of(tmp_path, FULL)
    monkeypatch.chdir(tmp_path)
    one = pool.racer("one", "a {seed} b.cnf", 5)
    instance = str(tmp_path / "a {seed} b.cnf")
    assert (one.name, one.command) == ("one", ("solver", "-s5", "--limit=3", instance))
    assert one.environment == {"OMP_NUM_THREADS": "1", "EMPTY": ""}
    assert (one.answers, one.pattern, one.verifier) == ((10, 20), None, None)
    two = pool.racer("two words", tmp_path / "x.cnf", 5)
    assert two.pattern == "^s (UN)?SAT"
    assert two.verifier == (str(tmp_path / "check"), str(tmp_path / "x.cnf"), "--of={output}")
    assert pool.racer("three", "x", 5).verifier is None
    assert pool.limited(0.5).racer("one", "x", 0).command[2] == "--limit=1"
    assert pool.limited(99).limits.seconds == 2.5


def test_a_racer_must_be_an_arm_and_have_a_seed(tmp_path):
    pool = pool_of(tmp_path, FULL)
    with pytest.raises(InputError, match="arm must be one of one, two words, three, got 'four'"):
        pool.racer("four", "x.cnf", 0)
    with pytest.raises(InputError, match="use an integer of at least 0"):
        pool.racer("one", "x.cnf", -1)
    with pytest.raises(InputError, match=r"instance must not have \{output\} in its path"):
        pool.racer("two words", "{output}.cnf", 0)


@given(st.text(), st.text())
def test_what_is_filled_in_stays_one_argument(instance, seed):
    filled = fill(["a", "{instance}", "x{seed}{instance}", "{other} {"], {"instance": instance, "seed": seed})
    assert filled == ("a", instance, f"x{seed}{instance}", "{other} {")


# --- features of instances --------------------------------------------------------------------------------------------


FORMULA = dimacs.Formula.of(4, [[1, -2], [2, 3], [-1, -3, 4], [-4, 2]])


@pytest.fixture
def instance(tmp_path):
    dimacs.write_formula(FORMULA, tmp_path / "f.cnf.gz")
    return Instance(tmp_path / "f.cnf.gz")


@pytest.mark.parametrize("clause_graph", [True, False])
@pytest.mark.parametrize("seconds", [60.0, 1e-9])
def test_sat_features_are_the_librarys_wherever_they_are_computed(instance, clause_graph, seconds, monkeypatch):
    if seconds < 1:  # too little to be sure of it, so that a process of its own is asked; there it may take longer
        monkeypatch.setattr("preselect.race.instance_features._LEAST_WORK_PER_SECOND", 1e-6)
        seconds = 120.0
    source = FeatureSource("sat", clause_graph=clause_graph, seconds=seconds)
    values, took = features_of(source, instance)
    assert values == satzilla.compute_features(FORMULA, clause_graph=clause_graph).values
    assert tuple(values) == feature_names(source)
    assert took > 0
    assert instance.formula is instance.formula


def test_sat_features_that_take_too_long_are_stopped(instance):
    with pytest.raises(InputError, match=r"the SAT features must end within 1e-09 s.*raise features\.seconds"):
        features_of(FeatureSource("sat", seconds=1e-9), instance)


def test_a_file_that_is_no_formula_is_said_to_be_none(tmp_path):
    (tmp_path / "x.cnf").write_text("no")
    with pytest.raises(InputError, match="line 1: the header must be"):
        features_of(FeatureSource("sat"), Instance(tmp_path / "x.cnf"))


def test_no_features(instance):
    assert features_of(FeatureSource("none"), instance).values == {}
    assert feature_names(FeatureSource("none")) == ()


def asked(tmp_path, instance, text, seconds=60.0):
    command = (str(script(tmp_path, "features.sh", text)), "{instance}")
    return features_of(FeatureSource("command", command=command, seconds=seconds), instance).values


def test_a_command_prints_features(tmp_path, instance):
    assert asked(tmp_path, instance, """echo noise >&2; echo '{"a": 1, "b": null, "c": -2.5e3}'""") == {
        "a": 1.0,
        "b": None,
        "c": -2500.0,
    }
    told = asked(tmp_path, Instance(tmp_path / "a b;c"), """printf '{"%s": %d}' "${1##*/}" $#""")
    assert told == {"a b;c": 1.0}
    assert feature_names(FeatureSource("command", command=("x", "{instance}"))) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo hello", r"must print one JSON object of numbers, got 'hello\\n'"),
        ("true", "must print one JSON object of numbers, got ''"),
        ("echo '[1, 2]'", "it is a list"),
        ("echo 3", "it is a int"),
        ("""echo '{"a": NaN}'""", "NaN is no number; print null"),
        ("""echo '{"a": -Infinity}'""", "-Infinity is no number"),
        ("""echo '{"a": 1e999}'""", "a is inf; use a finite number"),
        ("""printf '{"a": 1%0400d}' 0""", "use a finite number"),
        ("""echo '{"a": "1"}'""", "a is '1'; use a"),
        ("""echo '{"a": true}'""", "a is true, write 1 or 0"),
        ("""echo '{"a": [1]}'""", r"a is \[1\]; use a"),
        ("""echo '{"a": 1, "a": 2}'""", "a name occurs twice"),
        ("""echo '{"a": 1} {"a": 2}'""", "Extra data"),
        (r"printf '\377'", "must print one JSON object of numbers"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "must print one JSON object of numbers"),
        ("echo first >&2; echo no such thing >&2; exit 1", "must end with exit code 0, got 1: no such thing"),
        ("exit 3", "must end with exit code 0, got 3: and nothing on its standard error"),
        ("kill -SEGV $$", "must end with exit code 0, got -11"),
        ("yes", "must print at most 1000000 bytes"),
        ("yes >&2; true", "must end within 2 s"),
    ],
)
def test_hostile_features_commands_are_refused_in_a_sentence(tmp_path, instance, text, said):
    with pytest.raises(InputError, match=said):
        asked(tmp_path, instance, text, seconds=2.0 if "within" in said else 60.0)


def test_a_features_command_that_hangs_is_killed_with_its_children(tmp_path, instance):
    with pytest.raises(InputError, match=r"must end within 3 s, got no end by then; raise features\.seconds"):
        asked(tmp_path, instance, f"trap '' TERM; sleep 1000 & echo $! > {tmp_path}/pid; wait", seconds=3.0)
    assert gone(int((tmp_path / "pid").read_text()))


def test_children_that_a_features_command_leaves_are_not_waited_for(tmp_path, instance):
    assert asked(tmp_path, instance, f"sleep 1000 & echo $! > {tmp_path}/pid; echo '{{}}'") == {}
    assert gone(int((tmp_path / "pid").read_text()))


def gone(pid):
    """Whether a process has died, or is dying; nobody may be there to collect it."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


def test_a_features_command_that_is_not_there(tmp_path, instance):
    source = FeatureSource("command", command=(str(tmp_path / "none"), "{instance}"))
    with pytest.raises(InputError, match="must be a program that can be started, got No such file or directory"):
        features_of(source, instance)


def test_features_from_a_table(tmp_path):
    table = tmp_path / "features.csv"
    table.write_text(f"instance,a,b\nf.cnf,1,\n{tmp_path}/g.cnf,2,?\nh.cnf,nan,-3e2\n")
    source = FeatureSource("csv", file=table)
    assert feature_names(source) == ("a", "b")
    assert features_of(source, Instance(tmp_path / "f.cnf")).values == {"a": 1.0, "b": None}
    assert features_of(source, Instance(tmp_path / "g.cnf")).values == {"a": 2.0, "b": None}
    assert features_of(source, Instance(Path("elsewhere/h.cnf"))).values == {"a": None, "b": -300.0}
    with pytest.raises(InputError, match=r"must have a row for every instance, got none for i\.cnf"):
        features_of(source, Instance(tmp_path / "i.cnf"))
    table.write_text("instance,a\ni.cnf,5\n")
    os.utime(table, ns=(1, 1))
    assert features_of(source, Instance(tmp_path / "i.cnf")).values == {"a": 5.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the header must be distinct names"),
        ("instance\n", "line 1: the header must be distinct names"),
        ("instance,a,a\n", "line 1: the header must be distinct names"),
        ("instance,a,\n", "line 1: the header must be distinct names"),
        ("instance,a\nf,1\nf,2\n", "line 3: a line must be an instance that no other line has, and 1 features"),
        ("instance,a\nf\n", "line 2: a line must be an instance that no other line has, and 1 features, got 'f'"),
        ("instance,a\nf,1,2\n", "line 2: a line must be"),
        ("instance,a\nf,big\n", "line 2: a feature must be a finite number, or empty if missing, got 'big'"),
        ("instance,a\nf,inf\n", "line 2: a feature must be a finite number, or empty if missing, got 'inf'"),
        ("instance,a\nf," + "1" * 200_000, "must be a CSV file, got something else: field larger than field limit"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, text, said):
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        features_of(FeatureSource("csv", file=tmp_path / "f.csv"), Instance(Path("f")))
    with pytest.raises(InputError, match="cannot read"):
        features_of(FeatureSource("csv", file=tmp_path / "none.csv"), Instance(Path("f")))


# --- answers ----------------------------------------------------------------------------------------------------------


def judged(tmp_path, output, formula=FORMULA, exit_code=None):
    path = tmp_path / "0.out"
    path.write_bytes(output if isinstance(output, bytes) else output.encode())
    return wrong_model(formula, path, exit_code)


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
def test_right_answers(tmp_path, output):
    assert judged(tmp_path, output) is None


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "its output must have one answer, 's SATISFIABLE' or 's UNSATISFIABLE', got none"),
        ("SATISFIABLE\nv 1 2 -3 4 0", "got none"),
        ("s SATISFIABLE\ns UNSATISFIABLE\nv 1 2 -3 4 0", "got 's SATISFIABLE' and 's UNSATISFIABLE'"),
        ("s UNKNOWN\n", "must say 's SATISFIABLE' or 's UNSATISFIABLE', got 's UNKNOWN'"),
        ("s SATISFIABLE\n", "no v lines"),
        ("s SATISFIABLE\nv\n", "clause 2 is not satisfied"),
        ("s SATISFIABLE\nv 1 2 -3 5 0", "its literals must be from 1 to 4, or the negative, got 5"),
        ("s SATISFIABLE\nv 1 2 -3 -5 0", "got -5"),
        ("s SATISFIABLE\nv 1 2 -3 99999999999999999999999 0", "its literals must be from 1 to 4"),
        ("s SATISFIABLE\nv 1 2 -3 -99999999999999999999999 0", "its literals must be from 1 to 4"),
        ("s SATISFIABLE\nv 1 2 -3 4 -1 0", "its v lines say both 1 and -1"),
        ("s SATISFIABLE\nv 1 2 3 -4 0", "clause 3 is not satisfied by its v lines"),
        ("s SATISFIABLE\nv 1 2 -3 x4 0", "its v lines must hold integers, got 'x'"),
        ("s SATISFIABLE\nv 1 2 -3 4.0 0", "its v lines must hold integers, got '.'"),
        ("s SATISFIABLE\nv 1 2 - 3 4 0", "its v lines must hold integers, got '1 2 - 3 4"),
        ("s SATISFIABLE\nv 1 2-3 4 0", "its v lines must hold integers, got '1 2-3 4 0'"),
        ("s SATISFIABLE\nv 1 --2 0", "its v lines must hold integers, got '1 --2 0'"),
        ("s SATISFIABLE\nv 1 2-", "its v lines must hold integers, got '1 2-'"),
        ("s SATISFIABLE\nv 1 " + "2" * 1_000_000, "its literals must be from 1 to 4"),
        ("".join(f"s {i}\n" for i in range(100_000)), "got 's 0' and 's 1' and 's 2'"),
        (b"s SATISFIABLE\nv 1 2 \xff 0", "its v lines must hold integers"),
        (b"s \xff\n", "must say"),
    ],
)
def test_wrong_answers_and_why(tmp_path, output, said):
    assert said in judged(tmp_path, output)


def test_the_exit_code_must_fit(tmp_path):
    model, none = "s SATISFIABLE\nv 1 2 -3 4 0\n", "s UNSATISFIABLE\n"
    assert judged(tmp_path, model, exit_code=10) is None
    assert judged(tmp_path, model, exit_code=0) is None
    assert judged(tmp_path, none, exit_code=20) is None
    assert judged(tmp_path, model, exit_code=20) == (
        "exit code 20 means UNSATISFIABLE, but its output says 's SATISFIABLE'"
    )
    assert "exit code 10 means SATISFIABLE" in judged(tmp_path, none, exit_code=10)


def test_formulas_without_clauses_and_with_an_empty_one(tmp_path):
    assert judged(tmp_path, "s SATISFIABLE\nv 0\n", dimacs.Formula.of(0, [])) is None
    assert "clause 2" in judged(tmp_path, "s SATISFIABLE\nv 1 0\n", dimacs.Formula.of(1, [[1], []]))


LITERAL = st.integers(1, 4).flatmap(lambda variable: st.sampled_from([variable, -variable]))


@given(st.lists(st.lists(LITERAL, max_size=3), max_size=6), st.lists(LITERAL, max_size=5))
def test_the_check_agrees_with_brute_force(tmp_path_factory, clauses, literals):
    said = judged(tmp_path_factory.getbasetemp(), f"s SATISFIABLE\nv {' '.join(map(str, literals))} 0\n",
                  dimacs.Formula.of(4, clauses))  # fmt: skip
    values = {variable: variable in literals for variable in range(1, 5)}
    consistent = not any(-literal in literals for literal in literals)
    holds = all(any(values[abs(literal)] == (literal > 0) for literal in clause) for clause in clauses)
    assert (said is None) == (consistent and holds)


def test_a_long_output_is_checked(tmp_path):
    variables = 1_000_000
    formula = dimacs.Formula.of(variables, [[i, -(i + 1)] for i in range(1, variables, 1000)])
    lines = (" ".join(map(str, range(first, first + 1000))) for first in range(1, variables, 1000))
    output = "c noise\n" * 2_000_000 + "s SATISFIABLE\n" + "".join(f"v {line}\n" for line in lines)
    assert judged(tmp_path, output, formula) is None
    assert "clause 1 is" in judged(tmp_path, output.replace("v 1 ", "v -1 ", 1), formula)


def test_only_arms_that_want_it_are_checked(tmp_path, instance):
    (tmp_path / "out").write_text("s SATISFIABLE\n")
    pool = pool_of(tmp_path, FULL)
    check = checker(pool, instance)
    assert "no v lines" in check(pool.racer("one", instance.path, 0), tmp_path / "out", 10)
    assert check(pool.racer("three", instance.path, 0), tmp_path / "out", 10) is None
    assert checker(pool_of(tmp_path, ARM), instance) is None


@pytest.mark.parametrize(("says", "code"), [("s SATISFIABLE\\nv 1 2 -3 0", 20), ("s UNSATISFIABLE", 10)])
def test_a_racer_whose_exit_code_and_output_disagree_does_not_win(tmp_path, says, code):
    formula = Instance(tmp_path / "tiny.cnf")
    dimacs.write_formula(dimacs.Formula.of(3, [[1, -2], [2, 3], [-1, -3]]), formula.path)
    script(tmp_path, "torn.sh", f"printf '{says}\\n'; exit {code}")
    script(tmp_path, "good.sh", "sleep 0.3; printf 's SATISFIABLE\\nv 1 2 -3 0\\n'; exit 10")
    arms = "".join(f'[arms.{name}]\ncommand = ["./{name}.sh", "{{instance}}"]\n' for name in ("torn", "good"))
    pool = pool_of(tmp_path, f'[features]\nfrom = "sat"\n{arms}')
    racers = [pool.racer(name, formula.path, 0) for name in pool.arms]
    result = supervise(racers, folder=tmp_path / "race", seconds=60, check=checker(pool, formula))
    assert [str(finish.status) for finish in result.finishes] == ["wrong answer", "won"]
    assert result.finishes[0].detail.startswith(f"exit code {code} means ")


# --- finding solvers --------------------------------------------------------------------------------------------------


def test_solvers_are_found_by_name_and_saps_is_always_there(tmp_path):
    alone = [solver.name for solver in find_solvers(str(tmp_path))]
    assert alone == ["saps", "saps-2", "saps-9", "saps-13"]
    script(tmp_path, "kissat", "exit 10")
    script(tmp_path, "cadical", "exit 10").chmod(0o644)
    assert [solver.name for solver in find_solvers(str(tmp_path))] == ["kissat", *alone]


def test_a_pool_that_was_written_can_be_read_and_chosen_from(tmp_path):
    path = tmp_path / "my pool.toml"
    quoted = Solver('a "b"\\ é.c', ("x\n\x7f", "{instance}"), {"y": 1e-9})
    every = [*KNOWN, *find_solvers(str(tmp_path)), quoted]
    write_pool(path, every, k=3, seconds=5)
    pool = read_pool(path)
    assert list(pool.arms) == [solver.name for solver in every]
    assert (pool.k, pool.limits.seconds, pool.features.kind) == (3, 5, "sat")
    assert pool.journal == tmp_path / "my pool.journal"
    for solver in every:
        assert pool.arms[solver.name].command == solver.command
        assert pool.arms[solver.name].features == pytest.approx(solver.features)
    assert pool.arms["minisat"].success.verifier == "none"
    assert pool.arms["z3"].success.pattern == "^s (UN)?SATISFIABLE"
    assert pool.arms["kissat"].success.verifier == "model"
    described = {name: arm.features for name, arm in pool.arms.items()}
    chooser = Preselector(described, feature_names(pool.features), policy=pool.policy, seed=pool.seed)
    assert len(chooser.select(satzilla.compute_features(FORMULA, clause_graph=False).values, k=pool.k).names) == 3


def test_what_is_commented_out_in_a_new_pool_is_right_too(tmp_path):
    write_pool(tmp_path / "pool.toml", find_solvers(str(tmp_path)))
    text = (tmp_path / "pool.toml").read_text()
    assert "k = 2 " in text
    for kind, instead in (("command", "command = "), ("csv", "file = "), ("none", "#")):
        other = re.sub(r'^(from = "sat"|clause_graph).*\n', "", text, flags=re.MULTILINE)
        other = other.replace(f'# from = "{kind}"', f'from = "{kind}"').replace(f"# {instead}", instead)
        other = other.replace("# memory", "memory").replace('verifier = "model"', "#").replace("# verifier", "verifier")
        other = re.sub(r"^# (?=\[arms|command = \[.cadical|features =|environment)", "", other, flags=re.MULTILINE)
        pool = pool_of(tmp_path, other)
        assert pool.features.kind == kind
        assert pool.limits.memory == 4000
        assert pool.arms["saps"].success.verifier[0] == "my-checker"
        assert pool.arms["cadical-sat"].environment == {"OMP_NUM_THREADS": "1"}


def test_a_pool_is_never_overwritten(tmp_path):
    path = pool_file(tmp_path, "mine")
    with pytest.raises(InputError, match=r"path must be a new file, got .*pool\.toml, which is there"):
        write_pool(path, find_solvers(str(tmp_path)))
    assert path.read_text() == "mine"
    with pytest.raises(InputError, match="found must have at least one solver"):
        write_pool(tmp_path / "new.toml", [])
    with pytest.raises(InputError, match="k must be from 1 to 4, the number of solvers, got 5"):
        write_pool(tmp_path / "new.toml", find_solvers(str(tmp_path)), k=5)
    assert not (tmp_path / "new.toml").exists()


# --- trying arms ------------------------------------------------------------------------------------------------------

KNOWS = """case "$1" in
    */satisfiable.cnf) echo "s SATISFIABLE"; echo "v 1 2 -3 0"; exit 10;;
    *) echo "s UNSATISFIABLE"; exit 20;;
esac"""
ONLY_MODELS = 'case "$1" in */satisfiable.cnf) printf "s SATISFIABLE\\nv 1 2 -3 0\\n"; exit 10;; *) {};; esac'


def tried(tmp_path, text, more=""):
    script(tmp_path, "solver.sh", text)
    head = '[features]\nfrom = "sat"\n[arms.a]\ncommand = ["./solver.sh", "{instance}"]\n'
    (trial,) = try_arms(pool_of(tmp_path, head + more), tmp_path / "trial")
    assert trial.arm == "a"
    return trial


def test_an_arm_that_works(tmp_path):
    trial = tried(tmp_path, KNOWS)
    assert trial.ok
    assert trial.seconds > 0
    assert re.fullmatch(r"answers in \d+\.\d\d s", trial.said)


@pytest.mark.parametrize("otherwise", ["exit 0", "echo s UNKNOWN", "sleep 1000"])
def test_not_to_find_out_that_there_is_no_model_is_no_fault(tmp_path, otherwise):
    trial = tried(tmp_path, ONLY_MODELS.format(otherwise))
    assert trial.ok
    assert trial.said.endswith("does not find out that a formula has no model")


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("echo bad option >&2; exit 1", "", "exit code 1 instead of 10 or 20, it printed 'bad option'; correct"),
        ("echo usage; exit 0", "", "exit code 0 instead of 10 or 20, it printed 'usage'"),
        ("exit 3", "", "exit code 3 instead of 10 or 20, it printed nothing"),
        ("echo hm", 'success = { pattern = "^s " }', "instead of output that matches '^s ', it printed 'hm'"),
        ("echo s SATISFIABLE; exit 10", "", 'no v lines; make it print s and v lines, or say verifier = "none"'),
        ("echo s SATISFIABLE; echo v -1 -2 -3 0; exit 10", "", "clause 2 is not satisfied"),
        ("echo SATISFIABLE; exit 10", "", "got none; make it print s and v lines"),
        ("echo s SATISFIABLE; echo v 1 2 -3 0; exit 20", "", "exit code 20 means UNSATISFIABLE"),
        ("exit 20", 'success = { verifier = "none" }', "says that a formula with a model has none"),
        ("exit 10", 'success = { verifier = "none" }', "says that a formula without a model has one"),
        ("echo s UNSATISFIABLE; exit 20", "", "says that a formula with a model has none"),
        ("echo s SATISFIABLE; echo v 1 2 -3 0; exit 10", "", "says that a formula without a model has one"),
        ("sleep 1000", "[limits]\nseconds = 1", "no answer within 1 s; look at its options in [arms.a]"),
        (f"exec {sys.executable} -c 'import time; held = b\"x\" * 400_000_000; time.sleep(1000)'",
         "[limits]\nmemory = 100", "raise limits.memory"),
        ("exit 10", "success = { verifier = ['./none', '{output}'] }", "it could not be raced: "),
        ("exit 10", "success = { verifier = ['false', '{output}'] }", "its answer does not pass the verifier"),
        ("kill -SEGV $$", "", "crashed"),
        (ONLY_MODELS.format("kill -SEGV $$"), "", "on a formula without a model: crashed"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_arm_is_said(tmp_path, text, more, said):
    trial = tried(tmp_path, text, more)
    assert not trial.ok
    assert said in trial.said


def test_a_program_that_is_not_there(tmp_path):
    pool = pool_of(tmp_path, '[features]\nfrom = "sat"\n[arms.a]\ncommand = ["no-such-solver", "{instance}"]')
    (trial,) = try_arms(pool, tmp_path / "trial")
    assert not trial.ok
    assert trial.seconds is None
    assert "install no-such-solver, or correct the command in [arms.a]" in trial.said


def test_arms_that_are_not_about_sat_are_tried_on_an_instance(tmp_path):
    script(tmp_path, "good.sh", 'test "$(cat "$1")" = easy')
    script(tmp_path, "bad.sh", "echo cannot >&2; exit 2")
    arms = "".join(f'[arms.{name}]\ncommand = ["./{name}.sh", "{{instance}}"]\n' for name in ("good", "bad"))
    pool = pool_of(tmp_path, f"[success]\nexit_codes = [0]\n{arms}")
    with pytest.raises(InputError, match="instance must be given for a pool that is not about SAT, got none"):
        try_arms(pool, tmp_path / "trial")
    (tmp_path / "easy.txt").write_text("easy")
    good, bad = try_arms(pool, tmp_path / "trial", instance=tmp_path / "easy.txt")
    assert good.ok
    assert not bad.ok
    assert "exit code 2 instead of 0, it printed 'cannot'" in bad.said


@pytest.mark.parametrize("solver", KNOWN, ids=lambda solver: solver.name)
def test_known_solvers_work_as_they_are_written_down(tmp_path, solver):
    if not shutil.which(solver.command[0]):
        pytest.skip(f"{solver.name} is not installed")
    write_pool(tmp_path / "pool.toml", [solver])
    (trial,) = try_arms(read_pool(tmp_path / "pool.toml"), tmp_path / "trial")
    assert trial.ok, trial.said
    assert re.fullmatch(r"answers in \d+\.\d\d s", trial.said)


def test_saps_works_as_it_is_written_down(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    write_pool(tmp_path / "pool.toml", find_solvers(str(tmp_path))[:1])
    (trial,) = try_arms(read_pool(tmp_path / "pool.toml"), tmp_path / "trial")
    assert trial.ok, trial.said
