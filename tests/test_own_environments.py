"""Environments of one's own: what they may leave out, what is said of what they lack, and where they run."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from commands import preselect
from studies import compute, read_contents

from preselect import InputError, Winner
from preselect.errors import ResultsError, RunError
from preselect.own_classes import digest_class
from preselect.study import Measure, OwnPlan, OwnSetting, Results, SyntheticPlan, SyntheticSetting

MODULE = """
import numpy as np
from preselect import NoWinner, Random, Winner
from preselect.study import Measure

class Base:
    def __init__(self, *, n=5, seed=0):
        self.n, self.d = n, 2
        self._generator = np.random.default_rng(seed)

    def context(self):
        self._X = self._generator.random((self.n, self.d))
        return self._X

    def outcome(self, decision):
        return Winner(decision.arms[0])

    def truth(self):
        return self._X[:, 0]

class Costly(Base):
    measures = {"cost": Measure("Cost", "euros that the choice costs", "euros")}

    def measure(self, truths, arms):
        return {"cost": np.take_along_axis(truths, arms, axis=1).sum(axis=1), "late_arms": np.ones(len(arms))}

class Truthless(Base):
    truth = None

class Featureless(Base):
    def __init__(self, seed): pass

class Seedless(Base):
    def __init__(self): pass

class Narrow(Base):
    def context(self): return np.ones((5, 3))

class Talkative(Base):
    def outcome(self, decision): return "the first"

class Foreign(Base):
    def outcome(self, decision): return Winner(int(np.setdiff1d(np.arange(self.n), decision.arms)[0]))

class Broken(Base):
    def context(self): raise ZeroDivisionError("of course")

class Secret(Base):
    def truth(self): return "secret"

class Wordless(Base):
    measures = {"best_arm": ("Regret", "of the arm")}

class Sized(Base):
    def measure(self, truths, arms): return {"cost": np.ones(7)}

class Failing(Base):
    def __init__(self, seed): raise OSError("no network")

nothing = 3
"""
PLAN = {"policies": ("random",), "repetitions": 2, "horizon": 10}


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "own_rounds.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("own_rounds", None)


def plan(name, k=2, **changes):
    return OwnPlan((OwnSetting(f"own_rounds:{name}", k),), **{**PLAN, **changes})


@pytest.mark.parametrize(
    ("name", "k", "message"),
    [
        ("Truthless", 2, "own_rounds:Truthless has no truth(); an environment has d, context(), outcome(decision) and"),
        ("Featureless", 2, "own_rounds:Featureless has no d, the number of its features; an environment has d, cont"),
        ("Seedless", 2, "own_rounds:Seedless cannot be made with seed and its parameters: "),
        (
            "Narrow",
            2,
            "own_rounds:Narrow, context(): its shape is (5, 3); return a row for each arm, with d=2 features",
        ),
        ("Base", 6, "own_rounds:Base, context(): it has only 5 arms, but k=6 are to be chosen"),
        ("Base(m=3)", 2, "own_rounds:Base has no parameter m; it has n, seed"),
        ("Base(n=3", 2, "cannot read the environment 'own_rounds:Base(n=3'; write name or name(parameter=value, ...)"),
        ("Talkative", 2, "own_rounds:Talkative, outcome(): 'the first' is no outcome; return a Winner, a Ranking, NoW"),
        ("Foreign", 2, "own_rounds:Foreign, outcome(): the winner, "),
        ("Broken", 2, "own_rounds:Broken, context(): ZeroDivisionError: of course"),
        ("Secret", 2, "own_rounds:Secret, truth(): ValueError: could not convert string to float: 'secret'"),
        ("Wordless", 2, "own_rounds:Wordless, measures: TypeError: "),
        ("Base", 0, "k is 0; use an integer of at least 1"),
        ("Sized", 2, "own_rounds:Sized, measure(): "),
        ("Failing", 2, "own_rounds:Failing cannot be made: OSError: no network"),
        ("nothing", 2, "'own_rounds:nothing' is 3, not a class of environments"),
        ("Away", 2, "cannot import the environment 'own_rounds:Away': AttributeError: "),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_an_environment_lacks_is_said_in_the_callers_words(name, k, message):
    with pytest.raises(InputError, match=re.escape(message)):
        plan(name, k)
    said = preselect("study", "run", f"own_rounds:{name}", "--k", k, expect=1).stderr
    assert message in said


def test_names_without_a_module_and_wrong_numbers_are_refused():
    with pytest.raises(InputError, match="an environment is written as module:Class, not as 'Base'"):
        OwnPlan((OwnSetting("Base", 2),))
    with pytest.raises(InputError, match="horizon is 0; a study has 1 to 100000000 rounds"):
        OwnPlan((OwnSetting("m:Base", 2),), horizon=0)


@pytest.mark.usefixtures("here")
def test_an_environment_without_measure_is_judged_by_regret(tmp_path):
    results = compute(tmp_path / "out", plan("Base"))
    assert list(results.plan.measures) == ["best_arm", "top_k"]
    assert all(0.0 < found.mean < 10.0 for found in results.summarise("best_arm").values())


@pytest.mark.usefixtures("here")
def test_measures_of_an_environment_keep_their_words(tmp_path):
    results = compute(tmp_path / "out", plan("Costly"))
    expected = {"cost": Measure("Cost", "euros that the choice costs", "euros")}
    expected["late_arms"] = Measure("Late arms", "as the environment measures it", "cumulative late arms")
    assert Results.open(tmp_path / "out").plan.measures == expected
    assert results.summarise("late_arms")[results.plan.settings[0], "random"].mean == 10.0
    assert Results.open(tmp_path / "out").plan == results.plan
    assert Results.open(tmp_path / "out").find_pending(results.plan) == []
    with pytest.raises(InputError, match="own_rounds:Costly measures cost, late_arms, but the study best_arm, top_k"):
        OwnPlan((OwnSetting("own_rounds:Base", 2), OwnSetting("own_rounds:Costly", 2))).check()


def test_an_environment_that_changed_is_not_mixed_with_what_it_was(here):
    compute(here / "out", plan("Base"))
    (here / "own_rounds.py").write_text(MODULE + "# changed\n")
    with pytest.raises(ResultsError, match="holds results of own_rounds:Base, which has changed since"):
        compute(here / "out", plan("Base"))


class _Constant:
    rate = 0.5

    def outcome(self, decision):
        return Winner(decision.arms[0]) if decision.arms[0] in {1, 2} else None


class _Varied:
    rate = 0.5

    def outcome(self, decision):
        return Winner(decision.arms[1]) if decision.arms[0] in {1, 2} else None


class _Faster(_Constant):
    rate = 0.6


def test_classes_without_a_file_are_told_apart_by_their_code(monkeypatch):
    monkeypatch.setattr("inspect.getsourcefile", lambda _: None)
    digests = {digest_class(one) for one in (_Constant, _Varied, _Faster)}
    assert len(digests) == 3
    assert digest_class(_Constant) in digests


def test_one_worker_two_workers_and_a_cluster_give_the_same_and_say_what_a_worker_lacks(here, monkeypatch):
    distributed = pytest.importorskip("distributed")
    (here / "elsewhere").mkdir()
    (here / "elsewhere" / "only_here.py").write_text("import preselect\nclass Mine(preselect.Random): pass\n")
    setting = SyntheticSetting(8, 3, 2)
    plans = {"own": plan("Base", policies=("own_rounds:Random", "random"))}
    plans["synthetic"] = SyntheticPlan((setting,), policies=("cppl", "mm"), repetitions=7, horizon=120)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        for name, one in plans.items():
            places = {"one": {}, "two": {"workers": 2}, "cluster": {"cluster": cluster.scheduler_address}}
            found = [read_contents(compute(here / place / name, one, **how).folder) for place, how in places.items()]
            assert found[0] == found[1] == found[2]
        monkeypatch.chdir(here / "elsewhere")
        lacking = replace(plans["own"], policies=("only_here:Mine",))
        with pytest.raises(RunError) as raised:
            compute(here / "lacking", lacking, cluster=cluster.scheduler_address)
        (here / "only_here.py").write_text("import preselect\nclass Mine(preselect.MaxTheta): pass\n")
        with pytest.raises(
            RunError, match=r"worker on .*: only_here:Mine is not the same there as where the study was"
        ):
            compute(here / "lacking", lacking, cluster=cluster.scheduler_address)
    assert re.match(
        r"a Dask worker on \S+, in the folder \S+: cannot import the policy 'only_here:Mine': ModuleNotFoundError: .*; "
        "modules and data have to be there on every worker",
        str(raised.value),
    )


@pytest.mark.usefixtures("here")
def test_the_command_names_several_environments_and_can_be_pasted(monkeypatch):
    monkeypatch.setattr("preselect.study.study.write_report", lambda results: results.folder)
    names = ["own_rounds:Base", "own_rounds:Base(n=7)"]
    options = ["--k", "2,3", "--horizon", 9, "--reps", 1, "--policies", "random", "--workers", 1]
    printed = preselect("study", "run", *names, *options, "--out", "out").stdout
    assert all(f"{name}, k = {k}" in printed for name in names for k in (2, 3))
    command = json.loads((Results.open("out").folder / "manifest.json").read_text())["command"]
    assert command == (
        "preselect study run --k 2,3 --policies random --horizon 9 --reps 1 --out out "
        "own_rounds:Base 'own_rounds:Base(n=7)'"
    )
    assert np.isfinite([found.mean for found in Results.open("out").summarise("top_k").values()]).all()
