"""The built documentation site, opened from its folder: search, links, and no request to anywhere else."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from preselect import errors

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[1]
_STICKING_OUT = """() => {
  const scrolls = (one) => one && (getComputedStyle(one).overflowX === "auto" || scrolls(one.parentElement));
  return [...document.querySelectorAll("article :is(pre, table, img, dt, h1, h2)")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !scrolls(one))
    .map((one) => one.textContent.slice(0, 80));
}"""  # what is cut off at the right edge, and cannot be scrolled to


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built with warnings as errors."""
    pytest.importorskip("sphinx", reason="needs the extra docs")
    built = tmp_path_factory.mktemp("built")
    options = ["-E", "-W", "-q", "-d", built / "doctrees", ROOT / "docs", built / "docs"]
    subprocess.run([sys.executable, "-m", "sphinx", *options], check=True, capture_output=True)
    return built / "docs"


def list_pages(site):
    return sorted(site.rglob("*.html"))


def test_links_lead_somewhere(site):
    texts = {page: page.read_text() for page in list_pages(site)}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    for page, text in texts.items():
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', text):
            if re.match(r"\w+:", link):
                continue
            file, _, fragment = unquote(link.partition("?")[0] if "?" in link else link).partition("#")
            target = (page.parent / file).resolve() if file else page
            assert target.exists(), (page, link)
            assert not fragment or target not in anchors or fragment in anchors[target], (page, link)


def test_every_public_name_has_a_place(site):
    text = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    places = set(re.findall(r'\bid="(preselect\.[\w.]+)"', text))
    for name in ("", ".model", ".logs", ".offline", ".race", ".store", ".study", ".environments", ".sat", ".testing"):
        module = importlib.import_module(f"preselect{name}")
        found = {f"preselect{'.errors' if hasattr(errors, one) else name}.{one}" for one in module.__all__}
        assert found <= places, found - places


def test_protocols_are_shown_without_the_constructor_that_python_gives_them(site):
    text = re.sub("<[^>]*>", "", "".join(page.read_text() for page in (site / "reference").glob("*.html")))
    assert "preselect.environments.Environment" in text
    assert "*args" not in text


def test_search_works_in_a_local_folder(site, open_page):
    page = open_page((site / "index.html").as_uri())
    page.fill("input[name=q]", "thompson")
    page.press("input[name=q]", "Enter")
    found = page.locator("#search-results li")
    found.first.wait_for()
    assert "preselect.Thompson" in found.first.inner_text()
    found.first.locator("a").click()
    assert "/reference/" in page.url


@pytest.mark.parametrize(("size", "dark"), [("wide", False), ("phone", True)])
def test_pages_fit_and_complain_of_nothing(site, open_page, size, dark):
    page = open_page((site / "index.html").as_uri(), dark=dark, size=size)
    for path in list_pages(site):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
        assert page.evaluate(_STICKING_OUT) == [], path


@pytest.mark.parametrize("name", ["index", "studies/synthetic", "tutorials/paper"])
def test_pictures_have_a_frame_in_the_dark(site, open_page, name):
    """Pictures are made for white paper: without a frame, lettering ends at a hard edge."""
    page = open_page((site / f"{name}.html").as_uri(), dark=True)
    radius = "one => getComputedStyle(one).borderTopLeftRadius"
    assert all(
        page.locator("article img").nth(i).evaluate(radius) != "0px" for i in range(page.locator("article img").count())
    )
    page.emulate_media(color_scheme="light")
    assert page.locator("article img").first.evaluate(radius) == "0px"


def test_only_links_are_underlined(site, open_page):
    page = open_page((site / "studies" / "your-own.html").as_uri(), dark=True)
    lines = "all => [...new Set(all.map(one => getComputedStyle(one).textDecorationLine))]"
    assert page.locator(".highlight span").evaluate_all(lines) == ["none"]


def test_notebooks_show_what_they_printed(site):
    for name in ("paper", "language-models", "algorithm-selection"):
        text = (site / "tutorials" / f"{name}.html").read_text()
        assert text.count('class="cell_output') >= 4
        assert "<img" in text
