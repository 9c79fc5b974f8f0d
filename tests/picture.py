"""Make the picture of the picking page in the README: python tests/picture.py. It needs Chromium."""

from pathlib import Path

from browsers import find_chromium
from picker import Picker, open_demo
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "picking.png"
PICKS = 30


def main():
    picker = Picker(3)
    with open_demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")
        page.goto(f"{address}/pick")
        for number in range(1, PICKS + 2):
            page.wait_for_selector(f"body[data-round='{number}']", state="attached")
            names = page.eval_on_selector_all(".poster", "found => found.map(one => one.dataset.arm)")
            winner = picker.pick(names)
            if number <= PICKS:
                page.keyboard.press("0" if winner is None else str(1 + names.index(winner)))
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
