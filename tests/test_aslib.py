"""Scenarios of ASlib: every quirk in a small folder of its own."""

import numpy as np
import pytest
from small_scenario import COSTS, DESCRIPTION, FEATURES, RUNS, make_runs

from preselect import InputError
from preselect.environments import Scenario, best_fixed_set, par10, single_best, virtual_best


def test_a_scenario_is_read(write_scenario):
    scenario = Scenario.read(write_scenario(feature_costs=COSTS))
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


def test_who_wins_a_race(write_scenario):
    scenario = Scenario.read(write_scenario())
    assert [scenario.winner(instance) for instance in range(3)] == [0, None, 1]
    assert scenario.winner(0, among=[1]) is None
    assert scenario.winner(2, among=(0,)) == 0
    assert scenario.order(2).tolist() == [1, 0]
    assert scenario.order(0, among=np.array([1, 0])).tolist() == [0]


def test_penalties_and_baselines(write_scenario):
    scenario = Scenario.read(write_scenario())
    assert scenario.costs.tolist() == [[3.5, 600.0], [600.0, 600.0], [20.0, 10.0]]
    assert virtual_best(scenario.costs) == pytest.approx((3.5 + 600 + 10) / 3)
    assert single_best(scenario.costs) == pytest.approx((3.5 + 600 + 20) / 3)
    assert best_fixed_set(scenario.costs, 1).arms == (0,)
    both = best_fixed_set(scenario.costs, 2)
    assert (both.arms, both.exact, both.cost) == ((0, 1), True, pytest.approx(virtual_best(scenario.costs)))
    assert par10([[1.0, 5.0]], [[True, False]], 5.0).tolist() == [[1.0, 50.0]]


def test_costs_file_absent(write_scenario):
    assert Scenario.read(write_scenario()).feature_costs.tolist() == [0.0, 0.0, 0.0]


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
def test_feature_steps(write_scenario, steps, names, costs):
    scenario = Scenario.read(write_scenario(feature_costs=COSTS), steps=steps)
    assert scenario.feature_names == names
    assert scenario.features.shape == (3, len(names))
    assert scenario.feature_costs.tolist() == costs


def test_a_column_called_par10_goes_by_status(write_scenario):
    runs = RUNS.replace("@ATTRIBUTE runtime", "@ATTRIBUTE PAR10").replace(",60,timeout", ",600,timeout")
    scenario = Scenario.read(
        write_scenario(algorithm_runs=runs, description=DESCRIPTION.replace("- runtime", "- PAR10", 1))
    )
    assert scenario.times.max() == 60.0
    assert scenario.costs.max() == 600.0
    assert scenario.performance[1, 0] == 600.0


def test_an_ok_beyond_the_cutoff_is_solved_at_the_cutoff(write_scenario):
    scenario = Scenario.read(write_scenario(algorithm_runs=RUNS.replace("three,1,b,10,ok", "three,1,b,60.3,ok")))
    assert scenario.times[2, 1] == 60.0
    assert scenario.solved[2, 1]


def test_an_ok_without_a_time_and_a_run_that_is_not_there_are_not_solved(write_scenario):
    runs = RUNS.replace("three,1,b,10,ok", "three,1,b,?,ok").replace("one,1,b,60,timeout\n", "")
    scenario = Scenario.read(write_scenario(algorithm_runs=runs))
    assert scenario.times.tolist() == [[3.5, 60.0], [60.0, 60.0], [20.0, 60.0]]
    assert scenario.solved.sum() == 2
    assert np.isnan(scenario.performance[0, 1])


@pytest.mark.parametrize("cutoff", ["?", "'?'", '"?"', "0", "", "null"])
def test_without_a_cutoff_the_longest_time_is_taken(write_scenario, cutoff):
    scenario = Scenario.read(
        write_scenario(description=DESCRIPTION.replace("cutoff_time: 60", f"cutoff_time: {cutoff}"))
    )
    assert scenario.cutoff == 60.0


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
def test_milliseconds(write_scenario, changes, milliseconds, unit):
    scenario = Scenario.read(write_scenario(feature_costs=COSTS, **changes), milliseconds=milliseconds)
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


def test_qualities_become_a_race_that_the_best_wins(write_scenario):
    description = describe("accuracy, time", "solution_quality, runtime", "true, false")
    scenario = Scenario.read(
        write_scenario(description=description, algorithm_runs=make_runs(QUALITIES, ("accuracy", "time")))
    )
    assert (scenario.quality, scenario.maximise, scenario.cutoff) == (True, True, 1.0)
    assert scenario.performance[0].tolist() == [0.9, 0.9, 0.5, 1.0]
    assert scenario.times.tolist() == [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    assert scenario.order(0).tolist() == [
        1,
        0,
        2,
    ]  # the time decides between equals, and the one that crashed is left out
    assert scenario.order(1, among=[1, 0]).tolist() == [1, 0]  # equal in everything: as given
    assert scenario.ranks[0].tolist() == [1, 0, 2, 3]
    assert scenario.ranks[1, 0] == scenario.ranks[1, 1]
    assert scenario.winner(2) is None
    assert (scenario.costs == scenario.times).all()
    assert virtual_best(scenario.costs) == pytest.approx(1 / 3)


def test_less_may_be_the_better_quality(write_scenario):
    description = describe("error, time", "solution_quality, runtime", "false, false", "1200")
    runs = make_runs(QUALITIES, ("error", "time"))
    scenario = Scenario.read(write_scenario(description=description, algorithm_runs=runs))
    assert (scenario.quality, scenario.maximise, scenario.winner(0)) == (True, False, 2)
    assert scenario.times[0].tolist() == [1.0, 1.0, 0.0, 1.0]


def test_a_further_measure_may_be_put_first(write_scenario):
    description = describe("error, time", "solution_quality, runtime", "false, false", "50")
    runs = make_runs(QUALITIES, ("error", "time"))
    scenario = Scenario.read(write_scenario(description=description, algorithm_runs=runs), measure="TIME")
    assert (scenario.quality, scenario.cutoff) == (False, 50.0)
    assert scenario.times[0].tolist() == [5.0, 3.0, 1.0, 50.0]
    with pytest.raises(InputError, match="no performance measure 'speed'; it has runtime"):
        Scenario.read(write_scenario(), measure="speed")


def test_two_measures_of_which_the_first_is_a_time(write_scenario):
    description = describe("time, error", "runtime, solution_quality", "false, false", "60")
    runs = make_runs([(*row[:3], row[4], row[3], row[5]) for row in QUALITIES], ("time", "error"))
    scenario = Scenario.read(write_scenario(description=description, algorithm_runs=runs))
    assert (scenario.quality, scenario.winner(0), scenario.times[0].tolist()) == (False, 2, [5.0, 3.0, 1.0, 60.0])


def test_of_repetitions_the_median_run_is_taken(write_scenario):
    rows = [("one", 1, "a", 9, "ok"), ("one", 2, "a", 1, "ok"), ("one", 3, "a", 2, "ok")]
    rows += [("one", 1, "b", 60, "timeout"), ("one", 2, "b", 60, "timeout"), ("one", 3, "b", 1, "ok")]
    rows += [("one", 1, "c", 60, "timeout"), ("one", 2, "c", 8, "ok"), ("one", 1, "d", 4, "ok")]
    features = FEATURES.replace("one,1,1,10", "one,1,1,10\none,2,3,?")
    costs = COSTS.replace("one,1,0.5,2", "one,1,0.5,2\none,2,1.5,2")
    scenario = Scenario.read(
        write_scenario(algorithm_runs=make_runs(rows), feature_values=features, feature_costs=costs)
    )
    assert scenario.times.tolist() == [[2.0, 60.0, 8.0, 4.0]]
    assert scenario.solved.tolist() == [[True, False, True, True]]
    assert scenario.features.tolist() == [[2.0, 10.0]]
    assert scenario.feature_costs.tolist() == [3.0]


def test_instances_absent_from_a_file(write_scenario):
    features = FEATURES.replace("two,1,2,?\n", "elsewhere,1,4,4\n").replace("three,1,3,30", "three,1,?,?")
    scenario = Scenario.read(write_scenario(feature_values=features))
    assert scenario.instances == ["one", "two", "three"]
    assert np.isnan(scenario.features[1:]).all()
    assert scenario.features[0].tolist() == [1.0, 10.0]


def test_algorithms_with_features_and_names_as_r_changes_them(write_scenario):
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
    scenario = Scenario.read(write_scenario(algorithm_runs=runs, algorithm_feature_values=algorithm_features))
    assert scenario.algorithms == ["2-opt+", "plain"]
    np.testing.assert_array_equal(scenario.algorithm_features, [[5.0], [np.nan]])
    assert scenario.algorithm_feature_names == ["lines"]


def test_names_as_they_are_come_before_changed_ones(write_scenario):
    runs = RUNS.replace(",a,", ",x-y,").replace(",b,", ",x.y,")
    features = "@ATTRIBUTE algorithm STRING\n@ATTRIBUTE n NUMERIC\n@DATA\nx.y,2\nx-y,1\n"
    scenario = Scenario.read(write_scenario(algorithm_runs=runs, algorithm_feature_values=features))
    assert scenario.algorithm_features.tolist() == [[1.0], [2.0]]


def test_features_that_are_not_numbers(write_scenario):
    features = FEATURES.replace("size NUMERIC", "size {small, large}").replace("depth NUMERIC", "depth STRING")
    features = features.replace("1,1,10", "1,large,x").replace("1,2,?", "1,small,y").replace("1,3,30", "1,?,z")
    scenario = Scenario.read(write_scenario(feature_values=features))
    assert scenario.feature_names == ["size"]
    np.testing.assert_array_equal(scenario.features, [[1.0], [0.0], [np.nan]])


def test_an_infinite_feature_is_missing(write_scenario):
    scenario = Scenario.read(write_scenario(feature_values=FEATURES.replace("one,1,1,10", "one,1,inf,10")))
    assert np.isnan(scenario.features[0, 0])


def test_a_feature_step_that_does_not_exist(write_scenario):
    with pytest.raises(InputError, match="no feature step 'none'; it has cheap, dear"):
        Scenario.read(write_scenario(), steps=["none"])
