"""Figures about races, as PNG. Colours are Okabe and Ito's, made for colour-blind readers; dashes and marks help."""

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import numpy as np

from preselect.race.account import AT_LEAST, EXACT, LIMIT, Bin, Comparison, Curve, Race

_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7")
_DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1, 1, 1, 1, 1)))  # 5 and 7 have no common divisor: 35 pairs
_GREY = "#888888"
_LONGEST_NAME = 28
_LEAST_SECONDS = 1e-3  # a logarithmic scale has no 0


def plays_and_wins(curves: Sequence[Curve]) -> bytes:
    """How often each arm was chosen and won, over the races."""
    with _figure(10.0, 4.6) as (drawing, png):
        for panel, what in zip(drawing.subplots(1, 2), ("plays", "wins"), strict=True):
            for curve, colour, dash in zip(curves, cycle(_COLOURS), cycle(_DASHES), strict=False):
                if curve.arms > 1:
                    colour, dash = _GREY, ":"
                counts = np.concatenate(([0], getattr(curve, what)))
                panel.plot(counts, color=colour, linestyle=dash, linewidth=1.6, label=plain(curve.name))
            _label(panel, "races", f"{what} so far")
            panel.set_ylim(bottom=0)
            panel.set_xlim(0, len(counts) - 1)
            _whole_numbers(panel)
        handles, labels = panel.get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return png()


def times(races: Sequence[Race], best: Comparison) -> bytes:
    """The time of every race with what it tells of the best single arm, and how both add up."""
    with _figure(10.0, 4.4) as (drawing, png):
        each, added = drawing.subplots(1, 2)
        _draw_each(each, races, best)
        _draw_added(added, best)
        each.set_title("each race", fontsize=10)
        added.set_title("added up, over the races with the arm", fontsize=10)
        for panel in (each, added):
            _whole_numbers(panel, vertical=False)
    return png()


def _draw_each(panel: Any, races: Sequence[Race], best: Comparison) -> None:
    among = {place for place, _, _ in best.pairs}
    rest = [(place, race.seconds) for place, race in enumerate(races, start=1)
            if place not in among and race.seconds is not None]  # fmt: skip
    marks: dict[str, dict[str, Any]] = {
        EXACT: {"marker": "o", "color": "#0072B2", "label": "it won: its time"},
        AT_LEAST: {"marker": "^", "color": "#E69F00", "facecolor": "none", "label": "it was behind: it needs longer"},
        LIMIT: {"marker": "x", "color": "#D55E00", "label": "it failed: up to the limit"},
    }
    if rest:
        panel.scatter(*_drawn(rest), s=9, color="#BBBBBB", label="without it, or void")
    for how, mark in marks.items():
        pairs = [(place, known.seconds) for place, _, known in best.pairs if known.how == how]
        if pairs:
            panel.scatter(*_drawn(pairs), s=22, linewidths=1.1, **mark)
    failed = [(place, race.seconds or 0.0) for place, race, known in best.pairs if known.how == LIMIT]
    if failed:
        places, seconds = _drawn(failed)
        limits = _drawn([(place, known.seconds) for place, _, known in best.pairs if known.how == LIMIT])[1]
        panel.vlines(places, seconds, limits, color="#D55E00", linewidth=0.6, alpha=0.6)
        panel.scatter(places, seconds, s=9, color="#D55E00", label="the race that it failed in")
    panel.set_yscale("log")
    _label(panel, "race", "seconds")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)


def _draw_added(panel: Any, best: Comparison) -> None:
    places = [0, *(place for place, _, _ in best.pairs)]
    of_races = np.cumsum([0.0, *(race.seconds or 0.0 for _, race, _ in best.pairs)])
    of_arm = np.cumsum([0.0, *(known.seconds for _, _, known in best.pairs)])
    panel.step(places, of_races, where="post", color="#0072B2", linestyle="-", label="the races")
    panel.step(
        places, of_arm, where="post", color="#D55E00", linestyle="--", label=f"{plain(best.arm)} alone, at least"
    )
    _label(panel, "race", "seconds so far")
    panel.set_ylim(bottom=0)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)


def _drawn(pairs: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [place for place, _ in pairs], [max(seconds, _LEAST_SECONDS) for _, seconds in pairs]


def reliability(bins: Sequence[Bin]) -> bytes:
    """How often it came as predicted, bin by bin, with standard errors; on the diagonal if all is well."""
    with _figure(5.2, 4.8) as (drawing, png):
        panel = drawing.subplots()
        panel.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1, label="as predicted")
        panel.errorbar(
            [one.predicted for one in bins],
            [one.observed for one in bins],
            yerr=[one.standard_error for one in bins],
            color="#0072B2", marker="o", linestyle="none", capsize=3, label="observed ± standard error",
        )  # fmt: skip
        for one in bins:
            place = (one.predicted, one.observed)
            panel.annotate(str(one.size), place, xytext=(6, -11), textcoords="offset points", fontsize=8, color="#555")
        panel.set(xlim=(-0.03, 1.03), ylim=(-0.06, 1.06))
        _label(panel, "predicted chance to win (numbers: predictions)", "share that won")
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False)
    return png()


@contextmanager
def _figure(width: float, height: float) -> Iterator[tuple[Any, Callable[[], bytes]]]:
    """A figure, and what gives its PNG afterwards."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    content = io.BytesIO()
    with mpl.rc_context({"font.size": 9}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")  # drawn as boxes; the tables have the name
        drawing = Figure(figsize=(width, height), layout="constrained")
        yield drawing, content.getvalue
        drawing.savefig(content, format="png", dpi=150)


def _label(panel: Any, horizontal: str, vertical: str) -> None:
    panel.set_xlabel(horizontal)
    panel.set_ylabel(vertical)
    panel.grid(alpha=0.3)


def _whole_numbers(panel: Any, *, vertical: bool = True) -> None:
    from matplotlib.ticker import MaxNLocator

    for axis in (panel.xaxis, panel.yaxis) if vertical else (panel.xaxis,):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def plain(name: str) -> str:
    r"""A name as a figure can show it: not too long, on one line, and with no character that means something there.

    >>> plain("_a $x$"), plain("n" * 40)
    (' _a \\$x\\$', 'nnnnnnnnnnnnnn…nnnnnnnnnnnnn')
    """
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    if len(shown) > _LONGEST_NAME:
        half = _LONGEST_NAME // 2
        shown = f"{shown[:half]}…{shown[1 - half :]}"
    # what begins with _ is left out of legends, and text between dollars is set as a formula
    return (" " if shown.startswith("_") else "") + shown.replace("$", r"\$")
