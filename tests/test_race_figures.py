"""The figures of the page about races, drawn for real."""

import pytest
from race_journals import Reading, details, open_learner, play

from preselect.race.report import write_report
from preselect.reports.figures import shorten_name


@pytest.fixture
def path(tmp_path):
    return tmp_path / "race.journal"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "report.html"


def test_names_that_figures_cannot_show(path, out):
    arms = ["_hidden", "$x_{", "$a$ $b$", "名前", "bytes\udc80", "two\nlines", "\\", "n" * 300]
    with open_learner(path, arms=arms, context=()) as learner:
        for place in range(8):
            entry = learner.select(k=len(arms), label="\udcff.cnf")
            statuses = {name: "won" if name == arms[place] else "killed" for name in arms}
            learner.learn(entry, winner=arms[place], details=details(0.0, statuses))
    page = Reading(write_report(path, out).read_text())
    shown = {row["arm"] for row in page.table("arm", "played")}
    assert shown == {*arms} - {"bytes\udc80"} | {"bytes\\udc80"}
    assert page.table("instance")[0]["instance"] == "\\udcff.cnf"


def test_names_that_are_too_long_keep_both_ends():
    name = shorten_name("solver-" + "x" * 80 + "-fast")
    assert len(name) == 28
    assert name.startswith("solver-")
    assert name.endswith("-fast")


def test_the_page_needs_nothing_from_elsewhere(path, out):
    with open_learner(path) as learner:
        play(learner, 70)
    page = Reading(write_report(path, out).read_text())
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "base", "a"}
    sources = [value for _, found in page.tags for name, value in found.items() if name in ("src", "href", "srcset")]
    assert len(sources) == 3
    assert all(source.startswith("data:image/png;base64,iVBORw0KGgo") for source in sources)
    assert "url(" not in out.read_text()
    assert "@import" not in out.read_text()
    (policy,) = [found["content"] for _, found in page.tags if found.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_of_many_arms_the_rest_is_drawn_together(path, out):
    with open_learner(path, arms=[f"arm{place}" for place in range(30)], context=(), policy="random") as learner:
        play(learner, 50)
    assert "The 11 arms played most are shown, and the others together." in " ".join(
        Reading(write_report(path, out).read_text()).text.split()
    )
