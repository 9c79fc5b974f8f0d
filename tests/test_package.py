"""The package as a whole: its public names, what importing it costs, and who imports whom."""

import enum
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

import preselect
from preselect import PreselectError, errors

ROOT = Path(__file__).parents[1]


def run(code):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def public_packages():
    """The packages that say what is public in them."""
    names = [module.name for module in pkgutil.iter_modules(preselect.__path__, "preselect.") if module.ispkg]
    packages = [preselect, *map(importlib.import_module, names)]
    return [package for package in packages if hasattr(package, "__all__")]


@pytest.mark.parametrize("package", public_packages(), ids=lambda package: package.__name__)
def test_what_is_public_is_listed_and_nothing_else(package):
    """Everything without an underscore is in `__all__`, or is one of the package's own modules."""
    names = {name for name in vars(package) if not name.startswith("_")}
    modules = {name for name in names if getattr(vars(package)[name], "__name__", "") == f"{package.__name__}.{name}"}
    assert names - modules - set(package.__all__) == set()
    assert set(package.__all__) - names == set()
    assert sorted(package.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)) == package.__all__


@pytest.mark.parametrize(
    "package",
    [
        "preselect",
        "preselect.environments",
        "preselect.model",
        "preselect.client",
        "preselect.race",
        "preselect.sat",
        "preselect.serve",
        "preselect.store",
        "preselect.study",
        "preselect.testing",
    ],
)
def test_every_parameter_is_described(package):
    public = importlib.import_module(package)
    missing = []
    for name in public.__all__:
        value = getattr(public, name)
        exempt = inspect.isclass(value) and issubclass(value, (Exception, enum.Enum, Protocol))
        if callable(value) and not exempt:
            text = inspect.getdoc(value)
            parameters = [parameter.lstrip("*") for parameter in inspect.signature(value).parameters]
            missing += [
                (name, one) for one in parameters if not re.search(rf"^[\w, *]*\b{one}\b.* : ", text, re.MULTILINE)
            ]
    assert missing == []


def test_there_is_one_tree_of_exceptions_and_it_is_drawn():
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    assert all(issubclass(error, PreselectError) for error in found)
    assert re.findall(r"^ +(?:│ +)?(?:[├└]── )?(\w+Error)\b", errors.__doc__, re.MULTILINE) == [
        error.__name__ for error in found
    ]
    assert issubclass(preselect.InputError, ValueError)
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py") if path.name != "errors.py"]
    elsewhere = re.findall(r"^class (\w+)\(.*(?:Error|Exception)\b", "\n".join(sources), re.MULTILINE)
    assert elsewhere == ["ClientGoneError"]


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

FEW_AND_MANY_ARMS = """
import numpy as np, preselect
from preselect.kernels import choosing, pruning
policy = preselect.Newton(d=2, mean=[1.0, 2.0], seed=0)
for n in (16, 17):
    policy.select(np.random.default_rng(0).random((n, 2)), 3)
    print(len(choosing.choose.overloads), len(pruning.set_apart.overloads))
"""


def test_a_second_process_compiles_nothing():
    run(ROUNDS)
    misses, hits = map(int, run(ROUNDS).split())
    assert misses == 0
    assert hits > 0


def test_bounds_for_many_arms_are_not_compiled_for_few():
    assert run(FEW_AND_MANY_ARMS).split("\n")[:2] == ["1 0", "1 1"]


def test_imports_point_downwards():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
