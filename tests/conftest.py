import gc
import json
import math
import secrets
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import threadpoolctl
from browsers import chromium, open_page  # noqa: F401
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
    """Make a folder in which workers say what they compile, each step by a file of its name."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        config.claims = folder.name


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["claims"] = node.config.claims


def pytest_sessionstart(session):
    """Share the work of compiling among the workers, so that no two compile the same.

    One begins with the first policy while the others import the tests, and hence finds these compiled to bytecode. The
    others begin with the last.
    """
    if _number_worker(session.config) == 1:
        _compile(compile_module._STEPS, session.config)


def pytest_collection_finish(session):
    gc.freeze()  # whoever collects garbage need not go through all modules and tests
    if _number_worker(session.config) in (0, 2):
        _compile(reversed(compile_module._STEPS), session.config)


def _number_worker(config):
    return int(config.workerinput["workerid"].removeprefix("gw")) if hasattr(config, "workerinput") else math.nan


def _compile(steps, config):
    for step in steps:
        with suppress(FileExistsError):  # another worker compiles it
            Path(config.workerinput["claims"], step).touch(exist_ok=False)
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
