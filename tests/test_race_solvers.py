"""A first pool from the solvers of this machine, and the check that every arm works."""

import os
import re
import shutil
import sys

import pytest
from click.testing import CliRunner
from pools import FORMULA, make_pool, write_pool_file, write_script

from preselect import Preselector
from preselect.cli.main import preselect
from preselect.errors import InputError
from preselect.race import read_pool
from preselect.race.check import check_arms
from preselect.race.instance_features import list_feature_names
from preselect.race.solvers import _KNOWN, Solver, find_solvers, write_pool
from preselect.sat import features as satzilla


def test_solvers_are_found_by_name_and_saps_is_always_there(tmp_path):
    alone = [solver.name for solver in find_solvers(str(tmp_path))]
    assert alone == ["saps", "saps-2", "saps-9", "saps-13"]
    write_script(tmp_path, "kissat", "exit 10")
    write_script(tmp_path, "cadical", "exit 10").chmod(0o644)
    assert [solver.name for solver in find_solvers(str(tmp_path))] == ["kissat", *alone]


def test_a_pool_that_was_written_can_be_read_and_chosen_from(tmp_path):
    path = tmp_path / "my pool.toml"
    quoted = Solver('a "b"\\ é.c', ("x\n\x7f", "{instance}"), {"y": 1e-9})
    every = [*_KNOWN, *find_solvers(str(tmp_path)), quoted]
    write_pool(path, every, k=3, seconds=5)
    pool = read_pool(path)
    assert list(pool.arms) == [solver.name for solver in every]
    assert (pool.k, pool.limits.seconds, pool.features.kind) == (3, 5, "sat")
    assert pool.journal == tmp_path / "my pool.journal"
    for solver in every:
        assert pool.arms[solver.name].command == solver.command
        assert pool.arms[solver.name].features == pytest.approx(solver.features)
    assert pool.arms["minisat"].success.verifier == "none"
    assert pool.arms["z3"].success.pattern == "^s (UN)?SATISFIABLE"
    assert pool.arms["kissat"].success.verifier == "model"
    described = {name: arm.features for name, arm in pool.arms.items()}
    chooser = Preselector(described, list_feature_names(pool.features), policy=pool.policy, seed=pool.seed)
    assert len(chooser.select(satzilla.compute_features(FORMULA, clause_graph=False).values, k=pool.k).names) == 3


def test_what_is_commented_out_in_a_new_pool_is_right_too(tmp_path):
    write_pool(tmp_path / "pool.toml", find_solvers(str(tmp_path)))
    text = (tmp_path / "pool.toml").read_text()
    assert "k = 2 " in text
    for kind, instead in (("command", "command = "), ("csv", "file = "), ("none", "#")):
        other = re.sub(r'^(from = "sat"|clause_graph).*\n', "", text, flags=re.MULTILINE)
        other = other.replace(f'# from = "{kind}"', f'from = "{kind}"').replace(f"# {instead}", instead)
        other = other.replace("# memory", "memory").replace('verifier = "model"', "#").replace("# verifier", "verifier")
        other = re.sub(r"^# (?=\[arms|command = \[.cadical|features =|environment)", "", other, flags=re.MULTILINE)
        pool = make_pool(tmp_path, other)
        assert pool.features.kind == kind
        assert pool.limits.memory == 4000
        assert pool.arms["saps"].success.verifier[0] == "my-checker"
        assert pool.arms["cadical-sat"].environment == {"OMP_NUM_THREADS": "1"}


def test_a_pool_is_never_overwritten(tmp_path):
    path = write_pool_file(tmp_path, "mine")
    with pytest.raises(InputError, match=r"pool\.toml exists and is not overwritten"):
        write_pool(path, find_solvers(str(tmp_path)))
    assert path.read_text() == "mine"
    (tmp_path / "link.toml").symlink_to("gone.toml")
    with pytest.raises(InputError, match=r"link\.toml exists and is not overwritten"):
        write_pool(tmp_path / "link.toml", find_solvers(str(tmp_path)))
    assert not (tmp_path / "gone.toml").exists()
    with pytest.raises(InputError, match=r"the name 'b\\udcff.toml' holds bytes that are not text; choose another one"):
        write_pool(tmp_path / "b\udcff.toml", find_solvers(str(tmp_path)))
    assert sorted(os.listdir(tmp_path)) == ["link.toml", "pool.toml"]
    with pytest.raises(InputError, match="there are no solvers to write into a pool"):
        write_pool(tmp_path / "new.toml", [])
    with pytest.raises(InputError, match="k=5, but there are 4 solvers; use a k from 1 to 4"):
        write_pool(tmp_path / "new.toml", find_solvers(str(tmp_path)), k=5)
    assert not (tmp_path / "new.toml").exists()


@pytest.mark.parametrize("folder", ["/", "."])
def test_a_folder_is_no_pool_file(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(preselect, ["race", "init", folder])
    assert (result.exit_code, isinstance(result.exception, SystemExit)) == (1, True)
    assert "is a folder; name a file to write, such as " in result.output
    assert "cannot write" in CliRunner().invoke(preselect, ["race", "init", "gone/pool.toml"]).output
    assert list(tmp_path.iterdir()) == []


# --- checking arms ----------------------------------------------------------------------------------------------------

KNOWS = """case "$1" in
    */satisfiable.cnf) echo "s SATISFIABLE"; echo "v 1 2 -3 0"; exit 10;;
    *) echo "s UNSATISFIABLE"; exit 20;;
esac"""
ONLY_MODELS = 'case "$1" in */satisfiable.cnf) printf "s SATISFIABLE\\nv 1 2 -3 0\\n"; exit 10;; *) {};; esac'


def check(tmp_path, text, more=""):
    write_script(tmp_path, "solver.sh", text)
    head = '[features]\nfrom = "sat"\n[arms.a]\ncommand = ["./solver.sh", "{instance}"]\n'
    (trial,) = check_arms(make_pool(tmp_path, head + more), tmp_path / "trial")
    assert trial.arm == "a"
    return trial


def test_an_arm_that_works(tmp_path):
    trial = check(tmp_path, KNOWS)
    assert trial.ok
    assert trial.seconds > 0
    assert re.fullmatch(r"answers in \d+\.\d\d s", trial.message)


@pytest.mark.parametrize("otherwise", ["exit 0", "echo s UNKNOWN", "sleep 1000"])
def test_an_arm_may_fail_to_recognise_unsatisfiable_formulas(tmp_path, otherwise):
    trial = check(tmp_path, ONLY_MODELS.format(otherwise))
    assert trial.ok
    assert trial.message.endswith("does not recognise unsatisfiable formulas")


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("echo bad option >&2; exit 1", "", "exit code 1 instead of 10 or 20, it printed 'bad option'; correct"),
        ("echo usage; exit 0", "", "exit code 0 instead of 10 or 20, it printed 'usage'"),
        ("exit 3", "", "exit code 3 instead of 10 or 20, it printed nothing"),
        ("echo hm", 'success = { pattern = "^s " }', "instead of output that matches '^s ', it printed 'hm'"),
        ("echo s SATISFIABLE; exit 10", "", 'no v lines; make it print s and v lines, or write verifier = "n'),
        ("echo s SATISFIABLE; echo v -1 -2 -3 0; exit 10", "", "do not satisfy clause 2"),
        ("echo SATISFIABLE; exit 10", "", "UNSATISFIABLE'; make it print s and v lines"),
        ("echo s SATISFIABLE; echo v 1 2 -3 0; exit 20", "", "exit code 20 means UNSATISFIABLE"),
        ("exit 20", 'success = { verifier = "none" }', "calls a satisfiable formula unsatisfiable"),
        ("exit 10", 'success = { verifier = "none" }', "calls an unsatisfiable formula satisfiable"),
        ("echo s UNSATISFIABLE; exit 20", "", "calls a satisfiable formula unsatisfiable"),
        ("echo s SATISFIABLE; echo v 1 2 -3 0; exit 10", "", "calls an unsatisfiable formula satisfiable"),
        ("sleep 1000", "[limits]\nseconds = 1", "no answer within 1 s; check its options in [arms.a]"),
        (f"exec {sys.executable} -c 'import time; held = b\"x\" * 400_000_000; time.sleep(1000)'",
         "[limits]\nmemory = 100", "raise limits.memory"),
        ("exit 10", "success = { verifier = ['./none', '{output}'] }", "could not be raced: "),
        ("exit 10", "success = { verifier = ['false', '{output}'] }", "its answer fails the verification"),
        ("kill -SEGV $$", "", "crashed"),
        (ONLY_MODELS.format("kill -SEGV $$"), "", "on an unsatisfiable formula: crashed"),
    ],
)  # fmt: skip
def test_a_message_says_what_is_wrong_with_an_arm(tmp_path, text, more, message):
    trial = check(tmp_path, text, more)
    assert not trial.ok
    assert message in trial.message


def test_a_program_that_is_not_there(tmp_path):
    pool = make_pool(tmp_path, '[features]\nfrom = "sat"\n[arms.a]\ncommand = ["no-such-solver", "{instance}"]')
    (trial,) = check_arms(pool, tmp_path / "trial")
    assert not trial.ok
    assert trial.seconds is None
    assert "install no-such-solver, or correct the command in [arms.a]" in trial.message


def test_arms_that_are_no_sat_solvers_are_checked_on_an_instance(tmp_path):
    write_script(tmp_path, "good.sh", 'test "$(cat "$1")" = easy')
    write_script(tmp_path, "bad.sh", "echo cannot >&2; exit 2")
    arms = "".join(f'[arms.{name}]\ncommand = ["./{name}.sh", "{{instance}}"]\n' for name in ("good", "bad"))
    pool = make_pool(tmp_path, f"[success]\nexit_codes = [0]\n{arms}")
    with pytest.raises(
        InputError, match=r"pool\.toml are not SAT solvers; name a small, easy instance to check them on"
    ):
        check_arms(pool, tmp_path / "trial")
    (tmp_path / "easy.txt").write_text("easy")
    good, bad = check_arms(pool, tmp_path / "trial", instance=tmp_path / "easy.txt")
    assert good.ok
    assert not bad.ok
    assert "exit code 2 instead of 0, it printed 'cannot'" in bad.message


@pytest.mark.parametrize("solver", _KNOWN, ids=lambda solver: solver.name)
def test_known_solvers_work_as_they_are_written_down(tmp_path, solver):
    if not shutil.which(solver.command[0]):
        pytest.skip(f"{solver.name} is not installed")
    write_pool(tmp_path / "pool.toml", [solver])
    (trial,) = check_arms(read_pool(tmp_path / "pool.toml"), tmp_path / "trial")
    assert trial.ok, trial.message
    assert re.fullmatch(r"answers in \d+\.\d\d s", trial.message)


def test_saps_works_as_it_is_written_down(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setattr("preselect.race.check._MAX_SECONDS_WITHOUT_MODEL", 1.0)  # which local search uses up
    write_pool(tmp_path / "pool.toml", find_solvers(str(tmp_path))[:1])
    (trial,) = check_arms(read_pool(tmp_path / "pool.toml"), tmp_path / "trial")
    assert trial.ok, trial.message
