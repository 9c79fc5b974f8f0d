import fcntl
import gc
import json
import secrets
import signal
import tempfile
import threading
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import threadpoolctl
from browsers import chromium, open_page  # noqa: F401
from numba.core.dispatcher import Dispatcher
from postgres_server import postgres, postgres_server  # noqa: F401
from processes import find_marked, find_zombies, list_descriptors
from racers import LONG, TOKEN, Patient
from small_scenario import DESCRIPTION, FEATURES, RUNS

from preselect.cli import compile as compile_module
from preselect.errors import InputError
from preselect.race.supervision import LEVELS, Limits, Racer, Supervision

threadpoolctl.threadpool_limits(1, user_api="blas")  # as in the command: each verifies journals of the other

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background shell; processes that tests start inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Numbers are drawn alike in every run, and a first call may have to compile.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.register_profile("soak", derandomize=True, deadline=None, max_examples=1000)
hypothesis.settings.load_profile("repeatable")


def pytest_configure(config):
    """Let workers that need the same kernel compile it once: one does, the others wait and find it in the cache."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        config.locks = folder.name
        return
    compile_kernel, compiling = Dispatcher.compile, threading.local()

    def compile_alone(self, signature):
        if getattr(compiling, "a_kernel", False):  # what is compiled now is a helper of that kernel
            return compile_kernel(self, signature)
        with open(Path(config.workerinput["locks"], self.py_func.__qualname__), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            compiling.a_kernel = True
            try:
                return compile_kernel(self, signature)
            finally:
                compiling.a_kernel = False

    Dispatcher.compile = compile_alone


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["locks"] = node.config.locks


def pytest_sessionstart(session):
    """Compile in one worker while the others import the tests, which it then finds compiled to bytecode."""
    if _name_worker(session.config) == "gw1":
        _compile(compile_module._STEPS)


def pytest_collection_finish(session):
    """Compile in another worker, too, beginning with the last step. No test runs before all workers have got here."""
    gc.freeze()  # whoever collects garbage need not go through all modules and tests
    if _name_worker(session.config) == "gw0":
        _compile(reversed(compile_module._STEPS))


def _name_worker(config):
    return config.workerinput["workerid"] if hasattr(config, "workerinput") else None


def _compile(steps):
    for step in steps:
        compile_module._compile_step(step)


@pytest.fixture
def pool(tmp_path):
    """Writes a pool of arms that are shell scripts, and gives its path."""

    def write(arms, *, head="", features='from = "sat"', seconds=20, **more):
        tables = "".join(
            f'[arms.{name}]\ncommand = ["/bin/sh", "-c", {json.dumps(script)}, "{{instance}}"]\n{more.get(name, "")}\n'
            for name, script in arms.items()
        )
        path = tmp_path / "pool.toml"
        path.write_text(f"{head}\n[limits]\nseconds = {seconds}\n[features]\n{features}\n{tables}")
        return path

    return write


_unavailable = {}  # by level: why this machine does not allow it, None if it does


@pytest.fixture
def token(monkeypatch):
    """A mark in the environment. After the test no process with it lives, none is a zombie, no descriptor is open."""
    value = secrets.token_hex(8)
    monkeypatch.setenv(TOKEN, value)
    gc.collect()  # what earlier tests left to be collected may be closed at any moment
    gc.freeze()  # what is left need not be gone through again before the next test, which took 0.2 s
    before = list_descriptors()
    yield value
    assert find_marked(value) == []
    assert find_zombies() == []
    assert set(list_descriptors()) <= set(before)


@pytest.fixture(params=LEVELS)
def level(request, tmp_path):
    """Each level of containment that this machine allows."""
    if request.param not in _unavailable:
        _unavailable[request.param] = _probe(request.param, tmp_path)
    if _unavailable[request.param]:
        pytest.skip(_unavailable[request.param])
    return request.param


def _probe(level, folder):
    try:
        Supervision([Racer("probe", ("true",))], Limits(LONG), folder=folder / "probe", level=level).run()
    except InputError as error:
        return str(error)
    return None


@pytest.fixture
def supervise(tmp_path):
    """Runs racers in one race and returns its result."""

    def run(*racers, seconds=LONG, memory=None, output=64.0, **options):
        return Supervision(racers, Limits(seconds, memory, output), folder=tmp_path / "race", **options).run()

    return run


@pytest.fixture
def patient(tmp_path):
    return Patient(tmp_path)


@pytest.fixture
def write_scenario(tmp_path):
    """Writes a small ASlib scenario, some of its files replaced (None: left out), and returns its folder."""

    def write(**files):
        contents = {"description": DESCRIPTION, "algorithm_runs": RUNS, "feature_values": FEATURES} | files
        for name, text in contents.items():
            if text is not None:
                ending = "txt" if name in ("description", "readme") else "arff"
                (tmp_path / f"{name}.{ending}").write_bytes(text.encode())
        return tmp_path

    return write


@pytest.fixture
def runtime_table(tmp_path):
    """A table of 12 instances and 4 algorithms in the paper's form."""
    place = tmp_path / "table"
    place.mkdir()
    generator = np.random.default_rng(0)
    names = [f"i{i}" for i in range(12)]
    features, times = generator.random((12, 3)), generator.random((12, 4))
    lines = [",a,b,c", *(f"{name}," + ",".join(map(str, row)) for name, row in zip(names, features, strict=True))]
    (place / "features.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")  # in another order
    lines = ["\tA\tB\tC\tD", *(f"{name}\t" + "\t".join(map(str, row)) for name, row in zip(names, times, strict=True))]
    (place / "cpu_times.tsv").write_text("\n".join(lines) + "\n")
    (place / "parameters.json").write_text(json.dumps(generator.random((4, 4)).tolist()))
    return place


@pytest.fixture
def toy_scenario(tmp_path):
    """An ASlib scenario of 8 instances: algorithm a solves the first half, b the second, c everything slowly."""
    place = tmp_path / "TOY"
    place.mkdir()
    (place / "description.txt").write_text(
        "scenario_id: TOY\nperformance_measures: runtime\nmaximize: false\nperformance_type: runtime\n"
        "algorithm_cutoff_time: 100\nfeatures_deterministic: size\nfeature_steps:\n  all:\n    provides:\n    - size\n"
        "default_steps:\n- all\n"
    )
    runs, features, costs = [], [], []
    for i in range(8):
        runs += [f"i{i},1,a,{1 + i if i < 4 else 100},{'ok' if i < 4 else 'timeout'}"]
        runs += [f"i{i},1,b,{2 if i >= 4 else 100},{'ok' if i >= 4 else 'timeout'}", f"i{i},1,c,50,ok"]
        features.append(f"i{i},1,{i}")
        costs.append(f"i{i},1,{10 if i < 7 else 99}")
    head = "@RELATION x\n@ATTRIBUTE instance_id STRING\n@ATTRIBUTE repetition NUMERIC\n"
    (place / "algorithm_runs.arff").write_text(
        head
        + "@ATTRIBUTE algorithm STRING\n@ATTRIBUTE runtime NUMERIC\n@ATTRIBUTE runstatus {ok, timeout}\n@DATA\n"
        + "\n".join(runs)
    )
    (place / "feature_values.arff").write_text(head + "@ATTRIBUTE size NUMERIC\n@DATA\n" + "\n".join(features))
    (place / "feature_costs.arff").write_text(head + "@ATTRIBUTE all NUMERIC\n@DATA\n" + "\n".join(costs))
    return place
