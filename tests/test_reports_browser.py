"""The reports of races and studies in a real browser: light and dark, wide and on a phone."""

import pytest
from browsers import look_at
from race_journals import open_learner, play
from studies import compute

from preselect.offline import fit
from preselect.offline.page import write_fit_page
from preselect.offline.sources import read_logs
from preselect.race.report import write_report as write_race_report
from preselect.study import SyntheticPlan, SyntheticSetting
from preselect.study.report import write_report as write_study_report

pytestmark = pytest.mark.soak

HOSTILE = "<img src=x onerror=alert(1)>"
PLAN = SyntheticPlan(
    settings=(SyntheticSetting(20, 5, 3), SyntheticSetting(50, 5, 5)),
    policies=("newton", "cppl", "mm"),
    repetitions=5,
    horizon=100,
)
ARMS = [HOSTILE, "cadical", "kissat-with-a-very-long-configuration-name"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    with open_learner(folder / "a.journal", arms=ARMS, context=("number_of_variables", HOSTILE)) as learner:
        play(learner, 80)
        entry = learner.select([1.0, 2.0], k=2, label=HOSTILE)
        learner.learn(entry, winner=entry.decision.names[0], details={"seconds": 500.0, "limit": 900.0})
    return {
        "race": write_race_report(folder / "a.journal", folder / "race.html").as_uri(),
        "study": write_study_report(compute(folder / "study", PLAN)).as_uri(),
        "fit": write_fit_page(
            folder / "fit.html", fit(read_logs(folder / "a.journal"), held_out=0.3), HOSTILE
        ).as_uri(),
    }


@pytest.mark.parametrize("kind", ["race", "study", "fit"])
def test_a_report_is_accessible_and_fits(reports, open_page, kind):
    look_at(open_page(reports[kind], bypass_csp=True), f"{kind}-report")  # axe-core is a script


def test_names_are_shown_as_text(reports, open_page):
    page = open_page(reports["race"], bypass_csp=True)
    assert page.inner_text("body").count(HOSTILE) >= 3
    assert page.locator("img[src=x]").count() == 0
