"""Features of instances: computed for SAT, printed by a command, read from a table, or none."""

import os
import re
import sys
from pathlib import Path

import pytest
from pools import FORMULA, write_script
from processes import find_marked

from preselect.errors import InputError
from preselect.race import FeatureSource
from preselect.race.instance_features import Instance, _collect_features, list_feature_names, measure_features
from preselect.sat import dimacs
from preselect.sat import features as satzilla


@pytest.fixture
def instance(tmp_path):
    dimacs.write_formula(FORMULA, tmp_path / "f.cnf.gz")
    return Instance(tmp_path / "f.cnf.gz")


@pytest.mark.parametrize("clause_graph", [True, False])
@pytest.mark.parametrize("seconds", [60.0, 1e-9])
def test_sat_features_are_the_librarys_wherever_they_are_computed(instance, clause_graph, seconds, monkeypatch):
    if seconds < 1:  # too little to be sure of it, so that a process of its own is asked; there it may take longer
        monkeypatch.setattr("preselect.race.instance_features._MIN_STEPS_PER_SECOND", 1e-6)
        seconds = 120.0
    source = FeatureSource("sat", clause_graph=clause_graph, seconds=seconds)
    values, took, error = measure_features(source, instance)
    assert values == satzilla.compute_features(FORMULA, clause_graph=clause_graph).values
    assert tuple(values) == list_feature_names(source)
    assert took > 0
    assert error is None
    assert instance.formula is instance.formula


def test_sat_features_that_take_too_long_are_stopped(instance):
    with pytest.raises(InputError, match=r"the SAT features took more than 1e-09 s; raise features\.seconds"):
        _collect_features(FeatureSource("sat", seconds=1e-9), instance)


def test_a_file_that_is_no_formula_is_refused(tmp_path):
    (tmp_path / "x.cnf").write_text("no")
    with pytest.raises(InputError, match="line 1: expected the header"):
        _collect_features(FeatureSource("sat"), Instance(tmp_path / "x.cnf"))


def test_no_features(instance):
    assert _collect_features(FeatureSource("none"), instance) == {}
    assert list_feature_names(FeatureSource("none")) == ()


def ask(tmp_path, instance, text, seconds=60.0):
    command = (str(write_script(tmp_path, "features.sh", text)), "{instance}")
    return _collect_features(FeatureSource("command", command=command, seconds=seconds), instance)


def test_a_command_prints_features(tmp_path, instance):
    assert ask(tmp_path, instance, """echo noise >&2; echo '{"a": 1, "b": null, "c": -2.5e3}'""") == {
        "a": 1.0,
        "b": None,
        "c": -2500.0,
    }
    values = ask(tmp_path, Instance(tmp_path / "a b;c"), """printf '{"%s": %d}' "${1##*/}" $#""")
    assert values == {"a b;c": 1.0}
    assert list_feature_names(FeatureSource("command", command=("x", "{instance}"))) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo hello", r"printed 'hello\\n', which is not one JSON object of numbers: "),
        ("true", "printed '', which is not one JSON object of numbers: "),
        ("echo '[1, 2]'", "it is not an object"),
        ("echo 3", "it is not an object"),
        ("""echo '{"a": NaN}'""", "NaN is not allowed; print null for a missing number"),
        ("""echo '{"a": -Infinity}'""", "-Infinity is not allowed"),
        ("""echo '{"a": 1e999}'""", "a is inf; use a finite number"),
        ("""printf '{"a": 1%0400d}' 0""", "use a finite number"),
        ("""echo '{"a": "1"}'""", "a is '1'; use a"),
        ("""echo '{"a": true}'""", "a is true; use 1 or 0"),
        ("""echo '{"a": [1]}'""", r"a is \[1\]; use a"),
        ("""echo '{"a": 1, "a": 2}'""", "a key occurs twice"),
        ("""echo '{"a": 1} {"a": 2}'""", "Extra data"),
        (r"printf '\377'", "which is not one JSON object of numbers"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "which is not one JSON object of numbers"),
        ("echo first >&2; echo no such thing >&2; exit 1", "failed with exit code 1: no such thing"),
        ("exit 3", "failed with exit code 3: it printed nothing to standard error"),
        ("kill -SEGV $$", "failed with exit code -11"),
        ("yes", "printed more than 1000000 bytes"),
        ("yes > /dev/null", "took more than 2 s"),
    ],
)
def test_hostile_features_commands_are_refused(tmp_path, instance, text, message):
    with pytest.raises(InputError, match=message):
        ask(tmp_path, instance, text, seconds=2.0 if "took" in message else 60.0)


def test_a_features_command_that_hangs_is_killed_with_its_children(tmp_path, instance, token):
    with pytest.raises(InputError, match=r"features\.sh .* took more than 3 s; raise features\.seconds"):
        ask(tmp_path, instance, f"trap '' TERM; sleep 1000 & echo $! > {tmp_path}/pid; wait", seconds=3.0)
    assert (tmp_path / "pid").exists()
    assert find_marked(token) == []


def test_children_that_a_features_command_leaves_are_not_waited_for(tmp_path, instance, token):
    assert ask(tmp_path, instance, f"sleep 1000 & echo $! > {tmp_path}/pid; echo '{{}}'") == {}
    assert (tmp_path / "pid").exists()
    assert find_marked(token) == []


def test_daemons_of_a_features_command_die_and_its_memory_is_limited(tmp_path, instance, token):
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/pid; sleep 1000' & until [ -s {tmp_path}/pid ]; do sleep 0.02; done"
    assert ask(tmp_path, instance, f"{daemon}; echo '{{}}'") == {}
    assert (tmp_path / "pid").exists()
    assert find_marked(token) == []
    hungry = (sys.executable, "-c", "held = bytearray(400 * 2**20); import time; time.sleep(1000)", "{instance}")
    with pytest.raises(InputError, match=r"held more than 100 MB; raise limits\.memory"):
        _collect_features(FeatureSource("command", command=hungry, seconds=60.0, memory=100.0), instance)


def test_a_features_command_that_is_not_there(tmp_path, instance):
    source = FeatureSource("command", command=(str(tmp_path / "none"), "{instance}"))
    with pytest.raises(InputError, match=r"cannot start the features command .*none .*: no such command"):
        _collect_features(source, instance)


def test_features_from_a_table(tmp_path):
    table = tmp_path / "features.csv"
    table.write_text(f"instance,a,b\nf.cnf,1,\n{tmp_path}/g.cnf,2,?\nh.cnf,nan,-3e2\n")
    source = FeatureSource("csv", file=table)
    assert list_feature_names(source) == ("a", "b")
    assert _collect_features(source, Instance(tmp_path / "f.cnf")) == {"a": 1.0, "b": None}
    assert _collect_features(source, Instance(tmp_path / "g.cnf")) == {"a": 2.0, "b": None}
    assert _collect_features(source, Instance(Path("elsewhere/h.cnf"))) == {"a": None, "b": -300.0}
    with pytest.raises(InputError, match=r"features\.csv has no row for i\.cnf; add one"):
        _collect_features(source, Instance(tmp_path / "i.cnf"))
    table.write_text("instance,a\ni.cnf,5\n")
    os.utime(table, ns=(1, 1))
    assert _collect_features(source, Instance(tmp_path / "i.cnf")) == {"a": 5.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a header; name a column of instances and at least one feature, all differently"),
        ("instance\n", "is not a header; name a column of instances and at least one feature, all differently"),
        ("instance,a,a\n", "is not a header; name a column of instances and at least one feature, all differently"),
        ("instance,a,\n", "is not a header; name a column of instances and at least one feature, all differently"),
        ("instance,a\nf,1\nf,2\n", "line 3: there is another line for 'f'; remove one of them"),
        ("instance,a\nf\n", "line 2: 1 values, but the header has 2 names"),
        ("instance,a\nf,1,2\n", "line 2: 3 values, but the header has 2 names"),
        ("instance,a\nf,big\n", "line 2: 'big' is not a finite number; leave a missing feature empty"),
        ("instance,a\nf,inf\n", "line 2: 'inf' is not a finite number; leave a missing feature empty"),
        ("instance,a\nf," + "1" * 200_000, "is not a CSV file: field larger than field limit"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        _collect_features(FeatureSource("csv", file=tmp_path / "f.csv"), Instance(Path("f")))
    with pytest.raises(InputError, match="cannot read"):
        _collect_features(FeatureSource("csv", file=tmp_path / "none.csv"), Instance(Path("f")))
