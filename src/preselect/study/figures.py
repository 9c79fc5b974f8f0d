"""Draw the figures of a study: for each measure, a panel per setting with every policy's sums over the rounds.

If settings differ in the budget of their after-races, one more figure shows the gain against the cost.
"""

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
    label_axes,
    new_figure,
    shorten_name,
    to_png,
    to_svg,
)
from preselect.study.plan import Setting
from preselect.study.results import Results, name_figure
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
_CHARACTERS = 13  # how many characters of a legend fit into an inch

_Curve = list[tuple[float, float]]  # for each budget: CPU time of after-races, and the ratio


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
    """Set the lower limits of the axes once all lines are drawn (a row may share its scale); add legend and title."""
    for panel in figure.axes:
        panel.set_ylim(bottom=max(panel.get_ylim()[0], panel.get_ylim()[1] / 3000))
    handles = {
        label: handle for panel in figure.axes for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    longest = max(map(len, handles), default=0) + 6  # in characters, with room for the line before the name
    columns = max(1, min(5, int(figure.get_figwidth() * _CHARACTERS / longest)))
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, frameon=False)
    plan, repetitions = results.plan, max(map(len, results.load(measure).values()), default=0)
    about = plan.describe(results.find_data(plan.settings[0]).rounds).replace("$", r"\$")
    shown = f"mean ± standard error of {repetitions} repetitions" if repetitions > 1 else "a single repetition"
    figure.suptitle(f"{about}\n{shown}, log scale", fontsize=10)


def _shorten(name: str) -> str:
    return shorten_name(name, _MAX_NAME)


def write_tradeoff(results: Results) -> Path | None:
    """Draw what after-races gain (the first ratio) against what they cost (the first quotient), if budgets vary.

    Parameters
    ----------
    results : Results
        What to draw: settings that differ in `after` make up a curve.
    """
    curves = _trace_curves(results)
    if max(map(len, curves.values()), default=0) < 2:
        return None
    path = results.folder / "after-races.png"
    with new_figure(8.0, 4.5) as figure:
        _draw_curves(figure.subplots(), results, curves)
        write_whole(path, to_png(figure))
        write_whole(path.with_suffix(".svg"), to_svg(figure))
    return path


def _trace_curves(results: Results) -> dict[str, _Curve]:
    """Return the curve of each scenario and k, and of the median over them for each budget."""
    found, plan = results.compute_ratios(), results.plan
    costs = next((found[name] for name in plan.quotients if name in found), {})
    ratios = next((values for name, values in found.items() if name not in plan.quotients), {})
    curves: dict[str, _Curve] = {}
    groups: dict[str, _Curve] = {}
    for setting in sorted(plan.settings, key=lambda one: getattr(one, "after", 0.0)):
        if (key := (setting, plan.policies[0])) in costs:
            point = costs[key], ratios[key]
            curves.setdefault(str(setting._replace(after=0.0)), []).append(point)
            groups.setdefault(plan.name_group(setting), []).append(point)
    lasting = {name: curve for name, curve in curves.items() if len(curve) > 1}
    if len(lasting) > 1 and len({setting.k for setting in plan.settings}) == 1:
        lasting["median"] = [(x, y) for x, y in (np.median(points, axis=0).tolist() for points in groups.values())]
    return lasting


def _draw_curves(panel: Any, results: Results, curves: dict[str, _Curve]) -> None:
    for number, (name, curve) in enumerate(curves.items()):
        style = {"color": BLACK, "linewidth": 2.4} if name == "median" else {"linewidth": 1.0, "alpha": 0.8}
        panel.plot(*zip(*curve, strict=True), marker="osv^DP*X"[number % 8], markersize=4, label=name, **style)
    panel.axhline(1.0, color=GREY, linestyle=":", linewidth=1.0)
    panel.set_yscale("log")
    for write in (panel.yaxis.set_major_formatter, panel.yaxis.set_minor_formatter):
        write("{x:g}")
    label_axes(panel, next(iter(results.plan.quotients)), next(iter(results.compute_ratios())))
    panel.set_title(f"{results.plan.policies[0]}, with after-races of several budgets", fontsize=10)
    panel.grid(alpha=0.3)
    panel.figure.legend(loc="outside right center", fontsize=8, frameon=False)
