"""The picking page in a real browser."""

import re

import pytest
from browsers import look_at
from picker import Picker, open_demo

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def address():
    with open_demo() as found:
        yield found


def open_picking(open_page, address, name, **options):
    page = open_page(f"{address}/pick#{name}", **options)
    wait_for_round(page, 1)
    return page


def wait_for_round(page, round):
    page.wait_for_selector(f"body[data-round='{round}']", state="attached")


def list_shown(page):
    return page.eval_on_selector_all(".poster", "found => found.map(one => one.dataset.arm)")


def pick(page, picker):
    names = list_shown(page)
    winner = picker.pick(names)
    page.keyboard.press("0" if winner is None else str(1 + names.index(winner)))


def test_after_forty_clicks_the_page_knows_a_taste(address, open_page):
    """Of chance: had it guessed one of the three at random, it would have been right in a third of the picks."""
    found, hits, guesses = [], 0, 0.0
    for seed in range(10):
        picker, page = Picker(seed), open_picking(open_page, address, f"taste-{seed}", reduced_motion="reduce")
        for number in range(1, 41):
            names = list_shown(page)
            winner = picker.pick(names)
            page.click("#none" if winner is None else f".poster >> nth={names.index(winner)}")
            wait_for_round(page, number + 1)
        found.append(picker.is_among_the_best(page.get_attribute("#best", "data-arm")))
        hits += int(re.match(r"(\d+) of 40", page.inner_text("#hits"))[1])
        guesses += float(page.get_attribute("#guess", "data-exact"))
        page.context.close()
    assert sum(found) >= 8, (found, hits, guesses)
    assert hits >= 2 * guesses, (found, hits, guesses)


def test_keys_pick_and_nothing_is_lost_by_loading_the_page_again(address, open_page):
    page = open_picking(open_page, address, "keys")
    for number, key in enumerate(["1", "3", "0", "2"], start=1):
        page.keyboard.press(key)
        wait_for_round(page, number + 1)
    assert page.inner_text("#hits").endswith("of 4")
    shown = sorted(list_shown(page))
    before = page.inner_text("#guess"), page.inner_text("#hits"), page.get_attribute("#best", "data-arm")
    page.reload()
    wait_for_round(page, 5)
    assert sorted(list_shown(page)) == shown
    assert (page.inner_text("#guess"), page.inner_text("#hits"), page.get_attribute("#best", "data-arm")) == before
    page.focus(".poster >> nth=1")
    page.keyboard.press("Enter")
    wait_for_round(page, 6)
    assert page.evaluate("document.activeElement.dataset.key") == "2"


def test_three_different_patterns_are_shown_and_none_again_soon(address, open_page):
    page, shown = open_picking(open_page, address, "fresh"), []
    for number in range(1, 8):
        names = list_shown(page)
        assert len({name.split()[0] for name in names}) == 3
        assert not set(names) & {name for earlier in shown[-6:] for name in earlier}
        shown.append(names)
        page.keyboard.press("1")
        wait_for_round(page, number + 1)


def test_why_these_three_explains_them(address, open_page):
    page = open_picking(open_page, address, "why")
    for number in range(1, 4):
        page.keyboard.press("2")
        wait_for_round(page, number + 1)
    page.click("#why")
    titles = page.locator("#reasons h2").all_inner_texts()
    assert sorted(title.split(":")[0] for title in titles) == ["A challenger", "A challenger", "Its favourite"]
    shares = [int(re.search(r"(\d+) %", title)[1]) for title in titles]
    nobody = int(re.search(r"None of them: (\d+) %", page.inner_text("#reasons"))[1])
    assert abs(sum(shares) + nobody - 100) <= 2
    page.keyboard.press("1")
    wait_for_round(page, 5)
    assert page.locator("#reasons h2").all_inner_texts() != titles


def test_what_was_picked_in_another_window_is_taken_over(address, open_page):
    pages = [open_picking(open_page, address, "windows", check=False) for _ in range(2)]
    names = list_shown(pages[0])
    pages[0].click(f".poster[data-arm='{names[0]}']")
    wait_for_round(pages[0], 2)
    pages[1].click(f".poster[data-arm='{names[1]}']")
    wait_for_round(pages[1], 2)
    assert "another window" in pages[1].inner_text("#news")
    assert sorted(list_shown(pages[0])) == sorted(list_shown(pages[1]))
    pages[1].keyboard.press("1")
    wait_for_round(pages[1], 3)


def test_start_again_forgets(address, open_page):
    page = open_picking(open_page, address, "again")
    page.keyboard.press("1")
    wait_for_round(page, 2)
    page.click("#restart")
    wait_for_round(page, 1)
    assert page.inner_text("#hits") == "–"
    assert page.evaluate("location.hash") != "#again"


def test_somebody_simulated_picks_and_the_truth_is_shown(address, open_page):
    page = open_picking(open_page, address, "simulated")
    assert page.locator(".truth").count() == 0
    page.click("#simulate")
    assert page.get_attribute("#news", "aria-live") == "off"
    page.wait_for_selector("#simulate:has-text('Let a simulated')", timeout=300_000)
    assert page.get_attribute("#news", "aria-live") == "polite"
    wait_for_round(page, 41)
    assert page.locator(".truth").count() == 17
    rank = int(re.search(r"number (\d+) of", page.inner_text("#best-caption"))[1])
    assert 1 <= rank <= 234


def test_what_goes_wrong_is_said_as_text(address, open_page):
    page = open_page(f"{address}/pick#%3Cimg src=x onerror=alert(1)%3E", check=False)
    page.wait_for_selector("#problem:not([hidden])")
    assert "<img" in page.inner_text("#problem")
    assert page.locator("#problem img").count() == 0


def test_the_page_is_accessible_and_fits(address, open_page):
    page, picker = open_picking(open_page, address, "looks"), Picker(3)
    look_at(page, "pick-empty")
    for number in range(1, 31):
        pick(page, picker)
        wait_for_round(page, number + 1)
    page.wait_for_timeout(400)  # posters have arrived
    look_at(page, "pick")
    page.click("#why")
    look_at(page, "pick-why")
