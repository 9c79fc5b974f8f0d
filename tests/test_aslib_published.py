"""The published ASlib scenarios, where they are at hand, against plain loops."""

import csv
import itertools
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from preselect.environments import Scenario, best_fixed_set, single_best, virtual_best

ASLIB = Path(__file__).parents[2] / "shared" / "data" / "aslib"
PUBLISHED = sorted(path.name for path in ASLIB.iterdir()) if ASLIB.is_dir() else ["none"]
needs_aslib = pytest.mark.skipif(not ASLIB.is_dir(), reason="no ASlib scenarios in ../shared/data/aslib")


@cache
def read_scenario(name):
    return Scenario.read(ASLIB / name)


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
    costs, qualities = {}, {}
    for instance, _, value, status in runs:
        qualities.setdefault(instance, []).extend([value] if status == "ok" else [])
    for instance, algorithm, value, status in runs:
        solved = status == "ok"
        if not quality:
            costs.setdefault(instance, {})[algorithm] = value if solved else 10 * cutoff
            continue
        ok = qualities[instance]
        spread = max(ok) - min(ok)
        loss = (value - min(ok)) / spread if spread else 0.0
        costs.setdefault(instance, {})[algorithm] = loss if solved else 1.0
    return costs


@needs_aslib
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_scenarios_agree_with_plain_loops(name):
    scenario = read_scenario(name)
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
    scenario = read_scenario(name)
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
    scenario = read_scenario("SAT11-RAND-ALGO")
    assert scenario.algorithm_features.shape == (9, 75)
    missing = np.isnan(scenario.algorithm_features).all(axis=1)
    assert [scenario.algorithms[place] for place in np.flatnonzero(missing)] == ["sattime2011_2011-03-02"]


@needs_aslib
def test_a_published_scenario_of_qualities():
    scenario = read_scenario("CSP-Minizinc-Obj-2016")
    assert (scenario.quality, scenario.maximise, len(scenario.algorithms)) == (True, False, 22)
    timed = Scenario.read(ASLIB / "CSP-Minizinc-Obj-2016", measure="time")
    assert (timed.quality, timed.cutoff) == (False, 1200.0)
