"""The pool of compressors that `race init --kind program` writes works as it is."""

import pytest
from commands import preselect

from preselect.race import read_pool
from preselect.race.compressors import find_compressors


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
