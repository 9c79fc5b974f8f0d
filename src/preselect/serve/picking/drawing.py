"""Posters as SVG: each pattern is a function that yields shapes on a sheet of 300 by 420."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

from preselect.serve.picking.colours import Palette, make_palette
from preselect.serve.picking.posters import Poster

_WIDTH, _HEIGHT = 300.0, 420.0

_Shapes = Iterator[str]


def draw(poster: Poster) -> str:
    """Draw a poster; the same poster is always the same text."""
    palette, chance = make_palette(poster), random.Random(poster.name)
    shapes = "".join(_PATTERNS[poster.pattern](poster, palette, chance))
    sheet = _rect(0.0, 0.0, _WIDTH, _HEIGHT, palette.ground)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 420">{sheet}{shapes}</svg>'


def _shape(tag: str, **attributes: float | str) -> str:
    listed = (
        f'{name.replace("_", "-")}="{value if isinstance(value, str) else format(value, ".5g")}"'
        for name, value in attributes.items()
    )
    return f"<{tag} {' '.join(listed)}/>"


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return _shape("rect", x=x, y=y, width=width, height=height, fill=fill)


def _disc(x: float, y: float, r: float, fill: str) -> str:
    return _shape("circle", cx=x, cy=y, r=r, fill=fill)


def _ring(x: float, y: float, r: float, width: float, stroke: str) -> str:
    return _shape("circle", cx=x, cy=y, r=r, fill="none", stroke=stroke, stroke_width=width)


def _path(d: str, fill: str) -> str:
    return _shape("path", d=d, fill=fill)


def _steps(poster: Poster, few: int, many: int) -> int:
    return round(few + (many - few) * poster.busy)


# --- arches: rainbows that stand on each other ------------------------------------------------------------------------


def _draw_arches(poster: Poster, palette: Palette, chance: random.Random) -> _Shapes:
    rows = _steps(poster, 1, 5)
    across, bands = (1 if rows < 3 else 2 if rows < 5 else 3), _steps(poster, 4, 5)
    width, height = 252.0 / across, 372.0 / rows
    for row in range(rows):
        for column in range(across):
            middle = 24.0 + width * (column + 0.5)
            yield from _draw_arch(middle, 24.0 + height * (row + 1), width / 2.0 - 3.0, height - 6.0, bands, palette)
    if rows == 1:
        yield _disc(24.0 + 252.0 * chance.choice((0.12, 0.88)), 60.0, 20.0, palette.accent)


def _draw_arch(x: float, base: float, radius: float, height: float, bands: int, palette: Palette) -> _Shapes:
    for band in range(bands):
        r = radius * (1.0 - band / bands)
        top = max(height - radius, 0.0) + r
        fill = palette.shades[band % 5] if band < bands - 1 else palette.accent
        straight = base - max(top - r, 0.0)
        flat = min(1.0, height / radius)
        yield _path(
            f"M{x - r:.1f} {base:.1f}V{straight:.1f}A{r:.1f} {r * flat:.1f} 0 0 1 {x + r:.1f} {straight:.1f}"
            f"V{base:.1f}Z",
            fill,
        )


# --- tiles: quarter circles on a grid ---------------------------------------------------------------------------------


def _draw_tiles(poster: Poster, palette: Palette, chance: random.Random) -> _Shapes:
    columns = _steps(poster, 2, 7)
    rows = round(columns * 1.4)
    side = min(252.0 / columns, 372.0 / rows)
    left, top = (_WIDTH - columns * side) / 2.0, (_HEIGHT - rows * side) / 2.0
    for row in range(rows):
        for column in range(columns):
            yield from _draw_tile(left + column * side, top + row * side, side, palette, chance)


def _draw_tile(x: float, y: float, side: float, palette: Palette, chance: random.Random) -> _Shapes:
    back, front = chance.sample(palette.shades, 2)
    front = palette.accent if chance.random() < 0.16 else front
    yield _rect(x, y, side + 0.3, side + 0.3, back)
    kind = chance.random()
    if kind < 0.62:
        yield _path(_quarter(x, y, side, chance.randrange(4)), front)
    elif kind < 0.82:
        yield _disc(x + side / 2.0, y + side / 2.0, side * 0.36, front)
    else:
        yield _path(_half(x, y, side, chance.randrange(2)), front)


def _quarter(x: float, y: float, side: float, corner: int) -> str:
    far_x, far_y = x + side, y + side
    starts = ((x, y, far_x, y, x, far_y), (far_x, y, far_x, far_y, x, y),
              (far_x, far_y, x, far_y, far_x, y), (x, far_y, x, y, far_x, far_y))  # fmt: skip
    a, b, c, d, e, f = starts[corner]
    return f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}A{side:.1f} {side:.1f} 0 0 1 {e:.1f} {f:.1f}Z"


def _half(x: float, y: float, side: float, turn: int) -> str:
    r = side / 2.0
    if turn:
        return f"M{x:.1f} {y:.1f}A{r:.1f} {r:.1f} 0 0 1 {x:.1f} {y + side:.1f}Z"
    return f"M{x:.1f} {y + side:.1f}A{r:.1f} {r:.1f} 0 0 1 {x + side:.1f} {y + side:.1f}Z"


# --- hills: a landscape with a sun ------------------------------------------------------------------------------------


def _draw_hills(poster: Poster, palette: Palette, chance: random.Random) -> _Shapes:
    layers = _steps(poster, 3, 10)
    sun = 34.0 + 30.0 * (1.0 - poster.busy)
    x, y = 80.0 + 140.0 * chance.random(), 105.0 + 40.0 * chance.random()
    yield _ring(x, y, sun + 14.0, 1.5, palette.shades[1])
    yield _disc(x, y, sun, palette.accent)
    for layer in range(layers):
        step = (layer + 1) / layers
        fill = palette.shades[round(4 * layer / (layers - 1))]
        yield _path(_hill(185.0 + 205.0 * (step - 1.0 / layers), 44.0 - 22.0 * step, chance), fill)


def _hill(level: float, height: float, chance: random.Random) -> str:
    phase, length = chance.uniform(0.0, math.tau), chance.uniform(170.0, 320.0)
    second = chance.uniform(0.0, math.tau)
    points = (f"{x} {level + height * _wave(x / length, phase, second):.1f}" for x in range(0, 301, 6))
    return f"M0 420L{'L'.join(points)}L300 420Z"


def _wave(x: float, phase: float, second: float) -> float:
    return math.sin(math.tau * x + phase) + 0.35 * math.sin(5.1 * x + second)


# --- orbits: circles around circles -----------------------------------------------------------------------------------


def _draw_orbits(poster: Poster, palette: Palette, chance: random.Random) -> _Shapes:
    rings = _steps(poster, 3, 13)
    x, y = 150.0 + 50.0 * (chance.random() - 0.5), 200.0 + 80.0 * (chance.random() - 0.5)
    core, outer = 26.0, 205.0
    gap = (outer - core) / rings
    yield _disc(x, y, outer + gap / 2.0, palette.shades[0])
    for ring in range(rings, 0, -1):
        r = core + gap * ring
        yield _ring(x, y, r, max(gap * 0.34, 1.2), palette.shades[1 + ring % 4])
        angle = chance.uniform(0.0, math.tau)
        fill = palette.accent if ring % 3 == 1 else palette.shades[4]
        yield _disc(x + r * math.cos(angle), y + r * math.sin(angle), 4.0 + 0.42 * gap * chance.random() + 4.0, fill)
    yield _disc(x, y, core, palette.accent)


# --- stripes: a slanted weave with one bold disc ----------------------------------------------------------------------


def _draw_stripes(poster: Poster, palette: Palette, chance: random.Random) -> _Shapes:
    count = _steps(poster, 5, 22)
    slant = chance.choice((-1.0, 1.0)) * chance.uniform(90.0, 260.0)
    width = (_WIDTH + abs(slant)) / count
    begin = min(0.0, -slant)
    for stripe in range(count):
        x = begin + stripe * width
        fill = palette.shades[(stripe * 2 + stripe // 5) % 5]
        yield _path(f"M{x:.1f} 0H{x + width * 0.72:.1f}L{x + width * 0.72 + slant:.1f} 420H{x + slant:.1f}Z", fill)
    r, x, y = 58.0 + 14.0 * chance.random(), chance.uniform(105.0, 195.0), chance.uniform(120.0, 300.0)
    yield _disc(x, y, r + 12.0, palette.ground)
    yield _disc(x, y, r, palette.accent)


# --- leaves: a stem with pairs of leaves ------------------------------------------------------------------------------


def _draw_leaves(poster: Poster, palette: Palette, chance: random.Random) -> _Shapes:
    stems = 1 + (poster.busy > 0.4) + (poster.busy > 0.75)
    yield _disc(150.0 + 60.0 * (chance.random() - 0.5), 150.0, 82.0, palette.accent)
    for stem in range(stems):
        x = 300.0 * (stem + 1) / (stems + 1)
        yield from _draw_stem(x, _steps(poster, 4, 9), 78.0 - 16.0 * stems, palette, chance)


def _draw_stem(x: float, pairs: int, length: float, palette: Palette, chance: random.Random) -> _Shapes:
    lean, top = chance.uniform(-14.0, 14.0), 52.0 + 50.0 * chance.random()
    yield _path(f"M{x - 1.6:.1f} 420L{x + lean - 0.6:.1f} {top:.1f}h1.2L{x + 1.6:.1f} 420Z", palette.shades[4])
    for pair in range(pairs):
        share = pair / pairs
        y, size = 392.0 - (392.0 - top) * share, length * (1.0 - 0.5 * share)
        here = x + lean * (420.0 - y) / (420.0 - top)
        for side in (-1.0, 1.0):
            yield _path(_leaf(here, y, side * size, size), chance.choice(palette.shades[1:]))
    yield _path(_leaf(x + lean, top + 4.0, 0.0, length * 0.55), palette.shades[3])


def _leaf(x: float, y: float, across: float, size: float) -> str:
    """Return the outline of a leaf that begins at a point of the stem and reaches up and outwards."""
    tip_x, tip_y = x + across * 0.86, y - size * (0.62 if across else 1.1)
    middle_x, middle_y = (x + tip_x) / 2.0, (y + tip_y) / 2.0
    over_x, over_y = (y - tip_y) * 0.42, (tip_x - x) * 0.42
    return (
        f"M{x:.1f} {y:.1f}Q{middle_x + over_x:.1f} {middle_y + over_y:.1f} {tip_x:.1f} {tip_y:.1f}"
        f"Q{middle_x - over_x:.1f} {middle_y - over_y:.1f} {x:.1f} {y:.1f}Z"
    )


_PATTERNS: dict[str, Callable[[Poster, Palette, random.Random], _Shapes]] = {
    "arches": _draw_arches,
    "tiles": _draw_tiles,
    "hills": _draw_hills,
    "orbits": _draw_orbits,
    "stripes": _draw_stripes,
    "leaves": _draw_leaves,
}
