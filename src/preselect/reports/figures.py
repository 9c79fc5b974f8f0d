"""Helpers for figures of races and studies: colours, one style, PNG and SVG, axes, names that fit.

    with new_figure(10.0, 4.6) as figure:          # the style holds inside the block
        panel = figure.subplots()
        panel.plot(counts, color=COLOURS[0], linestyle=DASHES[0], label=shorten_name(arm))
        label_axes(panel, "races", "wins so far")
        count_on_axes(panel)
    png = to_png(figure)                           # or to_svg(figure)

Colours are Okabe and Ito's, made for colour-blind readers; lines differ in dash as well. Matplotlib is imported with
the first figure, and its state is left as it was.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BLACK, ORANGE, SKY_BLUE, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
COLOURS = (BLACK, ORANGE, SKY_BLUE, GREEN, BLUE, VERMILION, PURPLE)
DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1, 1, 1, 1, 1)))  # 5 and 7 have no common divisor: 35 pairs
GREY = "#888888"

_LONGEST_NAME = 28


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Any]:
    """Yield an empty figure, with its size in inches; inside the block our style applies."""
    from matplotlib.figure import Figure

    with _style():
        yield Figure(figsize=(width, height), layout="constrained")


def to_png(figure: Any) -> bytes:
    """Draw a figure as PNG, 150 dots per inch."""
    return _save(figure, format="png", dpi=150)


def to_svg(figure: Any) -> bytes:
    """Draw a figure as SVG; the same figure gives the same bytes."""
    return _save(figure, format="svg", metadata={"Date": None})


def label_axes(panel: Any, horizontal: str, vertical: str) -> None:
    """Label both axes, and add a light grid."""
    panel.set_xlabel(horizontal)
    panel.set_ylabel(vertical)
    panel.grid(alpha=0.3)


def count_on_axes(panel: Any, *, vertical: bool = True) -> None:
    """Put ticks at whole numbers only, on the horizontal axis and, by default, on the vertical one."""
    from matplotlib.ticker import MaxNLocator

    for axis in (panel.xaxis, panel.yaxis) if vertical else (panel.xaxis,):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def shorten_name(name: str, longest: int = _LONGEST_NAME) -> str:
    r"""Make a name fit a legend: at most `longest` characters, on one line, with no markup.

    >>> shorten_name("_a $x$"), shorten_name("n" * 40)
    (' _a \\$x\\$', 'nnnnnnnnnnnnnn…nnnnnnnnnnnnn')
    """
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    if len(shown) > longest:
        half = longest // 2
        shown = f"{shown[:half]}…{shown[1 - half :]}"
    # legends leave out labels that begin with _, and text between dollars is set as a formula
    return (" " if shown.startswith("_") else "") + shown.replace("$", r"\$")


def _save(figure: Any, **options: Any) -> bytes:
    content = io.BytesIO()
    with _style():
        figure.savefig(content, **options)
    return content.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "preselect", "font.size": 9}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")  # such characters become boxes
        yield
