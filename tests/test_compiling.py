"""The cache of compiled functions: never stale, and never a reason to fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from preselect.cli import compile as compile_module
from preselect.cli.main import preselect as command

PACKAGE = Path(__file__).parents[1] / "src" / "preselect"

# Prints a product that a helper in another file computes, then how often it was compiled, loaded, and warned.
CODE = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np, preselect
    from preselect.kernels import likelihood
    u = likelihood.utilities(np.array([[2.0, 3.0]]), np.array([10.0, 1.0]))
    likelihood.stage_probabilities(u, 1)
stats = likelihood.utilities.stats, likelihood.stage_probabilities.stats
misses, hits = (sum(sum(getattr(one, name).values()) for one in stats) for name in ("cache_misses", "cache_hits"))
print(u[0], misses, hits, len(caught))
assert all("NUMBA_CACHE_DIR" in str(warning.message) for warning in caught), [str(one.message) for one in caught]
"""


def run(cache, source=PACKAGE.parent, before="", code=CODE, **environment):
    """Run the code in a process of its own, after shell commands that may mount things for it alone."""
    home = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "PYTHONDONTWRITEBYTECODE": "1"}
    shell = f'{before}\nexec "$0" -c "$1"'
    unshare = ["unshare", "--mount"] if before else []
    result = subprocess.run(
        [*unshare, "sh", "-ec", shell, sys.executable, code],
        env={**os.environ, **home, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(source), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def mounting_is_possible():
    try:
        probe = ["unshare", "--mount", "sh", "-ec", "mount -t tmpfs -o size=4k none /mnt"]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_mounts = pytest.mark.skipif(not mounting_is_possible(), reason="needs root and mount namespaces")


@pytest.fixture(scope="module")
def full_cache(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    assert run(cache) == ["23.0", "2", "0", "0"]
    assert run(cache) == ["23.0", "0", "2", "0"]
    return cache


@pytest.fixture
def cache(full_cache, tmp_path):
    return shutil.copytree(full_cache, tmp_path / "cache")


def damage(cache, pattern, change):
    files = list(cache.rglob(pattern))
    assert files
    for file in files:
        file.write_bytes(change(file.read_bytes()))


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        pytest.param(lambda content: content[: len(content) // 2], marks=pytest.mark.soak),
        pytest.param(lambda _: b"garbage" * 100, marks=pytest.mark.soak),
        pytest.param(
            lambda content: content[: len(content) // 2] + b"\xff\xff\xff\xff" + content[len(content) // 2 + 4 :],
            marks=pytest.mark.soak,
        ),
    ],
    ids=["empty", "truncated", "garbage", "overwritten"],
)
def test_a_damaged_cache_is_replaced(cache, change):
    damage(cache, "*utilities*.nbi", change)
    damage(cache, "*stage_probabilities*.nbc", change)
    assert run(cache) in (["23.0", "2", "0", "0"], ["23.0", "1", "1", "0"])  # four bytes of an index may not matter
    assert run(cache) == ["23.0", "0", "2", "0"]


def test_a_change_in_a_helper_compiles_its_callers_again(tmp_path):
    source, cache = tmp_path / "source", tmp_path / "cache"
    shutil.copytree(PACKAGE, source / "preselect", ignore=shutil.ignore_patterns("__pycache__", "data"))
    assert run(cache, source) == ["23.0", "2", "0", "0"]
    helpers = source / "preselect" / "kernels" / "plackett_luce.py"
    text = helpers.read_text()
    assert text.count("total = 0.0\n    for j in range(y.shape[0])") == 1
    helpers.write_text(text.replace("total = 0.0\n    for j", "total = 9.0\n    for j"))
    assert run(cache, source) == ["32.0", "2", "0", "0"]


def test_a_folder_that_cannot_be_made_is_passed_over(tmp_path):
    source = shutil.copytree(PACKAGE, tmp_path / "preselect", ignore=shutil.ignore_patterns("__pycache__", "data"))
    assert run("/proc/none", source.parent) == ["23.0", "2", "0", "0"]
    assert run("/proc/none", source.parent) == ["23.0", "0", "2", "0"]


READ_ONLY = 'mount --bind "{0}" "{0}"; mount -o remount,bind,ro "{0}"\n'


@needs_mounts
def test_a_read_only_installation_works_without_a_cache_and_says_so_once(tmp_path):
    source = shutil.copytree(PACKAGE, tmp_path / "preselect", ignore=shutil.ignore_patterns("__pycache__", "data"))
    before = READ_ONLY.format(source)
    assert run("/proc/none", source.parent, before) == ["23.0", "2", "0", "1"]


@needs_mounts
@pytest.mark.parametrize("home", ["/proc/none", "writable"])
def test_a_read_only_cache_is_read_wherever_else_could_be_written(cache, tmp_path, home):
    before = READ_ONLY.format(cache) + READ_ONLY.format(PACKAGE)
    homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), str(tmp_path / home))
    assert run(cache, before=before, **homes) == ["23.0", "0", "2", "0"]


def test_without_compiling_everything_still_works():
    code = """
import numpy as np, preselect
policy = preselect.Newton(d=2, seed=0)
decision = policy.select(np.eye(3, 2), 2)
policy.learn(decision, preselect.Winner(decision.arms[0]))
print(policy.observations)
"""
    assert run("/proc/none", code=code, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore") == ["1"]


@needs_mounts
@pytest.mark.parametrize("size", ["4k", "20k"])
def test_a_full_disk_is_no_reason_to_fail(tmp_path, size):
    before = f'mount -t tmpfs -o size={size} none "{tmp_path}"'
    assert run(tmp_path, before=before) == ["23.0", "2", "0", "1"]


def test_compile_says_what_it_did(monkeypatch):
    before = compile_module._count_compiled()
    monkeypatch.setattr(compile_module, "_count_compiled", lambda: before)
    result = CliRunner().invoke(command, ["compile"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("nothing had to be compiled; all functions are in /")
    assert compile_module._summarise(3, 2.0).startswith("compiled 3 functions in 2 s; they are in /")
    monkeypatch.setattr(compile_module, "_list_folders", list)
    monkeypatch.setattr(compile_module, "_play", lambda _: None)
    assert "set NUMBA_CACHE_DIR" in CliRunner().invoke(command, ["compile"]).stderr
