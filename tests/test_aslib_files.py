"""How ASlib's files are read: the many ways to write them, and error messages about broken ones."""

import sys
from contextlib import suppress
from time import process_time

import pytest
from small_scenario import DESCRIPTION, RUNS

from preselect import InputError, PreselectError
from preselect.environments import Scenario
from preselect.environments.aslib import arff, description
from preselect.environments.aslib.description import read_description


def test_the_many_ways_to_write_a_table(write_scenario):
    runs = "\r\n".join(
        [
            "% a comment",
            "@relation 'some name'",
            "",
            "\t@Attribute INSTANCE_ID\tstring ",
            "@ATTRIBUTE repetition integer",
            '@attribute "algorithm" String',
            "@ATTRIBUTE 'runtime' Real",
            "@ATTRIBUTE runstatus {ok , timeout}",
            "@data,",
            " 'it\\'s, one' , 1 ,\ta , 3.5 , OK",
            "% another comment",
            "   ",
            '"two",1,"a",?,timeout',
            "o'three,1,'b\\\\c',1e1,ok",
            "",
        ]
    )
    scenario = Scenario.read(write_scenario(algorithm_runs="\ufeff" + runs))
    assert scenario.instances == ["it's, one", "two", "o'three"]
    assert scenario.algorithms == ["a", "b\\c"]
    assert scenario.times.tolist() == [[3.5, 60.0], [60.0, 60.0], [60.0, 10.0]]


def test_measures_as_scalars_and_other_ways_to_write_a_description(write_scenario, tmp_path):
    description = """\
--- # a comment
scenario_id: "SMALL"   # another
performance_measures: runtime
performance_type: [runtime]
maximize: no
algorithm_cutoff_time: 1.0e+02
metainfo_algorithms:
  a:
    configuration: -- -C 0.25 -M 2
      -R first-last # goes on
    deterministic: yes
  'it''s':
    configuration: ''
features_stochastic: []
default_steps: cheap
number_of_feature_steps:   1.0
feature_steps:
\t? cheap
\t: provides: &id001
\t    - size
  # deeper
features_deterministic: *id001
algorithms_stochastic: ''
""".replace("\t", "  ")
    scenario = Scenario.read(write_scenario(description=description.replace("\n", "\r\n")), steps="default")
    assert (scenario.name, scenario.cutoff, scenario.quality) == ("SMALL", 100.0, False)
    assert scenario.feature_names == ["size"]
    read = read_description(tmp_path / "description.txt")
    assert read["metainfo_algorithms"]["a"] == {
        "configuration": "-- -C 0.25 -M 2 -R first-last",
        "deterministic": "yes",
    }
    assert read["metainfo_algorithms"]["it's"] == {"configuration": ""}
    assert read["features_deterministic"] == ["size"]
    assert read["features_stochastic"] == []


def test_a_list_that_runs_on_behind_its_key(write_scenario):
    run_together = DESCRIPTION.replace("    provides:\n    - size\n", "    provides: size\n        - depth\n")
    assert Scenario.read(write_scenario(description=run_together), steps=["cheap"]).feature_names == ["size", "depth"]


def test_a_description_may_say_nothing(write_scenario):
    scenario = Scenario.read(write_scenario(description="\n"))
    assert (scenario.quality, scenario.cutoff, scenario.solved.sum()) == (False, 60.0, 3)


def test_without_an_id_the_folder_is_the_name(write_scenario):
    folder = write_scenario(description=DESCRIPTION.replace("scenario_id: SMALL\n", ""))
    assert Scenario.read(folder).name == folder.name


@pytest.mark.parametrize("name", ["description", "algorithm_runs", "feature_values"])
def test_a_folder_that_is_no_scenario(write_scenario, name):
    with pytest.raises(InputError, match=rf"is not an ASlib scenario: it has no {name}\."):
        Scenario.read(write_scenario(**{name: None}))


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nowhere is not an ASlib scenario: it has no description.txt"):
        Scenario.read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",3.5,ok", ",3.5", "algorithm_runs.arff, line 10: 4 values, but there are 5 attributes"),
        (",3.5,", ",fast,", "line 10: runtime is 'fast', which is not a number"),
        ("one,1,a", "'one,1,a", "line 10: a quote is not closed before the next comma: .*one,1,a"),
        ("runtime NUMERIC", "runtime DATE", "line 6: an attribute needs a name and a type, NUMERIC, .*DATE"),
        ("runtime NUMERIC", "runtime", "line 6: an attribute needs a name and a type"),
        ("runtime NUMERIC", "'runtime NUMERIC", "line 6: an attribute needs a name and a type"),
        ("@DATA\n", "", "line 9: expected @RELATION, @ATTRIBUTE or @DATA, found 'one,1,a"),
        ("algorithm STRING", "solver STRING", "has no attribute algorithm; its attributes are instance_id, .*solver"),
        ("runstatus {", "state {", "has no attribute runstatus"),
        ("runtime NUMERIC", "runtime STRING", "has no numeric attribute that measures performance"),
        ("one,1,a", "?,1,a", "line 10: instance_id is missing"),
    ],
)
def test_what_is_wrong_with_the_runs_is_named(write_scenario, old, new, message):
    assert old in RUNS
    with pytest.raises(InputError, match=message):
        Scenario.read(write_scenario(algorithm_runs=RUNS.replace(old, new, 1)))


def test_tables_without_rows_or_attributes(write_scenario):
    head = RUNS[: RUNS.index("@DATA")]
    with pytest.raises(InputError, match="line 9: the file ends before @DATA"):
        Scenario.read(write_scenario(algorithm_runs=head))
    with pytest.raises(InputError, match="contains no runs"):
        Scenario.read(write_scenario(algorithm_runs=head + "@DATA\n"))
    with pytest.raises(InputError, match="line 1: there are no attributes before @DATA"):
        Scenario.read(write_scenario(algorithm_runs="@DATA\n1,2\n"))
    with pytest.raises(InputError, match=r"cannot read .*gone\.arff: No such file"):
        arff.read(write_scenario() / "gone.arff")


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (
            DESCRIPTION.replace("- runtime\nmax", "runtime\nmax"),
            r"description.txt, line 3: 'runtime' is not valid YAML here",
        ),
        (DESCRIPTION.replace("time: 60\n", "time: 60\n- x\n"), "line 9: '- x' is not valid YAML here"),
        (DESCRIPTION + " wrong: depth\n", "line 20: 'wrong: depth' is not valid YAML here"),
        (DESCRIPTION.replace("60", "an hour"), "algorithm_cutoff_time is 'an hour'; use a number of seconds"),
    ],
)
def test_what_is_wrong_with_the_description_is_named(write_scenario, description, message):
    with pytest.raises(InputError, match=message):
        Scenario.read(write_scenario(description=description))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n\tb: 1\n\tc:\n\t- x\td\n", {"a": {"b": "1", "c": ["x     d"]}}),
        ("a: ?\nb:   ?  # unknown\nc:\n- ?\n- x\n", {"a": "?", "b": "?", "c": ["?", "x"]}),
        ("? a\n: b\n? c\n: - d\n", {"a": "b", "c": ["d"]}),
        (
            "a: 1.0\nb: 0x10\nc: 2026-01-01\nd: yes\ne: !!int 3\n",
            {"a": "1.0", "b": "0x10", "c": "2026-01-01", "d": "yes", "e": "3"},
        ),
        (
            "a:\nb: ~\nc: null\nd: 'null'\ne: ''\nnull: x\n",
            {"a": None, "b": None, "c": None, "d": "null", "e": "", "None": "x"},
        ),
        ("a: &x [b]\nc: *x\n", {"a": ["b"], "c": ["b"]}),
        ("# nothing\n", {}),
    ],
)
def test_descriptions_are_texts(tmp_path, text, expected):
    (tmp_path / "description.txt").write_text(text)
    assert read_description(tmp_path / "description.txt") == expected


_BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + last] * 10)}]\n" for last, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_BOMB + "performance_measures: *i\n", "its aliases stand for more than 1000000 values"),
        ("a: &a [*a]\n", "its aliases stand for more than 1000000 values"),
        ("a: " + "[" * 1000, "is nested too deeply"),
        ("- a\n- b\n", "has to consist of lines 'key: value'"),
        ("a: 'b\nc: d\n", 'line 1: "a: \'b" is not valid YAML here: found unexpected end of stream'),
        ("a: *b\n", "line 1: 'a: .b' is not valid YAML here: found undefined alias"),
        ("a: \x01\n", "description.txt is not valid YAML: special characters are not allowed"),
        ("? [a]\n: b\n", "line 1: .* is not valid YAML here: found unhashable key"),
    ],
)
def test_a_description_that_is_no_use_is_one_sentence(tmp_path, text, message):
    (tmp_path / "description.txt").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_description(tmp_path / "description.txt")
    assert "\n" not in str(error.value)


def test_a_description_that_is_too_long_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(description, "_MAX_CHARACTERS", 10)
    (tmp_path / "description.txt").write_text("a: 0123456789")
    with pytest.raises(InputError, match="has 13 characters; a description may have 10"):
        read_description(tmp_path / "description.txt")


def test_without_pyyaml_it_is_said_what_to_install(write_scenario, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(PreselectError, match=r"needs PyYAML; run pip install '\.\[study\]'"):
        Scenario.read(write_scenario())


def measure_seconds(work, text):
    """The least of a few measurements of CPU time."""
    seconds = []
    for _ in range(5):
        start = process_time()
        with suppress(InputError):
            work(text)
        seconds.append(process_time() - start)
    return min(seconds)


def read_attribute(line):
    arff._read_attribute("x.arff", 1, line)


@pytest.mark.parametrize("begin", ["row", "@attribute ", "@attribute a {", "", "a: "])
@pytest.mark.parametrize(
    ("first", "repeated", "last"),
    [
        ("'a', b", " ", "c"),
        ("'a'", " ", "b"),
        ("'a',", " ", "'b"),
        ("'", "a", ""),
        ("'", "\\", ""),
        ("'a', ", "b ", '"'),
        ('"', "\\'", ""),
        ("'", "''", ""),
        ("'", " #", ""),
        ("", ": ?", "x"),
    ],
)
def test_long_lines_take_time_in_proportion(tmp_path, begin, first, repeated, last):
    def describe(text):
        (tmp_path / "description.txt").write_text(text)
        read_description(tmp_path / "description.txt")

    work = arff._split_values if begin == "row" else read_attribute if begin.startswith("@") else describe
    begin, end = begin.removeprefix("row"), "}" if begin.endswith("{") else ""
    count = 6_000 // len(repeated)
    # Four times the length takes about four times as long; it was up to sixteen times.
    short, long = (measure_seconds(work, begin + first + repeated * n + last + end) for n in (count, 4 * count))
    assert long < 9 * short + 0.002
