"""The pool of a race: reading its file, and the racers that its arms become."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pools import ARM, FULL, make_pool, write_pool_file

from preselect.errors import InputError
from preselect.race import FeatureSource, read_pool
from preselect.race.pool import fill

# --- reading ----------------------------------------------------------------------------------------------------------


def test_everything_that_a_pool_says_is_read(tmp_path):
    pool = make_pool(tmp_path, FULL)
    assert (pool.k, pool.policy, pool.seed) == (2, "cppl(omega=0.5)", 7)
    assert pool.journal == tmp_path / "log" / "race.journal"
    assert (pool.limits.seconds, pool.limits.memory, pool.limits.output) == (2.5, 4000, 8)
    assert pool.features == FeatureSource("sat", clause_graph=True, seconds=3, memory=4000)
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
    pool = make_pool(tmp_path, ARM)
    assert (pool.k, pool.seed, pool.limits.seconds, pool.limits.memory) == (1, 0, 60, None)
    assert pool.journal == tmp_path / "pool.journal"
    assert pool.features.kind == "none"
    assert pool.arms["a"].success.verifier == "none"
    sat = make_pool(tmp_path, '[features]\nfrom = "sat"\n' + ARM)
    assert sat.arms["a"].success.verifier == "model"


def test_an_arms_exit_codes_replace_the_pools_pattern(tmp_path):
    arms = f'{ARM}success = {{ exit_codes = [3] }}\n[arms.b]\ncommand = ["b", "{{instance}}"]\n'
    pool = make_pool(tmp_path, f'[success]\npattern = "x"\n{arms}')
    assert (pool.arms["a"].success.pattern, pool.arms["a"].success.exit_codes) == (None, (3,))
    assert pool.arms["b"].success.pattern == "x"


def test_relative_paths_hold_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    write_pool_file(
        tmp_path / "sub", '[features]\nfrom = "csv"\nfile = "f.csv"\n[arms.a]\ncommand = ["./a", "{instance}"]'
    )
    monkeypatch.chdir(tmp_path)
    pool = read_pool("sub/pool.toml")
    assert pool.features.file == tmp_path / "sub" / "f.csv"
    assert pool.arms["a"].command[0] == str(tmp_path / "sub" / "a")
    assert pool.journal == tmp_path / "sub" / "pool.journal"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k = \n" + ARM, ", line 1: not valid TOML: Invalid value"),
        (ARM + '[arms.b]\ncommand = ["', ", line 4: not valid TOML: "),
        (ARM + "[arms.a]\n", ", line 3: not valid TOML: Cannot declare"),
        ("x = " + "[" * 5000, "values are nested too deeply"),
        ("", "there are no arms; add a table [arms.NAME] with a command"),
        ("arms = 3", "arms is 3; use a table, [arms]"),
        ("[arms]\na = 3", "arms.a is 3; use a table, [arms.a]"),
        ('[arms.""]\ncommand = ["a", "{instance}"]', "the arm name '' is empty or has unprintable characters"),
        ('[arms."a\\n"]\ncommand = ["a", "{instance}"]', "the arm name 'a\\n' is empty or has unprintable characters"),
        ("[arms.a]", 'arms.a.command is missing; add command = ["program", "{instance}"]'),
        ("sed = 1\n" + ARM, "unknown key 'sed'; did you mean 'seed'?"),
        ("zzzzzz = 1\n" + ARM, "unknown key 'zzzzzz'; the keys here are k, policy, seed, journal, limits, features, "
         "success, learning, arms"),
        ("[limits]\nsecond = 1\n" + ARM, "unknown key 'limits.second'; did you mean 'limits.seconds'?"),
        ("[features]\nform = 'sat'\n" + ARM, "unknown key 'features.form'; did you mean 'features.from'?"),
        ("[success]\nexit_code = 1\n" + ARM, "unknown key 'success.exit_code'; did you mean 'success.exit_codes'?"),
        (ARM + "comand = 1", "unknown key 'arms.a.comand'; did you mean 'arms.a.command'?"),
        (ARM + "success = { verify = 'none' }", "unknown key 'arms.a.success.verify'; did you mean 'arms.a.success.v"),
        ("k = 2\n" + ARM, "k=2, but there is only 1 arm"),
        ("k = 3\n" + ARM + ARM.replace("arms.a", "arms.b"), "k=3, but there are only 2 arms"),
        ("k = 0\n" + ARM, "k is 0; use an integer of at least 1"),
        ("k = 1.0\n" + ARM, "k is 1.0; use an integer of at least 1"),
        ("k = true\n" + ARM, "k is True; use an integer of at least 1"),
        ("k = 'two'\n" + ARM, "k is 'two'; use an integer of at least 1"),
        ("seed = -1\n" + ARM, "seed is -1; use an integer of at least 0"),
        ("policy = 'best'\n" + ARM, "'best'"),
        ("policy = 'cppl(omga=1)'\n" + ARM, "omga"),
        ("policy = 3\n" + ARM, "policy is 3; use a string that is not empty"),
        ("journal = ''\n" + ARM, "journal is ''; use a string that is not empty"),
        ("limits = 3\n" + ARM, "limits is 3; use a table, [limits]"),
        ("[limits]\nseconds = 0\n" + ARM, "limits.seconds is 0; use a number above 0"),
        ("[limits]\nseconds = inf\n" + ARM, "limits.seconds is inf; use a finite number above 0"),
        ("[limits]\nmemory = '1'\n" + ARM, "limits.memory is '1'; use a"),
        ("[limits]\nmemory = true\n" + ARM, "limits.memory is True; use a number above 0"),
        ("[limits]\nmemory = 1" + "0" * 400 + "\n" + ARM, "limits.memory is 1"),
        ("[limits]\noutput = -1\n" + ARM, "limits.output is -1; use a number above 0"),
        ("[limits]\noutput = 1979-05-27\n" + ARM, "limits.output is datetime.date(1979, 5, 27); use a number above 0"),
        ("[features]\nfrom = 'stars'\n" + ARM, "features.from is 'stars'; use 'sat' or 'file' or 'command' or"),
        ("[features]\nseconds = 1\n" + ARM, "features.from is missing; use 'sat' or 'file' or 'command' or 'csv' or"),
        ("[features]\nfrom = ['sat']\n" + ARM, "features.from is ['sat']; use 'sat' or"),
        ("[features]\nfrom = 'sat'\nfile = 'x'\n" + ARM, 'features.file is for from = "csv", but from = "sat"; remove'),
        ("[features]\nfrom = 'csv'\n" + ARM, 'features.file is missing; from = "csv" needs it'),
        ("[features]\nfrom = 'csv'\nfile = 1\n" + ARM, "features.file is 1; use a string that is not empty"),
        ("[features]\nfrom = 'command'\n" + ARM, 'features.command is missing; from = "command" needs it'),
        ("[features]\nfrom = 'command'\ncommand = ['f']\n" + ARM, "features.command has no {instance}; write it where"),
        ("[features]\nfrom = 'command'\ncommand = ['f', '{instance}', '{seed}']\n" + ARM,
         "features.command has an unknown placeholder {seed}; use {instance}"),
        ("[features]\nfrom = 'sat'\nclause_graph = 1\n" + ARM, "features.clause_graph is 1; use true or false"),
        ("[features]\nfrom = 'sat'\nseconds = -2\n" + ARM, "features.seconds is -2; use a number above 0"),
        ("[success]\nexit_codes = []\n" + ARM, "success.exit_codes is []; use a list of exit codes from 0 to 255"),
        ("[success]\nexit_codes = [256]\n" + ARM, "success.exit_codes is [256]; use a list of exit codes from 0 to 2"),
        ("[success]\nexit_codes = [true]\n" + ARM, "success.exit_codes is [True]; use a list of exit codes from 0 to"),
        ("[success]\nexit_codes = 10\n" + ARM, "success.exit_codes is 10; use a list of exit codes from 0 to 255"),
        ("[success]\npattern = '('\n" + ARM, "success.pattern is '(', which is not a regular expression: "),
        ("[success]\npattern = 1\n" + ARM, "success.pattern is 1; use a string that is not empty"),
        ("[success]\npattern = 'x'\nexit_codes = [1]\n" + ARM, "success has both exit_codes and pattern; remove one"),
        ("[success]\nverifier = 'modle'\n" + ARM, 'success.verifier is \'modle\'; use "model", "none", or a list of a '
         "program and its arguments"),
        ("[success]\nverifier = ['v', '{instance}']\n" + ARM, "success.verifier has no {output}; write it where the "),
        ("[success]\nverifier = ['v', '{output}', '{x}']\n" + ARM, "success.verifier has an unknown placeholder {x}; "
         "use {instance}, {seed}, {timeout}, {output}"),
        ("[success]\nverifier = 3\n" + ARM, "success.verifier is 3; use a list of strings: a program and its argumen"),
        ("[arms.a]\ncommand = 'a {instance}'", "arms.a.command is 'a {instance}'; use a list of strings: a program a"),
        ("[arms.a]\ncommand = []", "arms.a.command is []; use a list of strings"),
        ("[arms.a]\ncommand = ['a', 1]", "arms.a.command is ['a', 1]; use a list of strings"),
        ("[arms.a]\ncommand = ['', '{instance}']", "arms.a.command is ['', '{instance}']; the program is missing"),
        ('[arms.a]\ncommand = ["a", "{instance}", "\\u0000"]', "the program is missing, or there is a null character"),
        ("[arms.a]\ncommand = ['a']", "arms.a.command has no {instance}; write it where the path of the instance bel"),
        ("[arms.a]\ncommand = ['a', '{file}']", "arms.a.command has an unknown placeholder {file}; use {instance}, "
         "{seed}, {timeout}"),
        (ARM + "features = 3", "arms.a.features is 3; use a table, [arms.a.features]"),
        (ARM + "features = { x = 'big' }", "arms.a.features.x is 'big'; use a"),
        (ARM + "features = { x = nan }", "arms.a.features.x is nan; use a finite number"),
        (ARM + "environment = { X = 1 }", "arms.a.environment.X is 1; use a string, in quotes"),
        (ARM + 'environment = { X = "\\u0000" }', "arms.a.environment.X is '\\x00'; use a string"),
        (ARM + "environment = { 'A=B' = '1' }", "arms.a.environment has a variable 'A=B'; the name of a variable has"),
        (ARM + "success = 3", "arms.a.success is 3; use a table, [arms.a.success]"),
    ],
)  # fmt: skip
def test_an_error_names_the_file_the_key_and_what_to_write(tmp_path, text, message):
    path = write_pool_file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_pool(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_pool_must_be_a_text_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.toml"):
        read_pool(tmp_path / "none.toml")
    (tmp_path / "pool.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_pool(tmp_path / "pool.toml")


# --- racers -----------------------------------------------------------------------------------------------------------


def test_a_racer_is_the_command_with_its_placeholders_filled_in(tmp_path, monkeypatch):
    pool = make_pool(tmp_path, FULL)
    monkeypatch.chdir(tmp_path)
    one = pool.make_racer("one", "a {seed} b.cnf", 5)
    instance = str(tmp_path / "a {seed} b.cnf")
    assert (one.name, one.command) == ("one", ("solver", "-s5", "--limit=3", instance))
    assert one.environment == {"OMP_NUM_THREADS": "1", "EMPTY": ""}
    assert (one.exit_codes, one.pattern, one.verifier) == ((10, 20), None, None)
    two = pool.make_racer("two words", tmp_path / "x.cnf", 5)
    assert two.pattern == "^s (UN)?SAT"
    assert two.verifier == (str(tmp_path / "check"), str(tmp_path / "x.cnf"), "--of={output}")
    assert pool.make_racer("three", "x", 5).verifier is None
    assert pool.shorten(0.5).make_racer("one", "x", 0).command[2] == "--limit=1"
    assert pool.shorten(99).limits.seconds == 2.5


def test_a_racer_must_be_an_arm_and_have_a_seed(tmp_path):
    pool = make_pool(tmp_path, FULL)
    with pytest.raises(InputError, match=r"there is no arm 'four' in .*pool\.toml; its arms are one, two words, three"):
        pool.make_racer("four", "x.cnf", 0)
    with pytest.raises(InputError, match="use an integer of at least 0"):
        pool.make_racer("one", "x.cnf", -1)
    with pytest.raises(InputError, match=r"\{output\}\.cnf' contains \{output\}, which is a placeholder; rename it"):
        pool.make_racer("two words", "{output}.cnf", 0)


@given(st.text(), st.text())
def test_what_is_filled_in_stays_one_argument(instance, seed):
    filled = fill(["a", "{instance}", "x{seed}{instance}", "{other} {"], {"instance": instance, "seed": seed})
    assert filled == ("a", instance, f"x{seed}{instance}", "{other} {")
