"""The pool of compressors that `race init --kind program` writes works as it is."""

import re

import pytest
from commands import preselect

from preselect.race import read_pool
from preselect.race.compressors import PROGRAMS, find_compressors


@pytest.mark.parametrize("folders", ["", None])
def test_the_first_pool_of_programs_works_with_and_without_installed_compressors(tmp_path, monkeypatch, folders):
    found = find_compressors(folders)
    assert {one.name for one in found} >= {"gzip", "bzip2", "xz"}
    monkeypatch.setattr("preselect.cli.race.find_compressors", lambda: found)
    pool, file = tmp_path / "pool.toml", tmp_path / "file"
    file.write_text("hello " * 1000)
    done = preselect("race", "init", pool, "--kind", "program")
    assert "next: preselect race check" in done.stderr
    assert "--instance FILE" in done.stderr
    assert (read_pool(pool).better, read_pool(pool).features.kind, read_pool(pool).is_for_sat) == (
        "smaller",
        "file",
        False,
    )
    assert preselect("race", "check", pool, "--instance", file).stdout.count("ok     ") == len(found)
    preselect("race", pool, file, "--output", tmp_path / "out")
    assert 0 < (tmp_path / "out" / "file.out").stat().st_size < 200


PRINTED = {  # by GLPK 5.0, CBC 2.10 and HiGHS on the same integer program, whose best value is 258
    "glpk": "*    25: obj =   2.483993363e+02 inf =   0.000e+00 (0)\nOPTIMAL LP SOLUTION FOUND\n"
    "+    25: mip =     not found yet >=              -inf        (1; 0)\nSolution found by heuristic: 259\n"
    "+    76: mip =   2.580000000e+02 >=     tree is empty   0.0% (0; 33)\n",
    "cbc": "Cuts at root node changed objective from 248.399 to 255.398\nObjective value:          258.00000000\n",
    "highs": "  Primal bound      258\n  Dual bound        258\n",
}


@pytest.mark.parametrize("arm", PRINTED)
def test_the_examples_for_integer_programs_find_the_value_of_the_solution(arm):
    pattern = re.search(rf"# \[arms\.{arm}\]\n.*\n# success = {{{{ value = '(.+?)' }}}}", PROGRAMS)[1]
    assert float(re.findall(pattern, PRINTED[arm])[-1]) == 258.0
