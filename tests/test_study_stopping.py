"""Studies that are interrupted or killed: what was finished is kept, and the rest gives the same numbers."""

import os
import signal
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from processes import drop_hooks
from studies import compute, read_contents

from preselect.cli.main import preselect
from preselect.errors import RunError
from preselect.study import Results, SyntheticPlan, SyntheticSetting

PLAN = SyntheticPlan(
    settings=(SyntheticSetting(12, 3, 2), SyntheticSetting(20, 4, 3)),
    policies=("cppl", "max-theta"),
    repetitions=60,
    horizon=100,
)
STUDY = ["study", "synthetic", "--scenario", "12,3,2", "--scenario", "20,4,3", "--policies", "cppl,max-theta"]
STUDY += ["--horizon", "100", "--reps", "60"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What an uninterrupted study gives; computed here, so that forked commands find everything compiled."""
    folder = tmp_path_factory.mktemp("whole")
    compute(folder, PLAN)
    return read_contents(folder)


def fork_command(arguments, log, *, warm):
    """Run the command in a child, which if warm has everything imported and compiled; return its process id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking while other threads run
        child = os.fork()
    if child:
        return child
    try:
        drop_hooks()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        if not warm:
            os.execv(sys.executable, [sys.executable, "-m", "preselect", *arguments])
        preselect(arguments)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code or 0)
    finally:
        os._exit(99)


def count_blocks(folder):
    return len(list((folder / "blocks").rglob("*[0-9].npz")))


def stop_after(blocks, stop, folder, log, workers):
    """Start the command, stop it when there are some blocks, and return its status and what it printed."""
    arguments = [*STUDY, "--workers", str(workers), "--out", str(folder)]
    child = fork_command(arguments, log, warm=workers == 1)  # a warm child would wait for our own pool of workers
    ended, status = 0, 0
    while not ended and count_blocks(folder) < blocks:
        time.sleep(0.002)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, stop)
        _, status = os.waitpid(child, 0)
    return status, log.read_text()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(("workers", "times"), [(1, 3), (2, 1)])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, whole, stop, workers, times):
    generator = np.random.default_rng(int(stop))
    folder = tmp_path / "stopped"
    for _ in range(times):
        enough = count_blocks(folder) + generator.integers(1, 12)
        status, printed = stop_after(enough, stop, folder, tmp_path / "printed", workers)
        kept = count_blocks(folder)
        assert 0 < kept < 48
        if stop == signal.SIGKILL:
            assert os.WTERMSIG(status) == signal.SIGKILL
        else:
            assert os.waitstatus_to_exitcode(status) == 130, printed
            assert f"interrupted: {kept} of 48 blocks are kept; the same command resumes" in printed
        assert "Traceback" not in printed
    compute(folder, PLAN)
    assert read_contents(folder) == whole


def test_a_killed_worker_loses_its_block_only(tmp_path, monkeypatch):
    (tmp_path / "deadly.py").write_text(
        "import os, preselect\n"
        "class Deadly(preselect.Random):\n"
        "    def select(self, X, k, **options):\n"
        "        if self.rounds == 20 and not os.path.exists('mercy'): os._exit(9)\n"
        "        return super().select(X, k, **options)\n"
    )
    monkeypatch.chdir(tmp_path)
    plan = replace(PLAN, policies=("cppl", "deadly:Deadly"), repetitions=20)
    with pytest.raises(RunError, match="a worker process died; finished blocks are kept, and the same command resumes"):
        compute(tmp_path / "out", plan, workers=2)
    (tmp_path / "mercy").touch()
    compute(tmp_path / "out", plan)
    assert Results.open(tmp_path / "out").find_pending(plan) == []
