import json
import secrets

import hypothesis
import pytest
from processes import find_marked, find_zombies, list_descriptors
from racers import LONG, TOKEN
from small_scenario import DESCRIPTION, FEATURES, RUNS

from preselect.errors import InputError
from preselect.race.supervision import LEVELS, Limits, Racer, Supervision

# Numbers are drawn alike in every run, and a first call may have to compile.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("repeatable")


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
    before = list_descriptors()
    yield value
    assert find_marked(value) == []
    assert find_zombies() == []
    assert list_descriptors() == before


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
