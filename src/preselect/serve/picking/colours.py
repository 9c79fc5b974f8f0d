"""Colours as people see them (OKLCH: lightness, chroma, hue), and the palette of a poster."""

from __future__ import annotations

import math
from typing import NamedTuple

from preselect.serve.picking.posters import Poster

_SHADES = 5  # of a palette


class Palette(NamedTuple):
    """The ground of a poster and what is drawn on it, from the faintest shade to the strongest, and an accent."""

    ground: str
    shades: list[str]
    accent: str


def make_palette(poster: Poster) -> Palette:
    """Choose the colours of a poster."""
    is_dark = poster.light < 0.5
    ground = 0.17 + 0.26 * poster.light if is_dark else 0.78 + 0.19 * (2.0 * poster.light - 1.0)
    chroma, reach = 0.025 + 0.15 * poster.vivid, 12.0 + 78.0 * poster.colourful
    nearest, farthest = 0.10 + 0.06 * poster.contrast, 0.30 + 0.36 * poster.contrast
    away = 1.0 if is_dark else -1.0
    shades = []
    for place in range(_SHADES):
        step = place / (_SHADES - 1)
        lightness = ground + away * (nearest + (farthest - nearest) * step)
        hue = poster.hue + reach * (2.0 * step - 1.0)
        shades.append(_write(lightness, chroma * (0.75 + 0.5 * math.sin(math.pi * step)), hue))
    accent = _write(0.78 if is_dark else 0.62, 0.06 + 0.13 * poster.vivid, poster.hue + 90.0 + 90.0 * poster.colourful)
    return Palette(_write(ground, 0.012 + 0.035 * poster.vivid, poster.hue), shades, accent)


def _write(lightness: float, chroma: float, hue: float) -> str:
    """Write a colour in hexadecimal, with as much of its chroma as a screen can show."""
    lightness = min(max(lightness, 0.0), 1.0)
    while not _is_shown(found := _mix(lightness, chroma, hue)) and chroma > 0.0:
        chroma = max(chroma - 0.005, 0.0)
    return "#" + "".join(f"{round(255 * min(max(_bend(one), 0.0), 1.0)):02x}" for one in found)


def _is_shown(channels: tuple[float, ...]) -> bool:
    return all(-0.0005 <= one <= 1.0005 for one in channels)


def _mix(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    """Convert an OKLCH colour to linear red, green and blue (Ottosson, 2020)."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    )


def _bend(channel: float) -> float:
    """Convert a linear channel to sRGB."""
    if channel <= 0.0031308:
        return 12.92 * channel
    return float(1.055 * channel ** (1.0 / 2.4) - 0.055)
