"""Scenarios of ASlib: every quirk in a small folder of its own, and the published ones against plain loops."""

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from preselect import InputError
from preselect.environments import Scenario, baselines, best_fixed_set, par10, single_best, virtual_best
from preselect.environments.aslib import arff
from preselect.environments.aslib.description import read_description

ASLIB = Path(__file__).parents[2] / "shared" / "data" / "aslib"
PUBLISHED = sorted(path.name for path in ASLIB.iterdir()) if ASLIB.is_dir() else ["none"]

needs_aslib = pytest.mark.skipif(not ASLIB.is_dir(), reason="no ASlib scenarios in ../shared/data/aslib")

DESCRIPTION = """\
scenario_id: SMALL
performance_measures:
- runtime
maximize:
- false
performance_type:
- runtime
algorithm_cutoff_time: 60
default_steps:
- cheap
feature_steps:
  cheap:
    provides:
    - size
  dear:
    provides:
    - depth
    requires:
    - cheap
"""

RUNS = """\
@RELATION runs

@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE algorithm STRING
@ATTRIBUTE runtime NUMERIC
@ATTRIBUTE runstatus {ok, timeout}

@DATA
one,1,a,3.5,ok
one,1,b,60,timeout
two,1,a,60,timeout
two,1,b,60,timeout
three,1,a,20,ok
three,1,b,10,ok
"""

FEATURES = """\
@RELATION features
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE size NUMERIC
@ATTRIBUTE depth NUMERIC
@DATA
one,1,1,10
two,1,2,?
three,1,3,30
"""

COSTS = """\
@RELATION costs
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE cheap NUMERIC
@ATTRIBUTE dear NUMERIC
@DATA
one,1,0.5,2
three,1,0.25,?
"""


@pytest.fixture
def write(tmp_path):
    """Write a small scenario, some files of it replaced (None: not written)."""

    def write(**files):
        contents = {"description": DESCRIPTION, "algorithm_runs": RUNS, "feature_values": FEATURES} | files
        for name, text in contents.items():
            if text is not None:
                ending = "txt" if name in ("description", "readme") else "arff"
                (tmp_path / f"{name}.{ending}").write_bytes(text.encode())
        return tmp_path

    return write


def make_runs(rows, measures=("runtime",)):
    """The file of runs: (instance, repetition, algorithm, measures..., status)."""
    attributes = "\n".join(f"@ATTRIBUTE {measure} NUMERIC" for measure in measures)
    head = RUNS.split("@ATTRIBUTE runtime NUMERIC")[0] + attributes + "\n@ATTRIBUTE runstatus STRING\n@DATA\n"
    return head + "\n".join(",".join(map(str, row)) for row in rows)


def make_scenario(costs, cutoff=100.0):
    """A scenario in memory: times as given, infinite where not solved."""
    solved = np.isfinite(costs)
    instances, algorithms = costs.shape
    return Scenario(
        name="made",
        instances=[f"i{row}" for row in range(instances)],
        algorithms=[f"a{column}" for column in range(algorithms)],
        performance=costs,
        times=np.where(solved, costs, cutoff),
        solved=solved,
        ranks=np.argsort(np.argsort(costs, axis=1), axis=1),
        cutoff=cutoff,
        features=np.zeros((instances, 0)),
        feature_names=[],
        feature_costs=np.zeros(instances),
        algorithm_features=None,
        algorithm_feature_names=[],
        quality=False,
        maximise=False,
    )


# ---------------------------------------------------------------------------------------------------- small scenarios


def test_a_scenario_is_read(write):
    scenario = Scenario.read(write(feature_costs=COSTS))
    assert (scenario.name, scenario.cutoff, scenario.quality, scenario.maximise) == ("SMALL", 60.0, False, False)
    assert (scenario.instances, scenario.algorithms) == (["one", "two", "three"], ["a", "b"])
    assert scenario.times.tolist() == [[3.5, 60.0], [60.0, 60.0], [20.0, 10.0]]
    assert scenario.solved.tolist() == [[True, False], [False, False], [True, True]]
    assert scenario.feature_names == ["size", "depth"]
    np.testing.assert_array_equal(scenario.features, [[1.0, 10.0], [2.0, np.nan], [3.0, 30.0]])
    assert scenario.feature_costs.tolist() == [2.5, 0.0, 0.25]
    assert scenario.algorithm_features is None
    assert scenario.algorithm_feature_names == []
    assert scenario.ranks.tolist() == [[0, 1], [0, 0], [1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        scenario.times[0, 0] = 1.0


def test_who_wins_a_race(write):
    scenario = Scenario.read(write())
    assert [scenario.winner(instance) for instance in range(3)] == [0, None, 1]
    assert scenario.winner(0, among=[1]) is None
    assert scenario.winner(2, among=(0,)) == 0
    assert scenario.order(2).tolist() == [1, 0]
    assert scenario.order(0, among=np.array([1, 0])).tolist() == [0]


def test_penalties_and_baselines(write):
    scenario = Scenario.read(write())
    assert scenario.costs.tolist() == [[3.5, 600.0], [600.0, 600.0], [20.0, 10.0]]
    assert virtual_best(scenario.costs) == pytest.approx((3.5 + 600 + 10) / 3)
    assert single_best(scenario.costs) == pytest.approx((3.5 + 600 + 20) / 3)
    assert best_fixed_set(scenario.costs, 1).arms == (0,)
    both = best_fixed_set(scenario.costs, 2)
    assert (both.arms, both.exact, both.cost) == ((0, 1), True, pytest.approx(virtual_best(scenario.costs)))
    assert par10([[1.0, 5.0]], [[True, False]], 5.0).tolist() == [[1.0, 50.0]]


def test_costs_file_absent(write):
    assert Scenario.read(write()).feature_costs.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("steps", "names", "costs"),
    [
        (None, ["size", "depth"], [2.5, 0.0, 0.25]),
        ("default", ["size"], [0.5, 0.0, 0.25]),
        (["cheap"], ["size"], [0.5, 0.0, 0.25]),
        (["dear"], ["size", "depth"], [2.5, 0.0, 0.25]),
        ([], [], [0.0, 0.0, 0.0]),
    ],
)
def test_feature_steps(write, steps, names, costs):
    scenario = Scenario.read(write(feature_costs=COSTS), steps=steps)
    assert scenario.feature_names == names
    assert scenario.features.shape == (3, len(names))
    assert scenario.feature_costs.tolist() == costs


def test_a_column_called_par10_goes_by_status(write):
    runs = RUNS.replace("@ATTRIBUTE runtime", "@ATTRIBUTE PAR10").replace(",60,timeout", ",600,timeout")
    scenario = Scenario.read(write(algorithm_runs=runs, description=DESCRIPTION.replace("- runtime", "- PAR10", 1)))
    assert scenario.times.max() == 60.0
    assert scenario.costs.max() == 600.0
    assert scenario.performance[1, 0] == 600.0


def test_an_ok_beyond_the_cutoff_is_solved_at_the_cutoff(write):
    scenario = Scenario.read(write(algorithm_runs=RUNS.replace("three,1,b,10,ok", "three,1,b,60.3,ok")))
    assert scenario.times[2, 1] == 60.0
    assert scenario.solved[2, 1]


def test_an_ok_without_a_time_and_a_run_that_is_not_there_are_not_solved(write):
    runs = RUNS.replace("three,1,b,10,ok", "three,1,b,?,ok").replace("one,1,b,60,timeout\n", "")
    scenario = Scenario.read(write(algorithm_runs=runs))
    assert scenario.times.tolist() == [[3.5, 60.0], [60.0, 60.0], [20.0, 60.0]]
    assert scenario.solved.sum() == 2
    assert np.isnan(scenario.performance[0, 1])


@pytest.mark.parametrize("said", ["?", "'?'", '"?"', "0", "", "null"])
def test_without_a_cutoff_the_longest_time_is_taken(write, said):
    scenario = Scenario.read(write(description=DESCRIPTION.replace("cutoff_time: 60", f"cutoff_time: {said}")))
    assert scenario.cutoff == 60.0


def test_measures_as_scalars_and_other_ways_to_write_a_description(write, tmp_path):
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
    scenario = Scenario.read(write(description=description.replace("\n", "\r\n")), steps="default")
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


def test_a_list_that_runs_on_behind_its_key(write):
    run_together = DESCRIPTION.replace("    provides:\n    - size\n", "    provides: size\n        - depth\n")
    assert Scenario.read(write(description=run_together), steps=["cheap"]).feature_names == ["size", "depth"]


def test_without_an_id_the_folder_is_the_name(write):
    folder = write(description=DESCRIPTION.replace("scenario_id: SMALL\n", ""))
    assert Scenario.read(folder).name == folder.name


@pytest.mark.parametrize(
    ("changes", "milliseconds", "unit"),
    [
        ({}, None, 1.0),
        ({}, True, 1e-3),
        ({"readme": "From the\npaper. Runtime values are in\nmilliseconds.\n"}, None, 1e-3),
        ({"readme": "Runtime values are in milliseconds.\n"}, False, 1.0),
        ({"readme": "Run times are in seconds. A clock ticks in milliseconds.\n"}, None, 1.0),
        ({"description": DESCRIPTION.replace("time: 60", "time: 1.0e+08")}, None, 1e-3),
        ({"description": DESCRIPTION.replace("- runtime", "- runtime_ms", 1)}, None, 1e-3),
    ],
)
def test_milliseconds(write, changes, milliseconds, unit):
    scenario = Scenario.read(write(feature_costs=COSTS, **changes), milliseconds=milliseconds)
    assert scenario.times[0, 0] == pytest.approx(3.5 * unit)
    assert scenario.cutoff in (pytest.approx(60 * unit), pytest.approx(1e8 * unit))
    assert scenario.times[0, 1] == scenario.cutoff
    assert scenario.feature_costs[0] == pytest.approx(2.5 * unit)
    assert scenario.performance[0, 0] == 3.5


QUALITIES = [
    ("one", 1, "a", 0.9, 5, "ok"),
    ("one", 1, "b", 0.9, 3, "ok"),
    ("one", 1, "c", 0.5, 1, "ok"),
    ("one", 1, "d", 1.0, 60, "crash"),
    ("two", 1, "a", 7, 9, "ok"),
    ("two", 1, "b", 7, 9, "ok"),
    ("three", 1, "a", 0, 0, "crash"),
]


def describe(measures, kinds, better, cutoff="0"):
    lines = ["scenario_id: Q", f"performance_measures: [{measures}]", f"performance_type: [{kinds}]"]
    return "\n".join([*lines, f"maximize: [{better}]", f"algorithm_cutoff_time: {cutoff}"])


def test_qualities_become_a_race_that_the_best_wins(write):
    description = describe("accuracy, time", "solution_quality, runtime", "true, false")
    scenario = Scenario.read(write(description=description, algorithm_runs=make_runs(QUALITIES, ("accuracy", "time"))))
    assert (scenario.quality, scenario.maximise, scenario.cutoff) == (True, True, 1.0)
    assert scenario.performance[0].tolist() == [0.9, 0.9, 0.5, 1.0]
    assert scenario.times.tolist() == [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    assert scenario.order(0).tolist() == [1, 0, 2]  # the time decides between equals, and who crashed is not there
    assert scenario.order(1, among=[1, 0]).tolist() == [1, 0]  # equal in everything: as given
    assert scenario.ranks[0].tolist() == [1, 0, 2, 3]
    assert scenario.ranks[1, 0] == scenario.ranks[1, 1]
    assert scenario.winner(2) is None
    assert (scenario.costs == scenario.times).all()
    assert virtual_best(scenario.costs) == pytest.approx(1 / 3)


def test_less_may_be_the_better_quality(write):
    description = describe("error, time", "solution_quality, runtime", "false, false", "1200")
    runs = make_runs(QUALITIES, ("error", "time"))
    scenario = Scenario.read(write(description=description, algorithm_runs=runs))
    assert (scenario.quality, scenario.maximise, scenario.winner(0)) == (True, False, 2)
    assert scenario.times[0].tolist() == [1.0, 1.0, 0.0, 1.0]


def test_a_further_measure_may_be_put_first(write):
    description = describe("error, time", "solution_quality, runtime", "false, false", "50")
    runs = make_runs(QUALITIES, ("error", "time"))
    scenario = Scenario.read(write(description=description, algorithm_runs=runs), measure="TIME")
    assert (scenario.quality, scenario.cutoff) == (False, 50.0)
    assert scenario.times[0].tolist() == [5.0, 3.0, 1.0, 50.0]
    with pytest.raises(InputError, match="no performance measure 'speed'; it has runtime"):
        Scenario.read(write(), measure="speed")


def test_two_measures_of_which_the_first_is_a_time(write):
    description = describe("time, error", "runtime, solution_quality", "false, false", "60")
    runs = make_runs([(*row[:3], row[4], row[3], row[5]) for row in QUALITIES], ("time", "error"))
    scenario = Scenario.read(write(description=description, algorithm_runs=runs))
    assert (scenario.quality, scenario.winner(0), scenario.times[0].tolist()) == (False, 2, [5.0, 3.0, 1.0, 60.0])


def test_of_repetitions_the_median_run_is_taken(write):
    rows = [("one", 1, "a", 9, "ok"), ("one", 2, "a", 1, "ok"), ("one", 3, "a", 2, "ok")]
    rows += [("one", 1, "b", 60, "timeout"), ("one", 2, "b", 60, "timeout"), ("one", 3, "b", 1, "ok")]
    rows += [("one", 1, "c", 60, "timeout"), ("one", 2, "c", 8, "ok"), ("one", 1, "d", 4, "ok")]
    features = FEATURES.replace("one,1,1,10", "one,1,1,10\none,2,3,?")
    costs = COSTS.replace("one,1,0.5,2", "one,1,0.5,2\none,2,1.5,2")
    scenario = Scenario.read(write(algorithm_runs=make_runs(rows), feature_values=features, feature_costs=costs))
    assert scenario.times.tolist() == [[2.0, 60.0, 8.0, 4.0]]
    assert scenario.solved.tolist() == [[True, False, True, True]]
    assert scenario.features.tolist() == [[2.0, 10.0]]
    assert scenario.feature_costs.tolist() == [3.0]


def test_instances_absent_from_a_file(write):
    features = FEATURES.replace("two,1,2,?\n", "elsewhere,1,4,4\n").replace("three,1,3,30", "three,1,?,?")
    scenario = Scenario.read(write(feature_values=features))
    assert scenario.instances == ["one", "two", "three"]
    assert np.isnan(scenario.features[1:]).all()
    assert scenario.features[0].tolist() == [1.0, 10.0]


def test_algorithms_with_features_and_names_as_r_changes_them(write):
    runs = RUNS.replace(",a,", ",2-opt+,").replace(",b,", ",plain,")
    algorithm_features = """\
@RELATION x
@ATTRIBUTE algorithm STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE lines NUMERIC
@DATA
stranger,1,7
X2.opt.,1,5
"""
    scenario = Scenario.read(write(algorithm_runs=runs, algorithm_feature_values=algorithm_features))
    assert scenario.algorithms == ["2-opt+", "plain"]
    np.testing.assert_array_equal(scenario.algorithm_features, [[5.0], [np.nan]])
    assert scenario.algorithm_feature_names == ["lines"]


def test_names_as_they_are_come_before_changed_ones(write):
    runs = RUNS.replace(",a,", ",x-y,").replace(",b,", ",x.y,")
    features = "@ATTRIBUTE algorithm STRING\n@ATTRIBUTE n NUMERIC\n@DATA\nx.y,2\nx-y,1\n"
    scenario = Scenario.read(write(algorithm_runs=runs, algorithm_feature_values=features))
    assert scenario.algorithm_features.tolist() == [[1.0], [2.0]]


def test_features_that_are_not_numbers(write):
    features = FEATURES.replace("size NUMERIC", "size {small, large}").replace("depth NUMERIC", "depth STRING")
    features = features.replace("1,1,10", "1,large,x").replace("1,2,?", "1,small,y").replace("1,3,30", "1,?,z")
    scenario = Scenario.read(write(feature_values=features))
    assert scenario.feature_names == ["size"]
    np.testing.assert_array_equal(scenario.features, [[1.0], [0.0], [np.nan]])


def test_an_infinite_feature_is_missing(write):
    scenario = Scenario.read(write(feature_values=FEATURES.replace("one,1,1,10", "one,1,inf,10")))
    assert np.isnan(scenario.features[0, 0])


def test_the_many_ways_to_write_a_table(write):
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
    scenario = Scenario.read(write(algorithm_runs="\ufeff" + runs))
    assert scenario.instances == ["it's, one", "two", "o'three"]
    assert scenario.algorithms == ["a", "b\\c"]
    assert scenario.times.tolist() == [[3.5, 60.0], [60.0, 60.0], [60.0, 10.0]]


def test_a_description_may_say_nothing(write):
    scenario = Scenario.read(write(description="\n"))
    assert (scenario.quality, scenario.cutoff, scenario.solved.sum()) == (False, 60.0, 3)


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", ["description", "algorithm_runs", "feature_values"])
def test_a_folder_that_is_no_scenario(write, name):
    with pytest.raises(InputError, match=rf"is not an ASlib scenario: it has no {name}\."):
        Scenario.read(write(**{name: None}))


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nowhere is not an ASlib scenario: it has no description.txt"):
        Scenario.read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",3.5,ok", ",3.5", "algorithm_runs.arff, line 10: a row must have 5 values, one per attribute, got 4"),
        (",3.5,", ",fast,", "line 10: runtime must be a number, or . where it is missing, got 'fast'"),
        ("one,1,a", "'one,1,a", "line 10: a quote must be closed before the next comma, got"),
        ("runtime NUMERIC", "runtime DATE", "line 6: an attribute must have a name and a type NUMERIC, .*DATE"),
        ("runtime NUMERIC", "runtime", "line 6: an attribute must have a name and a type"),
        ("runtime NUMERIC", "'runtime NUMERIC", "line 6: an attribute must have a name and a type"),
        ("@DATA\n", "", "line 9: a line before the rows must be @RELATION, @ATTRIBUTE or @DATA, got 'one,1,a"),
        ("algorithm STRING", "solver STRING", "must have an attribute algorithm, got instance_id, .*solver"),
        ("runstatus {", "state {", "must have an attribute runstatus"),
        ("runtime NUMERIC", "runtime STRING", "has no numeric attribute that measures performance"),
        ("one,1,a", "?,1,a", "line 10: instance_id must be there in every row, got none"),
    ],
)
def test_what_is_wrong_with_the_runs_is_named(write, old, new, message):
    assert old in RUNS
    with pytest.raises(InputError, match=message):
        Scenario.read(write(algorithm_runs=RUNS.replace(old, new, 1)))


def test_tables_without_rows_or_attributes(write):
    head = RUNS[: RUNS.index("@DATA")]
    with pytest.raises(InputError, match="line 9: @DATA must come before the rows, got the end of the file"):
        Scenario.read(write(algorithm_runs=head))
    with pytest.raises(InputError, match="contains no runs"):
        Scenario.read(write(algorithm_runs=head + "@DATA\n"))
    with pytest.raises(InputError, match="line 1: @DATA must follow the attributes, got none before it"):
        Scenario.read(write(algorithm_runs="@DATA\n1,2\n"))
    with pytest.raises(InputError, match=r"gone\.arff must be a file that can be read, got: No such file"):
        arff.read(write() / "gone.arff")


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (
            DESCRIPTION.replace("- runtime\nmax", "runtime\nmax"),
            r"description.txt, line 3: a line must be 'key: value'",
        ),
        (DESCRIPTION.replace("time: 60\n", "time: 60\n- x\n"), "line 9: a line must be"),
        (DESCRIPTION + " wrong: depth\n", "line 20: a line must be .* as deep as its neighbours, got 'wrong: depth'"),
        (DESCRIPTION.replace("60", "an hour"), "algorithm_cutoff_time is 'an hour'; use a number of seconds"),
    ],
)
def test_what_is_wrong_with_the_description_is_named(write, description, message):
    with pytest.raises(InputError, match=message):
        Scenario.read(write(description=description))


def test_arguments_that_do_not_fit(write):
    scenario = Scenario.read(write())
    with pytest.raises(InputError, match="k=3, but there are only 2 algorithms"):
        best_fixed_set(scenario.costs, 3)
    with pytest.raises(InputError, match="k is 0; use an integer of at least 1"):
        best_fixed_set(scenario.costs, 0)
    with pytest.raises(InputError, match="no feature step 'none'; it has cheap, dear"):
        Scenario.read(write(), steps=["none"])


# ----------------------------------------------------------------------------------------------------------- fixed sets


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_the_best_fixed_set_is_the_best_of_all(k):
    generator = np.random.default_rng(k)
    times = generator.exponential(50.0, (40, 7))
    scenario = make_scenario(np.where(times > 100.0, np.inf, times))
    means = {
        arms: math.fsum(min(scenario.costs[row, arm] for arm in arms) for row in range(40)) / 40
        for arms in itertools.combinations(range(7), k)
    }
    found = best_fixed_set(scenario.costs, k)
    assert found.exact
    assert found.arms == min(means, key=means.get)
    assert found.cost == pytest.approx(means[found.arms])


def test_too_many_sets_are_searched(monkeypatch):
    generator = np.random.default_rng(0)
    times = generator.exponential(50.0, (60, 12))
    scenario = make_scenario(np.where(times > 100.0, np.inf, times))
    exact = best_fixed_set(scenario.costs, 4)
    monkeypatch.setattr(baselines, "_MOST_SUBSETS", 10)
    found = best_fixed_set(scenario.costs, 4)
    assert not found.exact
    assert exact.cost <= found.cost <= 1.05 * exact.cost
    assert found.arms == tuple(sorted(set(found.arms)))


def test_exchange_mends_what_greed_has_spoilt(monkeypatch):
    half = np.array([[1.0, 99.0, 40.0], [1.0, 99.0, 40.0], [99.0, 1.0, 40.0], [99.0, 1.0, 40.0]])
    monkeypatch.setattr(baselines, "_MOST_SUBSETS", 0)
    found = best_fixed_set(half, 2)  # greed takes the last one first
    assert (found.arms, found.cost) == ((0, 1), 1.0)


# ---------------------------------------------------------------------------------------------- the published scenarios


def read_plainly(name):
    """Runs as (instance, algorithm, first measure, status), and the cutoff: line by line."""
    text = (ASLIB / name / "algorithm_runs.arff").read_text().splitlines()
    start = next(number for number, line in enumerate(text) if line.strip().lower() == "@data")
    lines = [line.strip() for line in text[start + 1 :]]
    rows = list(csv.reader(line for line in lines if line and not line.startswith("%")))
    description = (ASLIB / name / "description.txt").read_text().splitlines()
    cutoff = next(line for line in description if line.startswith("algorithm_cutoff_time"))
    return [(row[0], row[2], float(row[3]), row[-1]) for row in rows], float(cutoff.split(":")[1])


def cost_plainly(name, quality):
    """Cost of every instance and algorithm: PAR10, or the loss of a quality of which less is better."""
    runs, cutoff = read_plainly(name)
    costs = {}
    for instance, algorithm, value, status in runs:
        solved = status == "ok"
        if not quality:
            costs.setdefault(instance, {})[algorithm] = value if solved else 10 * cutoff
            continue
        ok = [other[2] for other in runs if other[0] == instance and other[3] == "ok"]
        spread = max(ok) - min(ok)
        loss = (value - min(ok)) / spread if spread else 0.0
        costs.setdefault(instance, {})[algorithm] = loss if solved else 1.0
    return costs


@needs_aslib
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_scenarios_agree_with_plain_loops(name):
    scenario = Scenario.read(ASLIB / name)
    costs = cost_plainly(name, scenario.quality)
    assert scenario.name == name
    assert set(scenario.instances) == set(costs)
    assert scenario.algorithms == list(dict.fromkeys(algorithm for row in costs.values() for algorithm in row))
    best = math.fsum(min(row.values()) for row in costs.values()) / len(costs)
    means = [math.fsum(row[name] for row in costs.values()) / len(costs) for name in scenario.algorithms]
    assert virtual_best(scenario.costs) == pytest.approx(best, rel=1e-12)
    assert single_best(scenario.costs) == pytest.approx(min(means), rel=1e-12)
    pairs = itertools.combinations(scenario.algorithms, 2)
    pair = min(math.fsum(min(row[a], row[b]) for row in costs.values()) for a, b in pairs) / len(costs)
    assert best_fixed_set(scenario.costs, 2).cost == pytest.approx(pair, rel=1e-12)
    winners = [scenario.winner(instance) for instance in range(len(scenario.instances))]
    for instance, winner in zip(scenario.instances, winners, strict=True):
        if winner is not None:
            assert costs[instance][scenario.algorithms[winner]] == min(costs[instance].values())


@needs_aslib
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_scenarios_hold_together(name):
    scenario = Scenario.read(ASLIB / name)
    shape = (len(scenario.instances), len(scenario.algorithms))
    assert scenario.times.shape == scenario.solved.shape == scenario.ranks.shape == scenario.performance.shape == shape
    assert np.isfinite(scenario.times).all()
    assert (scenario.times[~scenario.solved] == scenario.cutoff).all()
    assert ((scenario.times >= 0) & (scenario.times <= scenario.cutoff)).all()
    assert scenario.features.shape == (shape[0], len(scenario.feature_names))
    assert not np.isinf(scenario.features).any()
    assert not np.isnan(scenario.features).all(axis=0).any()
    assert scenario.feature_costs.shape == (shape[0],)
    assert np.isfinite(scenario.feature_costs).all()
    assert scenario.feature_costs.any() == (ASLIB / name / "feature_costs.arff").exists()
    default = Scenario.read(ASLIB / name, steps="default")
    assert 0 < len(default.feature_names) <= len(scenario.feature_names)
    assert (default.feature_costs <= scenario.feature_costs + 1e-9).all()


@needs_aslib
def test_a_published_scenario_with_features_of_algorithms():
    scenario = Scenario.read(ASLIB / "SAT11-RAND-ALGO")
    assert scenario.algorithm_features.shape == (9, 75)
    missing = np.isnan(scenario.algorithm_features).all(axis=1)
    assert [scenario.algorithms[place] for place in np.flatnonzero(missing)] == ["sattime2011_2011-03-02"]


@needs_aslib
def test_a_published_scenario_of_qualities():
    scenario = Scenario.read(ASLIB / "CSP-Minizinc-Obj-2016")
    assert (scenario.quality, scenario.maximise, len(scenario.algorithms)) == (True, False, 22)
    timed = Scenario.read(ASLIB / "CSP-Minizinc-Obj-2016", measure="time")
    assert (timed.quality, timed.cutoff) == (False, 1200.0)
