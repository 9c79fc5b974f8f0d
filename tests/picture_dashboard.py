"""Makes docs/images/dashboard.png: python tests/picture_dashboard.py."""

import tempfile
from pathlib import Path

from browsers import find_chromium
from dashboards import play, put_articles
from playwright.sync_api import sync_playwright
from services import Process

TARGET = Path(__file__).parents[1] / "docs" / "images" / "dashboard.png"


def main():
    with tempfile.TemporaryDirectory() as folder, Process(Path(folder), "--store", "memory:") as process:
        put_articles(process)
        play(process, 900)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1100, "height": 1350})
            page.goto(process.url + "/preselectors/articles")
            page.wait_for_selector('[data-chart="first"] canvas')
            page.wait_for_selector("text=The history is being read", state="detached")
            page.wait_for_timeout(2500)  # the curves follow every two seconds
            last = page.locator("section", has=page.locator("#first-title")).bounding_box()
            clip = {"x": 0, "y": 0, "width": 1100, "height": last["y"] + last["height"] + 16}
            page.screenshot(path=TARGET, full_page=True, clip=clip)
            browser.close()
    print(TARGET)


if __name__ == "__main__":
    main()
