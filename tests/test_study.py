"""Studies: the same results whatever happens, and nothing lost."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from studies import age, compute, read_contents

from preselect import InputError
from preselect.errors import ResultsError, RunError
from preselect.study import Results, SyntheticPlan, SyntheticSetting
from preselect.study.results import space_checkpoints

SMALL = SyntheticPlan(
    settings=(SyntheticSetting(8, 3, 2), SyntheticSetting(10, 4, 3)),
    policies=("cppl", "epsilon-greedy", "mm"),
    repetitions=7,
    horizon=120,
)


def test_policies_meet_the_same_rounds(tmp_path):
    same = compute(tmp_path, replace(SMALL, policies=("cppl(omega=0)", "max-theta"), settings=SMALL.settings[:1]))
    curves = list(same.load("best_arm").values())
    assert np.array_equal(curves[0], curves[1])


def test_what_is_there_is_not_computed_again(tmp_path):
    compute(tmp_path, replace(SMALL, repetitions=5))
    blocks = {path: path.stat().st_mtime_ns for path in (tmp_path / "blocks").rglob("*.npz")}
    damaged = sorted(blocks)[0]
    damaged.write_bytes(damaged.read_bytes()[:100])
    more = replace(SMALL, repetitions=10, policies=(*SMALL.policies, "random"))
    # new repetitions, the new policy's old ones, the damaged one
    assert len(Results.open(tmp_path).find_pending(more)) == 2 * 4 + 2 + 1
    compute(tmp_path, more)
    assert all(path.stat().st_mtime_ns == then for path, then in blocks.items() if path != damaged)
    compute(tmp_path / "at once", more)
    assert read_contents(tmp_path) == read_contents(tmp_path / "at once")


def test_a_smaller_study_in_the_same_folder_hides_nothing(tmp_path):
    whole = compute(tmp_path, SMALL)
    before = read_contents(tmp_path)
    part = replace(SMALL, settings=SMALL.settings[:1], policies=("cppl",), repetitions=3)
    assert compute(tmp_path, part).plan == whole.plan
    assert read_contents(tmp_path) == before
    more = compute(tmp_path, replace(part, policies=("random",), repetitions=4))
    counts = {
        policy: found.repetitions for (setting, policy), found in more.summarise("best_arm").items() if setting.n == 8
    }
    assert counts == {"random": 4, "cppl": 7, "epsilon-greedy": 7, "mm": 7}
    assert more.plan.policies[0] == "random"  # what was asked for last is compared with the others


def test_pairs_are_of_the_same_repetition(tmp_path):
    plan = replace(SMALL, settings=SMALL.settings[:1], policies=("cppl", "max-theta"), repetitions=10)
    results = compute(tmp_path, plan)
    ends = {policy: curves[:, -1] for (_, policy), curves in results.load("best_arm").items()}
    next((tmp_path / "blocks").rglob("cppl*/00000-00005.npz")).unlink()
    (compared,) = Results.open(tmp_path).compare("best_arm").values()
    assert compared.difference == pytest.approx(np.mean(ends["cppl"][5:] - ends["max-theta"][5:]))


def test_a_block_of_something_else_does_not_count(tmp_path):
    plan = replace(SMALL, settings=SMALL.settings[:1], policies=("cppl", "random"), repetitions=5)
    before = read_contents(compute(tmp_path, plan).folder)
    blocks = tmp_path / "blocks"
    cppl, random = (next(blocks.rglob(f"{policy}*/00000-00005.npz")) for policy in ("cppl", "random"))
    cppl.write_bytes(random.read_bytes())
    assert [task.policy for task in Results.open(tmp_path).find_pending(plan)] == ["cppl"]
    compute(tmp_path, plan)
    assert read_contents(tmp_path) == before


def test_fewer_processes_than_cores_may_be_one(tmp_path, monkeypatch):
    (tmp_path / "whereabouts.py").write_text(
        "import os, preselect\n"
        "class Mine(preselect.Random):\n"
        "    def select(self, X, k, **options):\n"
        "        with open('processes', 'a') as file: file.write(f'{os.getpid()}\\n')\n"
        "        return super().select(X, k, **options)\n"
    )
    monkeypatch.chdir(tmp_path)
    plan = replace(SMALL, repetitions=6, horizon=5, policies=("whereabouts:Mine",))
    results = compute(tmp_path / "out", plan, workers=-(os.cpu_count() or 1) - 3)
    assert set((tmp_path / "processes").read_text().split()) == {str(os.getpid())}
    assert results.find_pending(plan) == []
    assert len(list((tmp_path / "out" / "blocks").rglob("*.npz"))) == 2 * 2  # two settings, repetitions 0-5 and 5-6


def test_a_policy_of_ones_own_that_changed_or_is_away(tmp_path, monkeypatch):
    code = tmp_path / "changing.py"
    code.write_text("import preselect\nclass Mine(preselect.MaxTheta): pass\n")
    monkeypatch.chdir(tmp_path)
    plan = replace(SMALL, repetitions=1, policies=("changing:Mine",))
    compute(tmp_path / "out", plan)
    code.write_text("import preselect\nclass Mine(preselect.Random): pass\n")
    with pytest.raises(ResultsError, match="holds results of changing:Mine, which has changed since"):
        compute(tmp_path / "out", plan)
    code.unlink()
    sys.modules.pop("changing")
    assert len(Results.open(tmp_path / "out").summarise("best_arm")) == 2


def test_a_policy_that_fails_is_named(tmp_path, monkeypatch):
    (tmp_path / "failing.py").write_text(
        "import preselect\n"
        "class Failing(preselect.Random):\n"
        "    def _learn(self, decision, ranking, outcome):\n"
        "        raise ZeroDivisionError('of course')\n"
        "class Seedless(preselect.Random):\n"
        "    def __init__(self, *, d=None): super().__init__(d=d)\n"
    )
    monkeypatch.chdir(tmp_path)
    plan = replace(SMALL, repetitions=1)
    with pytest.raises(
        RunError, match=r"failing:Failing failed at \(8, 3, 2\), repetition 0: ZeroDivisionError: of course"
    ):
        compute(tmp_path / "a", replace(plan, policies=("failing:Failing",)))
    with pytest.raises(InputError, match="policy failing:Seedless cannot be made with d, seed and its parameters: "):
        compute(tmp_path / "b", replace(plan, policies=("failing:Seedless",)))
    with pytest.raises(InputError, match="omega"):
        compute(tmp_path / "b", replace(plan, policies=("cppl(omega=-1)",)))
    assert not (tmp_path / "b").exists()


def test_an_unreachable_cluster_is_said(tmp_path):
    pytest.importorskip("distributed")
    for address in ("tcp://127.0.0.1:9", "nonsense://here"):
        with pytest.raises(RunError, match=f"cannot reach a Dask scheduler at '{address}'"):
            compute(tmp_path, SMALL, cluster=address)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "holds results with seed=0, not 1; choose another folder"),
        ({"horizon": 60}, "holds results with horizon=120, not 60"),
        ({"feedback": "ranking"}, "holds results with feedback=winner, not ranking"),
        ({"variation": "signed"}, "holds results with variation=paper, not signed"),
    ],
)
def test_other_results_in_the_folder_are_kept(tmp_path, change, message):
    plan = replace(SMALL, repetitions=1, settings=SMALL.settings[:1], policies=("random",))
    compute(tmp_path, plan)
    before = read_contents(tmp_path)
    with pytest.raises(ResultsError, match=message):
        compute(tmp_path, replace(plan, **change))
    assert read_contents(tmp_path) == before


def test_results_of_another_version_and_foreign_folders_are_refused(tmp_path):
    plan = replace(SMALL, repetitions=1, settings=SMALL.settings[:1], policies=("random",))
    compute(tmp_path, plan)
    manifest = tmp_path / "manifest.json"
    written = json.loads(manifest.read_text())
    assert written["parameters"]["seed"] == 0
    assert written["software"]["numpy"] == np.__version__
    manifest.write_text(json.dumps({**written, "version": "0.0.1"}))
    with pytest.raises(ResultsError, match=r"holds results of preselect 0\.0\.1, and this is "):
        compute(tmp_path, plan)
    manifest.write_text("{}")
    with pytest.raises(ResultsError, match="is not the manifest of a study"):
        compute(tmp_path, plan)
    with pytest.raises(ResultsError, match=r"holds no results of a study: there is no manifest\.json"):
        Results.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": (SyntheticSetting(3, 2, 3),)}, "n=3, d=2, k=3 cannot be played"),
        ({"settings": ()}, "at least one setting"),
        ({"horizon": 0}, "horizon is 0"),
        ({"repetitions": 0}, "repetitions is 0"),
        ({"horizon": 10**20}, f"horizon is {10**20}; a study has at most 100000000 rounds"),
        ({"repetitions": 10**20}, f"repetitions is {10**20}; a study has at most 1000000"),
        ({"seed": -1}, "seed is -1; use a non-negative integer"),
        ({"feedback": "smile"}, "unknown feedback 'smile'; choose one of winner, ranking"),
        ({"variation": "odd"}, "unknown variation 'odd'; choose one of paper, signed"),
    ],
)
def test_bad_plans_are_named(change, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


def test_folders_may_be_strings(tmp_path):
    created = Results.create(str(tmp_path), SMALL)
    assert created.folder == Results.open(str(tmp_path)).folder == tmp_path


def test_settings_are_parsed():
    assert SyntheticSetting.parse("20, 5,3") == SyntheticSetting(20, 5, 3)
    with pytest.raises(InputError, match="cannot read the setting '20,5'; write three integers"):
        SyntheticSetting.parse("20,5")


def test_checkpoints_end_at_the_horizon():
    assert space_checkpoints(1).tolist() == [1]
    assert space_checkpoints(7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert (len(space_checkpoints(5000)), space_checkpoints(5000)[0], space_checkpoints(5000)[-1]) == (200, 1, 5000)


def test_the_library_alone_opens_results(tmp_path):
    plan = replace(SMALL, repetitions=1, settings=SMALL.settings[:1], policies=("random",))
    compute(tmp_path, plan)
    code = (
        "import pathlib, sys; from preselect.study.results import Results; "
        "print(Results.open(pathlib.Path(sys.argv[1])).plan)"
    )
    opened = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True).stdout
    assert opened.strip() == str(plan)


def test_results_from_before_settings_had_their_name_are_opened_and_resumed(tmp_path):
    plan = replace(SMALL, repetitions=1, settings=SMALL.settings[:1], policies=("random",))
    compute(tmp_path, plan)
    before = read_contents(tmp_path)
    age(tmp_path)
    assert Results.open(tmp_path).plan == plan
    assert Results.open(tmp_path).find_pending(plan) == []
    compute(tmp_path, plan)
    assert read_contents(tmp_path) == before


def test_files_of_others_in_the_folder_are_kept(tmp_path):
    plan = replace(SMALL, repetitions=1, settings=SMALL.settings[:1], policies=("random",))
    (tmp_path / "summary.csv").write_text("mine")
    with pytest.raises(ResultsError, match=r"has a summary\.csv, but no manifest\.json of a study"):
        compute(tmp_path, plan)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
