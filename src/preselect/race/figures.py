"""Draw figures about races, as PNG."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from preselect.race.calibration import CalibrationBin
from preselect.race.result import Knowledge, PastRace
from preselect.race.summary import ArmCurve, SingleArm
from preselect.reports.figures import (
    BLUE,
    COLOURS,
    DASHES,
    GREY,
    ORANGE,
    VERMILION,
    count_on_axes,
    label_axes,
    new_figure,
    shorten_name,
    to_png,
)

_LIGHT_GREY = "#BBBBBB"
_MIN_SECONDS = 1e-3  # a logarithmic scale has no 0

_MARKS: dict[Knowledge, dict[str, Any]] = {
    Knowledge.EXACT: {"marker": "o", "color": BLUE, "label": "it won: its time"},
    Knowledge.AT_LEAST: {"marker": "^", "color": ORANGE, "facecolor": "none", "label": "it was behind: a lower bound"},
    Knowledge.LIMIT: {"marker": "x", "color": VERMILION, "label": "it failed: the limit"},
}


def draw_plays_and_wins(curves: Sequence[ArmCurve]) -> bytes:
    """Draw how often each arm was played and won, over the races."""
    with new_figure(10.0, 4.6) as figure:
        for panel, what in zip(figure.subplots(1, 2), ("plays", "wins"), strict=True):
            _draw_curves(panel, curves, what)
        handles, labels = panel.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return to_png(figure)


def _draw_curves(panel: Any, curves: Sequence[ArmCurve], what: str) -> None:
    for curve, colour, dash in zip(curves, cycle(COLOURS), cycle(DASHES), strict=False):
        style = (GREY, ":") if curve.arms > 1 else (colour, dash)
        counts = np.concatenate(([0], getattr(curve, what)))
        panel.plot(counts, color=style[0], linestyle=style[1], linewidth=1.6, label=shorten_name(curve.name))
    label_axes(panel, "races", f"{what} so far")
    panel.set_ylim(bottom=0)
    panel.set_xlim(0, len(curves[0].plays))
    count_on_axes(panel)


def draw_times(races: Sequence[PastRace], best: SingleArm) -> bytes:
    """Draw every race's time, what it tells about the best single arm's time, and the running totals of both."""
    with new_figure(10.0, 4.4) as figure:
        each, total = figure.subplots(1, 2)
        _draw_each(each, races, best)
        _draw_total(total, best)
        each.set_title("each race", fontsize=10)
        total.set_title("total over solved races with the arm", fontsize=10)
        for panel in (each, total):
            count_on_axes(panel, vertical=False)
    return to_png(figure)


def _draw_each(panel: Any, races: Sequence[PastRace], best: SingleArm) -> None:
    compared = {pairing.position for pairing in best.pairings}
    rest = {
        position: race.seconds
        for position, race in enumerate(races, start=1)
        if position not in compared and race.is_timed and race.seconds is not None
    }
    _scatter(panel, rest, s=9, color=_LIGHT_GREY, label="without it, or without a winner")
    for how, mark in _MARKS.items():
        times = {pairing.position: pairing.known.seconds for pairing in best.pairings if pairing.known.how == how}
        _scatter(panel, times, s=22, linewidths=1.1, **mark)
    _draw_failures(panel, best)
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter("{x:g}")
    label_axes(panel, "race", "seconds")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)


def _draw_failures(panel: Any, best: SingleArm) -> None:
    """Join each failure of the arm, drawn at the limit, to the time of the race that another arm won."""
    failures = [pairing for pairing in best.pairings if pairing.known.how == Knowledge.LIMIT]
    races = {pairing.position: pairing.race.seconds or 0.0 for pairing in failures}
    limits = [_raise_to_scale(pairing.known.seconds) for pairing in failures]
    panel.vlines([*races], [*map(_raise_to_scale, races.values())], limits, color=VERMILION, linewidth=0.6, alpha=0.6)
    _scatter(panel, races, s=9, color=VERMILION, label="the race in which it failed")


def _scatter(panel: Any, times: dict[int, float], **style: Any) -> None:
    if times:
        panel.scatter(np.array([*times]), np.array([*map(_raise_to_scale, times.values())]), **style)


def _raise_to_scale(seconds: float) -> float:
    return max(seconds, _MIN_SECONDS)


def _draw_total(panel: Any, best: SingleArm) -> None:
    positions = [0, *(pairing.position for pairing in best.pairings)]
    totals = {
        "the races": ([pairing.race.seconds or 0.0 for pairing in best.pairings], BLUE, "-"),
        f"{shorten_name(best.arm)} alone, at least": ([one.known.seconds for one in best.pairings], VERMILION, "--"),
    }
    for label, (seconds, colour, dash) in totals.items():
        panel.step(positions, np.cumsum([0.0, *seconds]), where="post", color=colour, linestyle=dash, label=label)
    label_axes(panel, "race", "seconds so far")
    panel.set_ylim(bottom=0)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)


def draw_calibration(bins: Sequence[CalibrationBin]) -> bytes:
    """Draw how often arms won against how often that was predicted; right predictions lie on the diagonal."""
    with new_figure(5.2, 4.8) as figure:
        panel = figure.subplots()
        panel.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="as predicted")
        _draw_bins(panel, bins)
        panel.set(xlim=(-0.03, 1.03), ylim=(-0.06, 1.06))
        label_axes(panel, "predicted winning probability (numbers: predictions)", "share that won")
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False)
    return to_png(figure)


def _draw_bins(panel: Any, bins: Sequence[CalibrationBin]) -> None:
    predicted, observed = [one.predicted for one in bins], [one.observed for one in bins]
    style: dict[str, Any] = {"color": BLUE, "marker": "o", "linestyle": "none", "capsize": 3}
    errors = [one.standard_error for one in bins]
    panel.errorbar(predicted, observed, yerr=errors, label="observed ± standard error", **style)
    for one in bins:
        point = (one.predicted, one.observed)
        panel.annotate(str(one.size), point, xytext=(6, -11), textcoords="offset points", fontsize=8, color="#555")
