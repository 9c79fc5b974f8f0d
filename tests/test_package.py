"""The package as a whole: its public names, what importing it costs, and who imports whom."""

import json
import subprocess
import sys
from pathlib import Path

import preselect

ROOT = Path(__file__).parents[1]


def run(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_public_names_are_sorted_and_there():
    assert (
        sorted(preselect.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)) == preselect.__all__
    )
    assert all(hasattr(preselect, name) for name in preselect.__all__)


def test_importing_brings_numpy_and_numba_and_nothing_else():
    modules = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    ours = json.loads(run("import preselect; " + modules))
    theirs = json.loads(run("import numba, numpy; " + modules))
    extra = {name for name in set(ours) - set(theirs) if name.split(".")[0] not in sys.stdlib_module_names}
    assert {name.split(".")[0] for name in extra} <= {"preselect", "numpy", "numba"}


ROUNDS = """
import numpy as np, preselect
from preselect.kernels import algebra, averaging, choosing, history, learning, likelihood, mm
modules = (algebra, averaging, choosing, history, learning, likelihood, mm)
for make in (preselect.CPPL, preselect.MaxTheta, preselect.EpsilonGreedy, preselect.MM):
    policy = make(d=4, seed=0)
    X = np.eye(5, 4)
    for X in (np.ones((5, 4)), X, X.astype(np.float32), preselect.Kronecker()(X[:, :2], [1, 2])):
        decision = policy.select(X, 2)
        policy.learn(decision, preselect.Winner(decision.arms[0]))
        policy.learn(decision, preselect.Ranking(decision.arms))
compiled = [value for module in modules for value in vars(module).values() if hasattr(value, "stats")]
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in compiled),
      sum(sum(kernel.stats.cache_hits.values()) for kernel in compiled))
"""


def test_a_second_process_compiles_nothing():
    run(ROUNDS)
    misses, hits = map(int, run(ROUNDS).split())
    assert misses == 0
    assert hits > 0


def test_imports_point_downwards():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
