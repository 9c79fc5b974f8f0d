"""The dashboard in a real browser. Pictures of every page are in the folder screenshots/."""

import pytest
from browsers import look_at
from dashboards import HOSTILE, play, put_articles
from race_journals import open_learner
from race_journals import play as play_races
from services import Process, decide, put_demo, tell

from preselect.serve.keys import add_key, make_key

pytestmark = pytest.mark.soak

CHARTS = ("rates", "waiting", "chosen", "won", "effective", "first")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Process(tmp_path_factory.mktemp("service"), "--store", "memory:") as process:
        put_articles(process)
        process.last = play(process, 300)
        yield process


def list_pages(served):
    articles = "/preselectors/articles"
    return {
        "home": "/",
        "preselector": articles,
        "arms": f"{articles}/arms",
        "decision": f"{articles}/decisions/{served.last['id']}",
        "retire": f"{articles}/retire?arm=moon",
        "missing": f"{articles}/decisions/none",
    }


def test_every_page_in_light_and_dark_wide_and_narrow(served, open_page):
    for name, path in list_pages(served).items():
        page = open_page(served.url + path, check=name != "missing")
        if name == "preselector":
            page.wait_for_selector('[data-live="yes"]')
            for chart in CHARTS:
                page.wait_for_selector(f'[data-chart="{chart}"] canvas')
        look_at(page, name)


def test_what_another_client_tells_appears_by_itself(served, open_page):
    page = open_page(f"{served.url}/preselectors/articles")
    page.wait_for_selector('[data-live="yes"]')
    made = decide(served, "articles", label="from another client", context={"age": 20, "evening": 0})
    row = page.locator('[data-part="recent"] tr', has_text="from another client")
    row.wait_for()
    assert "waiting" in row.inner_text()
    tell(served, made["id"], winner=made["names"][0])
    page.locator('[data-part="recent"] tr:has-text("from another client"):not(:has-text("waiting"))').wait_for()
    row.locator("a").click()
    page.wait_for_selector("h1:has-text('Why')")


def test_arms_are_searched_and_retired_by_keyboard(served, open_page):
    put_demo(served, "keyboard", arms=["apple", "pear", "plum"])
    page = open_page(f"{served.url}/preselectors/keyboard/arms")
    page.get_by_label("Name contains").focus()
    page.keyboard.type("PEA")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=PEA**")
    assert page.locator("tbody tr").count() == 1
    page.get_by_label("Retire pear").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Retire").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=pear has left.")
    assert sorted(served.get("/v1/preselectors/keyboard").json()["arms"]) == ["apple", "plum"]
    page.get_by_label("Name", exact=True).fill("quince")
    page.get_by_role("button", name="Add").click()
    page.wait_for_selector("text=quince has joined.")


def test_names_are_text_in_the_browser(served, open_page):
    put_demo(served, "hostile", arms=[HOSTILE, "b"], context=[HOSTILE])
    made = decide(served, "hostile", context={HOSTILE: 1.0}, label=HOSTILE)
    tell(served, made["id"], winner=HOSTILE, details={HOSTILE: HOSTILE})
    for path in ("", "/arms", f"/decisions/{made['id']}"):
        page = open_page(f"{served.url}/preselectors/hostile{path}")
        page.wait_for_selector(f"text={HOSTILE[:12]}")
        if not path:
            page.wait_for_selector('[data-chart="chosen"] canvas')
        assert page.title() != "broken"
        assert page.locator("img").count() == 0


def test_long_names_fit_a_small_screen_and_names_from_right_to_left_turn_nothing_else(served, open_page):
    long, turned = "W" * 200, "\u202eturned"
    put_demo(served, "wide", arms={name: {"f" * 200: 1.0} for name in (long, turned, "سياق")}, context=["c" * 200])
    made = decide(served, "wide", k=3, context={"c" * 200: 1.0}, label="L" * 200)
    tell(served, made["id"], winner=turned, details={"d" * 200: 1})
    for path in ("", "/arms", f"/decisions/{made['id']}", f"/retire?arm={long}"):
        page = open_page(f"{served.url}/preselectors/wide{path}")
        page.set_viewport_size({"width": 320, "height": 600})
        if not path:
            page.wait_for_selector('[data-live="yes"]')
            page.wait_for_selector('[data-chart="chosen"] canvas')
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        if "decisions" in path:
            name, won = page.locator("td:has(.good) bdi").bounding_box(), page.locator("td .good").bounding_box()
            assert won["x"] >= name["x"] + name["width"]


def test_charts_without_values_and_figures_of_one_outcome_are_left_out(served, open_page):
    put_demo(served, "first")
    made = decide(served, "first")
    page = open_page(f"{served.url}/preselectors/first")
    page.wait_for_selector('[data-chart="chosen"] canvas')
    for chart in ("won", "first"):
        assert page.inner_text(f'[data-chart="{chart}"]') == "There is nothing to show yet."
    tell(served, made["id"], winner=made["names"][0])
    page.wait_for_selector('[data-part="delays"] td')
    assert "Half of 1" not in page.inner_text("main")
    assert "last 1 " not in page.inner_text("main")
    page.wait_for_selector('[data-chart="won"] canvas')


def test_an_empty_service_and_an_empty_preselector_say_what_to_do(tmp_path, open_page):
    with Process(tmp_path, "--store", "memory:") as process:
        page = open_page(process.url)
        assert "There is no preselector yet" in page.inner_text("main")
        look_at(page, "home-empty")
        put_demo(process)
        page.goto(process.url + "/preselectors/demo")
        page.wait_for_selector("text=Nothing has been decided yet. Ask for a decision")
        look_at(page, "preselector-empty")


def test_a_page_comes_back_after_a_restart_and_without_a_network(tmp_path, open_page):
    with Process(tmp_path) as process:
        put_demo(process)
        page = open_page(process.url + "/preselectors/demo", check=False)
        page.wait_for_selector('[data-live="yes"]')
        process.stop()
        page.wait_for_selector('[data-live="no"]')
        with Process(tmp_path, port=process.port) as again:
            page.wait_for_selector('[data-live="yes"]')
            decide(again, label="after the restart")
            page.wait_for_selector("text=after the restart")
            page.context.set_offline(True)
            decide(again, label="while offline")
            page.context.set_offline(False)
            page.wait_for_selector("text=while offline")


def test_keys_are_asked_for_and_a_reader_has_no_buttons(tmp_path, open_page):
    tokens = {}
    for role in ("reader", "admin"):
        key, tokens[role] = make_key(role)
        add_key(tmp_path / "keys", key)
    with Process(tmp_path, "--store", "memory:", "--keys", "keys") as process:
        put_articles(process, headers={"Authorization": f"Bearer {tokens['admin']}"})
        for role, buttons in (("reader", 0), ("admin", 1)):
            page = open_page(f"{process.url}/preselectors/articles/arms")
            look_at(page, "login")
            page.get_by_label("Key").fill(tokens[role])
            page.get_by_role("button", name="Log in").click()
            page.wait_for_selector("h1:has-text('Arms of articles')")
            assert page.get_by_role("button", name="Add").count() == buttons
            assert page.get_by_label("Retire moon").count() == buttons
            page.goto(f"{process.url}/preselectors/articles")
            page.wait_for_selector('[data-live="yes"]')
            page.get_by_role("button", name="Log out").click()
            page.wait_for_selector("h1:has-text('Log in')")


def test_a_journal_of_races(tmp_path, open_page):
    with open_learner(tmp_path / "pool.journal") as learner:
        play_races(learner, 150)
        with Process(tmp_path, "--journal", "pool.journal") as process:
            page = open_page(process.url + "/preselectors/pool")
            page.wait_for_selector("text=Seconds saved")
            page.wait_for_selector('[data-live="yes"]')
            learner.select([1.0, 2.0], k=2, label="while we look.cnf")
            page.wait_for_selector("text=while we look.cnf")
            look_at(page, "races")
