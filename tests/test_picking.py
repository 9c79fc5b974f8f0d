"""The picking page without a browser: posters, what the page is told, and that a taste is found."""

import re
import secrets
from xml.etree import ElementTree

import httpx
import pytest
from picker import Picker, make_same_ids, open_demo
from processes import wait_until
from services import decide, open_service, tell

from preselect.cli import demo
from preselect.client import Client
from preselect.serve.picking.catalogue import NAME, make_catalogue, make_definition
from preselect.serve.picking.drawing import draw
from preselect.serve.picking.pages import make_picking_routes
from preselect.serve.picking.posters import PATTERNS, list_posters

AGAIN = 6


@pytest.fixture(scope="module")
def client():
    with open_service(routes=make_picking_routes()) as found:
        yield found


def test_posters_are_drawn_always_the_same_and_all_different():
    posters = list_posters()
    assert len({poster.name for poster in posters}) == len(posters) > 200
    assert {poster.pattern for poster in posters} == set(PATTERNS)
    drawn = [draw(poster) for poster in posters]
    assert drawn == [draw(poster) for poster in posters]
    assert len(set(drawn)) == len(drawn)
    for text in drawn:
        shapes = [one for one in ElementTree.fromstring(text).iter() if "fill" in one.attrib]
        assert len(shapes) > 3
        assert all(re.fullmatch("#[0-9a-f]{6}|none", one.attrib["fill"]) for one in shapes)
        assert "style" not in text
        assert "nan" not in text


def test_amounts_are_spread_evenly_within_each_pattern():
    for pattern in PATTERNS:
        of_pattern = [poster for poster in list_posters() if poster.pattern == pattern]
        for name in ("light", "vivid", "contrast", "busy", "colourful"):
            values = [getattr(poster, name) for poster in of_pattern]
            assert all(0.0 <= value < 1.0 for value in values)
            assert 0.45 < sum(values) / len(values) < 0.55


def test_the_page_speaks_of_every_feature_and_of_nothing_else():
    catalogue = make_catalogue()
    said = {dial["feature"] for dial in catalogue["dials"] + catalogue["pattern_dials"]}
    assert all(set(features) == said for features in catalogue["preselector"]["arms"].values())
    assert set(catalogue["posters"]) == set(catalogue["preselector"]["arms"])


def test_the_page_and_its_pictures_are_served(client):
    page = client.get("/pick")
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert "unsafe" not in page.headers["content-security-policy"]
    assert not re.search(r"<script>|style=|onclick", page.text)
    catalogue = client.get("/pick/posters.json").json()
    picture = client.get(catalogue["posters"]["hills 7"]["image"])
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text.startswith("<svg")
    assert client.get("/pick/posters/hills 0.svg").status_code == 404
    for script in ("pick.js", "panels.js", "person.js", "service.js"):
        assert client.get(f"/static/pick/{script}").status_code == 200


def test_a_service_has_no_picking_page_unless_it_is_told_to():
    with open_service() as plain:
        assert plain.get("/pick").status_code == 404


def play(client, seed, picks=40):
    """Pick as the page does; return the favourite at the end, and how often the first choice and a guess were right."""
    picker, name, shown, hits, guesses = Picker(seed), f"{NAME}-{seed}", [], 0, 0.0
    assert client.put(f"/v1/preselectors/{name}", json=make_definition()).status_code == 201
    for _ in range(picks):
        recent = {arm for names in shown[-AGAIN:] for arm in names}
        decision = decide(
            client,
            name,
            k=3,
            eligible=[arm for arm in picker.utilities if arm not in recent],
            at_most=dict.fromkeys(PATTERNS, 1),
        )
        shown.append(decision["names"])
        winner = picker.pick(decision["names"])
        assert tell(client, decision["id"], winner=winner).status_code == 201
        hits += winner == decision["names"][0]
        guesses += 0 if winner is None else 1 / 3
    arms = client.get(f"/v1/preselectors/{name}/weights").json()["arms"]
    return picker, max(arms, key=lambda arm: arms[arm]["utility"]), hits, guesses


def test_forty_picks_are_enough_to_know_a_taste(client, monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", make_same_ids())
    played = [play(client, seed) for seed in range(100, 108)]
    assert sum(picker.is_among_the_best(favourite) for picker, favourite, _, _ in played) >= 7
    assert sum(hits for *_, hits, _ in played) >= 2 * sum(guesses for *_, guesses in played)


def test_the_command_prints_the_address_of_the_page():
    with open_demo() as address:
        assert "Which one do you like best?" in httpx.get(f"{address}/pick").text
        assert httpx.get(f"{address}/v1/preselectors/{NAME}").json()["decisions"] == 0


def test_somebody_who_waits_for_the_first_start_is_told_why(monkeypatch, capsys):
    def wait(*_, **__):
        wait_until(lambda: "the first time" in capsys.readouterr().err)

    monkeypatch.setattr(Client, "create", wait)
    monkeypatch.setattr(demo, "_SOON", 0.0)
    demo._invite("http://127.0.0.1:1", True)
    assert "http://127.0.0.1:1/pick" in capsys.readouterr().out
