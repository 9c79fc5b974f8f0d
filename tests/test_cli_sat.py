"""`preselect sat` and the studies on run times, as they are typed."""

import csv
import io
import json

import pytest
from test_cli import preselect

from preselect.sat.features import FEATURE_NAMES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sat")
    preselect(
        "sat", "generate", "--count", 3, "--vertices", "20:30", "--ratio=-2", "--seed", 4, "--out", "cnf", cwd=place
    )
    return place


def files(folder):
    return sorted((folder / "cnf").iterdir())


def test_instances_are_generated_again_alike(folder, tmp_path):
    preselect("sat", "generate", "--count", 3, "--vertices", "20:30", "--ratio=-2", "--seed", 4, "--out", tmp_path)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == [path.read_bytes() for path in files(folder)]
    assert (
        "vertices must be an integer or two as in FROM:TO, got 'x'"
        in preselect("sat", "generate", "--vertices", "x", expect=1).stderr
    )


def test_features_as_csv_and_json(folder):
    rows = list(csv.DictReader(io.StringIO(preselect("sat", "features", *files(folder), "--eliminate").stdout)))
    assert [row["instance"] for row in rows] == [path.name for path in files(folder)]
    assert list(rows[0])[1:] == list(FEATURE_NAMES)
    (row,) = json.loads(
        preselect("sat", "features", files(folder)[0], "--no-clause-graph", "--times", "--format", "json").stdout
    )
    assert not any(name.startswith(("CG", "cluster")) for name in row)
    assert "seconds clauses" in row
    assert "line 1" in preselect("sat", "features", __file__, expect=1).stderr


def test_solving_answers_as_sat_solvers_do(folder):
    found = preselect("sat", "solve", files(folder)[0], "--seed", 1, expect=10).stdout
    assert "s SATISFIABLE" in found
    assert found.rstrip().endswith(" 0")
    given_up = preselect("sat", "solve", files(folder)[0], "--steps", 0).stdout
    assert "s UNKNOWN" in given_up


def test_a_table_is_measured_and_studied(folder):
    table = folder / "table"
    table.mkdir()
    said = preselect("sat", "runtimes", *files(folder), "--out", table / "runs.csv", "--cutoff", 0.05, "--workers", 1)
    assert "60 runs" in said.stderr
    assert "60 runs" in preselect("sat", "runtimes", *files(folder), "--out", table / "runs.csv", "--workers", 1).stderr
    (table / "features.csv").write_text(preselect("sat", "features", *files(folder)).stdout)
    out = folder / "study"
    told = preselect("study", "saps", "--data", table, "--k", "2", "--reps", 1, "--policies", "newton,random",
                     "--workers", 1, "--out", out)  # fmt: skip
    assert "k = 2" in told.stdout
    assert "best fixed set" in (out / "report.html").read_text()
    assert "k must be from 1 to 19" in preselect("study", "saps", "--data", table, "--k", 20, expect=1).stderr
    assert "description.txt" in preselect("study", "aslib", table, expect=1).stderr
