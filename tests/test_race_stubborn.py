"""A second set of hostile racers: none wins or leaves anything alive, in a race or after it."""

import sys

import pytest
from processes import find_marked, wait_until
from racers import answering, python
from stubborn import STUBBORN, make_program
from test_after_races import formula, make, read_journal  # noqa: F401

from preselect.race import RaceSession

pytestmark = pytest.mark.usefixtures("token")


@pytest.mark.parametrize("kind", STUBBORN)
def test_a_stubborn_racer_loses(supervise, level, tmp_path, kind):
    program = make_program(kind, tmp_path / "race")
    check = lambda racer, *_: None if racer.name == "good" else "it is wrong"  # noqa: E731
    result = supervise(python("stubborn", program), answering(seconds=0.7), level=level, check=check)
    assert result.winner == (None if kind == "limiting" else "good")
    assert (result.infrastructure is not None) == (kind == "limiting")


@pytest.mark.soak
@pytest.mark.parametrize("kind", STUBBORN)
def test_a_stubborn_racer_does_not_survive_an_after_race(make, formula, tmp_path, token, kind):  # noqa: F811
    script, started = tmp_path / "stubborn.py", tmp_path / "started"
    script.write_text(f"open({str(started)!r}, 'w').close()\n{make_program(kind, tmp_path / 'pool.journal.running')}")
    path = make({"good": 0.7}, stubborn=f"exec {sys.executable} -I -S {script}")
    with RaceSession(path) as session:
        session._starts.list_eligible = lambda _: ["good"]
        for _ in range(2):  # the second race takes the place of the first after-race
            assert session.run(formula).winner == "good"
            wait_until(started.exists)
            started.unlink()
        session.settle()
        assert find_marked(token) == []
    assert [one.kind for one in read_journal(path)] == ["winner"] * 2
