"""Figures of a study: for each measure, a panel per setting with the sums of every policy over the rounds."""

import math
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from preselect.files import write_whole
from preselect.reports.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    VERMILION,
    new_figure,
    shorten_name,
    to_png,
    to_svg,
)
from preselect.study.plan import Setting
from preselect.study.results import Results
from preselect.study.statistics import standard_error

_WINE = "#882255"
_LONG = (0, (5, 1))
_STYLES: dict[str, tuple[str, Any]] = {
    "cppl": (VERMILION, "-"),
    "max-theta": (BLUE, _LONG),
    "epsilon-greedy": (GREEN, "--"),
    "mm": (ORANGE, "-."),
    "random": ("#999999", ":"),
    "newton": (BLACK, "-"),
    "thompson": (SKY_BLUE, "-"),
    "ofu-mnl": (PURPLE, "--"),
    "ucb-mnl": (PURPLE, "-."),
    "ts-mnl": (SKY_BLUE, "-."),
    "colstim": (ORANGE, _LONG),
    "linucb": (GREEN, ":"),
    "epoch-greedy": (_WINE, "--"),
}
_SPARE_STYLES = [(PURPLE, "-"), (SKY_BLUE, "--"), (BLACK, "-."), (_WINE, ":"), (BLUE, ":")]
_BASELINE_STYLES = [(GREY, (0, (1, 1))), (GREY, (0, (3, 1, 1, 1))), (GREY, (0, (6, 2)))]
_MAX_NAME = 60
_CHARACTERS = 13  # of a legend that fit into an inch


def write_figures(results: Results) -> list[Path]:
    """Draw the figure of each measure, as PNG and as SVG, into the folder of the results.

    Parameters
    ----------
    results : Results
        What to draw; settings and policies without a finished block are left out.
    """
    written = []
    for measure in results.plan.measures:
        figure = draw(results, measure)
        for suffix, save in (("png", to_png), ("svg", to_svg)):
            written.append(results.folder / f"{name_figure(measure)}.{suffix}")
            write_whole(written[-1], save(figure))
    return written


def name_figure(measure: str) -> str:
    """Return the file name of a measure's figure, without suffix.

    >>> name_figure("top_k")
    'top-k'
    """
    return measure.replace("_", "-")


def draw(results: Results, measure: str) -> Any:
    """Draw means with standard errors on a logarithmic scale."""
    plan = results.plan
    columns = min(3, len(plan.settings))
    rows = math.ceil(len(plan.settings) / columns)
    with new_figure(max(6.0, 3.5 * columns), 2.5 * rows + 1.2) as figure:
        panels = figure.subplots(rows, columns, squeeze=False, sharey=plan.shares_scale and "row")
        for position, setting in enumerate(plan.settings):
            panel = panels[position // columns, position % columns]
            _draw_panel(panel, results, setting, measure)
            if position % columns == 0:
                panel.set_ylabel(plan.measures[measure].label)
            if position + columns >= len(plan.settings):
                panel.set_xlabel("round")
        for panel in panels.ravel()[len(plan.settings) :]:
            panel.remove()
        _finish(figure, results, measure)
    return figure


def _draw_panel(panel: Any, results: Results, setting: Setting, measure: str) -> None:
    rounds = results.space_checkpoints(setting)
    baselines = results.find_data(setting).baselines.get(measure, {})
    for (name, total), (colour, dash) in zip(baselines.items(), cycle(_BASELINE_STYLES), strict=False):
        panel.plot(rounds, total * rounds / rounds[-1], color=colour, linestyle=dash, linewidth=1.2, label=name)
    curves = results.load(measure)
    for policy, style in _choose_styles(results.plan.policies).items():
        if (setting, policy) in curves:
            _draw_policy(panel, rounds, curves[setting, policy], policy, style)
    panel.set_yscale("log")
    panel.set_xlim(0, rounds[-1])
    panel.set_title(_shorten(results.plan.describe_setting(setting)), fontsize=9)
    panel.grid(alpha=0.3)


def _draw_policy(panel: Any, rounds: Any, curves: Any, policy: str, style: tuple[str, Any]) -> None:
    colour, dash = style
    mean, error = curves.mean(axis=0), np.nan_to_num(standard_error(curves))
    panel.plot(rounds, mean, color=colour, linestyle=dash, linewidth=1.6, label=_shorten(policy))
    panel.fill_between(rounds, np.maximum(mean - error, 1e-9), mean + error, color=colour, alpha=0.35, lw=0)


def _choose_styles(policies: tuple[str, ...]) -> dict[str, tuple[str, Any]]:
    """Choose colour and dash of each policy: the same in every figure, except for policies with parameters."""
    spare = cycle(_SPARE_STYLES)
    return {policy: _STYLES.get(policy) or next(spare) for policy in policies}


def _finish(figure: Any, results: Results, measure: str) -> None:
    """Limit the lower end of the axes, when all lines are there (a row may share its scale); add legend and title."""
    for panel in figure.axes:
        panel.set_ylim(bottom=max(panel.get_ylim()[0], panel.get_ylim()[1] / 3000))
    handles = {
        label: handle for panel in figure.axes for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    longest = max(map(len, handles), default=0) + 6  # characters, with the line before the name
    columns = max(1, min(5, int(figure.get_figwidth() * _CHARACTERS / longest)))
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, frameon=False)
    plan, repetitions = results.plan, max(map(len, results.load(measure).values()), default=0)
    about = plan.describe(results.find_data(plan.settings[0]).rounds).replace("$", r"\$")
    shown = f"mean ± standard error of {repetitions} repetitions" if repetitions > 1 else "a single repetition"
    figure.suptitle(f"{about}\n{shown}, log scale", fontsize=10)


def _shorten(name: str) -> str:
    return shorten_name(name, _MAX_NAME)
