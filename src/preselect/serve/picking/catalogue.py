"""The data of the picking page: the posters, the preselector to create, and words for its features."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import quote

from preselect.serve.picking.posters import PATTERNS, Poster, list_posters

NAME = "posters"

_BETA = 6.0  # high, because people make few picks: besides a favourite, show posters about which little is known
_FEATURE, _POSTER = 0.02, 2  # prior precisions: features may matter much, single posters only a little

# each feature: what less and more of it is called, and how much simulated people care about it
_DIALS = {
    "warm": ("cool", "warm", 1.5),
    "green": ("pink", "green", 1.5),
    "light": ("dark", "light", 1.0),
    "vivid": ("muted", "vivid", 1.0),
    "busy": ("calm", "busy", 1.0),
    "colourful": ("one hue", "many hues", 1.0),
    "contrast": ("soft", "strong", 0.6),
    "light, middle": ("dark or light", "medium light", 0.6),
    "vivid, middle": ("muted or vivid", "medium vivid", 0.6),
    "busy, middle": ("calm or busy", "medium busy", 0.6),
    "colourful, middle": ("one or many", "some hues", 0.6),
}
_PATTERN_STRENGTH = 0.5

_HUES = (
    (20, "pink"), (48, "red"), (78, "orange"), (112, "yellow"), (160, "green"), (215, "teal"), (275, "blue"),
    (315, "violet"), (345, "magenta"), (360, "pink"),
)  # fmt: skip


@cache
def make_catalogue() -> dict[str, Any]:
    """Return everything that the page needs, as values for JSON."""
    return {
        "name": NAME,
        "preselector": make_definition(),
        "posters": {
            poster.name: {"image": f"/pick/posters/{quote(poster.name)}.svg", "description": _describe(poster)}
            for poster in list_posters()
        },
        "patterns": PATTERNS,
        "dials": [_make_dial(feature, *said) for feature, said in _DIALS.items()],
        "pattern_dials": [_make_dial(pattern, "", pattern, _PATTERN_STRENGTH) for pattern in PATTERNS],
    }


def _make_dial(feature: str, less: str, more: str, strength: float) -> dict[str, Any]:
    return {"feature": feature, "less": less, "more": more, "strength": strength}


def make_definition() -> dict[str, Any]:
    """Return what the preselector is made from, in the form that the service takes."""
    posters = list_posters()
    precision = [_FEATURE] * len(posters[0].list_features()) + [_POSTER] * len(posters)
    return {
        "arms": {poster.name: poster.list_features() for poster in posters},
        "policy": f"newton(beta={_BETA}, precision={precision})",
        "nobody_may_win": True,
        "groups": {poster.name: poster.pattern for poster in posters},
    }


def _describe(poster: Poster) -> str:
    """Say what a poster looks like, for readers who do not see it."""
    hue = next(name for last, name in _HUES if poster.hue <= last)
    said = [f"{poster.pattern} in {hue}"]
    for amount, less, more in (
        (poster.light, "dark", "light"),
        (poster.vivid, "muted", "vivid"),
        (poster.busy, "calm", "busy"),
        (poster.colourful, "one hue", "many hues"),
    ):
        said += [less] if amount < 0.35 else [more] if amount > 0.65 else []
    return ", ".join(said)
