"""Studies: the same results whatever happens, and nothing lost."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from preselect import InputError, PreselectError, state
from preselect.errors import ResultsError, RunError
from preselect.study.figures import write_figures
from preselect.study.plan import checkpoints
from preselect.study.report import write_report
from preselect.study.results import Results
from preselect.study.runner import run
from preselect.study.synthetic import SyntheticPlan, SyntheticSetting

SMALL = SyntheticPlan(
    settings=(SyntheticSetting(8, 3, 2), SyntheticSetting(10, 4, 3)),
    policies=("cppl", "epsilon-greedy", "mm"),
    repetitions=7,
    horizon=120,
)


def computed(folder, plan=SMALL, **options):
    results = Results.create(folder, plan)
    run(results, plan, **{"workers": 1, **options})
    return results


def contents(folder):
    """What must be the same: all curves, and the tables but for the timing."""
    curves = state.read(folder / "curves.npz").arrays
    return {name: values.tolist() for name, values in curves.items()}, (folder / "summary.csv").read_text(), (
        folder / "paired.csv"
    ).read_text()  # fmt: skip


def test_one_worker_two_workers_and_a_cluster_give_the_same(tmp_path):
    distributed = pytest.importorskip("distributed")
    computed(tmp_path / "one")
    computed(tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        computed(tmp_path / "cluster", cluster=cluster.scheduler_address)
    assert contents(tmp_path / "one") == contents(tmp_path / "cluster")


def test_policies_meet_the_same_rounds(tmp_path):
    same = computed(tmp_path, replace(SMALL, policies=("cppl(omega=0)", "max-theta"), settings=SMALL.settings[:1]))
    curves = list(same.load("best_arm").values())
    assert np.array_equal(curves[0], curves[1])


def test_what_is_there_is_not_computed_again(tmp_path):
    computed(tmp_path, replace(SMALL, repetitions=5))
    blocks = {path: path.stat().st_mtime_ns for path in (tmp_path / "blocks").rglob("*.npz")}
    damaged = sorted(blocks)[0]
    damaged.write_bytes(damaged.read_bytes()[:100])
    more = replace(SMALL, repetitions=10, policies=(*SMALL.policies, "random"))
    # new repetitions, the new policy's old ones, the damaged one
    assert len(Results.open(tmp_path).pending(more)) == 2 * 4 + 2 + 1
    computed(tmp_path, more)
    assert all(path.stat().st_mtime_ns == then for path, then in blocks.items() if path != damaged)
    computed(tmp_path / "at once", more)
    assert contents(tmp_path) == contents(tmp_path / "at once")


def test_a_smaller_study_in_the_same_folder_hides_nothing(tmp_path):
    whole = computed(tmp_path)
    before = contents(tmp_path)
    part = replace(SMALL, settings=SMALL.settings[:1], policies=("cppl",), repetitions=3)
    assert computed(tmp_path, part).plan == whole.plan
    assert contents(tmp_path) == before
    more = computed(tmp_path, replace(part, policies=("random",), repetitions=4))
    counts = {
        policy: found.repetitions for (setting, policy), found in more.summaries("best_arm").items() if setting.n == 8
    }
    assert counts == {"random": 4, "cppl": 7, "epsilon-greedy": 7, "mm": 7}
    assert more.plan.policies[0] == "random"  # what was asked for last is compared with the others


def test_pairs_are_of_the_same_repetition(tmp_path):
    plan = replace(SMALL, settings=SMALL.settings[:1], policies=("cppl", "max-theta"), repetitions=10)
    results = computed(tmp_path, plan)
    ends = {policy: curves[:, -1] for (_, policy), curves in results.load("best_arm").items()}
    next((tmp_path / "blocks").rglob("cppl*/00000-00005.npz")).unlink()
    (compared,) = Results.open(tmp_path).comparisons("best_arm").values()
    assert compared.difference == pytest.approx(np.mean(ends["cppl"][5:] - ends["max-theta"][5:]))


def test_a_block_of_something_else_does_not_count(tmp_path):
    plan = replace(SMALL, settings=SMALL.settings[:1], policies=("cppl", "random"), repetitions=5)
    before = contents(computed(tmp_path, plan).folder)
    blocks = tmp_path / "blocks"
    cppl, random = (next(blocks.rglob(f"{policy}*/00000-00005.npz")) for policy in ("cppl", "random"))
    cppl.write_bytes(random.read_bytes())
    assert [task.policy for task in Results.open(tmp_path).pending(plan)] == ["cppl"]
    computed(tmp_path, plan)
    assert contents(tmp_path) == before


def test_fewer_processes_than_cores_may_be_one(tmp_path):
    computed(tmp_path, replace(SMALL, repetitions=1), workers=-(os.cpu_count() or 1) - 3)


def test_a_policy_of_ones_own_that_changed_or_is_away(tmp_path, monkeypatch):
    code = tmp_path / "changing.py"
    code.write_text("import preselect\nclass Mine(preselect.MaxTheta): pass\n")
    monkeypatch.chdir(tmp_path)
    plan = replace(SMALL, repetitions=1, policies=("changing:Mine",))
    computed(tmp_path / "out", plan)
    code.write_text("import preselect\nclass Mine(preselect.Random): pass\n")
    with pytest.raises(ResultsError, match="holds results of another changing:Mine, it has changed since"):
        computed(tmp_path / "out", plan)
    code.unlink()
    sys.modules.pop("changing")
    assert len(Results.open(tmp_path / "out").summaries("best_arm")) == 2


def test_a_policy_that_fails_is_named(tmp_path, monkeypatch):
    (tmp_path / "failing.py").write_text(
        "import preselect\n"
        "class Failing(preselect.Random):\n"
        "    def _observe(self, decision, ranking):\n"
        "        raise ZeroDivisionError('of course')\n"
        "class Seedless(preselect.Random):\n"
        "    def __init__(self, *, d=None): super().__init__(d=d)\n"
    )
    monkeypatch.chdir(tmp_path)
    plan = replace(SMALL, repetitions=1)
    with pytest.raises(
        RunError, match=r"failing:Failing failed at \(8, 3, 2\), repetition 0: ZeroDivisionError: of course"
    ):
        computed(tmp_path / "a", replace(plan, policies=("failing:Failing",)))
    with pytest.raises(InputError, match="policy failing:Seedless must take d and seed"):
        computed(tmp_path / "b", replace(plan, policies=("failing:Seedless",)))
    with pytest.raises(InputError, match="omega must be"):
        computed(tmp_path / "b", replace(plan, policies=("cppl(omega=-1)",)))
    assert not (tmp_path / "b").exists()


STUDY = [
    sys.executable, "-m", "preselect", "study", "synthetic", "--scenario", "12,3,2", "--scenario", "20,4,3",
    "--policies", "cppl,max-theta", "--horizon", "400", "--reps", "60", "--workers", "2",
]  # fmt: skip


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, stop):
    generator = np.random.default_rng(int(stop))
    folder = tmp_path / "stopped"
    blocks = lambda: len(list((folder / "blocks").rglob("*[0-9].npz")))  # noqa: E731
    for _ in range(3):
        enough = blocks() + generator.integers(1, 12)
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen([*STUDY, "--out", folder], stdout=said, stderr=said)
            while process.poll() is None and blocks() < enough:
                time.sleep(0.005)
            process.send_signal(stop)
            process.wait(timeout=60)
        said, kept = (tmp_path / "said").read_text(), blocks()
        if stop == signal.SIGINT and process.returncode != 0:
            assert process.returncode == 130, said
            assert f"interrupted: {kept} of 48 blocks are kept; give the same command again to go on" in said
            assert "Traceback" not in said
    assert kept > 0
    for out in (folder, tmp_path / "whole"):
        subprocess.run([*STUDY, "--out", out], check=True, capture_output=True)
    assert contents(folder) == contents(tmp_path / "whole")


def test_a_killed_worker_loses_its_block_only(tmp_path, monkeypatch):
    (tmp_path / "deadly.py").write_text(
        "import os, preselect\n"
        "class Deadly(preselect.Random):\n"
        "    def select(self, X, k, **options):\n"
        "        if self.rounds == 20 and not os.path.exists('mercy'): os._exit(9)\n"
        "        return super().select(X, k, **options)\n"
    )
    monkeypatch.chdir(tmp_path)
    plan = replace(SMALL, policies=("cppl", "deadly:Deadly"), repetitions=20)
    with pytest.raises(RunError, match="a worker process died; what was finished is kept"):
        computed(tmp_path / "out", plan, workers=2)
    (tmp_path / "mercy").touch()
    computed(tmp_path / "out", plan, workers=2)
    assert Results.open(tmp_path / "out").pending(plan) == []


def test_an_unreachable_cluster_is_said(tmp_path):
    pytest.importorskip("distributed")
    for address in ("tcp://127.0.0.1:9", "nonsense://here"):
        with pytest.raises(RunError, match=f"cannot reach a Dask scheduler at '{address}'"):
            computed(tmp_path, cluster=address)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "holds results with seed=0, asked for 1; choose another folder"),
        ({"horizon": 60}, "holds results with horizon=120, asked for 60"),
        ({"feedback": "ranking"}, "holds results with feedback=winner, asked for ranking"),
        ({"variation": "signed"}, "holds results with variation=paper, asked for signed"),
    ],
)
def test_other_results_in_the_folder_are_kept(tmp_path, change, message):
    plan = replace(SMALL, repetitions=1, settings=SMALL.settings[:1], policies=("random",))
    computed(tmp_path, plan)
    before = contents(tmp_path)
    with pytest.raises(ResultsError, match=message):
        computed(tmp_path, replace(plan, **change))
    assert contents(tmp_path) == before


def test_results_of_another_version_and_foreign_folders_are_refused(tmp_path):
    plan = replace(SMALL, repetitions=1, settings=SMALL.settings[:1], policies=("random",))
    computed(tmp_path, plan)
    manifest = tmp_path / "manifest.json"
    written = json.loads(manifest.read_text())
    assert written["parameters"]["seed"] == 0
    assert written["software"]["numpy"] == np.__version__
    manifest.write_text(json.dumps({**written, "version": "0.0.1"}))
    with pytest.raises(ResultsError, match=r"holds results of preselect 0\.0\.1, this is "):
        computed(tmp_path, plan)
    manifest.write_text("{}")
    with pytest.raises(ResultsError, match="is not the manifest of a study"):
        computed(tmp_path, plan)
    with pytest.raises(ResultsError, match=r"holds no results of a study: there is no manifest\.json"):
        Results.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": (SyntheticSetting(3, 2, 3),)}, "a setting needs 1 ≤ k < n and d ≥ 1, got n=3, d=2, k=3"),
        ({"settings": ()}, "at least one setting"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"repetitions": 0}, "repetitions must be at least 1, got 0"),
        ({"seed": -1}, "seed must not be negative, got -1"),
        ({"feedback": "smile"}, "feedback must be one of winner, ranking, got 'smile'"),
        ({"variation": "odd"}, "variation must be one of paper, signed"),
    ],
)
def test_bad_plans_are_named(change, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


def test_scenarios_are_parsed():
    assert SyntheticSetting.parse("20, 5,3") == SyntheticSetting(20, 5, 3)
    with pytest.raises(PreselectError, match="setting must be three integers n,d,k, got '20,5'"):
        SyntheticSetting.parse("20,5")


def test_checkpoints_end_at_the_horizon():
    assert checkpoints(1).tolist() == [1]
    assert checkpoints(7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert (len(checkpoints(5000)), checkpoints(5000)[0], checkpoints(5000)[-1]) == (200, 1, 5000)


def test_figures_and_report_are_whole(tmp_path):
    plan = replace(SMALL, policies=("cppl", "cppl(omega=0.5)", "random"))
    results = computed(tmp_path, plan)
    figures = write_figures(results)
    assert [path.name for path in figures] == ["best-arm.png", "best-arm.svg", "top-k.png", "top-k.svg"]
    assert figures[0].read_bytes().startswith(b"\x89PNG")
    drawing = figures[1].read_text()
    page = write_report(results).read_text()
    for policy in plan.policies:
        assert policy in page
    assert drawing.count("fill-opacity: 0.35") == len(plan.settings) * len(plan.policies)
    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page.replace("http-equiv", "")
    assert "(8, 3, 2)" in page
    assert plan.command("out") in page.replace("&#x27;", "'").replace(tmp_path.name, "out")


def test_the_command_in_the_report_computes_the_same_study():
    assert SyntheticPlan().command("out") == "preselect study synthetic --out out"
    assert SMALL.command("out") == (
        "preselect study synthetic --scenario 8,3,2 --scenario 10,4,3 --policies 'cppl,epsilon-greedy,mm'"
        " --horizon 120 --reps 7 --out out"
    )
