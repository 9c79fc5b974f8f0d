"""The tour of the code names what a run of each walk visits, in the order of the run."""

import json

import numpy as np
import pytest
from commands import preselect
from small_scenario import DESCRIPTION, FEATURES, RUNS
from tours import COUNTS, SHARED, SOURCES, WALKS, Visits, list_functions, list_others

import preselect as library

ROUNDS = 20  # enough for a policy to be fitted again to all that it has learnt
RIGHT = "printf 's SATISFIABLE\\nv 1 2 0\\n'; exit 10"

# Each run prepares what it needs up to the first `yield`; what comes then is watched.


def play(_):
    X = np.random.default_rng(0).random((6, 4))
    yield
    policy = library.Newton(d=4, seed=0)
    for _ in range(ROUNDS):
        decision = policy.select(X, 2)
        policy.learn(decision, library.Winner(int(decision.arms[0])))


def play_by_name(_):
    preselector = library.Preselector({"a": {"size": 1}, "b": {"size": 2}, "c": {"size": 3}}, ["hour"], seed=0)
    yield
    for hour in range(ROUNDS):
        decision = preselector.select({"hour": hour}, k=2)
        preselector.learn(decision, winner=decision.names[0])


def study_synthetic(folder):
    options = ("--scenario", "8,3,2", "--horizon", ROUNDS, "--reps", 1, "--policies", "newton", "--workers", 1)
    yield
    preselect("study", "synthetic", *options, "--out", folder / "out")


def race(folder):
    commands = {"quick": ["sh", "-c", RIGHT, "{instance}"], "slow": ["sh", "-c", "sleep 60", "{instance}"]}
    arms = "".join(f"[arms.{name}]\ncommand = {json.dumps(command)}\n" for name, command in commands.items())
    (folder / "pool.toml").write_text(f'k = 2\n[features]\nfrom = "sat"\n{arms}')
    (folder / "a.cnf").write_text("p cnf 2 2\n1 2 0\n-1 2 0\n")
    yield
    preselect("race", folder / "pool.toml", folder / "a.cnf", expect=10)


def study_aslib(folder):
    files = {"description.txt": DESCRIPTION, "algorithm_runs.arff": RUNS, "feature_values.arff": FEATURES}
    for name, text in files.items():
        (folder / name).write_text(text)
    options = ("--k", 1, "--reps", 1, "--policies", "newton", "--workers", 1)
    yield
    preselect("study", "aslib", folder, *options, "--out", folder / "out")


RUNS_OF = {1: play, 2: play_by_name, 3: study_synthetic, 4: race, 5: study_aslib}


@pytest.fixture
def watch(monkeypatch, tmp_path):
    """Runs a walk, and returns what it visits. Figures are not rendered: that takes long, in code that is not ours."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)

    def run(number):
        visits, steps = Visits(monkeypatch), RUNS_OF[number](tmp_path)
        next(steps)
        with visits.watch():
            next(steps, None)
        return visits

    return run


def test_the_page_names_what_there_is():
    assert {number: len(walk.stops) for number, walk in WALKS.items()} == COUNTS
    assert COUNTS.keys() == RUNS_OF.keys()
    for walk in WALKS.values():
        assert len(set(walk.files)) == len(walk.files)
        assert all((SOURCES / file).is_file() for file in (*walk.files, *SHARED))
        for stop in walk.stops:
            assert set(stop.functions) <= list_functions(stop.file)


@pytest.mark.parametrize("number", WALKS)
def test_a_walk_goes_where_the_code_goes(number, watch):
    walk, visits = WALKS[number], watch(number)
    elsewhere = {stop.file for stop in walk.stops if stop.is_elsewhere}
    assert visits.files - {*walk.files, *SHARED, *list_others(number)} == set()
    assert visits.files & elsewhere == set()
    assert {file for file in walk.details if not file.startswith("kernels/")} - visits.files == set()
    stops = [[(stop.file, name) for name in stop.functions] for stop in walk.stops if not stop.is_elsewhere]
    assert [one for stop in stops for one in stop if one not in visits.first] == []
    # The place of a file is that of the first function named in it: others are called earlier, to check an option, say.
    assert stops == [sorted(stop, key=visits.first.get) for stop in stops]
    assert stops == sorted(stops, key=lambda stop: visits.first[stop[0]])
