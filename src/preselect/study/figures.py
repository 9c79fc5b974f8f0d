"""Figures of a study. Colours are Okabe and Ito's, made for colour-blind readers, and lines differ in dash too."""

import math
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from preselect.study.results import Results
from preselect.study.statistics import standard_error

_STYLES = {
    "cppl": ("#D55E00", "-"),
    "max-theta": ("#0072B2", (0, (5, 1))),
    "epsilon-greedy": ("#009E73", "--"),
    "mm": ("#E69F00", "-."),
    "random": ("#999999", ":"),
    "newton": ("#000000", "-"),
    "thompson": ("#56B4E9", "-"),
    "ofu-mnl": ("#CC79A7", "--"),
    "ucb-mnl": ("#CC79A7", "-."),
    "ts-mnl": ("#56B4E9", "-."),
    "colstim": ("#E69F00", (0, (5, 1))),
    "linucb": ("#009E73", ":"),
    "epoch-greedy": ("#882255", "--"),
}
_SPARE_STYLES = [("#CC79A7", "-"), ("#56B4E9", "--"), ("#000000", "-."), ("#882255", ":"), ("#0072B2", ":")]
_BASELINE_STYLES = [("#888888", (0, (1, 1))), ("#888888", (0, (3, 1, 1, 1))), ("#888888", (0, (6, 2)))]


def styles(policies: tuple[str, ...]) -> dict[str, tuple[str, Any]]:
    """Colour and dash of each policy: the same in every figure unless it has parameters of its own."""
    spare = cycle(_SPARE_STYLES)
    return {policy: _STYLES.get(policy) or next(spare) for policy in policies}


def figure(results: Results, measure: str) -> Any:
    """Means of what adds up, with standard errors, one panel per setting, on a logarithmic scale."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    plan, curves = results.plan, results.load(measure)
    columns = min(3, len(plan.settings))
    lines = math.ceil(len(plan.settings) / columns)
    with mpl.rc_context({"svg.hashsalt": "preselect", "font.size": 9}):
        drawing = Figure(figsize=(max(6.0, 3.5 * columns), 2.5 * lines + 1.2), layout="constrained")
        panels = drawing.subplots(lines, columns, squeeze=False, sharey=plan.shares_scale and "row")
        for place, setting in enumerate(plan.settings):
            panel, rounds = panels[place // columns, place % columns], plan.checkpoints(setting)
            for (name, total), (colour, dash) in zip(
                plan.baselines(setting, measure).items(), cycle(_BASELINE_STYLES), strict=False
            ):
                panel.plot(rounds, total * rounds / rounds[-1], color=colour, linestyle=dash, linewidth=1.2, label=name)
            for policy, (colour, dash) in styles(plan.policies).items():
                values = curves.get((setting, policy))
                if values is None:
                    continue
                mean, error = values.mean(axis=0), np.nan_to_num(standard_error(values))
                panel.plot(rounds, mean, color=colour, linestyle=dash, linewidth=1.6, label=policy)
                panel.fill_between(rounds, np.maximum(mean - error, 1e-9), mean + error, color=colour, alpha=0.35, lw=0)
            panel.set_yscale("log")
            panel.set_xlim(0, rounds[-1])
            panel.set_title(plan.describe(setting), fontsize=9)
            panel.grid(alpha=0.3)
            if place % columns == 0:
                panel.set_ylabel(plan.measures[measure].label)
            if place + columns >= len(plan.settings):
                panel.set_xlabel("round")
        for panel in panels.ravel()[len(plan.settings) :]:
            panel.remove()
        for panel in drawing.axes:  # cut below only when all lines are there, because rows may share their scale
            panel.set_ylim(bottom=max(panel.get_ylim()[0], panel.get_ylim()[1] / 3000))
        labels = {
            policy: handle
            for panel in drawing.axes
            for handle, policy in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        drawing.legend(
            labels.values(), labels, loc="outside lower center", ncols=min(5, max(1, len(labels))), frameon=False
        )
        repetitions = max((len(values) for values in curves.values()), default=0)
        drawing.suptitle(
            f"{plan.about}\nmean ± standard error of {repetitions} repetitions, log scale",
            fontsize=10,
        )
    return drawing


def write_figures(results: Results) -> list[Path]:
    """The figure of each measure as PNG and SVG."""
    written = []
    for measure in results.plan.measures:
        drawing = figure(results, measure)
        for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
            written.append(results.folder / f"{file_name(measure)}.{suffix}")
            drawing.savefig(written[-1], **options)
    return written


def file_name(measure: str) -> str:
    """Name of a measure's figure, without suffix.

    >>> file_name("top_k")
    'top-k'
    """
    return measure.replace("_", "-")
