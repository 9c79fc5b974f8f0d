"""The posters that people pick from: each has a few parameters, and features in which taste is linear.

A poster has a pattern, a hue, and five amounts from 0 to 1. Its features are what people may like or dislike: colours
as coordinates on a colour wheel, because hues have no beginning and no end; amounts; and for each amount its square, so
that people can like the middle of it, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

PATTERNS = ("arches", "tiles", "hills", "orbits", "stripes", "leaves")

_EACH = 39  # posters of a pattern
_WARM = 55.0  # the warmest hue, orange, in degrees
_DIMENSIONS = 6


@dataclass(frozen=True)
class Poster:
    """What a poster is drawn from.

    Parameters
    ----------
    pattern : str
        One of PATTERNS.
    number : int
        Which one of its pattern.
    hue : float
        The main hue in degrees, as OKLCH has it.
    light, vivid, contrast, busy, colourful : float
        Amounts from 0 to 1: how light the ground is; how saturated the colours; how far they are from the ground; how
        many shapes there are; how far apart the hues lie.
    """

    pattern: str
    number: int
    hue: float
    light: float
    vivid: float
    contrast: float
    busy: float
    colourful: float

    @property
    def name(self) -> str:
        """The name of its arm, such as "hills 7"."""
        return f"{self.pattern} {self.number}"

    def list_features(self) -> dict[str, float]:
        """Return its features by name."""
        turn, chroma = math.radians(self.hue - _WARM), 0.3 + 0.7 * self.vivid
        amounts = {"light": self.light, "vivid": self.vivid, "busy": self.busy, "colourful": self.colourful}
        return {
            "warm": chroma * math.cos(turn),
            "green": chroma * math.sin(turn),
            **{name: 2.0 * amount - 1.0 for name, amount in amounts.items()},
            "contrast": 2.0 * self.contrast - 1.0,
            **{f"{name}, middle": 1.0 - (2.0 * amount - 1.0) ** 2 for name, amount in amounts.items()},
            **{pattern: float(pattern == self.pattern) for pattern in PATTERNS},
        }


@cache
def list_posters() -> tuple[Poster, ...]:
    """Return all posters, always the same."""
    return tuple(
        Poster(pattern, number, 360.0 * hue, *amounts)
        for row, pattern in enumerate(PATTERNS)
        for number, (hue, *amounts) in enumerate(_spread(row * _EACH, _EACH), start=1)
    )


def _spread(first: int, count: int) -> Iterator[list[float]]:
    """Yield points that fill the unit cube evenly: an additive recurrence with a generalised golden ratio."""
    ratio = 1.0
    for _ in range(50):
        ratio = (1.0 + ratio) ** (1.0 / (_DIMENSIONS + 1))
    for number in range(first + 1, first + count + 1):
        yield [(0.5 + number * ratio ** -(axis + 1)) % 1.0 for axis in range(_DIMENSIONS)]
