"""A real browser for tests: the system's Chromium, which may reach nothing but the service under test."""

import os
import shutil
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import pytest

SCREENSHOTS = Path(__file__).parents[1] / "screenshots"
SIZES = {"wide": (1280, 900), "phone": (420, 860)}
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
]
_ENDED = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED_ENCODING")
# what a page that is still open says when its service has ended
_SHADOWS = "shown => document.querySelectorAll('.scroll').forEach(one => one.style.background = shown ? '' : 'none')"
# axe-core does not judge text over the shadows at the edges of tables


def find_chromium():
    """The path of the browser; None if there is none."""
    named = os.environ.get("PRESELECT_TEST_CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Watch:
    """A page, and all that it has asked for and complained about."""

    def __init__(self, page, origin):
        self.page, self.origin, self.requests, self.complaints = page, origin, [], []
        page.route("**/*", self._route)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _route(self, route):
        url = route.request.url
        self.requests.append(url)
        if urlsplit(url).netloc == urlsplit(self.origin).netloc or url.startswith("data:"):
            route.continue_()
        else:
            route.abort()

    def _note(self, message):
        if message.type in ("error", "warning") and not any(one in message.text for one in _ENDED):
            self.complaints.append(f"{message.type}: {message.text} at {message.location}")

    def check(self):
        """No error on the console, and no request to anywhere else."""
        assert self.complaints == [], self.complaints
        elsewhere = [url for url in self.requests if not url.startswith((self.origin + "/", "data:"))]
        assert elsewhere == [], elsewhere


@pytest.fixture(scope="session")
def chromium():
    """The browser, started once; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    path = find_chromium()
    if path is None:
        pytest.skip("needs Chromium: apt-get install chromium, or name one in PRESELECT_TEST_CHROMIUM")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens a page of a service: open_page(url, dark=..., size="phone"); what it complains about fails the test."""
    opened = []

    def open_one(url, *, dark=False, size="wide", check=True, **options):
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **options
        )
        page = context.new_page()
        page.set_default_timeout(20_000)
        parts = urlsplit(url)
        page.watch = Watch(page, f"{parts.scheme}://{parts.netloc}")
        opened.append((context, page.watch, check))
        page.goto(url)
        return page

    yield open_one
    for context, watch, check in opened:
        context.close()
        if check:
            watch.check()


def look_at(page, name):
    """In light and dark, wide and narrow: nothing sticks out, axe-core finds nothing serious, and a picture is kept."""
    SCREENSHOTS.mkdir(exist_ok=True)
    for tone, (size, (width, height)) in product(("light", "dark"), SIZES.items()):
        page.emulate_media(color_scheme=tone)
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(300)  # charts are drawn anew
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=SCREENSHOTS / f"{name}-{tone}-{size}.png", full_page=True)
        assert _find_violations(page) == []


def _find_violations(page):
    """What axe-core finds serious about a page, or worse."""
    page.evaluate(_SHADOWS, False)
    page.evaluate((Path(__file__).parent / "axe" / "axe.min.js").read_text())
    found = page.evaluate("async () => (await axe.run()).violations")
    page.evaluate(_SHADOWS, True)
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
